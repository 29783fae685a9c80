"""`parley tools`, `convert` and `demo-server`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os

from parley.cli.terminal import plain, read, say, settings
from parley.errors import ParleyError

COMPLETE = 0


def convert(arguments: argparse.Namespace) -> int:
    """Turn MCP tool definitions on standard input into a provider's."""
    from parley.tools.convert import convert_all

    try:
        converted = convert_all(json.loads(read("-")), arguments.to)
    except ValueError as error:
        raise ParleyError(f"standard input: {error}") from error
    say(json.dumps(converted, indent=2, ensure_ascii=False))
    return COMPLETE


def tools(arguments: argparse.Namespace) -> int:
    """List the servers and their tools."""
    return asyncio.run(_tools(arguments))


async def _tools(arguments: argparse.Namespace) -> int:
    from parley.drivers.home import Home

    home = Home(settings(), os.environ)
    try:
        await home.hub.catalogue()
        status = home.hub.status()
    finally:
        await home.close()
    if arguments.json:
        say(json.dumps(plain(status), indent=2, default=str))
        return COMPLETE
    for server in status:
        say(f"{server.name}: {server.state}" + (f" ({server.error})" if server.error else ""))
        for tool in server.tools:
            say(f"  {tool.name}: {' '.join(tool.description.split())[:90]}")
    return COMPLETE


def demo_server(arguments: argparse.Namespace) -> int:
    """Serve the demo model until Ctrl-C."""
    from parley.demo.server import main as serve

    return serve([f"--port={arguments.port}", f"--pace={arguments.pace}"])
