"""MCP servers that an agent of another program starts itself, because the user lets it: their form in
the Agent Client Protocol. Pure.

Their entries may contain secrets, so they are never shown. Knows settings; does not know files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from parley.frozen import frozen
from parley.tools.server_settings import ServerSettings

Transport = Literal["stdio", "http", "sse"]

_IN_FOLDER = 'cd "$0" && exec "$@"'
"""A shell's command that starts a program in a folder: the protocol has no field for it, and an
agent would start the program in the project."""
_OLDEST = "2024-11-05"


@frozen
class PassedServer:
    """A server as an agent receives it."""

    name: str
    transport: Transport
    entry: Mapping[str, Any] = field(repr=False, hash=False)


@frozen
class PassedServers:
    """The servers for an agent, and why it does not receive others that the user named."""

    servers: tuple[PassedServer, ...] = ()
    problems: tuple[str, ...] = ()

    def accepted(
        self, capabilities: Mapping[str, Any]
    ) -> tuple[list[Mapping[str, Any]], list[str]]:
        """The entries that an agent with these capabilities can use, and the names of the others."""
        known = capabilities.get("mcpCapabilities")
        usable = known if isinstance(known, dict) else {}
        entries, others = list[Mapping[str, Any]](), list[str]()
        for server in self.servers:
            if server.transport == "stdio" or usable.get(server.transport) is True:
                entries.append(server.entry)
            else:
                others.append(server.name)
        return entries, others


def unfit(server: ServerSettings) -> str:
    """Why a server cannot be passed on; "" if it can."""
    if server.origin == "project":
        return "it comes from the project"
    if server.builtin:
        return "it is built into Parley"
    if not server.enabled:
        return "it is switched off"
    if server.enabled_tools is not None or server.disabled_tools:
        return "an agent would not respect enabled_tools and disabled_tools"
    if server.token_command:
        return "only Parley runs its token_command"
    return ""


def passed_server(server: ServerSettings, program: str, folder: str) -> PassedServer:
    """A server without variables in its fields; `program` is its program's path, and it starts in
    `folder`.
    """
    if server.url is not None:
        transport: Transport = "sse" if server.protocol == _OLDEST else "http"
        entry = {
            "type": transport,
            "name": server.name,
            "url": server.url,
            "headers": _pairs(server.headers),
        }
        return PassedServer(server.name, transport, entry)
    words: Sequence[str] = ("-c", _IN_FOLDER, folder, program, *server.args)
    entry = {
        "name": server.name,
        "command": "/bin/sh",
        "args": list(words),
        "env": _pairs(server.env),
    }
    return PassedServer(server.name, "stdio", entry)


def _pairs(table: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in table.items()]
