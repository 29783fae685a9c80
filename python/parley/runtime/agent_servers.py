"""Finds the user's MCP servers that an agent of another program may start itself.

Fills in variables and finds programs; `tools.passed_servers` says which servers can be passed on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from parley.errors import ParleyError, SettingsError, reason_of
from parley.frozen import frozen
from parley.programs import program, start_folder, working_folder
from parley.text import one_line
from parley.tools.passed_servers import PassedServer, PassedServers, passed_server, unfit
from parley.tools.selection import may_take
from parley.tools.server_settings import ServerSettings


@frozen
class AgentServers:
    """The servers in the settings, for agents whose chats are in `folder`."""

    known: Mapping[str, ServerSettings]
    environ: Mapping[str, str]
    folder: Path

    def passed(self, names: tuple[str, ...], globs: tuple[str, ...] | None) -> PassedServers:
        """The servers with these names, without those that a chat's `globs` for tools exclude."""
        servers, problems = list[PassedServer](), list[str]()
        for name in self._selected(names, globs):
            server, shown = self.known.get(name), one_line(name, 60)
            why = unfit(server) if server else "your settings have no such server"
            if server is None or why:
                problems.append(f"{shown} ({why})")
                continue
            try:
                servers.append(self._passed(server))
            except (ParleyError, OSError) as error:
                problems.append(f"{shown} ({reason_of(error)})")
        return PassedServers(tuple(servers), tuple(problems))

    def _selected(self, names: tuple[str, ...], globs: tuple[str, ...] | None) -> Iterator[str]:
        return (n for n in dict.fromkeys(names) if globs is None or may_take(globs, n))

    def _passed(self, server: ServerSettings) -> PassedServer:
        filled = server.expanded(self.environ)
        if filled.url is not None:
            return passed_server(filled, "", "")
        place = start_folder(filled.cwd, self.folder) if filled.cwd is not None else None
        if filled.cwd is not None and (place is None or not place.is_dir()):
            raise SettingsError(f"there is no directory {filled.cwd}")
        path = filled.env.get("PATH", self.environ.get("PATH"))
        found = program(filled.command or "", path, place)
        if found is None:
            raise SettingsError(f"{filled.command} was not found or is not executable")
        folder = os.path.normpath(place) if place else working_folder(self.environ)
        return passed_server(filled, found, folder)
