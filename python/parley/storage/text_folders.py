"""Folders with texts for models: lists and reads their files within bounds.

A file of a project counts only if it is really inside the project: a link may lead anywhere.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from parley.bounded_files import whole
from parley.errors import ParleyError
from parley.instructions.markdown_files import MOST_FRONT_MATTER

MOST_ENTRIES = 1_000
"""The maximum number of entries in a folder; a folder with more is not used, because any selection
would be arbitrary."""
MOST_FRONT_MATTERS, MOST_TEXT, MOST_NAMES = 60_000, 2_000_000, 10_000
"""The maximum number of bytes and names that a project may offer."""


def names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted; none if there is no folder. Raises ParleyError."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, MOST_ENTRIES + 1)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ParleyError(f"{error.strerror}, so not read") from error
    if len(names) > MOST_ENTRIES:
        raise ParleyError(f"it has more than {MOST_ENTRIES} entries, so it is not read")
    return sorted(names)


def content_of(path: Path, most: int, root: Path | None = None) -> bytes:
    """The bytes of a regular file, which must really be inside `root`, if given.

    Raises ParleyError.
    """
    try:
        if root is None:
            return whole(path, most)
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(os.path.realpath(root)):
            raise ParleyError("it is a link that leads elsewhere, so it is not read")
        content = whole(real, most, follows=False)
        if os.path.realpath(real) != str(real):  # a link has replaced one of its folders
            raise ParleyError("it changed while it was read")
    except OSError as error:
        raise ParleyError(f"{error.strerror or error}, so not read") from error
    return content


class ProjectRoom:
    """The room for all files that a project offers, because each turn looks at them: for front
    matter, which is slow to read, for other text, and for names of files.
    """

    def __init__(self) -> None:
        self._front, self._text, self._names = MOST_FRONT_MATTERS, MOST_TEXT, MOST_NAMES

    def take_front_matter(self, content: bytes) -> None:
        """Take the room for a file's front matter. Raises ParleyError, as the others do."""
        end = content.find(b"\n---", 3) if content.startswith(b"---") else 0
        self._front -= min(len(content) if end < 0 else end, MOST_FRONT_MATTER + 1)
        _check(self._front, f"{MOST_FRONT_MATTERS} bytes of front matter")

    def take_text(self, content: bytes) -> None:
        """Take the room for a text."""
        self._text -= len(content)
        _check(self._text, f"{MOST_TEXT} bytes of text")

    def take_names(self, count: int) -> None:
        """Take the room for some names."""
        self._names -= count
        _check(self._names, f"{MOST_NAMES} files and folders")


def _check(left: int, most: str) -> None:
    if left < 0:
        raise ParleyError(f"the project's files have more than {most}, so the rest is not read")


def is_inside(path: Path, root: Path) -> bool:
    """Whether a path, with all links followed, is inside a folder, or is this folder."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
