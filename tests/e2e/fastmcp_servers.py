"""FastMCP's servers in one process, each created in another way; it first prints their addresses.

It runs with the Python that has FastMCP installed, and does not use Parley.
"""

import asyncio
import socket
from importlib import import_module
from typing import Any

WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "stateful": ("/mcp", {}),
    "stateless": ("/mcp", {"stateless_http": True}),
    "json": ("/mcp", {"json_response": True}),
    "events": ("/sse", {"transport": "sse"}),
    "oauth": ("/mcp", {}),
}


def port() -> socket.socket:
    """A socket that listens on a free port; asyncio avoids Nagle's delay if TCP is named."""
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    return listener


def auth(base: str) -> Any:
    """A built-in authorization server that lets everyone in."""
    options = import_module("fastmcp.server.auth.auth").ClientRegistrationOptions
    provider = import_module("fastmcp.server.auth.providers.in_memory").InMemoryOAuthProvider
    return provider(base_url=base, client_registration_options=options(enabled=True))


async def main() -> None:
    """Serve until the process ends."""
    fastmcp, uvicorn = import_module("fastmcp"), import_module("uvicorn")
    serving = []
    for way, (path, options) in WAYS.items():
        listener = port()
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = fastmcp.FastMCP(way, auth=auth(base) if way == "oauth" else None)

        def sizes(words: list[str]) -> dict[str, int]:
            """Count the letters of words."""
            return {word: len(word) for word in words}

        server.tool(sizes)
        app = server.http_app(path=path, **options)
        config = uvicorn.Config(app, log_level="critical", lifespan="on")
        serving.append(uvicorn.Server(config).serve(sockets=[listener]))
        print(way, base + path, flush=True)
    await asyncio.gather(*serving)


if __name__ == "__main__":
    asyncio.run(main())
