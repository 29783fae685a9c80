"""Finds the programs of the built-in agents on this machine. Starts nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from parley.programs import program, search_path
from parley.settings.values import Settings


def with_installed(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Settings that know which built-in agents' programs are on the user's PATH."""
    providers, path = settings.all_providers().values(), environ.get("PATH")
    state = (*_changes(search_path(path)), time.monotonic() // _KNOWN_S)
    return settings.with_installed(
        each.name
        for each in providers
        if each.install and _is_installed(each.command[0], path, state)
    )


_KNOWN_S = 30
"""How many seconds a search of unchanged folders counts: new permissions of a file do not change
its folder.
"""


def _changes(path: str) -> Iterator[int]:
    """When each folder on the PATH last changed."""
    for folder in path.split(os.pathsep):
        try:
            yield os.stat(folder).st_mtime_ns  # noqa: PTH116 - for speed: before each question
        except OSError:
            yield 0


@lru_cache(maxsize=32)
def _is_installed(command: str, path: str | None, _: tuple[float, ...]) -> bool:
    """Whether a program is on the PATH, which is searched again only if its state has changed."""
    return program(command, path) is not None


_FILES = (
    ".claude",
    ".codex",
    ".gemini",
    ".copilot",
    ".github/copilot",
    ".github/hooks",
    ".mcp.json",
)
"""A project's settings for the built-in agents. Some can start programs when the agent starts."""


def agents_files(project: Path, environ: Mapping[str, str]) -> str:
    """The names of a project's settings for built-in agents; "" in the user's home folder, where
    they are the user's own.
    """
    if project == Path(environ.get("HOME", "/")).resolve():
        return ""
    return ", ".join(name for name in _FILES if (project / name).exists())
