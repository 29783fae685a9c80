"""`parley tools`, `login`, `logout`, `trust`, `convert` and `demo-server`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from parley.cli.exits import COMPLETE, MISSING
from parley.cli.terminal import (
    PIPE,
    complain,
    emit,
    plain,
    read,
    say,
    say_json,
    say_line,
    settings,
    warn_of_project,
)
from parley.errors import ParleyError
from parley.programs import program, working_folder
from parley.text import one_line, visible
from parley.tools.resources import Resource, ResourceList
from parley.tools.visits import Visit

if TYPE_CHECKING:
    from parley.runtime.app import App

MOST_SHOWN = 20
"""Resources of a server, and templates, in lines for a person."""


def convert(arguments: argparse.Namespace) -> int:
    """Turn MCP tool definitions on standard input into those of a provider."""
    from parley.models.formats import format_for
    from parley.tools.convert import convert_all
    from parley.tools.parameters import wire_tool

    shape = format_for(arguments.to).tool
    try:
        definitions = json.loads(read(PIPE), parse_constant=_no_number)
        say_json(convert_all(definitions, lambda name, tool: shape(name, wire_tool(tool))))
    except json.JSONDecodeError as error:
        raise ParleyError(f"standard input is no JSON: {error}") from error
    except ValueError as error:
        raise ParleyError(f"standard input: {error}") from error
    except RecursionError as error:
        raise ParleyError("standard input: it is nested too deep to be a tool") from error
    return COMPLETE


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def tools(arguments: argparse.Namespace) -> int:
    """Start the MCP servers and list their tools."""
    return asyncio.run(_tools(arguments))


@asynccontextmanager
async def _application() -> AsyncIterator[App]:
    """The application with its servers, and what is to be known of the project's."""
    from parley.runtime.app import App

    app = App(settings(), os.environ)
    warn_of_project(app)
    try:
        yield app
    finally:
        await app.close()


async def _tools(arguments: argparse.Namespace) -> int:
    async with _application() as app:
        await app.servers.catalogue()
        status, resources = app.servers.status(), await app.servers.resources()
    code = MISSING if any(server.state == "failed" for server in status) else COMPLETE
    for server in status:
        listed = resources.get(server.name, ResourceList())
        if arguments.json:
            emit("server", **plain(server), **plain(listed))
            continue
        say_line(f"{server.name}: {server.state}" + (f" ({server.error})" if server.error else ""))
        for tool in server.tools:
            say_line(f"  {tool.name}: {' '.join(tool.description.split())[:90]}")
        _say_resources("resource", listed.resources)
        _say_resources("template", listed.templates)
        if listed.unlisted:
            say_line(f"  resources: {listed.unlisted}")
    return code


def _say_resources(kind: str, resources: Sequence[Resource]) -> None:
    """The first of them, and how many more there are: there may be a thousand."""
    for resource in resources[:MOST_SHOWN]:
        say_line(f"  {kind} {one_line(resource.uri)}: {resource.about[:90]}")
    if (more := len(resources) - MOST_SHOWN) > 0:
        say_line(f"  and {more} more {kind}s: --json has them")


def login(arguments: argparse.Namespace) -> int:
    """Sign in at an MCP server with a browser, and keep what it grants."""
    return asyncio.run(_login(arguments.server))


async def _login(server: str) -> int:
    def browse(page: Visit) -> None:
        say_line(f"Sign in to {server} at {page.host}, in your browser:")
        say(page.url)
        _open(page.url)

    async with _application() as app:
        await app.servers.sign_in(server, browse)
    say_line(f"signed in to {server}")
    return COMPLETE


def _open(url: str) -> None:
    """Have the desktop open an address, where there is one."""
    has_desktop = sys.platform == "darwin" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    opener = program("open" if sys.platform == "darwin" else "xdg-open")
    if has_desktop and opener:
        nowhere = subprocess.DEVNULL
        with suppress(OSError):
            subprocess.Popen(  # it may stay, as the browser itself
                [opener, url],
                stdin=nowhere,
                stdout=nowhere,
                stderr=nowhere,
                start_new_session=True,
                cwd=working_folder(os.environ),
            )


def logout(arguments: argparse.Namespace) -> int:
    """Forget what an MCP server granted when you signed in."""
    return asyncio.run(_logout(arguments.server))


async def _logout(server: str) -> int:
    async with _application() as app:
        if not app.servers.sign_out(server):
            raise ParleyError(f"you are not signed in to {server}")
    say_line(f"signed out of {server}: what it granted is deleted here")
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
    for path in programs(file, folder):
        binding = "a change asks again" if arguments.pin else "whoever changes it changes what runs (--pin)"
        say_line(visible(f"  runs {path} of the project; {binding}"))
    return COMPLETE


def demo_server(arguments: argparse.Namespace) -> int:
    """Serve the demo model to other programs, until Ctrl-C."""
    from parley.demo.server import serve

    try:
        serve(arguments.port, arguments.pace, arguments.strict, say)
    except OSError as error:
        raise ParleyError(f"cannot listen on port {arguments.port}: {error}") from error
    return COMPLETE
