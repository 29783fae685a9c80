"""An ASGI server that ends as soon as it is to, for the hundreds that tests begin and end."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn

_LAST_S = 1.0
"""The time in which replies that are being sent may end."""


class AsgiServer(uvicorn.Server):
    """The server of uvicorn, which by itself takes three tenths of a second to see that it is to
    end.
    """

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(uvicorn.Config(app, log_level="critical", ws="none", **options))

    async def main_loop(self) -> None:
        """Return when it is to end."""
        await self.on_tick(0)  # the headers of all replies
        while not self.should_exit:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all connections, and what is still answered."""
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        connections, tasks = self.server_state.connections, self.server_state.tasks
        for connection in list(connections):
            connection.shutdown()
        end = asyncio.get_running_loop().time() + _LAST_S
        while (connections or tasks) and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.lifespan.shutdown()
