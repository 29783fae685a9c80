"""Why a text that a model quotes is not in a file: known habits of models, and the nearest places.

The results are for messages only: no edit is applied because of them.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from parley.frozen import frozen
from parley.late_patterns import late_pattern

MOST_PLACES, MOST_LINES, MOST_COLUMNS = 3, 10, 200
_MOST_COMPARED = 20
_MOST_REPEATED = 50
"""A word or line with more occurrences says little about the place."""
_MOST_OLD_LINES = 200
_LEAST_RATIO = 0.4


@frozen
class NearPlace:
    """Lines that resemble the old text; `heading` has their numbers, counted from 1."""

    heading: str
    text: str


def nearest_places(text: str, old: str) -> list[NearPlace]:
    """The places that resemble the old text most, best first; bounded."""
    lines, quoted = text.removesuffix("\n").split("\n"), old.strip("\n").split("\n")
    old_part = _part(quoted)
    ranked = list[tuple[float, int, int]]()
    for start, votes in _votes(lines, quoted).most_common(_MOST_COMPARED):
        place = _part(lines[start : start + min(len(quoted), MOST_LINES)])
        ratio = SequenceMatcher(None, place, old_part, autojunk=False).ratio()
        if ratio >= _LEAST_RATIO:
            ranked.append((-ratio, -votes, start))
    chosen = list[int]()
    for _, _, start in sorted(ranked):
        if all(abs(start - other) >= len(quoted) for other in chosen):
            chosen.append(start)
    return [_near_place(lines, quoted, start) for start in chosen[:MOST_PLACES]]


def _part(lines: Sequence[str]) -> str:
    """The first lines as a text to compare, without indentation and without blank lines around it."""
    return "\n".join(line[:MOST_COLUMNS].strip() for line in lines[:MOST_LINES]).strip()


def _votes(lines: Sequence[str], quoted: Sequence[str]) -> Counter[int]:
    """For each line number, from 0: how much speaks for a place that begins there."""
    votes = Counter[int]()
    quoted = [line[:MOST_COLUMNS] for line in quoted[:_MOST_OLD_LINES]]
    for split, weight in ((_whole, 5), (_words, 1)):
        sought = {part for line in quoted for part in split(line)}
        numbers: dict[str, list[int]] = {part: [] for part in sought}
        for number, line in enumerate(lines):
            for part in sought.intersection(split(line[:MOST_COLUMNS])):
                numbers[part].append(number)
        for at, line in enumerate(quoted):
            for part in split(line):
                if len(numbers[part]) <= _MOST_REPEATED:
                    votes.update({max(0, n - at): weight for n in numbers[part]})
    return votes


def _whole(line: str) -> set[str]:
    return {line.strip()} - {""}


def _words(line: str) -> set[str]:
    return set(re.findall(r"\w+", line))


def _near_place(lines: Sequence[str], quoted: Sequence[str], start: int) -> NearPlace:
    """The place's lines, around the first one that differs."""
    place = lines[start : start + len(quoted)]
    same = (one.strip() == two.strip() for one, two in zip(place, quoted, strict=False))
    first_other = next((n for n, is_same in enumerate(same) if not is_same), 0)
    first = max(0, min(first_other - 2, len(place) - MOST_LINES))
    shown = place[first : first + MOST_LINES]
    top, bottom = start + first + 1, start + first + len(shown)
    heading = f"line {top}" if top == bottom else f"lines {top} to {bottom}"
    return NearPlace(heading, "\n".join(map(_cut, shown)))


def _cut(line: str) -> str:
    return line if len(line) <= MOST_COLUMNS else f"{line[: MOST_COLUMNS - 6]} [cut]"


# --- Habits ---------------------------------------------------------------------------------------

_COMMENT = r"\s*(?:#|//|/\*|\{/\*|<!--|--|;|%|\*)+\s*"
_ELISION = late_pattern(
    rf"(?:{_COMMENT}[(\[]?(?:\.\.\.|…)|\s*(?:\.\.\.|…)\s)[\w\s,'`()\[\]]*"
    r"\b(?:rest|remain(?:s|ing|der)?|existing|unchanged|omitted|as before|same as)\b"
    rf"|{_COMMENT}[(\[]?(?:the )?(?:rest|remaining|existing)\b[\w\s,'`]{{0,60}}?"
    r"(?:\bunchanged|\b(?:remains?|stays?) the same|\bas (?:before|is)|\bomitted|\.\.\.|…)[\W_]*$",
    re.IGNORECASE,
)
_DOTS = late_pattern(rf"(?:{_COMMENT})?\s*(?:\.\.\.|…)\s*(?:\*/|-->|\*/\}})?\s*$")
_NUMBERED = late_pattern(r" *(\d{1,7})(?:[:|] ?|\t|→|  )")


def elided_line(new: str, text: str) -> str:
    """A line of a new text that tells a reader to imagine code, such as `# ... rest unchanged`; ""
    if there is none, or if the text has the same line already.
    """
    for line in new.splitlines():
        if _is_elision(line) and line.strip() not in text:
            return line.strip()[:MOST_COLUMNS]
    return ""


def _is_elision(line: str) -> bool:
    return bool(_ELISION.match(line[:MOST_COLUMNS]))


def old_text_hint(text: str, old: str) -> str:
    """The remedy if a known habit explains why the old text is not in the text; else ""."""
    for habit, remedy in _HABITS:
        meant = habit(old)
        if meant is not None and meant != old and meant.strip() and meant in text:
            return remedy
    lines = old.split("\n")
    if len(lines) > 1 and _numbers(lines):
        return _HABITS[0][1]
    if any(_is_elision(line) or _DOTS.match(line) for line in lines if line.strip() not in text):
        return "It leaves out lines. Quote all lines, or choose a smaller part"
    return ""


def _numbers(lines: Sequence[str]) -> list[str] | None:
    """The lines without the line numbers before them; None if they are not all numbered."""
    matches = [
        _NUMBERED.match(line if line.strip(" 0123456789") else f"{line}  ") for line in lines
    ]
    numbers = [int(match[1]) for match in matches if match]
    if len(numbers) < len(lines) or any(b - a != 1 for a, b in pairwise(numbers)):
        return None
    return [line[match.end() :] for line, match in zip(lines, matches, strict=True) if match]


def _without_numbers(old: str) -> str | None:
    lines = _numbers(old.strip("\n").split("\n"))
    return None if lines is None else "\n".join(lines)


def _without_escapes(old: str) -> str:
    return old.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")


def _without_fence(old: str) -> str | None:
    match = re.fullmatch(r"\s*(```+|~~~+)[^\n]*\n(.*?)\n?\s*\1\s*", old, re.DOTALL)
    return match[2] if match else None


def _without_signs(old: str) -> str | None:
    """The text before a diff."""
    lines = old.strip("\n").split("\n")
    if not all(line[:1] in ("", " ", "-", "+") for line in lines):
        return None
    return "\n".join(line[1:] for line in lines if line[:1] != "+")


_HABITS: Sequence[tuple[Callable[[str], str | None], str]] = (
    (_without_numbers, "It begins with line numbers, which are not in the file. Leave them out"),
    (
        _without_escapes,
        'It has escapes such as \\n or \\" as two characters. Write real line breaks and quotes',
    ),
    (html.unescape, "It has HTML escapes such as &lt;. Write the characters themselves"),
    (
        _without_fence,
        "It has a code fence around it, which is not in the file. Leave the fence out",
    ),
    (_without_signs, "It is a diff. Quote the lines without the signs before them"),
)
