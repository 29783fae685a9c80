"""Entry points: what installed packages offer to Parley, by group and name.

Reads package metadata, and runs no code from packages before `load`. Packages are trusted, like
all installed code; the settings decide which packages Parley uses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.text import one_line

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

PROVIDER_GROUP = "parley.providers"
TEMPLATES = "parley.templates"
_KINDS = {PROVIDER_GROUP: "a provider", TEMPLATES: "templates"}
_LONGEST = 100


class EntryPointError(ParleyError):
    """No package, or more than one package, offers the entry point that a setting refers to."""


@frozen
class PackageOffer:
    """A package's offer: `package` is the package's name and version; `target` is a module or an
    object.

    `load` imports the target, and may raise any exception.
    """

    name: str
    package: str
    target: str
    load: Callable[[], object]


def offer(group: str, name: str) -> PackageOffer:
    """The offer with this name in a group. Raises EntryPointError unless there is exactly one
    offer.
    """
    every = list(_offers(group))
    offers = [each for each in every if each.name == name]
    what = f"{_KINDS[group]} called {_short(name)!r}"
    if not offers:
        others = ", ".join(sorted({repr(_short(each.name)) for each in every}))
        known = f" (known: {others})" if others else ""
        raise EntryPointError(
            f"no installed package has {what}{known}. Install one for the Python in {sys.prefix}"
        )
    if len(offers) > 1:
        packages = " and ".join(sorted(each.package for each in offers))
        raise EntryPointError(f"{packages} both have {what}. Uninstall one of them")
    return offers[0]


def folder(group: str, name: str) -> Path:
    """The folder of the Python package that an offer refers to; does not import the package.

    Raises EntryPointError, also if the folder does not exist.
    """
    found = offer(group, name)
    top, *below = found.target.split(".")
    with suppress(ImportError, ValueError):
        spec = find_spec(top)
        for place in (spec and spec.submodule_search_locations) or ():
            if (path := Path(place, *below)).is_dir():
                return path
    raise EntryPointError(
        f"{found.package} has no package {_short(found.target)!r}, but its entry point {name!r} "
        "refers to it"
    )


def _offers(group: str) -> Iterator[PackageOffer]:
    """All packages' offers. If a package is installed twice, Python imports the first one: use that
    one.
    """
    from importlib import metadata  # the import takes 35 ms, and is rarely needed

    names = set[str]()
    for package in metadata.distributions():
        name, points = _points(package, group)
        if name not in names:
            names.add(name)
            about = _short(f"{name} {package.version}") if points else ""
            yield from (
                PackageOffer(point.name, about, point.value, point.load) for point in points
            )


def _points(package: Distribution, group: str) -> tuple[str, tuple[EntryPoint, ...]]:
    """A package's name and entry points; none if the metadata is broken."""
    try:
        return package.metadata["Name"], tuple(package.entry_points.select(group=group))
    except Exception:  # noqa: BLE001 - metadata may be incomplete or damaged
        return "", ()


def _short(text: str) -> str:
    return one_line(text, _LONGEST)
