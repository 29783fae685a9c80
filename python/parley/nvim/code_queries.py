"""Asks the language servers that run in Neovim, for the workspace's tools.

Knows the questions' ids, and how Neovim's answers become values; Lua asks the servers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from parley.errors import ParleyError
from parley.nvim.editor import Editor
from parley.workspace.editor_code import (
    Ability,
    CodeDiagnostic,
    CodeDiagnostics,
    CodePlace,
    CodePlaces,
)

_MOST = 200
"""The maximum number of places or diagnostics in an answer."""


class BufferCode:
    """Implements the workspace's port for code."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._last = 0

    async def abilities(self) -> frozenset[Ability]:
        """The questions that can be answered now: a running language server can, or there are
        diagnostics.
        """
        return frozenset(await self._editor.ask("code_abilities"))

    async def diagnostics(self, path: Path | None) -> CodeDiagnostics:
        """The diagnostics of an open file, or of all files."""
        answer = await self._answer("diagnostics", path)
        worst = [CodeDiagnostic(Path(file), *rest) for file, *rest in answer["found"]]
        return CodeDiagnostics(tuple(worst), answer["count"])

    async def symbols(self, query: str) -> CodePlaces:
        """The symbols whose names match a query."""
        return _places(await self._answer("symbols", None, 1, query))

    async def definition(self, path: Path, line: int, name: str) -> CodePlaces:
        """Where a name is defined."""
        return _places(await self._answer("definition", path, line, name))

    async def references(self, path: Path, line: int, name: str) -> CodePlaces:
        """Where a name is used."""
        return _places(await self._answer("references", path, line, name))

    def answered(self, number: int, value: Any) -> None:
        """Receive an answer from Neovim."""
        answer = self._open.get(number)
        if answer is not None and not answer.done():
            answer.set_result(value)

    async def _answer(self, what: str, path: Path | None, *rest: Any) -> Any:
        """Neovim's answer, which arrives in a message of its own. Raises ParleyError."""
        self._last += 1
        number = self._last
        answer = self._open[number] = asyncio.get_running_loop().create_future()
        self._editor.tell("code_query", number, what, _MOST, str(path) if path else "", *rest)
        try:
            value = await answer
        finally:
            del self._open[number]
        if problem := value.get("problem"):
            raise ParleyError(f"{path.name}: {problem}" if path else problem)
        return value


def _places(answer: Any) -> CodePlaces:
    places = [CodePlace(Path(path), line, label) for path, line, label in answer["found"]]
    return CodePlaces(tuple(places), answer["count"])
