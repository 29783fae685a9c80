"""Adds an MCP server to `config.toml`; comments and order stay unchanged.

Parses the new text before writing it: apart from the new server, the text must mean the same as
before.
"""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from parley.bounded_files import whole
from parley.errors import ParleyError, reason_of
from parley.frozen import frozen
from parley.paths import config_path
from parley.settings.load import settings_file
from parley.settings.read import read_settings
from parley.tables import listed, nearest
from parley.tools.known_servers import KNOWN_SERVERS
from parley.tools.mcp_files import is_name, read_servers
from parley.tools.server_settings import RESERVED, ServerSettings

USAGE = "NAME -- COMMAND, NAME --url URL or NAME --from FILE"
_OPTIONS = ("--url", "--from")


@frozen
class NewServer:
    """The user's request: a name, and a command, an address, or another program's file."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    file: str = ""

    @classmethod
    def of(cls, words: Sequence[str]) -> NewServer:
        """Parse the request from a command line's words. Raises ParleyError."""
        match list(words):
            case [name, "--", *command] if command:
                return cls(name, tuple(command))
            case [name, "--url", url]:
                return cls(name, url=url)
            case [name, "--from", file]:
                return cls(name, file=file)
            case [name] if not name.startswith("-"):
                return cls(name)
            case _:
                raise ParleyError(f"give one of: the name of a known server, {USAGE}")

    def settings(self) -> ServerSettings:
        """The settings of the server. Raises ParleyError."""
        if not self.name:
            raise ParleyError(f"give one of: the name of a known server, {USAGE}")
        if not is_name(self.name) or self.name in RESERVED:
            raise ParleyError(
                f"a server cannot be called {self.name!r}: "
                "use up to 64 letters, digits, spaces, dots, _ and -; the names "
                f"{listed(map(repr, RESERVED))} are reserved"
            )
        if self.command:
            command, *args = self.command
            return ServerSettings(self.name, command, tuple(args))
        if self.url:
            return ServerSettings(self.name, url=self.url)
        if self.file:
            return _from_file(self.name, Path(self.file).expanduser())
        if known := KNOWN_SERVERS.get(self.name):
            return known.settings
        near = nearest(self.name, KNOWN_SERVERS)
        meant = f"Did you mean {near}?" if near else f"Known servers: {', '.join(KNOWN_SERVERS)}."
        raise ParleyError(
            f"{self.name} is not a known server. {meant} For another server, give {USAGE}"
        )


def _from_file(name: str, path: Path) -> ServerSettings:
    try:
        file = read_servers(whole(path), str(path))
    except (OSError, ValueError) as error:
        raise ParleyError(f"cannot read {path}: {reason_of(error)}") from error
    if server := file.servers.get(name):
        return server
    if file.servers:
        raise ParleyError(f"{path} has no server {name}. It has {', '.join(file.servers)}")
    raise ParleyError(next(iter(file.problems), f"{path} has no servers").removeprefix("parley: "))


def add_server(server: ServerSettings, environ: Mapping[str, str]) -> Path:
    """Write a server into `config.toml`; return the file's path. Raises ParleyError."""
    file = settings_file(environ)
    if file.fault:
        raise ParleyError(file.problems[0].removeprefix("parley: "))
    place = f"mcp.servers.{server.name}"
    if server.name in _table(file.table, "mcp", "servers"):
        line = file.place(place).removeprefix(file.path.name)
        raise ParleyError(
            f"{file.path}{line} already has a server named '{server.name}'. Edit it there"
        )
    _, flaws = read_settings({"mcp": {"servers": {server.name: entry(server)}}})
    if flaws:
        raise ParleyError(flaws[0].removeprefix("parley: "))
    text = with_server(file.text, server)
    _replace(config_path(environ), file.text if file.is_there else None, text)
    return file.path


def with_server(text: str, server: ServerSettings) -> str:
    """The text of a settings file with one more server. Raises ParleyError if that is impossible.

    The server is added next to existing servers, or else at the end of the file.
    """
    from tomlkit.exceptions import TOMLKitError

    table = tomllib.loads(text)
    servers = {**_table(table, "mcp", "servers"), server.name: entry(server)}
    wanted = {**table, "mcp": {**_table(table, "mcp"), "servers": servers}}
    for attempt in (_beside_others, _at_the_end):
        with suppress(TOMLKitError, ValueError, LookupError, TypeError, AttributeError):
            written = attempt(text, server)
            if tomllib.loads(written) == wanted and _keeps_comments(text, written):
                return written
    raise ParleyError(
        f"cannot add a server to the mcp tables of config.toml. Add it by hand:\n{_block(server)}"
    )


def entry(server: ServerSettings) -> dict[str, Any]:
    """A server as a settings table, without default values."""
    table = dict[str, Any]()
    for field in fields(server):
        value, factory = getattr(server, field.name), field.default_factory
        default = field.default if factory is MISSING else factory()
        if field.name not in ("name", "origin") and value != default:
            table[field.name] = _plain(value)
    return table


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _table(table: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    for name in path:
        inner = table.get(name, {})
        table = inner if isinstance(inner, Mapping) else {}
    return table


def _beside_others(text: str, server: ServerSettings) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    servers = document["mcp"]["servers"]
    servers[server.name] = _toml(server)
    return tomlkit.dumps(document)


def _at_the_end(text: str, server: ServerSettings) -> str:
    before = text if not text or text.endswith("\n") else f"{text}\n"
    return f"{before}{chr(10) if before else ''}{_block(server)}"


def _block(server: ServerSettings) -> str:
    """A server's lines in TOML, as a table of its own."""
    import tomlkit

    servers, mcp = tomlkit.table(is_super_table=True), tomlkit.table(is_super_table=True)
    servers[server.name] = _toml(server)
    mcp["servers"] = servers
    document = tomlkit.document()
    document["mcp"] = mcp
    return tomlkit.dumps(document)


def _toml(server: ServerSettings) -> Any:
    import tomlkit

    table = tomlkit.table()
    for name, value in entry(server).items():
        if isinstance(value, dict):
            inline = tomlkit.inline_table()
            inline.update(value)
            table[name] = inline
        else:
            table[name] = value
    return table


def _keeps_comments(before: str, after: str) -> bool:
    """Whether `after` contains all lines of `before` in the same order."""
    lines = iter(after.splitlines())
    return all(line in lines for line in before.splitlines())


def _replace(path: Path, before: str | None, text: str) -> None:
    """Replace a file's text, unless another program has changed it in the meantime. Raises
    ParleyError.
    """
    place = Path(os.path.realpath(path))  # follow a link into a dotfiles folder, and keep it
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        now = whole(place).decode() if place.exists() else None
        if now != before:
            raise ParleyError(f"{path} was changed by another program. Try again")
        mode = place.stat().st_mode & 0o777 if now is not None else 0o600
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".config.toml.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            Path(name).chmod(mode)
            Path(name).replace(place)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise ParleyError(f"cannot write {path}: {reason_of(error)}") from error
