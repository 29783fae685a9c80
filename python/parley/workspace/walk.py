"""The files below a folder that tools list and search: neither guarded nor reached through a link.

Bounded, because a folder may have a million names. Nearer files come first. Does not read files.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.workspace.boundary import DEEPEST, HIDDEN, IGNORED, SECRET, Boundary
from parley.workspace.ignored import glob_test

Kind = Literal["file", "folder", "link", "other"]

_UNREADABLE = "unreadable"


@dataclass(slots=True)
class WalkBudget:
    """How many names a walk may still look at, and until when."""

    names: int = 20_000
    seconds: float = 5.0
    now: Callable[[], float] = time.monotonic
    most: int = field(init=False)
    """The number of names at the beginning."""
    until: float = field(init=False)
    ended: str = ""
    """Why the walk ended early, for the model; "" if it did not."""

    def __post_init__(self) -> None:
        self.most, self.until = self.names, self.now() + self.seconds

    @property
    def left_s(self) -> float:
        """The seconds that are left."""
        return max(self.until - self.now(), 0.0)

    def is_late(self) -> bool:
        """Whether time is up; if so, the walk ends."""
        if not self.left_s:
            self.ended = self.ended or f"everything not reached within {self.seconds:g} seconds"
        return bool(self.ended)

    def another(self) -> bool:
        """Whether the walk may examine another name; if so, counts it."""
        if self.names <= 0:
            self.ended = self.ended or (
                f"everything after the first {self.most:,} names; give a path to see more"
            )
        self.names -= 1
        return not self.is_late()


@frozen
class WalkEntry:
    """A file or folder; `inner` is its path from the start of the walk."""

    place: str
    inner: str
    kind: Kind


class Walk:
    """A walk below one place. A path that the user allowed may itself be guarded: then only the
    names below it count.
    """

    def __init__(
        self, boundary: Boundary, start: str, glob: str = "", budget: WalkBudget | None = None
    ) -> None:
        """Raises ParleyError if the glob is invalid."""
        self.boundary = boundary
        self.start = start
        self.budget = budget or WalkBudget()
        self.left = Counter[str]()
        """The number of names left out, by reason."""
        self._rules = boundary.rules()
        self.is_ignored = bool(start) and boundary.ignores(start, self._rules, True)
        self._glob = glob_test(glob) if glob else None
        self._known = dict[str, str]()

    def entries(self, depth: int = DEEPEST) -> Iterator[WalkEntry]:
        """All entries to the given depth, nearest first, then by name; every folder, but only the
        files that match the glob.
        """
        folders = deque([(self.start, 1)])
        while folders and not self.budget.is_late():
            folder, level = folders.popleft()
            for name, kind in self._names(folder):
                place = f"{folder}/{name}" if folder else name
                if reason := self._reason(place, name, is_folder=kind == "folder"):
                    self.left[reason] += 1
                    continue
                entry = WalkEntry(place, self.inner(place), kind)
                if kind == "folder":
                    if level < min(depth, DEEPEST):
                        folders.append((place, level + 1))
                    yield entry
                elif self.matches(entry.inner):
                    yield entry

    def _names(self, folder: str) -> list[tuple[str, Kind]]:
        names = list[tuple[str, Kind]]()
        try:
            with self.boundary.folder(folder) as descriptor, os.scandir(descriptor) as entries:
                while self.budget.another() and (entry := next(entries, None)):
                    names.append((entry.name, _kind(entry)))
        except (OSError, ParleyError):
            self.left[_UNREADABLE] += 1
        return sorted(names)

    def _reason(self, place: str, name: str, *, is_folder: bool) -> str:
        """Why a name is left out, if nothing above it is."""
        why = self.boundary.guarded(name, None, is_folder) or self.boundary.of_parley(place)
        if why or self.is_ignored:
            return why
        return IGNORED if self.boundary.ignores(place, self._rules, is_folder) else ""

    def takes(self, place: str) -> bool:
        """Whether the walk would find a file, which another program has found below the start."""
        if not self.matches(self.inner(place)):
            return False
        names = self.inner(place).split("/")
        for end, name in enumerate(names, 1):
            above = "/".join([*filter(None, [self.start]), *names[:end]])
            if above not in self._known:
                is_folder = end < len(names)
                self._known[above] = self._reason(above, name, is_folder=is_folder)
            if self._known[above]:
                return False
        return len(names) <= DEEPEST

    def inner(self, place: str) -> str:
        """The path of a place from the start."""
        return place[len(self.start) + 1 :] if self.start else place

    def matches(self, inner: str) -> bool:
        """Whether a file's path from the start matches the glob."""
        return self._glob is None or self._glob(inner)

    def omissions(self) -> str:
        """A phrase that says what was left out; "" if nothing was."""
        parts = [
            f"{self.left[reason]} {reason}"
            for reason in (HIDDEN, IGNORED, SECRET, _UNREADABLE)
            if self.left[reason]
        ]
        return ", ".join([*parts, *filter(None, [self.budget.ended])])


def nearest_first(place: str) -> tuple[int, list[str]]:
    """The sort key for the order of a walk."""
    return place.count("/"), place.split("/")


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
