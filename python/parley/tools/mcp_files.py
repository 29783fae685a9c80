"""Reads files of the shape `{"mcpServers": {name: {command, args, env, cwd} | {url, headers, type}}}`.

They are shared with other programs, so keys that only those know pass silently; what does not fit is told by
its path, and costs one server at most. Knows neither where files are nor whether anybody trusts them.
"""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from parley.text import one_line
from parley.tools.servers import RESERVED, ServerSettings

PROJECT_FILE = ".mcp.json"
_NAME = re.compile(r"\w[\w. -]{0,63}")  # no slash: rules are written as server/tool
_REMOTE = ("http", "streamable-http", "streamableHttp")
_FROM_ROOT = ("/", "${")


@dataclass(frozen=True, slots=True)
class ServersFile:
    """The servers of a file, and what is wrong with it, a line each."""

    servers: Mapping[str, ServerSettings] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def digest(content: bytes) -> str:
    """What trust in a file's exact content is bound to: its SHA-256, in hex."""
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
    taken = [name for name in file.servers if name in own]
    told = [
        one_line(f"parley: {where}: mcpServers.{name}: your settings have a server of this name")
        for name in taken
    ]
    kept = {name: server for name, server in file.servers.items() if name not in own}
    return ServersFile(kept, (*file.problems, *told))


class _WrongError(ValueError):
    """Something in a file does not fit: where, what was wanted, what was got."""

    def __init__(self, path: str, wanted: str, got: object = None) -> None:
        shown = "" if got is None else f", got {reprlib.repr(got)}"
        super().__init__(f"{path}: {wanted}{shown}")


def _entries(content: bytes) -> Mapping[str, Any]:
    try:
        table = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _WrongError("no JSON", str(error)) from error
    entries = table.get("mcpServers") if isinstance(table, dict) else None
    if not isinstance(entries, dict):
        raise _WrongError("mcpServers", "expected an object of servers", entries)
    return entries


def _server(name: str, entry: Any, folder: str | None) -> ServerSettings:
    path = f"mcpServers.{name}"
    if not _NAME.fullmatch(name):
        raise _WrongError(path, "a server's name is up to 64 letters, digits, blanks, dots, _ and -")
    if name == RESERVED:
        raise _WrongError(path, "this name is reserved for the built-in server")
    if not isinstance(entry, dict):
        raise _WrongError(path, "expected an object", entry)
    url, command = _text(entry, "url", path), _text(entry, "command", path)
    kind = entry.get("type", "stdio" if command else "http")
    if kind not in ("stdio", *_REMOTE):
        raise _WrongError(f"{path}.type", 'expected "stdio" or "http"', kind)
    server = ServerSettings(name, enabled=entry.get("disabled") is not True)
    if kind == "stdio" and command:
        cwd = _placed(_text(entry, "cwd", path), folder)
        args, env = _texts(entry, "args", path), _table(entry, "env", path)
        return replace(server, command=command, args=args, env=env, cwd=cwd)
    if kind != "stdio" and url:
        return replace(server, url=url, headers=_table(entry, "headers", path))
    raise _WrongError(path, "needs a command or a url")


def _text(entry: Mapping[str, Any], key: str, path: str) -> str | None:
    value = entry.get(key)
    if value is not None and not isinstance(value, str):
        raise _WrongError(f"{path}.{key}", "expected a text", value)
    return value


def _texts(entry: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
    values = entry.get(key) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _WrongError(f"{path}.{key}", "expected a list of texts", values)
    return tuple(values)


def _table(entry: Mapping[str, Any], key: str, path: str) -> dict[str, str]:
    values = entry.get(key) or {}
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise _WrongError(f"{path}.{key}", "expected an object of texts")  # not shown: it may hold secrets
    return values


def _placed(cwd: str | None, folder: str | None) -> str | None:
    """The directory of a server; a relative one is seen from `folder`."""
    if folder is None or (cwd and cwd.startswith(_FROM_ROOT)):
        return cwd
    return f"{folder}/{cwd}" if cwd and cwd != "." else folder
