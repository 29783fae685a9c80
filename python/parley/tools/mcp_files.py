"""Reads files of the shape `{"mcpServers": {name: {command, args, env, cwd} | {url, headers, type}}}`.

They are shared with other programs, so keys that only those know pass silently; what does not fit is told by
its path, and costs one server at most. Knows neither where files are nor whether anybody trusts them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from parley.tables import Flaw, Reader, expected, rule
from parley.text import one_line
from parley.tools.servers import RESERVED, ServerSettings

PROJECT_FILE = ".mcp.json"
_NAME = re.compile(r"\w[\w. -]{0,63}")  # no slash: rules are written as server/tool
_FROM_ROOT = ("/", "${")


@dataclass(frozen=True, slots=True)
class ServersFile:
    """The servers of a file, and what is wrong with it, a line each."""

    servers: Mapping[str, ServerSettings] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def digest(content: bytes) -> str:
    """The SHA-256 of a file's exact content, in hex: trust is bound to it."""
    return hashlib.sha256(content).hexdigest()


def read_servers(content: bytes, where: str, folder: str | None = None) -> ServersFile:
    """The servers of a file called `where` in problems; its local servers run in `folder`."""
    servers, problems = dict[str, ServerSettings](), list[str]()
    try:
        for name, entry in _entries(content).items():
            try:
                servers[name] = _server(name, entry, folder)
            except _WrongError as wrong:
                problems.append(one_line(f"parley: {where}: {wrong}"))
    except _WrongError as wrong:
        problems.append(one_line(f"parley: {where}: {wrong}"))
    return ServersFile(servers, tuple(problems))


def below(file: ServersFile, own: Mapping[str, ServerSettings], where: str) -> ServersFile:
    """The servers of a file that are none of the user's `own`; the others are told as a problem."""
    doubles = [name for name in file.servers if name in own]
    problems = [
        one_line(f"parley: {where}: mcpServers.{name}: your settings have a server of this name")
        for name in doubles
    ]
    servers = {name: server for name, server in file.servers.items() if name not in own}
    return ServersFile(servers, (*file.problems, *problems))


class _WrongError(ValueError):
    """Something in a file does not fit: where, what was expected, what there is."""

    def __init__(self, *flaws: Flaw) -> None:
        super().__init__("; ".join(map(str, flaws)))


@dataclass(frozen=True, slots=True)
class _Entry:
    """The keys of a server's entry that are read."""

    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] = "http"
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, metadata=rule(is_secret=True))
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, metadata=rule(is_secret=True))


_OF_LOCAL, _OF_REMOTE = ("command", "args", "env", "cwd"), ("url", "headers")


def _entries(content: bytes) -> Mapping[str, Any]:
    try:
        table = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _WrongError(Flaw("no JSON", str(error))) from error
    entries = table.get("mcpServers") if isinstance(table, dict) else None
    if not isinstance(entries, dict):
        raise _WrongError(Flaw("mcpServers", expected("a table of servers", entries)))
    return entries


def _server(name: str, table: Any, folder: str | None) -> ServerSettings:
    path = f"mcpServers.{name}"
    if not _NAME.fullmatch(name):
        raise _WrongError(Flaw(path, "a server's name is up to 64 letters, digits, blanks, dots, _ and -"))
    if name == RESERVED:
        raise _WrongError(Flaw(path, "this name is reserved for the built-in server"))
    entry = _entry(table, path)
    server = ServerSettings(name, enabled=table.get("disabled") is not True)
    if entry.type == "stdio" and entry.command:
        cwd = _placed(entry.cwd, folder)
        return replace(server, command=entry.command, args=entry.args, env=entry.env, cwd=cwd)
    if entry.type != "stdio" and entry.url:
        return replace(server, url=entry.url, headers=entry.headers)
    raise _WrongError(Flaw(path, "needs a command or a url"))


def _entry(table: Any, path: str) -> _Entry:
    """The keys of an entry, without those for servers of the other kind."""
    reader = Reader(unknown=None)
    if isinstance(table, Mapping):
        table = {"type": "stdio" if table.get("command") else "http"} | {
            key: value for key, value in table.items() if value is not None
        }
        other = _OF_REMOTE[1:] if table["type"] == "stdio" else _OF_LOCAL[1:]
        table = {key: value for key, value in table.items() if key not in other}
    entry: _Entry = reader.record(_Entry, table, path)
    if reader.flaws:
        raise _WrongError(*reader.flaws)
    return entry


def _placed(cwd: str | None, folder: str | None) -> str | None:
    """The directory of a server; a relative one is seen from `folder`."""
    if folder is None or (cwd and cwd.startswith(_FROM_ROOT)):
        return cwd
    return f"{folder}/{cwd}" if cwd and cwd != "." else folder
