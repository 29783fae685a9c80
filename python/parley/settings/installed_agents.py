"""Finds the programs of the built-in agents on this machine. Starts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from parley.programs import program
from parley.settings.values import Settings


def with_installed(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Settings that know which built-in agents' programs are on the user's PATH."""
    providers = settings.all_providers().values()
    return settings.with_installed(
        each.name
        for each in providers
        if each.install and program(each.command[0], environ.get("PATH"))
    )


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
