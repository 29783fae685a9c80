"""Connects the engine to a chat in the editor: wraps the app's ports to record requests and tools.

The screen shows the counted tokens, and draws calls with the last known tools, without starting
servers. The model receives only the editor's tools that can answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial

from parley import engine
from parley.chat.transcript import Result
from parley.models.events import Event
from parley.models.request import Request
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.chat_screen import ChatScreen
from parley.nvim.context import editor_text
from parley.nvim.document import BufferDocument
from parley.nvim.tokens import Tokens
from parley.policy.approval import CallKey
from parley.policy.permissions import is_of_workspace
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.tasks import TaskHandle
from parley.workspace.editor_code import ABILITIES, EditorCode


def chat_ports(
    buffer: ChatBuffer,
    screen: ChatScreen,
    document: BufferDocument,
    observer: engine.Observer,
    *,
    is_beside: bool = False,
) -> engine.Ports:
    """The ports for a turn; with `is_beside`, the turn's requests are not the chat's own."""
    app = buffer.app
    editor = partial(editor_text, buffer.editor, buffer.buf)
    ports = app.ports(document, buffer.path, observer, lambda: buffer.folder, editor)
    model = CountedModel(ports.model, screen.tokens, None if is_beside else app.client.settled)
    tools = RememberedTools(ports.tools, screen, app.workspace.code)
    return replace(ports, model=model, tools=tools)


class CountedModel:
    """The model port, which counts the tokens of its requests."""

    def __init__(
        self, model: engine.Model, tokens: Tokens, settled: Callable[[Request], Request] | None
    ) -> None:
        """`settled` returns a request in the form that its provider accepts; None if the requests
        are not the chat's own.
        """
        self._model = model
        self._tokens = tokens
        self._settled = settled

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The events of the model's reply."""
        self._tokens.next_request(request.price, self._settled and partial(self._settled, request))
        return self._model.stream(request)


class RememberedTools:
    """A turn's tools port, which passes the latest catalogue to the screen."""

    def __init__(
        self, tools: engine.ToolRunner, screen: ChatScreen, code: EditorCode | None
    ) -> None:
        self._tools = tools
        self._screen = screen
        self._code = code
        self._abilities: frozenset[str] | None = None
        """The questions about code that this turn's model may ask; None before the first offer."""

    async def catalogue(self, narrow: engine.Narrow, calls: Sequence[str]) -> Catalogue:
        """The available tools, without the questions about code that the editor cannot answer now.

        A question that already waits stays: the tool itself says why there is no answer.
        """
        catalogue = await self._tools.catalogue(narrow, calls)
        asking = [tool for _, tool in narrow(catalogue).tools if _asks_editor(tool)]
        if self._code and asking:
            if self._abilities is None:
                self._abilities = await self._code.abilities()
            waiting = [catalogue.get(name) for name in calls]
            catalogue = catalogue.without(
                [t for t in asking if t.name not in self._abilities and t not in waiting]
            )
        self._screen.catalogue = catalogue
        return catalogue

    def go_without(self) -> None:
        """Wait no longer for servers."""
        self._tools.go_without()

    async def call(self, tool: Tool, key: CallKey, request: Request, task: TaskHandle) -> Result:
        """Run one call."""
        return await self._tools.call(tool, key, request, task)

    async def resources(self, server: str) -> Sequence[str]:
        """The URIs of the resources that a server currently lists."""
        return await self._tools.resources(server)


def _asks_editor(tool: Tool) -> bool:
    """Whether a tool of the workspace asks the editor about code."""
    return is_of_workspace(tool) and tool.name in ABILITIES
