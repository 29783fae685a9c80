"""Reads files of the form `{"mcpServers": {name: {command, args, env, cwd} | {url, headers,
type}}}`.

Other programs share these files, so every known spelling is accepted. A problem's text contains the
file, the server and the field. An unknown field is ignored; an invalid field makes its server
unusable. `server_entries` unifies the programs' spellings. Knows neither where files are nor
whether the user trusts them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.tables import Flaw, TableReader, expected, names, nearest, rule
from parley.text import one_line
from parley.tools.jsonc import plain_json
from parley.tools.server_entries import (
    MORE_KEYS,
    SERVER_KEYS,
    SYNONYMS,
    goose_table,
    server_tables,
    spelled,
    toml_table,
)
from parley.tools.server_settings import RESERVED, Origin, ServerSettings, placeholders

PROJECT_FILES = (".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json")
"""The server files that a project may have; earlier files have precedence."""
_NAME = late_pattern(r"\w[\w. -]{0,63}")  # no slash: rules are written as server/tool
_FROM_ROOT = ("/", "${")
_MOST_SERVERS = 200
_MOST_PROBLEMS = 20
_LONGEST = 500
"""The maximum number of characters in a problem's text: a project's file is read before the user
trusts it, and may be hostile.
"""
_TOO_DEEP = "is nested too deeply"


@frozen
class ServersFile:
    """A file's servers, and its problems, one line each."""

    servers: Mapping[str, ServerSettings] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    is_unreadable: bool = field(default=False, compare=False)
    """Whether the file cannot be read at all, so its servers are unknown."""


def project_of(path: Path) -> Path:
    """The folder of the project to which this server file belongs; the project's servers run
    there.
    """
    is_below = f"{path.parent.name}/{path.name}" in PROJECT_FILES
    return path.parent.parent if is_below else path.parent


def is_name(text: str) -> bool:
    """Whether a server can have this name, which must be unambiguous in rules and pages."""
    return _NAME.fullmatch(text) is not None


def digest(content: bytes) -> str:
    """The SHA-256 of a file's exact content, in hex; trust is bound to this digest."""
    return hashlib.sha256(content).hexdigest()


def read_servers(content: bytes, where: str, folder: str | None = None) -> ServersFile:
    """The servers in a file, which is called `where` in problems; local servers run in `folder`."""
    servers, flaws, is_unreadable = dict[str, ServerSettings](), list[Flaw](), False
    try:
        table = _table(content, flaws, is_of_project=folder is not None)
        for key, name, entry in _entries(table):
            _add(servers, flaws, _Place(f"{key}.{name}", folder, _inputs(table)), name, entry)
    except _WrongError as wrong:
        flaws += wrong.flaws
        is_unreadable = not servers
    told = [one_line(f"parley: {where}: {flaw}", _LONGEST) for flaw in flaws[:_MOST_PROBLEMS]]
    more = [one_line(f"parley: {where}: there are more errors")] if flaws[_MOST_PROBLEMS:] else []
    return ServersFile(servers, (*told, *more), is_unreadable)


def below(
    file: ServersFile, above: Mapping[str, ServerSettings], owner: str, where: str
) -> ServersFile:
    """A file's servers without the names in `above`; reports different servers of those names."""
    doubles = [name for name, server in file.servers.items() if above.get(name, server) != server]
    problems = [
        one_line(f"parley: {where}: {name}: {owner} a server with this name") for name in doubles
    ]
    servers = {name: server for name, server in file.servers.items() if name not in above}
    return ServersFile(servers, (*file.problems, *problems))


class _WrongError(ValueError):
    """A part of a file is invalid; contains its place, and the expected and actual values."""

    def __init__(self, *flaws: Flaw) -> None:
        super().__init__()
        self.flaws = flaws


@frozen
class _Place:
    """The path of an entry in its file, the entry's project's folder, and VS Code's inputs."""

    path: str
    folder: str | None
    inputs: Mapping[str, str]


@frozen
class _Entry:
    """The keys that are read in a server's entry."""

    type: Literal[
        "stdio", "http", "sse", "streamable-http", "streamableHttp", "streamable_http"
    ] = "http"
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False, metadata=rule(is_secret=True))
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata=rule(is_secret=True)
    )
    disabled: bool = False
    enabled: bool = True
    enabled_tools: tuple[str, ...] | None = None
    disabled_tools: tuple[str, ...] = ()
    start_timeout_s: float = 30.0
    timeout_s: float = 60.0


_OF_LOCAL, _OF_REMOTE = ("command", "args", "env", "cwd"), ("url", "headers")
_GRANTS = ("alwaysAllow", "autoApprove", "trust", "trusted")
_LABELS = ("description", "gallery", "version", "source", "name")
"""Fields that describe a server or its origin, and change nothing."""
_SLIP = 0.8
"""The minimum similarity between a misspelt name and the intended one."""


def _table(content: bytes, flaws: list[Flaw], *, is_of_project: bool) -> Mapping[str, Any]:
    """A file's table; reports a repeated key, whose last value counts, as in other programs.

    A project's file must be JSON, because TOML and YAML readers take too long on hostile text.
    """

    def table_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict[str, Any]()
        for key, value in pairs:
            if key in table and len(flaws) <= _MOST_PROBLEMS:
                flaws.append(Flaw(key, "occurs twice in one table, so the last value is used"))
            table[key] = value
        return table

    try:
        text = content.decode(json.detect_encoding(content))
        table = None if is_of_project else toml_table(text) or goose_table(text)
        table = table or json.loads(plain_json(text), object_pairs_hook=table_of)
    except ValueError as error:
        raise _WrongError(Flaw("invalid JSON", str(error))) from error
    except RecursionError as error:
        raise _WrongError(Flaw("the file", _TOO_DEEP)) from error
    return table if isinstance(table, dict) else {}


def _entries(table: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """A file's entries, each with its table's key and its name."""
    for key, entries in server_tables(table):
        if not isinstance(entries, dict):
            raise _WrongError(Flaw(key, expected("a server table", entries)))
        if len(entries) > _MOST_SERVERS:
            raise _WrongError(Flaw(key, f"more than {_MOST_SERVERS} servers"))
        for name, entry in entries.items():
            yield key, name, entry


def _add(
    servers: dict[str, ServerSettings], flaws: list[Flaw], place: _Place, name: str, entry: Any
) -> None:
    """Add a server to `servers`, or its flaws to `flaws`."""
    if name in servers:
        flaws.append(Flaw(place.path, f"{SERVER_KEYS[0]} has a server with this name"))
        return
    try:
        servers[name] = _server(name, _filled(entry, place), place)
        flaws += islice(_foreign(entry, place.path), max(_MOST_PROBLEMS + 1 - len(flaws), 0))
    except _WrongError as wrong:
        flaws += wrong.flaws
    except RecursionError:
        flaws.append(Flaw(place.path, _TOO_DEEP))


def _server(name: str, table: Any, place: _Place) -> ServerSettings:
    path = place.path
    if not is_name(name):
        raise _WrongError(
            Flaw(
                path,
                "a server's name may have up to 64 characters: letters, digits, spaces, dots, _ and -",
            )
        )
    if name in RESERVED:
        raise _WrongError(Flaw(path, "this name is reserved for a built-in server"))
    entry = _entry(table, path)
    is_enabled = entry.enabled and not entry.disabled
    origin: Origin = "config file" if place.folder is None else "project"
    server = ServerSettings(
        name,
        enabled=is_enabled,
        enabled_tools=entry.enabled_tools,
        disabled_tools=entry.disabled_tools,
        start_timeout_s=entry.start_timeout_s,
        timeout_s=entry.timeout_s,
        origin=origin,
    )
    if entry.type == "stdio" and entry.command:
        cwd = _placed(entry.cwd, place.folder)
        return replace(server, command=entry.command, args=entry.args, env=entry.env, cwd=cwd)
    if entry.type != "stdio" and entry.url:
        return replace(server, url=entry.url, headers=entry.headers)
    raise _WrongError(Flaw(path, "needs a command or a url"))


def _entry(table: Any, path: str) -> _Entry:
    """An entry's keys, without keys for the other kind of server."""
    reader = TableReader(unknown=None)
    if isinstance(table, Mapping):
        table = spelled(table)
        table = {key: value for key, value in table.items() if key not in _others(table)}
    entry: _Entry = reader.record(_Entry, table, path)
    if reader.flaws:
        raise _WrongError(*reader.flaws)
    return entry


def _others(spelled: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that have no meaning for a server of this type."""
    return _OF_REMOTE if spelled["type"] == "stdio" else _OF_LOCAL


def _foreign(table: Mapping[str, Any], path: str) -> Iterator[Flaw]:
    """The flaws of an entry's fields that are ignored."""
    known, others = names(_Entry), _others(spelled(table))
    kind = "a url" if others == _OF_REMOTE else "a command"
    for key, value in table.items():
        word = SYNONYMS.get(key, key)
        if word in _GRANTS and value:
            text = "files cannot approve calls. Use approval.auto in your settings"
        elif word in others and value:
            text = f"ignored: only for a server with {kind}"
        elif word not in (*known, *_GRANTS, *_LABELS, *MORE_KEYS):
            near = nearest(word, known, _SLIP)
            text = f"ignored: unknown field{f'; did you mean {near}?' if near else ''}"
        else:
            continue
        yield Flaw(f"{path}.{key}", text)


# --- VS Code's placeholders in an entry's texts ---------------------------------------------------

_HOME = "${HOME}"


def _filled(value: Any, place: _Place) -> Any:
    """An entry with its folder placeholders filled in; raises for VS Code's own placeholders.

    "${input:variable-id}", "${env:NAME}", "${workspaceFolder}", "${userHome}", "${pathSeparator}"
    or "${/}" (code.visualstudio.com/docs/reference/variables-reference,
    cursor.com/docs/context/mcp, 2026-11-23).
    """
    match value:
        case str():
            return _filled_text(value, place)
        case list():
            return [_filled(item, place) for item in value]
        case dict():
            return {key: _filled(item, place) for key, item in value.items()}
        case _:
            return value


def _filled_text(text: str, place: _Place) -> str:
    words = {"${userHome}": _HOME, "${pathSeparator}": "/", "${/}": "/"}
    if place.folder is not None:
        name = Path(place.folder).name
        words |= {"${workspaceFolder}": place.folder, "${workspaceFolderBasename}": name}
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    for body in placeholders(text):
        if body.startswith("input:"):
            raise _WrongError(
                Flaw(place.path, _on_input(body.removeprefix("input:"), place.inputs))
            )
        if body.startswith("workspaceFolder"):
            raise _WrongError(Flaw(place.path, f"${{{body}}} works only in a project's file"))
    return text


def _on_input(name: str, inputs: Mapping[str, str]) -> str:
    variable = re.sub(r"\W", "_", name, flags=re.ASCII).upper()
    about = f" ({one_line(inputs[name], _LONGEST // 2)})" if inputs.get(name) else ""
    why = f"VS Code asks for ${{input:{name}}}{about}, but Parley does not"
    return f"{why}: write ${{env:{variable}}} instead, and set that variable"


def _inputs(table: Mapping[str, Any]) -> Mapping[str, str]:
    """The descriptions of VS Code's inputs, by id."""
    inputs = table.get("inputs")
    entries = (
        [entry for entry in inputs if isinstance(entry, dict)] if isinstance(inputs, list) else []
    )
    return {str(entry.get("id")): str(entry.get("description") or "") for entry in entries}


def _placed(cwd: str | None, folder: str | None) -> str | None:
    """A server's directory; a relative path starts at `folder`."""
    if folder is None or (cwd and cwd.startswith(_FROM_ROOT)):
        return cwd
    return f"{folder}/{cwd}" if cwd and cwd != "." else folder
