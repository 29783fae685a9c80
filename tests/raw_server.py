"""A server that sends bytes as they are, no HTTP of its own: heads without end, nonsense, silence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Self


class RawServer:
    """Answers each request with `pieces`, then closes; without a reader it sends no further."""

    def __init__(self) -> None:
        self.pieces: Iterable[bytes] = ()
        self.sent = 0
        self._server: asyncio.Server | None = None
        self._serving = set[asyncio.Task[None]]()

    @property
    def url(self) -> str:
        assert self._server
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def plan(self, pieces: Iterable[bytes]) -> None:
        """Begin anew with these bytes."""
        self.pieces, self.sent = pieces, 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._server
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._serving.add(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
            for piece in self.pieces:
                writer.write(piece)
                self.sent += len(piece)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._serving.discard(task)
            writer.close()
