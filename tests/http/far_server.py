"""A server reached over HTTP that cannot be used: why it has no tools."""

from __future__ import annotations

from parley.tools.server_settings import ServerSettings
from tests.defaults import new_servers
from tests.faulty_providers import KEY
from tests.mcp_servers import only


def remote(url: str, **more: object) -> ServerSettings:
    settings = {"headers": {"x-token": KEY}, "start_timeout_s": 20.0, **more}
    return ServerSettings(name="far", url=f"{url}/mcp", **settings)  # type: ignore[arg-type]


async def no_tools(settings: ServerSettings) -> str:
    """The reason why a server has no tools."""
    servers = new_servers({"far": settings})
    try:
        assert not (await servers.catalogue()).tools
        return only(servers).error
    finally:
        await servers.close()
