"""Finds the files in a folder that match a pattern, in a limited number of steps.

A folder may contain a million names, circular links and unreadable folders. So the search does not
follow links to folders, skips hidden names, and ends at the caller's limit. It finds files near
the top first, and does not read files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Literal

ANY_DEPTH = "**"
LONGEST = 4096
"""Longer than any path."""

_SIGNS = "*?["


@dataclass(slots=True)
class SearchBudget:
    """The number of names and the time that a search may still use, the reason why it ended, and
    the number of unreadable folders.
    """

    left: int
    is_late: Callable[[], bool]
    ended: Literal["", "names", "time"] = ""
    closed: int = 0

    def another(self) -> bool:
        """Whether the search may examine one more name; if so, counts it."""
        if self.left <= 0:
            self.ended = self.ended or "names"
        elif self.is_late():
            self.ended = self.ended or "time"
        self.left -= 1
        return not self.ended


def is_pattern(name: str) -> bool:
    """Whether a name is a pattern for several files."""
    return any(sign in name for sign in _SIGNS)


def is_dotted(name: str) -> bool:
    """Whether any part of a path is hidden."""
    return any(part.startswith(".") and part != "." for part in name.split("/"))


def files(folder: Path, pattern: str, looks: SearchBudget) -> Iterator[str]:
    """The paths of all matching files below `folder`, a real path; nearest first, then by name.

    As in a shell, `*` matches within a name and `**` matches any number of folders, including
    none. Raises ValueError for a pattern that leads out of the folder or is too long.
    """
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.startswith("/") or ".." in parts or "\0" in pattern or len(pattern) > LONGEST:
        raise ValueError(pattern)
    named = next((n for n, part in enumerate(parts) if is_pattern(part)), len(parts))
    base = "/".join(parts[:named])
    level = [(base, _reached(parts, {named}))]
    if not (folder / base).resolve().is_relative_to(folder):
        raise ValueError(pattern)
    while level:
        deeper = list[tuple[str, frozenset[int]]]()
        for place, states in level:
            for entry in _entries(folder / place, looks):
                after = _stepped(parts, states, entry.name)
                path = f"{place}/{entry.name}" if place else entry.name
                if len(parts) in after and _is_file(entry):
                    yield path
                if (after := after - {len(parts)}) and entry.is_dir(follow_symlinks=False):
                    deeper.append((path, after))
        level = deeper


def _entries(place: Path, looks: SearchBudget) -> Iterator[os.DirEntry[str]]:
    entries = list[os.DirEntry[str]]()
    try:
        with os.scandir(place) as names:
            while looks.another() and (entry := next(names, None)):
                if not is_dotted(entry.name):
                    entries.append(entry)
    except FileNotFoundError:
        return
    except OSError:
        looks.closed += 1
    yield from sorted(entries, key=lambda entry: entry.name)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a circular link
        return False


def _reached(parts: list[str], states: set[int]) -> frozenset[int]:
    """The pattern parts that the next name may match: `**` may stand for nothing."""
    for state in sorted(states):
        while state < len(parts) and parts[state] == ANY_DEPTH:
            state += 1
            states.add(state)
    return frozenset(states)


def _stepped(parts: list[str], states: frozenset[int], name: str) -> frozenset[int]:
    after = set[int]()
    for state in states:
        if state == len(parts):
            continue
        if parts[state] == ANY_DEPTH:
            after.add(state)
        elif _expression(parts[state]).match(name):
            after.add(state + 1)
    return _reached(parts, after)


@lru_cache(maxsize=LONGEST)
def _expression(part: str) -> re.Pattern[str]:
    return re.compile(translate(part))
