"""The boundary around the root: which paths are inside it, which are guarded, and how to open them.

A model's path is resolved before it is used, and opened in a way that notices a link that another
program has put into the path since then. Does not know what the files contain.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from parley.errors import ParleyError
from parley.text import is_hidden
from parley.workspace.ignored import RULES_BYTES, IgnoreRules
from parley.workspace.opening import (
    BoundaryError,
    content_below,
    folder_below,
    legible_path,
    open_below,
)
from parley.workspace.root import work_tree

HIDDEN, IGNORED, SECRET, GIT, PARLEYS = (
    "hidden",
    "ignored by Git",
    "named like a secret",
    "part of Git's own data",
    "part of Parley's own data",
)
"""Why a path is guarded: it can be read or changed only after a yes for this very path."""

SECRETS = (".env*", "*.pem", "id_*", "*.key")
"""The names of files that probably contain secrets, in lower case."""

_GIT_NAMES = (".git", "git~1")
"""The spellings of Git's folder; the second is its short name on a Windows file system."""
_LONGEST = 4096
DEEPEST = 100
"""The maximum number of folders in a place. The check of a deeper place would take too long."""


class Boundary:
    """The boundary around a root.

    A *place* is a path from the root to a file or folder, with `/` and without links, `.` and `..`;
    the root itself is "". Only `place` makes a place from a model's path.
    """

    def __init__(self, root: Path, own: Sequence[Path] = (), settings: Sequence[Path] = ()) -> None:
        """`own` are Parley's folders with data, and `settings` those with its settings."""
        self.root = Path(os.path.realpath(root))
        self._own, self._settings = (
            frozenset(Path(os.path.realpath(each)) for each in folders)
            for folders in (own, settings)
        )
        top = work_tree(self.root) or self.root
        self._above = _from(top, self.root)
        """The path from the work tree's top to the root."""
        self._top = top

    def place(self, path: str) -> str:
        """The place that a model's path means; the file need not exist. Raises BoundaryError.

        Absolute paths inside the root are accepted.
        """
        try:
            return self._place(self._checked(path))
        except OSError as error:  # a name is too long, or a folder is closed to the user
            raise BoundaryError(f"{legible_path(path)}: {error.strerror}") from error

    def _place(self, path: str) -> str:
        real = Path(os.path.realpath(self.root / path))
        if not real.is_relative_to(self.root):
            raise BoundaryError(
                f"{legible_path(path)} is outside the workspace. Paths are relative to its root"
            )
        if (place := _from(self.root, real)).count("/") >= DEEPEST:
            raise BoundaryError(f"{legible_path(path)} has more than {DEEPEST} folders")
        # `realpath` leaves a link that leads to itself as it is, and further links after it.
        names = place.split("/")
        if any((self.root / "/".join(names[:end])).is_symlink() for end in range(len(names) + 1)):
            raise BoundaryError(f"{legible_path(path)} contains a link that leads to itself")
        return place

    def place_to_write(self, path: str) -> str:
        """The place that a model's path means, if tools may ever write there. Raises
        BoundaryError.
        """
        place = self.place(path)
        if not place:
            raise BoundaryError(f"{legible_path(path)} is the workspace itself")
        if is_of_git(place) or is_of_git(self._spelled(path)):
            raise BoundaryError(f"{legible_path(path)} is {GIT}, which no tool may change")
        if self._is_below(place, self._own):
            raise BoundaryError(f"{legible_path(path)} is {PARLEYS}, which no tool may change")
        return place

    def path(self, place: str) -> Path:
        """The absolute path of a place."""
        return self.root / place

    def guard(self, path: str) -> str:
        """Why a model's path is guarded, as an adjective; "" if it is not. Raises BoundaryError.

        Looks at the path as written and at the place that it means, because a link with a plain
        name may lead to a guarded file.
        """
        place, spelled = self.place(path), self._spelled(path)
        rules = self.rules()
        is_folder = self.path(place).is_dir()
        return next(
            filter(None, (self.guarded(each, rules, is_folder) for each in (place, spelled))), ""
        )

    def guarded(self, place: str, rules: IgnoreRules | None, is_folder: bool) -> str:
        """Why a place is guarded; "" if it is not. Without `rules`, only its names count."""
        names = place.split("/") if place else []
        if is_of_git(place):
            return GIT
        if why := self.of_parley(place):
            return why
        if names and not is_folder and is_secret(names[-1]):
            return SECRET
        if any(name.startswith(".") for name in names):
            return HIDDEN
        is_ignored = place and rules and self.ignores(place, rules, is_folder)
        return IGNORED if is_ignored else ""

    def of_parley(self, place: str) -> str:
        """Why a place is guarded because Parley's own files are there; "" if they are not."""
        return PARLEYS if self._is_below(place, self._own | self._settings) else ""

    def _is_below(self, place: str, folders: frozenset[Path]) -> bool:
        """Whether a place is one of these folders, or below one."""
        path = self.path(place)
        return any(path.is_relative_to(folder) for folder in folders)

    def ignores(self, place: str, rules: IgnoreRules, is_folder: bool) -> bool:
        """Whether Git ignores a place."""
        inner = f"{self._above}/{place}" if self._above else place
        return rules.ignores(inner, is_folder=is_folder)

    def rules(self) -> IgnoreRules:
        """Git's rules for one operation."""
        return IgnoreRules(self._rules_file)

    def _rules_file(self, file: str) -> bytes | None:
        try:
            return content_below(self._top, file, RULES_BYTES, is_cut=True)
        except (OSError, ParleyError):
            return None

    def _checked(self, path: str) -> str:
        try:
            size = len(os.fsencode(path))
        except UnicodeEncodeError:  # a lone surrogate
            size = _LONGEST + 1
        if "\0" in path or size > _LONGEST:
            raise BoundaryError(f"{legible_path(path)} is not a path")
        return path

    def _spelled(self, path: str) -> str:
        """The path as written, from the root; "" if only its links lead into the root."""
        whole = Path(os.path.normpath(self.root / path))
        return _from(self.root, whole) if whole.is_relative_to(self.root) else ""

    @contextmanager
    def folder(self, place: str, *, create: bool = False) -> Iterator[int]:
        """An open folder, for `dir_fd`; with `create`, missing folders are created.

        Raises BoundaryError if another program has put a link into the path, else OSError.
        """
        with folder_below(self.root, place, create=create) as descriptor:
            yield descriptor

    def open(self, place: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
        """Open a regular file; returns its descriptor. Raises BoundaryError or OSError."""
        return open_below(self.root, place, flags, mode)

    def content(self, place: str, most: int, *, is_cut: bool = False) -> bytes:
        """The bytes of a regular file. If it has more than `most`, raises BoundaryError, or returns
        the first bytes if `is_cut`. May raise OSError.
        """
        return content_below(self.root, place, most, is_cut=is_cut)


def _from(above: Path, path: Path) -> str:
    """The path from one folder to another, with "" for the same folder."""
    return path.relative_to(above).as_posix() if path != above else ""


def is_of_git(place: str) -> bool:
    """Whether a place is Git's folder or file, or is below it, on any file system.

    Some file systems ignore case and invisible characters.
    """
    return any(_folded(name).rstrip(". ") in _GIT_NAMES for name in place.split("/"))


def sealed(place: str) -> str:
    """Why no question may include a hidden file at a place, as an adjective; "" if the user may
    agree to it.
    """
    if is_of_git(place):
        return GIT
    return SECRET if is_secret(place.rpartition("/")[2]) else ""


def is_secret(name: str) -> bool:
    """Whether a file's name looks like a secret."""
    return any(fnmatchcase(_folded(name), pattern) for pattern in SECRETS)


def _folded(name: str) -> str:
    """A name as a file system compares it that ignores case and invisible characters."""
    return "".join(c for c in name if not is_hidden(c)).casefold()
