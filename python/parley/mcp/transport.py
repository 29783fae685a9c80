"""Sits between the SDK's transports and client: reports a connection's end and repairs results.

So Parley notices that an idle server has died before it is called again. Knows the form of messages
in the SDK's streams, but not how they are sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self, TypeAlias

from parley.mcp.repairs import mended, mends
from parley.mcp.server_session import CONNECTION_CLOSED, HttpRefusal
from parley.tools.tasks import as_result

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_FIRST = "2025-11-25"
"""The revision by which the SDK checks results before a revision is agreed."""
_INTERNAL = -32603
_UNSUPPORTED = -32022
"""The error code for an unsupported revision; the SDK reads the supported revisions from the
error's data.
"""
MOST_QUESTIONS = 1_000
"""The maximum number of a server's unanswered requests, which could otherwise fill the memory."""
_BROKEN_OFF = "SSE stream"
"""The beginning of the SDK's message for a reply that ends too early."""

Accepts: TypeAlias = Callable[[str, str, Mapping[str, Any]], bool]
"""Whether the SDK accepts a method's result in a revision."""


class Wire:
    """Inspects and repairs a connection's messages as they pass.

    `left_out` lists the parts that have been dropped from results since the list was last emptied.
    """

    def __init__(self, accepts: Accepts, on_end: Callable[[], None], offer: str = "") -> None:
        """`offer` is the older revision to ask for; "" for the latest older revision."""
        self.left_out = list[str]()
        self._accepts = accepts
        self._on_end = on_end
        self._offer = offer
        self._methods = dict[str, str]()
        self._refusals = dict[str, HttpRefusal]()
        self._first: HttpRefusal | None = None
        self._questions = 0
        self._version = _FIRST

    @asynccontextmanager
    async def tapped(
        self, transport: AbstractAsyncContextManager[tuple[Any, Any]]
    ) -> AsyncIterator[tuple[Any, Any]]:
        """The same transport, with its messages passing through here."""
        async with transport as (read, write):
            yield _ReadStream(read, self), _WriteStream(write, self)

    def note_sent(self, message: Any) -> None:
        """Note a message to the server before the message is sent."""
        method, number = getattr(message, "method", None), getattr(message, "id", None)
        if method is None or number is None:
            return
        self._methods[str(number)] = method
        params = message.params or {}
        if method == "initialize" and self._offer:
            params["protocolVersion"] = self._offer
        self._version = (params.get("_meta") or {}).get(_VERSION_KEY, self._version)

    def note_received(self, message: Any) -> None:
        """Note and repair a message from the server before the message is read."""
        if hasattr(message, "method"):
            self._questions += hasattr(message, "id")
            return  # a request or notification from the server
        number = str(getattr(message, "id", None))
        method, refusal = self._methods.pop(number, ""), self._refusals.pop(number, None)
        if method == "server/discover":
            self._first = refusal
        elif method == "initialize" and refusal is None and self._first and self._first.is_final:
            refusal = self._first  # the SDK only reports this later attempt
        if error := getattr(message, "error", None):
            self._amend(error, refusal)
        result = getattr(message, "result", None)
        if result is None:
            return
        if method == "initialize":
            self._version = str(result.get("protocolVersion", self._version))
        if method == "tools/call" and (task := as_result(result)):
            message.result = task  # the SDK does not know tasks
        elif mends(method):
            version = self._version
            message.result, lost = mended(
                method, result, lambda fields: self._accepts(method, version, fields)
            )
            self.left_out += lost

    def note_taken(self, message: Any) -> None:
        """Note that the transport has taken a message to the server."""
        self._questions -= not hasattr(message, "method")

    @property
    def is_flooded(self) -> bool:
        """Whether the server has too many unanswered requests."""
        return self._questions > MOST_QUESTIONS

    def note_refusal(self, number: object, refusal: HttpRefusal | None) -> None:
        """Note the refusal of the request with this id; None for a reply of the protocol."""
        if refusal is None:
            self._refusals.pop(str(number), None)
        else:
            self._refusals[str(number)] = refusal

    def _amend(self, error: Any, refusal: HttpRefusal | None) -> None:
        """Add the reason to an error, because the SDK knows less about the error."""
        if refusal is not None and error.code != _UNSUPPORTED:
            error.message, error.data = refusal.text, refusal
        if error.code == CONNECTION_CLOSED and not error.message.startswith(_BROKEN_OFF):
            error.code = _INTERNAL  # the server's own error; the connection continues

    def note_end(self) -> None:
        """Note that the server sends nothing more."""
        self._on_end()


class _Stream:
    """A stream in front of the transport's own."""

    def __init__(self, stream: Any, wire: Wire) -> None:
        self._stream = stream
        self._wire = wire

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> bool | None:
        suppresses: bool | None = await self._stream.__aexit__(*failure)
        return suppresses


class _ReadStream(_Stream):
    @property
    def last_context(self) -> Any:
        """The context in which the transport sent; the SDK looks for it here."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return self._passed(await self._stream.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            item = self._passed(await self._stream.__anext__())
        except StopAsyncIteration:
            self._wire.note_end()
            raise
        if self._wire.is_flooded:
            self._wire.note_end()
            raise StopAsyncIteration
        return item

    def _passed(self, item: Any) -> Any:
        self._wire.note_received(getattr(item, "message", None))
        return item


class _WriteStream(_Stream):
    async def send(self, item: Any) -> None:
        self._wire.note_sent(item.message)
        await self._stream.send(item)
        self._wire.note_taken(item.message)
