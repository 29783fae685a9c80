"""Unifies other programs' spellings of a server's entry, without knowing their meaning.

The spellings, as documented on 2026-11-24: VS Code (`servers`, below `mcp` in `settings.json`), Zed
(`context_servers`), opencode (`mcp`, later `mcp.servers`; `type` local or remote, a `command` that
is a list, `environment`), Codex (TOML, `mcp_servers`), Gemini CLI (`includeTools`, `excludeTools`),
GitHub Copilot (`tools`), goose (YAML, `extensions`).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from parley.late_patterns import late_pattern

SERVER_KEYS = ("mcpServers", "servers", "context_servers", "mcp_servers", "mcp")
"""A server table's key in most programs, VS Code, Zed, Codex and opencode, in this order."""
_INNER = ("servers", "inputs")
"""The keys of the table `mcp` in VS Code's `settings.json`."""

SYNONYMS = {
    "transport": "type",
    "transportType": "type",
    "serverUrl": "url",
    "httpUrl": "url",
    "environment": "env",
    "http_headers": "headers",
    "startup_timeout_sec": "start_timeout_s",
    "tool_timeout_sec": "timeout_s",
    **dict.fromkeys(("enabledTools", "includeTools", "tools"), "enabled_tools"),
    **dict.fromkeys(("disabledTools", "excludeTools"), "disabled_tools"),
}
MORE_KEYS = ("bearer_token_env_var", "env_http_headers", "env_vars")
"""Codex's keys for the user's variables that an entry receives."""
_GOOSE = late_pattern(r"^extensions:", re.MULTILINE)
_TYPES = {"local": "stdio", "remote": "http"}
_TOML = late_pattern(r"^[ \t]*\[+[ \t]*\"?mcp_servers\b", re.MULTILINE)


def server_tables(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The server tables in a file, with their paths; None with the usual path if there are no
    tables.
    """
    keys = [key for key in SERVER_KEYS if key in table]
    for key in keys or SERVER_KEYS[:1]:
        entries = table.get(key)
        if key == "mcp" and isinstance(entries, dict) and entries.keys() <= {*_INNER}:
            yield f"{key}.servers", entries.get("servers", {})
        else:
            yield key, entries


def toml_table(text: str) -> dict[str, Any] | None:
    """The table in Codex's TOML; None for other text. Raises ValueError for broken TOML."""
    return tomllib.loads(text) if _TOML.search(text) else None


def goose_table(text: str) -> dict[str, Any] | None:
    """The table in goose's YAML; None for other text. Raises ValueError for broken YAML."""
    if not _GOOSE.search(text):
        return None
    import yaml

    try:
        table = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    entries = table.get("extensions") if isinstance(table, Mapping) else None
    if not isinstance(entries, Mapping):
        return None
    return {
        SERVER_KEYS[0]: {
            str(name): _of_goose(entry) for name, entry in entries.items() if _is_reached(entry)
        }
    }


def _is_reached(entry: Any) -> bool:
    """Whether goose's extension is a server; a built-in extension is not."""
    return isinstance(entry, Mapping) and bool(entry.get("cmd") or entry.get("uri"))


def _of_goose(entry: Mapping[str, Any]) -> dict[str, Any]:
    keys = entry.get("env_keys")
    named = {str(key): f"${{{key}}}" for key in keys} if isinstance(keys, list) else {}
    envs = entry.get("envs")
    table = {
        "command": entry.get("cmd"),
        "args": entry.get("args"),
        "env": {**named, **(envs if isinstance(envs, Mapping) else {})} or None,
        "cwd": entry.get("cwd"),
        "url": entry.get("uri"),
        "headers": entry.get("headers"),
        "enabled": entry.get("enabled"),
        "timeout_s": entry.get("timeout"),
        "enabled_tools": entry.get("available_tools") or None,
    }
    return {key: value for key, value in table.items() if value is not None}


def spelled(table: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with the names that Parley's settings use, and its type."""
    entry = dict[str, Any]()
    for key, value in table.items():
        word = SYNONYMS.get(key, key)
        if value is not None:
            entry[word] = _both(word, entry[word], value) if word in entry else value
    _set_apart(entry)
    _fill_in(entry)
    for word in ("env", "headers"):
        if isinstance(entry.get(word), Mapping):
            entry[word] = {
                name: _text(value) for name, value in entry[word].items() if value is not None
            }
    kind = entry.get("type")
    if isinstance(kind, str):
        entry["type"] = _TYPES.get(kind, kind)
    return {"type": "stdio" if entry.get("command") else "http"} | entry


def _both(word: str, first: Any, second: Any) -> Any:
    """The value if an entry contains two spellings of a name: if both are lists that select tools,
    both apply.
    """
    if (
        not (isinstance(first, Sequence) and isinstance(second, Sequence))
        or word not in SYNONYMS.values()
    ):
        return second
    if word == "disabled_tools":
        return [*first, *second]
    if word == "enabled_tools":
        named = [
            name for name in first if any(fnmatchcase(str(name), str(glob)) for glob in second)
        ]
        return [
            *named,
            *(name for name in second if any(fnmatchcase(str(name), str(g)) for g in first)),
        ]
    return second


def _set_apart(entry: dict[str, Any]) -> None:
    """Separate the arguments from a command that is a list (opencode) or a table (older Zed)."""
    command = entry.get("command")
    if isinstance(command, Mapping):
        entry |= {"command": command.get("path")} | {
            k: v for k, v in command.items() if k in ("args", "env")
        }
    elif isinstance(command, list) and command:
        arguments = entry.get("args", [])
        entry |= (
            {"command": command[0], "args": [*command[1:], *arguments]}
            if _is_list(arguments)
            else {}
        )


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _fill_in(entry: dict[str, Any]) -> None:
    """Write the user's variables that Codex's keys list as `${VAR}`."""
    token, names, headers = (
        entry.get(MORE_KEYS[0]),
        entry.get(MORE_KEYS[2]),
        entry.get(MORE_KEYS[1]),
    )
    if isinstance(token, str):
        _add(entry, "headers", {"Authorization": f"Bearer ${{{token}}}"})
    if isinstance(headers, Mapping):
        _add(entry, "headers", {key: f"${{{name}}}" for key, name in headers.items()})
    if isinstance(names, list):
        _add(entry, "env", {str(name): f"${{{name}}}" for name in names})


def _add(entry: dict[str, Any], word: str, more: Mapping[str, str]) -> None:
    old = entry.get(word, {})
    if isinstance(old, Mapping):
        entry[word] = {**more, **old}


def _text(value: Any) -> Any:
    """A number or boolean as text, because environment variables are texts."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value
