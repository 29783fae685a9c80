"""Reads the files with instructions, and the files that they import, within bounds.

A file whose `stat` has not changed is not read again. An import is read only from the folder of the
first file, or from below it, without following a link out of it. Does not know whether the user has
agreed to a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from parley.bounded_files import whole
from parley.errors import ParleyError, reason_of
from parley.frozen import frozen
from parley.instructions.project import (
    DEEPEST_IMPORT,
    MOST_BYTES,
    MOST_IMPORTS,
    Instruction,
    Instructions,
    imported_paths,
    instruction_block,
)
from parley.storage.reference_files import text_of
from parley.text import one_line

ReadBelow: TypeAlias = Callable[[Path, str, int], bytes]
"""Reads a regular file by its place below a real folder, with at most so many bytes, and follows no
link. Raises ParleyError or OSError.
"""
_Signature: TypeAlias = tuple[int, ...] | None
_LONGEST = 200
OWN_PREFIX = "the user's own "
"""The beginning of the names of the user's own files, which may be anywhere."""


@frozen
class InstructionFile:
    """A file with instructions and its imports, as last read.

    `content` are the bytes that the user agrees to: all that the system prompt gets from this file.
    """

    path: Path
    name: str
    texts: Instructions = ()
    problems: tuple[str, ...] = ()

    @property
    def content(self) -> bytes:
        return instruction_block(self.texts).encode()


class InstructionFiles:
    """The instruction files in folders; remembers what it has read."""

    def __init__(self, read_below: ReadBelow) -> None:
        self._read_below = read_below
        self._known: dict[Path, tuple[dict[str, _Signature], InstructionFile]] = {}

    def first(self, folder: Path, names: Sequence[str], top: Path) -> InstructionFile | None:
        """The first of these files that a folder contains, named by its path from `top`."""
        path = next((p for name in names if _is_there(p := folder / name)), None)
        if path is None:
            return None
        above = folder.relative_to(top).as_posix()
        return self._read(path, folder, "" if above == "." else f"{above}/", is_own=False)

    def own(self, path: Path) -> InstructionFile | None:
        """The user's own file, which may be a link to anywhere; None if there is none."""
        return self._read(path, path.parent, OWN_PREFIX, is_own=True) if _is_there(path) else None

    def _read(self, path: Path, folder: Path, above: str, *, is_own: bool) -> InstructionFile:
        known = self._known.get(path)
        if known and all(_signature(each) == before for each, before in known[0].items()):
            return known[1]
        reading = _Reading(self._read_below, Path(os.path.realpath(folder)), above)
        name = one_line(above + path.relative_to(folder).as_posix())
        reading.read(path, name, is_own=is_own)
        file = InstructionFile(path, name, tuple(reading.texts), tuple(reading.problems))
        self._known[path] = reading.signatures, file
        return file


@dataclass
class _Reading:
    """The reading of one file with its imports, which are below a real `folder`; `above` begins
    their names.
    """

    read_below: ReadBelow
    folder: Path
    above: str
    texts: list[Instruction] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    signatures: dict[str, _Signature] = field(default_factory=dict)
    visited: set[Path] = field(default_factory=set)
    room: int = MOST_BYTES

    def read(self, path: Path, name: str, depth: int = 0, *, is_own: bool = False) -> None:
        """Read a file, then its imports."""
        self.signatures[str(path)] = _signature(str(path))
        real = Path(os.path.realpath(path))
        self.visited.add(real)
        try:
            text = text_of(self._content(path if is_own else real, is_own=is_own))
        except (FileNotFoundError, IsADirectoryError) as error:
            if not depth and isinstance(error, IsADirectoryError):
                self.problems.append(one_line(f"{name} is not used: it is a folder", _LONGEST))
            return  # otherwise only a word with an at sign, or a file that has just gone
        except (OSError, ParleyError) as error:
            self.problems.append(one_line(f"{name} is not used: {reason_of(error)}", _LONGEST))
            return
        text = text.removeprefix("\ufeff").strip("\n")
        if text.strip():
            self.texts.append(Instruction(name, text))
        folder = path.parent if is_own else real.parent
        for imported in imported_paths(text):
            if len(self.signatures) > MOST_IMPORTS:
                problem = f"{name} is used without some imports: there are too many"
                self.problems.append(one_line(problem, _LONGEST))
                return
            self._follow(imported, folder, depth)

    def _content(self, path: Path, *, is_own: bool) -> bytes:
        if is_own:
            content = whole(path, self.room)
        elif path.is_relative_to(self.folder):
            place = path.relative_to(self.folder).as_posix()
            content = self.read_below(self.folder, place, self.room)
        else:
            raise ParleyError(f"it is outside of {one_line(str(self.folder))}")
        self.room -= len(content)
        return content

    def _follow(self, imported: str, folder: Path, depth: int) -> None:
        path = folder / imported
        with suppress(OSError, ValueError):  # a name that the system rejects is only a word
            real = Path(os.path.realpath(path))
            if not os.path.lexists(path):
                self.signatures[str(path)] = None
            elif real not in self.visited and depth < DEEPEST_IMPORT:
                is_inside = real.is_relative_to(self.folder)
                place = real.relative_to(self.folder).as_posix() if is_inside else ""
                self.read(path, one_line(self.above + place if place else imported), depth + 1)
            elif real not in self.visited:
                problem = f"@{imported} is not used: it is imported too deeply"
                self.problems.append(one_line(problem, _LONGEST))


def _is_there(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def _signature(path: str) -> _Signature:
    """The facts that change when a file changes; None if there is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - for speed: before each question
    except (OSError, ValueError):
        return None
    return (
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
