"""`parley tools`, `trust`, `convert` and `demo-server`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
from contextlib import closing
from pathlib import Path

from parley.cli.terminal import complain, plain, read, say, say_json, say_line, settings, warn_of_project
from parley.errors import ParleyError
from parley.text import visible

COMPLETE = 0


def convert(arguments: argparse.Namespace) -> int:
    """Turn MCP tool definitions on standard input into those of a provider."""
    from parley.models.formats import format_for
    from parley.tools.convert import convert_all
    from parley.tools.parameters import wire_tool

    shape = format_for(arguments.to).tool
    try:
        converted = convert_all(json.loads(read("-")), lambda name, tool: shape(name, wire_tool(tool)))
    except json.JSONDecodeError as error:
        raise ParleyError(f"standard input is no JSON: {error}") from error
    except ValueError as error:
        raise ParleyError(f"standard input: {error}") from error
    say_json(converted)
    return COMPLETE


def tools(arguments: argparse.Namespace) -> int:
    """Start the MCP servers and list their tools."""
    return asyncio.run(_tools(arguments))


async def _tools(arguments: argparse.Namespace) -> int:
    from parley.runtime.app import App

    app = App(settings(), os.environ)
    warn_of_project(app)
    try:
        await app.servers.catalogue()
        status = app.servers.status()
    finally:
        await app.close()
    if arguments.json:
        say_json(plain(status))
        return COMPLETE
    for server in status:
        say_line(f"{server.name}: {server.state}" + (f" ({server.error})" if server.error else ""))
        for tool in server.tools:
            say_line(f"  {tool.name}: {' '.join(tool.description.split())[:90]}")
    return COMPLETE


def trust(arguments: argparse.Namespace) -> int:
    """Trust the file of MCP servers of a project, with the content that it has now."""
    from parley.storage.ledger import LedgerFile, default_path
    from parley.storage.trust import programs
    from parley.storage.trust import trust as record
    from parley.tools.mcp_files import project_of

    with closing(LedgerFile(default_path(os.environ))) as ledger:
        file = record(ledger, Path(arguments.file), pinned=arguments.pin)
    for problem in file.problems:
        complain(problem)
    for name, server in file.servers.items():
        what = server.url or shlex.join((server.command or "", *server.args))
        say_line(visible(f"{name}: {what}"))
        if server.variables:
            say_line(visible(f"  is given your variables {', '.join(server.variables)}"))
    folder = project_of(Path(arguments.file).absolute())
    for program in programs(file, folder):
        binding = "a change asks again" if arguments.pin else "whoever changes it changes what runs (--pin)"
        say_line(visible(f"  runs {program} of the project; {binding}"))
    return COMPLETE


def demo_server(arguments: argparse.Namespace) -> int:
    """Serve the demo model to other programs, until Ctrl-C."""
    from parley.demo.server import serve

    try:
        serve(arguments.port, arguments.pace, arguments.strict, say)
    except OSError as error:
        raise ParleyError(f"cannot listen on port {arguments.port}: {error}") from error
    return COMPLETE
