"""How the lines of a place are indented if a model quotes them with another indentation.

Accepts one uniform change: every line is deeper or shallower by the same blanks, or has spaces
instead of tabs. Knows only lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import gcd

Reindent = Callable[[str], str]
"""From a new line, as the model wrote it, to the line as the place needs it."""

_Change = Callable[[str], str | None]
"""From the indentation that the model wrote to the place's, or None if there is no such one."""
BLANKS = " \t\f\v\r"
"""Characters that are blanks at the end of a line; only the first two indent it."""
_TAB_WIDTHS = (4, 8, 2, 3, 1, 5, 6, 7)


def reindent(place: Sequence[str], old: Sequence[str], new: Sequence[str]) -> Reindent | None:
    """The change from the old lines to the lines of a place, if it is uniform and the new lines can
    change in the same way; else None.
    """
    pairs = {
        (indent_of(o), indent_of(p)) for o, p in zip(old, place, strict=True) if o.strip(BLANKS)
    }
    indents = sorted({indent_of(line) for line in (*old, *new) if line.strip(BLANKS)})
    for change in _changes(pairs, indents):
        if all(change(one) == other for one, other in pairs) and None not in map(change, indents):
            return lambda line: _changed(line, change)
    return None


def _changed(line: str, change: _Change) -> str:
    """A line with another indentation; a blank line has none."""
    if not line.strip(BLANKS):
        return ""
    indent = indent_of(line)
    return (change(indent) or "") + line[len(indent) :]


def _changes(pairs: set[tuple[str, str]], indents: Sequence[str]) -> Iterable[_Change]:
    """The possible changes, the likeliest first."""
    model, place = "".join(indents), "".join(indent for _, indent in pairs)
    if "\t" in place and "\t" not in model:
        yield from _width_changes(pairs, _by_step(indents), has_tabs=True)
    if "\t" in model and "\t" not in place and place:
        yield from _width_changes(pairs, _by_step([indent for _, indent in pairs]), has_tabs=False)
    yield from _shifts(pairs)


def _shifts(pairs: set[tuple[str, str]]) -> Iterable[_Change]:
    """The changes that add or remove the same blanks at the beginning of each line."""
    old, place = next(iter(pairs))
    if place.endswith(old):
        added = place.removesuffix(old)
        yield lambda indent: added + indent
    if old.endswith(place):
        removed = old.removesuffix(place)
        yield lambda indent: indent.removeprefix(removed) if indent.startswith(removed) else None


def _width_changes(
    pairs: set[tuple[str, str]], tab_widths: Sequence[int], *, has_tabs: bool
) -> Iterable[_Change]:
    """The changes that keep columns, or move all lines by the same number of columns."""

    def change_of(tab: int, more: int) -> _Change:
        def change(indent: str) -> str | None:
            width = len(indent.expandtabs(tab)) + more
            if width < 0:
                return None
            tabs = width // tab if has_tabs else 0
            return "\t" * tabs + " " * (width - tabs * tab)

        return change

    old, place = next(iter(pairs))
    moves = [(tab, len(place.expandtabs(tab)) - len(old.expandtabs(tab))) for tab in tab_widths]
    for tab, more in sorted(moves, key=lambda move: move[1] != 0):
        yield change_of(tab, more)


def _by_step(indents: Sequence[str]) -> list[int]:
    """Widths of a tab: first the step between the levels of indentation with spaces."""
    widths = sorted({len(indent) for indent in indents})
    step = gcd(*(after - before for before, after in pairwise(widths)))
    return [step, *_TAB_WIDTHS] if step in _TAB_WIDTHS else [*_TAB_WIDTHS]


def indent_of(line: str) -> str:
    """The blanks that indent a line."""
    return line[: len(line) - len(line.lstrip(" \t"))]
