"""The common part of the test servers that speak raw bytes: a local socket and its connections."""

from __future__ import annotations

import asyncio
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Self


class LocalServer(ABC):
    """Serves during its `async with` block; all connections close at its end."""

    tls: ssl.SSLContext | None = None
    """The TLS context; None without TLS."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._serving = set[asyncio.Task[Any]]()
        self.connections = 0
        """The number of connections."""

    @property
    def url(self) -> str:
        assert self._server
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http{'s' if self.tls else ''}://{host}:{port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._server
        self._server.close()
        await self.hang_up()
        await self._server.wait_closed()

    async def hang_up(self) -> None:
        """Close all connections; clients can open new ones."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._serving.add(task)
        self.connections += 1
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._serving.discard(task)
            writer.close()

    @abstractmethod
    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read and write on one connection."""


@contextmanager
def on_a_thread(servers: AbstractAsyncContextManager[object]) -> Iterator[None]:
    """Run servers on a thread of their own."""
    loop, ready, done = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with servers:
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join()
        loop.close()
