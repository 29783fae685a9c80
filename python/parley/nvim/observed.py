"""Observers of a chat's turns, which listen at their ports.

Each class passes everything on; it knows what to remember, and nothing of what for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from parley import engine
from parley.chat.transcript import Result
from parley.models.events import Event
from parley.models.request import Request
from parley.nvim.tokens import Tokens
from parley.tools.catalogue import Catalogue, Tool


class CountedModel:
    """The model, each request of which is counted as one."""

    def __init__(self, model: engine.Model, tokens: Tokens) -> None:
        self._model = model
        self._tokens = tokens

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The events of the model's reply."""
        self._tokens.next_request()
        return self._model.stream(request)


class RememberedTools:
    """The tools, of which the chat remembers what was last on offer, to draw it without starting servers."""

    def __init__(self, tools: engine.Tools, remember: Callable[[Catalogue], None]) -> None:
        self._tools = tools
        self._remember = remember

    async def catalogue(self) -> Catalogue:
        """The tools on offer."""
        catalogue = await self._tools.catalogue()
        self._remember(catalogue)
        return catalogue

    async def call(self, tool: Tool, arguments: str, request: Request) -> Result:
        """Run one call."""
        return await self._tools.call(tool, arguments, request)
