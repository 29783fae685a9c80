"""What the owner of an MCP server and the connection to it have to do with each other.

A `Session` answers what the owner asks; through a `Watch` it reports what happens while nobody asks.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Protocol, TypeVar

from parley.drivers.tail import Tail
from parley.errors import ServerError
from parley.tools.catalogue import Tool
from parley.tools.prompts import Prompt
from parley.tools.results import Outcome
from parley.tools.servers import ServerSettings

T = TypeVar("T")
Progress = Callable[[float, float | None, str | None], None]


class LostError(ServerError):
    """The connection ended under a call."""


class Session(Protocol):
    """A connected server."""

    protocol: str

    async def tools(self) -> tuple[Tool, ...]:
        """The tools it offers now."""

    async def call(self, name: str, arguments: dict[str, Any], tell: Progress | None) -> Outcome:
        """The result of one call, `tell` hearing of its progress; raises LostError if the connection ends."""

    async def resource(self, uri: str) -> str:
        """The text of a resource."""

    async def prompts(self) -> tuple[Prompt, ...]:
        """The prompts it offers now."""

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a prompt for these arguments."""


class Clock:
    """The time that requests to a server may take; it stands still while the user is asked."""

    def __init__(self) -> None:
        self._limits: set[asyncio.Timeout] = set()
        self._left: dict[asyncio.Timeout, float] = {}
        self._asking = 0
        self._over = asyncio.Event()

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[None]:
        """Raises TimeoutError when this takes too long."""
        async with asyncio.timeout(seconds) as limit:
            self._limits.add(limit)
            self._over.clear()
            try:
                yield
            finally:
                self._limits.discard(limit)
                if not self._limits:
                    self._over.set()

    async def while_wanted(self, asking: Coroutine[Any, Any, T]) -> T | None:
        """What the user says; None, and nobody is asked any more, once no request is left that wants it."""
        answer, over = asyncio.ensure_future(asking), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({answer, over}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            answer.cancel()
            over.cancel()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """While the user thinks; once the last of them has answered, what was left of the time is left."""
        now = asyncio.get_running_loop().time
        self._asking += 1
        for limit in self._limits:
            if (when := limit.when()) is not None:
                self._left[limit] = when - now()
                limit.reschedule(None)
        try:
            yield
        finally:
            self._asking -= 1
            left, self._left = (self._left, {}) if not self._asking else ({}, self._left)
            for limit in self._limits & left.keys():
                limit.reschedule(now() + left[limit])


class Watch:
    """What a session reports while nobody asks it: the tools changed, the connection ended."""

    def __init__(self, settled: asyncio.Event) -> None:
        self.event = asyncio.Event()
        self.clock = Clock()
        self._settled = settled
        self.changed = False
        self.lost = False
        self.stopping = False

    def tools_changed(self) -> None:
        """The list of tools is out of date."""
        self.changed = True
        self._settled.clear()
        self.event.set()

    def connection_lost(self) -> None:
        """The server is gone, or its session is."""
        self.lost = True
        self.event.set()

    def stop(self) -> None:
        """The server is wanted no more."""
        self.stopping = True
        self.event.set()


Connect = Callable[[ServerSettings, Tail, Watch], AbstractAsyncContextManager[Session]]
