"""A server that sends raw bytes instead of valid HTTP: endless headers, nonsense, silence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from tests.local_server import LocalServer


class RawServer(LocalServer):
    """Answers each request with `pieces`, then closes the connection; stops sending if the client
    stops reading.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pieces: Iterable[bytes] = ()
        self.size = 0

    def plan(self, pieces: Iterable[bytes]) -> None:
        """Restart with these bytes."""
        self.pieces, self.size = pieces, 0

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in self.pieces:
            writer.write(piece)
            self.size += len(piece)
            await writer.drain()
