"""`parley servers`, `tools`, `login`, `logout`, `convert` and `demo-server`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from parley.cli.agent_sign_in import sign_in_to_agent, sign_out_of_agent
from parley.cli.exits import COMPLETE, MISSING
from parley.cli.terminal import (
    PIPE,
    emit,
    in_the_shell,
    plain,
    read,
    remark,
    say,
    say_json,
    say_line,
    settings,
    warn_of_project,
)
from parley.errors import ParleyError, reason_of
from parley.programs import program, working_folder
from parley.text import counted, one_line
from parley.tools.resources import Resource, ResourceList
from parley.tools.server_settings import MOCK, WORKSPACE
from parley.tools.visits import Visit

if TYPE_CHECKING:
    from parley.runtime.app import App
    from parley.settings.new_server import NewServer

RESOURCES_SHOWN = 20
"""The maximum number of resources, and of templates, that a person sees for a server."""

_PASTE = "the address of the browser's last page, and press Enter"
_LONGEST_LINE = 8_192


def convert(arguments: argparse.Namespace) -> int:
    """Convert MCP tool definitions from standard input to a provider's format."""
    from parley.models.formats import format_for
    from parley.tools.convert import convert_all
    from parley.tools.wire_parameters import wire_tool

    shape = format_for(arguments.to).tool
    try:
        definitions = json.loads(read(PIPE), parse_constant=_no_number)
        say_json(convert_all(definitions, lambda name, tool: shape(name, wire_tool(tool))))
    except json.JSONDecodeError as error:
        raise ParleyError(f"standard input is not JSON: {error}") from error
    except ValueError as error:
        raise ParleyError(f"standard input: {error}") from error
    except RecursionError as error:
        raise ParleyError("standard input is nested too deeply for a tool definition") from error
    return COMPLETE


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def tools(arguments: argparse.Namespace) -> int:
    """Start the MCP servers and list their tools."""
    return asyncio.run(_tools(arguments))


@asynccontextmanager
async def _application() -> AsyncIterator[App]:
    """Open the application with its servers; warn about the project's servers."""
    from parley.runtime.app import App

    app = App(settings(), os.environ)
    warn_of_project(app)
    try:
        yield app
    finally:
        await app.close()


async def _tools(arguments: argparse.Namespace) -> int:
    async with _application() as app:
        code = await _list(app, as_json=arguments.json)
        if app.workspace.root.reason and not (arguments.json or app.has_unreadable_file):
            say_line(f"{WORKSPACE} is not offered: {app.workspace.root.reason}")
        return code


async def _list(app: App, *, as_json: bool) -> int:
    """Start the servers and list their tools and resources; returns the exit code."""
    await app.servers.catalogue()
    status, resources = app.servers.status(), await app.servers.resources()
    if app.has_unreadable_file:  # the mock server would look like the user's
        status = tuple(server for server in status if server.name != MOCK)
    is_missing = app.has_unreadable_file or any(server.state == "failed" for server in status)
    code = MISSING if is_missing else COMPLETE
    for server in status:
        listed, error = resources.get(server.name, ResourceList()), in_the_shell(server.error)
        if as_json:
            emit("server", **{**plain(server), "error": error}, **plain(listed))
            continue
        say_line(f"{server.name}: {server.state}" + (f" ({error})" if error else ""))
        if server.name == WORKSPACE:
            say_line(f"  folder: {server.folder}")
        for tool in server.tools:
            say_line(f"  {tool.name}: {' '.join(tool.description.split())[:90]}")
        _say_resources("resource", listed.resources)
        _say_resources("template", listed.templates)
        if listed.unlisted:
            say_line(f"  resources: {listed.unlisted}")
    return code


def servers(arguments: argparse.Namespace) -> int:
    """List well-known MCP servers, or add a server to the settings and start it."""
    from parley.settings.new_server import NewServer

    if arguments.action is None:
        _say_known()
        return COMPLETE
    new = NewServer(arguments.name or "", tuple(arguments.words), arguments.url, arguments.source)
    return asyncio.run(_add(new))


def _say_known() -> None:
    from parley.tools.known_servers import KNOWN_SERVERS

    for name, known in KNOWN_SERVERS.items():
        what = known.settings.url or shlex.join(
            (known.settings.command or "", *known.settings.args)
        )
        say_line(f"{name:<9} {known.about}")
        say_line(f"{'':<9} {what}")


async def _add(new: NewServer) -> int:
    from parley.settings.new_server import add_server
    from parley.tools.known_servers import hint_for

    server = new.settings()
    path = add_server(server, os.environ)
    say_line(f"added {server.name} to {path}")
    if hint := hint_for(server):
        say_line(in_the_shell(f"Note: {hint}"))
    async with _application() as app:
        app.servers.use({server.name: server})
        return await _list(app, as_json=False)


def _say_resources(kind: str, resources: Sequence[Resource]) -> None:
    """Print the first resources, and how many more there are; there may be a thousand."""
    for resource in resources[:RESOURCES_SHOWN]:
        say_line(f"  {kind} {one_line(resource.uri)}: {resource.about[:90]}")
    if (more := len(resources) - RESOURCES_SHOWN) > 0:
        say_line(f"  and {counted(more, f'more {kind}')}: --json lists all of them")


def login(arguments: argparse.Namespace) -> int:
    """Sign in to a provider, an MCP server or an agent of another program."""
    return asyncio.run(_login(arguments.name, arguments.method))


async def _login(name: str, method: str | None) -> int:
    def browse(page: Visit) -> None:
        say_line(f"Sign in to {name} at {page.host}, in your browser:")
        say(page.url)
        if sys.stdin.isatty():
            remark(f"if your browser runs on another machine, paste {_PASTE}")
        _open(page.url)

    async with _application() as app:
        if agent := app.accounts.agent(name):
            return await sign_in_to_agent(app, agent, method)
        with _pasting(partial(app.accounts.take, name)):
            await app.accounts.sign_in(name, browse)
    say_line(f"signed in to {name}")
    return COMPLETE


@contextmanager
def _pasting(take: Callable[[str], bool]) -> Iterator[None]:
    """Inside this context, pass each line that the user enters in the terminal to `take`."""

    def read_line() -> None:
        line = os.read(sys.stdin.fileno(), _LONGEST_LINE).decode("utf-8", "replace")
        if not line:  # Ctrl-D
            loop.remove_reader(sys.stdin)
        elif line.strip() and not take(line.strip()):
            remark(f"that address does not belong to this sign-in. Paste {_PASTE}")

    loop = asyncio.get_running_loop()
    if not sys.stdin.isatty():
        yield
        return
    loop.add_reader(sys.stdin, read_line)
    try:
        yield
    finally:
        loop.remove_reader(sys.stdin)


def _open(url: str) -> None:
    """Open an address with the desktop's browser, if there is a desktop."""
    has_desktop = (
        sys.platform == "darwin" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    )
    opener = program("open" if sys.platform == "darwin" else "xdg-open")
    if has_desktop and opener:
        nowhere = subprocess.DEVNULL
        with suppress(OSError):
            subprocess.Popen(  # do not wait: it may run as long as the browser
                [opener, url],
                stdin=nowhere,
                stdout=nowhere,
                stderr=nowhere,
                start_new_session=True,
                cwd=working_folder(os.environ),
            )


def logout(arguments: argparse.Namespace) -> int:
    """Sign out of a provider, an MCP server or an agent of another program."""
    return asyncio.run(_logout(arguments.name))


async def _logout(name: str) -> int:
    async with _application() as app:
        if agent := app.accounts.agent(name):
            return await sign_out_of_agent(app, agent)
        if not app.accounts.sign_out(name):
            raise ParleyError(f"you are not signed in to {name}")
        is_provider = app.accounts.provider(name) is not None
    what = "key stored here was" if is_provider else "tokens stored here were"
    say_line(f"signed out of {name}: the {what} deleted")
    return COMPLETE


def demo_server(arguments: argparse.Namespace) -> int:
    """Serve the demo model to other programs, until Ctrl-C."""
    from parley.demo.server import serve

    try:
        serve(arguments.port, arguments.pace, say)
    except OSError as error:
        raise ParleyError(f"cannot listen on port {arguments.port}: {reason_of(error)}") from error
    return COMPLETE
