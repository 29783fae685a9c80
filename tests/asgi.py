"""An ASGI server that shuts down without delay, for the hundreds that tests start and stop."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn

_LAST_S = 1.0
"""The time that replies in progress have to finish."""


class AsgiServer(uvicorn.Server):
    """The uvicorn server without its delay of 0.3 s before it notices that it should stop."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(uvicorn.Config(app, log_level="critical", ws="none", **options))

    async def main_loop(self) -> None:
        """Return when the server should stop."""
        await self.on_tick(0)  # added to all replies
        while not self.should_exit:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections and cancel the replies in progress."""
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
