"""Where the shell's settings are: the TOML file, read into settings, with the file of servers it may name.

Setup tables from the editor go on top of it, key by key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from parley.models.text_tools.template import load_templates
from parley.paths import config_path
from parley.regular import whole
from parley.settings.read import read_settings
from parley.settings.values import Settings
from parley.tools.mcp_files import ServersFile, read_servers


def load_settings(environ: Mapping[str, str], setup: Any = None) -> tuple[Settings, tuple[str, ...]]:
    """The settings of the file with those of `setup` on top, and what is wrong with either, a line each."""
    table, problems = _read(config_path(environ))
    setup_table = {} if setup is None or setup in ([], ()) else setup  # Lua's empty table
    settings, wrong = read_settings(
        merged(table, setup_table) if isinstance(setup_table, Mapping) else setup_table
    )
    settings = _placed(settings, config_path(environ).parent)
    _, templates = load_templates(settings.prompt_tools.templates)
    more = _servers(settings.mcp.config_file)
    return settings.with_servers(more.servers), (*problems, *wrong, *templates, *more.problems)


def _placed(settings: Settings, folder: Path) -> Settings:
    """The settings with relative paths seen from the folder of the file: never from the one worked in."""

    def place(path: str | None) -> str | None:
        return path if not path or path.startswith("~") else str(folder / path)

    words, mcp = settings.prompt_tools, settings.mcp
    words = replace(words, records=place(words.records), templates=place(words.templates))
    return replace(settings, prompt_tools=words, mcp=replace(mcp, config_file=place(mcp.config_file)))


def _read(path: Path) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    try:
        return tomllib.loads(whole(path).decode()), ()
    except FileNotFoundError:
        return {}, ()
    except (OSError, ValueError, RecursionError) as error:
        return {}, (f"parley: {path}: {_why(error)}",)


def _servers(path: str | None) -> ServersFile:
    """The servers of `mcp.config_file`."""
    if not path:
        return ServersFile()
    try:
        content = whole(Path(path).expanduser())
    except (OSError, ValueError, RuntimeError) as error:
        return ServersFile(problems=(f"parley: mcp.config_file: {path}: {_why(error)}",))
    return read_servers(content, path)


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables as one: tables inside them are merged, anything else is the upper one's.

    An empty list above a table is one of Lua's empty tables.
    """
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        if isinstance(old, Mapping) and value in ([], ()):
            continue
        both[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both
