"""Compares the units of two requests, and finds the units that are new, removed, moved or replaced.

Knows only fingerprints, not files or the text for the user.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple, TypeAlias

from parley.models import fingerprint as units
from parley.models.fingerprint import Units

EditKind: TypeAlias = Literal[
    "question",
    "attachment",
    "answer",
    "summary",
    "thinking",
    "call",
    "arguments",
    "result",
    "exchange",
    "agent",
    "front_matter",
    "reply",
    "request",
]
What: TypeAlias = Literal["edited", "removed", "added", "moved"]

_KINDS: Mapping[str, EditKind] = {
    units.QUESTION: "question",
    units.PICTURE: "attachment",
    units.TEXT: "answer",
    units.SUMMED_UP: "summary",
    units.THINKING: "thinking",
    units.CALL: "call",
    units.ARGUMENTS: "arguments",
    units.RESULT: "result",
}


class UnitChange(NamedTuple):
    """A change to one unit. `at` is a position in the new units; for a removed unit, the position
    of the removal."""

    kind: EditKind
    what: What
    at: int
    unit: str


def changes(before: Units, now: Units) -> Iterator[UnitChange]:
    """The changes between two requests, in document order."""
    start = _common(before, now)
    end = _common(before[start:][::-1], now[start:][::-1])
    old, new = before[start : len(before) - end], now[start : len(now) - end]
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    blocks = [
        (old[i:j], [(start + n, new[n]) for n in range(m, k)])
        for tag, i, j, m, k in codes
        if tag != "equal"
    ]
    at = [start + m for tag, _, _, m, _ in codes if tag != "equal"]
    moved = Counter(unit for units, _ in blocks for unit in units)
    moved &= Counter(unit for _, units in blocks for _, unit in units)
    for place, (removed, added) in zip(at, blocks, strict=True):
        yield from (
            UnitChange("exchange", "moved", n, unit)
            for n, unit in added
            if unit in moved and unit[0] == units.QUESTION
        )
        yield from _of_block(
            [unit for unit in removed if unit not in moved],
            [(n, unit) for n, unit in added if unit not in moved],
            place,
        )


def _of_block(
    removed: Sequence[str], added: Sequence[tuple[int, str]], at: int
) -> Iterator[UnitChange]:
    """The changes in a replaced block; a new unit counts as an edit of an old unit of its kind."""
    rest, new = defaultdict[str, deque[str]](deque), set[str]()
    for unit in removed:
        rest[unit[0]].append(unit)
    for number, unit in added:
        letter = unit[0]
        if rest[letter]:
            rest[letter].popleft()
            yield from _change(letter, "edited", number, unit)
        elif not new & _HEADS[letter]:
            new.add(letter)
            yield from _change(letter, "added", number, unit)
    gone = {letter for letter, queue in rest.items() if queue}
    for letter in sorted(gone):
        if letter == units.QUESTION and units.STAND_IN in new:
            yield UnitChange("question", "removed", at + 1, rest[letter][0])
        elif not gone & _HEADS[letter]:
            yield from _change(letter, "removed", at, rest[letter][0])


def _change(letter: str, what: What, at: int, unit: str) -> Iterator[UnitChange]:
    if letter == units.QUESTION and what != "edited":
        yield UnitChange("exchange", what, at, unit)
    elif letter != units.STAND_IN:
        yield UnitChange(_KINDS[letter], what, at, unit)


_OF_CALL = frozenset({units.ARGUMENTS, units.RESULT})
_HEADS: Mapping[str, frozenset[str]] = {
    letter: frozenset({units.QUESTION} - {letter})
    | (frozenset({units.CALL}) if letter in _OF_CALL else frozenset())
    for letter in (*_KINDS, units.STAND_IN)
}
"""The kinds of units that a kind belongs to; if they are added or removed, this kind is not
reported separately.
"""


def _common(one: Units, other: Units) -> int:
    """The number of equal units at the start of both sequences."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
