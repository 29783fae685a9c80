"""The difference between two texts, line by line, as in a unified diff. Pure.

Knows texts; does not know files, or how a screen shows a line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal, TypeAlias

from parley.frozen import frozen

CONTEXT = 3
"""The unchanged lines around each change."""
_MOST_PAIRS = 250_000
"""The maximum number of pairs of lines that difflib compares at once; it needs quadratic time. A
larger change without common unique lines is shown as one replacement."""
_NO_NEWLINE = " No newline at end of file"
"""As `diff` writes it, so that `patch` understands it."""

Sign: TypeAlias = Literal[" ", "-", "+", "@", "\\"]


@frozen
class DiffRow:
    """One row of a diff: a line before (`-`), after (`+`) or both (` `), a hunk's place (`@`), or a
    remark about the line above (`\\`)."""

    sign: Sign
    text: str
    number: int = 0
    """The line's number, counted from 1, in the text after; for `-`, in the text before."""


Change: TypeAlias = tuple[int, int, int, int]
"""The changed lines: from and to before, from and to after, counted from 0."""


def changed_lines(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """The changes between two texts' lines, in order. The same texts always give the same changes."""
    pairs = zip(before, after, strict=False)
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    most = min(len(before), len(after)) - head
    backwards = zip(reversed(before), reversed(after), strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], backwards))
    tail = min(same, most)
    ends = len(before) - tail, len(after) - tail
    changes, a, c = list[Change](), head, head
    for b, d in [*_anchors(before[head : ends[0]], after[head : ends[1]]), (None, None)]:
        to = (ends[0], ends[1]) if b is None or d is None else (head + b, head + d)
        changes += _compared(before, after, a, to[0], c, to[1])
        a, c = to[0] + 1, to[1] + 1
    return changes


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The longest series of lines that occur once in each text, as their numbers in both.

    With these as fixed points (patience diff, B. Cohen), the time is almost linear.
    """
    places = {line: at for at, line in enumerate(new)}
    in_old, in_new = Counter(old), Counter(new)
    pairs = [
        (at, places[line])
        for at, line in enumerate(old)
        if in_old[line] == 1 and in_new.get(line) == 1
    ]
    ends, last, before = list[int](), list[int](), list[int]()
    for number, (_, place) in enumerate(pairs):  # the longest increasing series of places
        length = bisect_left(ends, place)
        ends[length : length + 1], last[length : length + 1] = [place], [number]
        before.append(last[length - 1] if length else -1)
    series, number = list[tuple[int, int]](), last[-1] if last else -1
    while number >= 0:
        series.append(pairs[number])
        number = before[number]
    return series[::-1]


def _compared(
    before: Sequence[str], after: Sequence[str], a: int, b: int, c: int, d: int
) -> Iterator[Change]:
    """The changes between the lines from `a` to `b` before and from `c` to `d` after."""
    if a == b or c == d or (b - a) * (d - c) > _MOST_PAIRS:
        if (a, c) != (b, d):
            yield a, b, c, d
        return
    matcher = SequenceMatcher(None, before[a:b], after[c:d], autojunk=False)
    for kind, e, f, g, h in matcher.get_opcodes():
        if kind != "equal":
            yield a + e, a + f, c + g, c + h


def new_line(changes: Sequence[Change], line: int) -> int:
    """Where a line before (counted from 0) is after; a changed line is in its change."""
    shift = 0
    for a, b, c, d in changes:
        if line < a:
            break
        if line < b:
            return min(c + line - a, max(d - 1, c))
        shift = d - b
    return line + shift


def lines_of(text: str | None) -> list[str]:
    """A text's lines, each with its end; only a line feed ends a line."""
    parts = (text or "").split("\n")
    ended = [f"{part}\n" for part in parts[:-1]]
    return [*ended, parts[-1]] if parts[-1] else ended


@frozen
class Comparison:
    """Two texts' lines and the changes between them, from which rows are made."""

    before: Sequence[str]
    after: Sequence[str]
    changes: Sequence[Change]

    @classmethod
    def of(cls, before: str | None, after: str | None) -> Comparison:
        """Compare two texts; None stands for no file."""
        old, new = lines_of(before), lines_of(after)
        return cls(old, new, changed_lines(old, new))

    def rows(self, context: int = CONTEXT) -> list[DiffRow]:
        """All rows of the diff, with this many unchanged lines around each change."""
        old, new, rows = self.before, self.after, list[DiffRow]()
        for hunk in _hunks(self.changes, context):
            start, end = max(hunk[0][0] - context, 0), min(hunk[-1][1] + context, len(old))
            shift = hunk[0][2] - hunk[0][0]
            size = hunk[-1][3] + (end - hunk[-1][1]) - (start + shift)
            at = f"@@ -{_range(start, end - start)} +{_range(start + shift, size)} @@"
            rows.append(DiffRow("@", at))
            for a, b, c, d in hunk:
                rows += _context(old, start, a, c - a)
                rows += (row for at in range(a, b) for row in _row("-", old[at], at))
                rows += (row for at in range(c, d) for row in _row("+", new[at], at))
                start, shift = b, d - b
            rows += _context(old, start, end, shift)
        return rows


def diff_rows(before: str | None, after: str | None) -> list[DiffRow]:
    """All rows of the diff between two texts; None stands for no file."""
    return Comparison.of(before, after).rows()


def counts(rows: Sequence[DiffRow]) -> tuple[int, int]:
    """How many lines a diff adds and removes."""
    return sum(row.sign == "+" for row in rows), sum(row.sign == "-" for row in rows)


def unified_diff(before: str | None, after: str | None, path: str, moved_to: str = "") -> list[str]:
    """The lines of a unified diff, which `patch` accepts; none if the text does not change."""
    rows = diff_rows(before, after)
    if not rows:
        return []
    old = "/dev/null" if before is None else f"a/{path}"
    new = "/dev/null" if after is None else f"b/{moved_to or path}"
    text = (row.text if row.sign == "@" else f"{row.sign}{row.text}" for row in rows)
    return [f"--- {old}", f"+++ {new}", *text]


def _context(lines: Sequence[str], start: int, end: int, shift: int) -> Iterator[DiffRow]:
    return (row for at in range(start, end) for row in _row(" ", lines[at], at + shift))


def _row(sign: Sign, line: str, at: int) -> Iterator[DiffRow]:
    yield DiffRow(sign, line.removesuffix("\n"), at + 1)
    if not line.endswith("\n"):
        yield DiffRow("\\", _NO_NEWLINE)


def _hunks(changes: Sequence[Change], context: int) -> Iterator[list[Change]]:
    """The changes in groups whose contexts touch."""
    hunk = list[Change]()
    for change in changes:
        if hunk and change[0] - hunk[-1][1] > 2 * context:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _range(start: int, count: int) -> str:
    """A hunk's range as in a unified diff (POSIX, diff, "Diff -u Output Format")."""
    first = start + 1 if count else start
    return f"{first}" if count == 1 else f"{first},{count}"
