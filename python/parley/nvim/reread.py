"""Reads a text that differs little from one that was read before. Pure.

A chat grows at its end; what stands before the exchange in which it changed means what it meant. Equal, in
values, spans and problems, to reading all of it.
"""

from __future__ import annotations

from bisect import bisect_right

from parley.chat.grammar import marker_of
from parley.chat.reader import parse, split_lines
from parley.chat.transcript import Transcript
from parley.engine import Snapshot

_WORTH_IT = 200
"""Lines before the change under which reading all is as quick."""


def reread(before: Snapshot, text: str, anchor: int) -> Snapshot:
    """A snapshot of `text`, its transcript at hand where much of it is known from `before`."""
    shot = Snapshot(text, anchor)
    if "transcript" not in vars(before):
        return shot
    lines = split_lines(text)
    count = _count_same(before, lines, text)
    if count is not None:
        vars(shot).update(lines=lines, transcript=_joined(before.transcript, lines, count))
    return shot


def _count_same(before: Snapshot, lines: list[str], text: str) -> int | None:
    """The number of exchanges that are as they were; None where it is not certain or not worth it."""
    if "\r" in text or "\r" in before.text or text.startswith("\ufeff"):
        return None  # whether CR ends a line depends on all lines
    exchanges = before.transcript.exchanges
    same = _common(before.lines, lines)
    count = bisect_right(exchanges, same, key=lambda e: e.span.start) - 1
    if count < 1 or exchanges[count].span.start < _WORTH_IT:
        return None
    first = exchanges[count].span.start
    mark = marker_of(lines[first]) if first < same else None
    return count if mark and mark[0] == "question" else None


def _common(one: list[str], other: list[str]) -> int:
    """The number of lines at the start that are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # comparing slices is done in C
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _joined(before: Transcript, lines: list[str], count: int) -> Transcript:
    first = before.exchanges[count].span.start
    tail = parse("\n" * first + "\n".join(lines[first:]) + "\n")
    problems = (*(p for p in before.problems if p.line < first), *tail.problems)
    exchanges = (*before.exchanges[:count], *tail.exchanges)
    return Transcript(exchanges, before.preamble, before.front_matter, problems)
