"""Real MCP servers for tests: create them, call them and wait for them."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

from parley.mcp.callbacks import Left
from parley.mcp.servers import Servers
from parley.mock_server import create_server
from parley.tools.catalogue import Tool
from parley.tools.server_settings import ServerSettings, ServerStatus
from parley.tools.visits import Visit
from tests.asgi import AsgiServer
from tests.defaults import new_servers

FAKE = str(Path(__file__).parent / "mcp" / "fake_server.py")
TABLE = str(Path(__file__).parent / "mcp" / "table_server.py")
MOCK = ServerSettings(name="mock", builtin=True)
EXTRA = ServerSettings(name="mock", builtin=True, args=("--extra",))


def fake(*args: str, name: str = "fake", **settings: object) -> ServerSettings:
    server = ServerSettings(name=name, command=sys.executable, args=(FAKE, *args))
    return replace(server, **settings)  # type: ignore[arg-type]


def table(answers: dict[str, Any], name: str = "table", **settings: Any) -> ServerSettings:
    """A server that answers methods from a table; see `table_server.py`."""
    return ServerSettings(name, sys.executable, (TABLE, json.dumps(answers)), **settings)


class NoVisitor:
    """A user who never opens the page."""

    async def visit(self, server: str, page: Visit) -> Left:
        return "decline"

    async def finish(self, server: str, page: Visit) -> bool:
        return False


@asynccontextmanager
async def servers_of(*settings: ServerSettings, **more: Any) -> AsyncIterator[Servers]:
    servers = new_servers({one.name: one for one in settings}, **more)
    try:
        yield servers
    finally:
        await servers.close()
        running = {
            status.name for status in servers.status() if status.state not in ("stopped", "failed")
        }
        assert not running


async def until(condition: Callable[[], object], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(0.005)


async def tool_of(servers: Servers, name: str) -> Tool:
    tool = (await servers.catalogue()).get(name)
    assert tool is not None, servers.status()
    return tool


def only(servers: Servers) -> ServerStatus:
    (status,) = servers.status()
    return status


async def until_stderr(servers: Servers, text: str) -> None:
    """Wait until the server has written `text` to its stderr."""
    await until(lambda: any(text in line for line in only(servers).stderr))


@asynccontextmanager
async def served(
    seen: list[dict[str, str]], port: int = 0, mcp: MCPServer | None = None
) -> AsyncIterator[str]:
    """The URL of a server (by default the mock) over Streamable HTTP; `seen` gets each request's
    headers.
    """
    async with hosted((mcp or create_server(extra=True)).streamable_http_app(), seen, port) as url:
        yield f"{url}/mcp"


@asynccontextmanager
async def hosted(app: Any, seen: list[dict[str, str]], port: int = 0) -> AsyncIterator[str]:
    """The URL of an ASGI application; `seen` gets each request's headers."""

    async def spy(scope, receive, send):  # type: ignore[no-untyped-def]
        if scope["type"] == "http":
            seen.append({key.decode(): value.decode() for key, value in scope["headers"]})
        await app(scope, receive, send)

    with listening(port) as listener:
        async with running(spy, listener):
            yield url_of(listener)


def listening(port: int = 0) -> socket.socket:
    """A local socket on which a server can listen; asyncio disables Nagle's delay only if TCP is
    named.
    """
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener


def url_of(listener: socket.socket) -> str:
    """The address of a server that listens there."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@asynccontextmanager
async def running(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an ASGI application there."""
    server = AsgiServer(app, lifespan="on")
    serving = asyncio.create_task(server.serve([listener]))
    await until(lambda: server.started)
    try:
        yield
    finally:
        server.should_exit = True
        await serving
