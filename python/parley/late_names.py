"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def late_names(package: str, homes: Mapping[str, Collection[str]]) -> Callable[[str], Any]:
    """A package's `__getattr__`, which finds names in the package's modules `homes`.

    Hide it from type checkers, because otherwise they would accept any name.
    """

    def attribute(name: str) -> Any:
        home = next((home for home, names in homes.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)  # the next use finds it without this function
        return value

    return attribute
