"""What an editor's language servers know about code, as a port and as the texts that a model
receives.

Knows places in files and the boundary around the root; knows neither Neovim nor language servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.text import counted, one_line

if TYPE_CHECKING:
    from parley.workspace.boundary import Boundary
    from parley.workspace.editor_files import EditorFiles

Ability: TypeAlias = Literal["diagnostics", "symbols", "definition", "references"]
ABILITIES = frozenset[str](get_args(Ability))
"""The names of the tools that ask an editor about code."""
_LONGEST = 300
"""The maximum number of characters of a line or a message."""


@frozen
class CodePlace:
    """A line in a file, counted from 1, and a label, such as a symbol's kind and name."""

    path: Path
    line: int
    label: str = ""


@frozen
class CodeDiagnostic:
    """An error or a warning."""

    path: Path
    line: int
    column: int
    severity: str
    message: str
    source: str = ""


@frozen
class CodePlaces:
    """The first places that were found, and how many there are."""

    places: tuple[CodePlace, ...]
    count: int


@frozen
class CodeDiagnostics:
    """The worst diagnostics, and how many there are."""

    worst: tuple[CodeDiagnostic, ...]
    count: int


class EditorCode(Protocol):
    """The language servers of an editor. Paths are absolute, lines count from 1. The functions raise
    ParleyError if there is no answer.
    """

    async def abilities(self) -> frozenset[Ability]:
        """The questions that can be answered now."""

    async def diagnostics(self, path: Path | None) -> CodeDiagnostics:
        """The diagnostics of an open file, or of all files."""

    async def symbols(self, query: str) -> CodePlaces:
        """The symbols whose names match a query."""

    async def definition(self, path: Path, line: int, name: str) -> CodePlaces:
        """Where the name in this line is defined."""

    async def references(self, path: Path, line: int, name: str) -> CodePlaces:
        """Where the name in this line is used."""


class CodeTools:
    """The tools that ask an editor's language servers. Each returns the text for the model, or
    raises ParleyError.
    """

    def __init__(self, boundary: Boundary, files: EditorFiles, code: EditorCode) -> None:
        self._boundary = boundary
        self._files = files
        self._code = code

    async def diagnostics(self, path: str = "") -> str:
        """Report the language servers' errors and warnings for an open file, or for all files."""
        reported = await self._code.diagnostics(await self._path(path) if path else None)
        rows = [
            f"{place}:{one.line}:{one.column}: {one.severity.lower()}: "
            f"{one_line(one.message, _LONGEST)}{f' ({one_line(one.source, 80)})' if one.source else ''}"
            for one in reported.worst
            if (place := self._place(one.path)) is not None
        ]
        more = reported.count - len(reported.worst)
        return "\n".join([*rows, *_rest(more)]) or "no errors or warnings"

    async def symbols(self, query: str) -> str:
        """Find functions, classes and other symbols of the project by their names."""
        return await self._listed(await self._code.symbols(query))

    async def definition(self, path: str, line: int, name: str) -> str:
        """Find where a name is defined that is used in this line of a file."""
        return await self._listed(
            await self._code.definition(await self._path(path), max(line, 1), name)
        )

    async def references(self, path: str, line: int, name: str) -> str:
        """Find where a name is used that is in this line of a file."""
        return await self._listed(
            await self._code.references(await self._path(path), max(line, 1), name)
        )

    async def _path(self, path: str) -> Path:
        """The absolute path of an unguarded file. Raises ParleyError."""
        place, guard = await asyncio.to_thread(
            lambda: (self._boundary.place(path), self._boundary.guard(path))
        )
        if guard:
            raise ParleyError(f"{one_line(path)} is {guard}, so language servers are not asked")
        return self._boundary.path(place)

    def _place(self, path: Path) -> str | None:
        """The place of a path; None if the path is outside of the root, or guarded."""
        try:
            place = self._boundary.place(str(path))
            return None if self._boundary.guard(place) else place
        except ParleyError:
            return None

    async def _listed(self, answer: CodePlaces) -> str:
        """Places with the text of their lines; of places outside of the root, only their number."""
        rows, texts, outside = list[str](), dict[str, list[str]](), 0
        for one in answer.places:
            place = await asyncio.to_thread(self._place, one.path)
            if place is None:
                outside += 1
                continue
            if place not in texts:
                texts[place] = await self._lines(place)
            text = "".join(texts[place][one.line - 1 : one.line]).strip()
            label = f"{one_line(one.label, _LONGEST)}: " if one.label else ""
            rows.append(f"{place}:{one.line}: {label}{one_line(text, _LONGEST)}")
        rows += [f"({counted(outside, 'place')} outside the workspace)"] if outside else []
        return "\n".join([*rows, *_rest(answer.count - len(answer.places))]) or "nothing found"

    async def _lines(self, place: str) -> list[str]:
        """A file's lines, as in the editor if it is open there; none if they cannot be read."""
        from parley.workspace.file_views import TEXT_FILE_BYTES, lines_of, text_of

        try:
            opened = await self._files.text(self._boundary.path(place))
            if opened:
                return lines_of(opened.text)
            content = await asyncio.to_thread(self._boundary.content, place, TEXT_FILE_BYTES)
        except (ParleyError, OSError):
            return []
        return lines_of(text_of(content) or "")


def _rest(more: int) -> Iterator[str]:
    if more > 0:
        yield f"({more} more)"
