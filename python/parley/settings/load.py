"""Loads the shell's settings from the TOML file and from the server file that it may name.

The editor's setup table overrides these settings, key by key.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from parley.bounded_files import whole
from parley.errors import reason_of
from parley.frozen import frozen
from parley.models.text_tools.template import PACKAGE_PREFIX, load_templates
from parley.paths import config_path
from parley.settings.read import read_settings
from parley.settings.values import Settings
from parley.tools.mcp_files import ServersFile, read_servers
from parley.tools.server_settings import ServerSettings

ABSENT: Final = object()
"""Stands for an unset value."""

_MOST_SEARCHED = 64_000
"""Search only settings files of at most this many characters for a problem's line."""
_MOST_TRIED = 1_000_000
"""The maximum number of characters to parse in this search, because a statement is parsed again
with each further line.
"""


@frozen
class SettingsFile:
    """The settings file as read: its text, its table, and its problems."""

    path: Path
    text: str = ""
    table: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    is_there: bool = True

    @property
    def fault(self) -> str:
        """Why Parley does not ask models: the file is unreadable, so other settings would apply.

        "" if the file is readable or missing.
        """
        if not self.problems:
            return ""
        return f"{self.problems[0].removeprefix('parley: ')}. {self.consequence}"

    @property
    def consequence(self) -> str:
        """The fault without its cause, for a user who has just read the cause."""
        return "Parley does not send questions until the file can be read" if self.problems else ""

    def value(self, path: str) -> Any:
        """The value at a path such as `agents[1].name`; ABSENT if it is unset."""
        return _value(self.table, path)

    def place(self, path: str) -> str:
        """The place of a value in the file, for example `config.toml:3`."""
        return f"{self.path.name}{_line(self.text, path)}"


def settings_file(environ: Mapping[str, str]) -> SettingsFile:
    """The shell's settings file; a missing file counts as empty."""
    path = config_path(environ)
    try:
        text = whole(path).decode()
        return SettingsFile(path, text, tomllib.loads(text))
    except FileNotFoundError:
        return SettingsFile(path, is_there=False)
    except (OSError, ValueError, RecursionError) as error:
        return SettingsFile(path, problems=(f"parley: {path}: {reason_of(error)}",))


def load_settings(
    environ: Mapping[str, str], setup: Any = None, file: SettingsFile | None = None
) -> tuple[Settings, tuple[str, ...]]:
    """The file's settings, overridden by `setup`, and the problems in both, one line each.

    Reads the settings file if `file` is None.
    """
    file = file or settings_file(environ)
    setup_table = {} if setup is None or setup in ([], ()) else setup  # Lua's empty table
    settings, wrong = read_settings(
        merged(file.table, setup_table) if isinstance(setup_table, Mapping) else setup_table,
        lambda path: _place(path, setup_table, file),
    )
    settings = _placed(settings, file.path.parent)
    settings, others = with_files(settings)
    # A Lua table has no order, so its problems are sorted; they follow the file's problems.
    wrong = tuple(
        sorted(wrong, key=lambda problem: problem if problem.startswith("setup: ") else "")
    )
    return settings, (*file.problems, *wrong, *others)


def with_files(settings: Settings) -> tuple[Settings, tuple[str, ...]]:
    """The settings with their server file's servers; and the problems in this file and in
    templates.
    """
    _, templates = load_templates(settings.prompt_tools.templates)
    more = _servers(settings.mcp.config_file)
    return settings.with_servers(more.servers), (*templates, *more.problems)


class ConfigFile:
    """The file named by `mcp.config_file`; Parley reads it again when its content changes.

    While the file is unreadable, the servers from the last readable version remain in use.
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._content: bytes | None = None
        self._file = ServersFile()
        self._is_edited = False

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems in an edited file; the settings' problems already include the original
        file's problems.
        """
        return self._file.problems if self._is_edited else ()

    @property
    def is_unreadable(self) -> bool:
        """Whether the file's current servers are unknown."""
        return self._file.is_unreadable

    def settings(self, settings: Settings) -> Settings:
        """The settings with the file's current servers."""
        path, before = settings.mcp.config_file, self._content
        content = _content_of(path)
        if path == self._path and content == before:
            return settings if not self._is_edited else _with_file(settings, self._file)
        self._is_edited = path == self._path
        self._path, self._content, known = path, content, self._file.servers
        self._file = _servers(path)
        if self._file.is_unreadable:
            known = known if self._is_edited else _of_file(settings)
            self._file = replace(self._file, servers=known)
        return _with_file(settings, self._file)


def _content_of(path: str | None) -> bytes | None:
    try:
        return whole(Path(path).expanduser()) if path else None
    except (OSError, ValueError, RuntimeError):
        return None


def _of_file(settings: Settings) -> Mapping[str, ServerSettings]:
    servers = settings.mcp.servers.items()
    return {name: server for name, server in servers if server.origin == "config file"}


def _with_file(settings: Settings, file: ServersFile) -> Settings:
    """The settings with these servers instead of the file's earlier servers."""
    old = _of_file(settings)
    own = {name: server for name, server in settings.mcp.servers.items() if name not in old}
    return replace(settings, mcp=replace(settings.mcp, servers=own)).with_servers(file.servers)


def _placed(settings: Settings, folder: Path) -> Settings:
    """The settings with paths relative to the file's folder, never to the working directory."""

    def place(path: str | None) -> str | None:
        return path if not path or path.startswith(("~", PACKAGE_PREFIX)) else str(folder / path)

    words, mcp = settings.prompt_tools, settings.mcp
    words = replace(words, records=place(words.records), templates=place(words.templates))
    return replace(
        settings, prompt_tools=words, mcp=replace(mcp, config_file=place(mcp.config_file))
    )


def _place(path: str, setup: Any, file: SettingsFile) -> str:
    """The place of a setting or, if it is missing, of its table, for example `config.toml:3: `."""
    while path:
        if _value(setup, path) is not ABSENT:
            return "setup: "
        if file.value(path) is not ABSENT:
            return f"{file.place(path)}: "
        path = path.rpartition(".")[0]
    return ""


def _value(value: Any, path: str) -> Any:
    """The value at a path such as `agents[1].name`; names may contain dots."""
    if not path:
        return value
    path = path.removeprefix(".")
    if isinstance(value, Mapping):
        below = [
            (item, path[len(str(name)) :])
            for name, item in value.items()
            if path.startswith(str(name))
        ]
        inner = (_value(item, rest) for item, rest in below if not rest or rest[0] in ".[")
        return next((item for item in inner if item is not ABSENT), ABSENT)
    number, closed, rest = path.removeprefix("[").partition("]")
    is_item = (
        isinstance(value, list | tuple) and path.startswith("[") and closed and number.isdecimal()
    )
    if not is_item or not 1 <= int(number) <= len(value):
        return ABSENT
    return _value(value[int(number) - 1], rest)


def _line(text: str, path: str) -> str:
    """The line where the statement that sets a path begins in a TOML text, for example `:3`."""
    if len(text) > _MOST_SEARCHED:
        return ""
    lines, ends = text.split("\n"), _ends(text)

    def has(end: int) -> bool:
        return _value(tomllib.loads("\n".join(lines[:end])), path) is not ABSENT

    number = bisect_left(ends, True, key=has)
    return f":{ends[number - 1] + 1}" if number < len(ends) else ""


@lru_cache(1)
def _ends(text: str) -> Sequence[int]:
    """The line numbers, from 0, after each statement in a TOML text, and 0 before them.

    If a statement takes too long to parse, it and all later statements are missing.
    """
    lines, ends, room = text.split("\n"), [0], _MOST_TRIED
    for end in range(1, len(lines) + 1):
        statement = "\n".join(lines[ends[-1] : end])
        room -= len(statement)
        if room < 0:
            break
        with suppress(ValueError, RecursionError):  # the statement continues below
            tomllib.loads(statement)
            ends.append(end)
    return ends


def _servers(path: str | None) -> ServersFile:
    """The servers in the `mcp.config_file` at this path."""
    if not path:
        return ServersFile()
    try:
        content = whole(Path(path).expanduser())
    except (OSError, ValueError, RuntimeError) as error:
        return ServersFile(
            {}, (f"parley: mcp.config_file: {path}: {reason_of(error)}",), is_unreadable=True
        )
    return read_servers(content, path)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables and their nested tables; any other value of `above` replaces the value in
    the lower table.

    In `above`, an empty list instead of a table is an empty Lua table.
    """
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        if isinstance(old, Mapping) and value in ([], ()):
            continue
        both[key] = (
            merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        )
    return both
