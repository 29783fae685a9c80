"""Finds the programs of the built-in agents on this machine. Starts nothing."""

from __future__ import annotations

from collections.abc import Mapping

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
