"""Finds a sequence of lines in a text's lines in linear time. Knows nothing about edits."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence


def letters(lines: Iterable[str], part: Sequence[str]) -> tuple[str, str]:
    """The lines and the part with one character for each line: the same one for equal lines of the
    part, another one for all other lines. So a text search finds the part.
    """
    numbers = dict.fromkeys(part)
    if len(numbers) > sys.maxunicode:  # more different lines than characters: too many to find
        return "", "\0"
    codes = {line: chr(n) for n, line in enumerate(numbers, 1)}
    return "".join(codes.get(line, "\0") for line in lines), "".join(map(codes.__getitem__, part))


def first_run(lines: Iterable[str], part: Sequence[str], start: int = 0) -> int:
    """The first index from which the lines are equal to the part; -1 if there is none."""
    return str.find(*letters(lines, part), start)
