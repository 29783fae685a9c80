"""The tools that a list of globs selects, and the list after switching a tool or server on or off.

The last glob that matches a tool decides; `!` before a glob excludes its matches. If the first glob
is an exclusion, all tools that no glob matches are selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

OUT = "!"


def takes(globs: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the globs select a tool with any of these `names`."""
    is_in = _from_all(globs)
    for glob in globs:
        if any(fnmatchcase(name, glob.removeprefix(OUT)) for name in names):
            is_in = not glob.startswith(OUT)
    return is_in


def may_take(globs: Sequence[str], server: str) -> bool:
    """Whether the globs may select any of a server's tools, whose names are not known yet."""
    may = _from_all(globs)
    for glob in globs:
        place, folder, name = glob.removeprefix(OUT).rpartition("/")
        is_about = not folder or fnmatchcase(server, place)
        if is_about and (name == "*" or not glob.startswith(OUT)):
            may = not glob.startswith(OUT)
    return may


def switched(
    globs: Sequence[str] | None, server: str, tool: str | None, on: bool
) -> tuple[str, ...] | None:
    """The globs after switching a tool or a whole server; None if globs are no longer needed."""
    from_all = globs is None or _from_all(globs)
    folder, name = (
        f"{_literal(server)}/",
        f"{_literal(server)}/{'*' if tool is None else _literal(tool)}",
    )
    rules = [
        glob
        for glob in globs or ()
        if not _is_about(glob.removeprefix(OUT), folder, name, tool is None)
    ]
    while rules and rules[0].startswith(OUT) != from_all:
        rules.pop(0)  # useless in front; but the first glob decides on all other tools
    settled = _settled(rules, server, folder, tool)
    if (from_all if settled is None else settled) != on or (rules and settled is None):
        rules.append(name if on else OUT + name)
    return None if from_all and not rules else tuple(rules)


def _settled(globs: Sequence[str], server: str, folder: str, tool: str | None) -> bool | None:
    """Whether the globs select a tool or a whole server; None if undecided or only in part."""
    if tool is not None:
        return takes(globs, (f"{server}/{tool}", tool)) if globs else None
    others = all("/" in glob and not glob.removeprefix(OUT).startswith(folder) for glob in globs)
    literal = not any(sign in glob.partition("/")[0] for glob in globs for sign in "*?[")
    return _from_all(globs) if globs and others and literal else None


def _from_all(globs: Sequence[str]) -> bool:
    return bool(globs) and globs[0].startswith(OUT)


def _is_about(glob: str, folder: str, name: str, whole: bool) -> bool:
    return glob.startswith(folder) if whole else glob == name


def _literal(text: str) -> str:
    """A glob that matches exactly this text."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in text)
