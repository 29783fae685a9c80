"""Replaces parts of a text as a model asks for it, or says why this is impossible.

Knows how models misquote the text that they want to replace: line endings, trailing blanks,
indentation, typographic characters. Never guesses by similarity. Knows neither files nor tools.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.tools.indentation import BLANKS, Reindent, indent_of, reindent
from parley.tools.line_runs import letters
from parley.tools.nearest_places import elided_line, nearest_places, old_text_hint

_MOST_LINES_NAMED = 10
_MOST_STEPS = 100_000
"""How many lines to compare when several places may differ from `old` only in their indentation."""


class EditError(ParleyError):
    """An edit cannot be applied; the text tells the model, and the user, what to change."""


@frozen
class Replacement:
    """Replace `old`, which must match one place, or every place if `all` is true, with `new`."""

    old: str
    new: str
    all: bool = False


@frozen
class _Place:
    """The part of a text that `old` matches, and the text that replaces this part."""

    start: int
    end: int
    new: str


def apply(text: str, replacements: Sequence[Replacement]) -> str:
    """The text after each replacement, in their order: each one sees the result of those before it.

    Raises EditError.
    """
    if not replacements:
        raise EditError("there are no edits. Give at least one pair of old and new text")
    result = text
    for number, replacement in enumerate(replacements, 1):
        name = f"edit {number} of {len(replacements)}: " if len(replacements) > 1 else ""
        try:
            result = _replaced(result, replacement)
        except _NoPlaceError as error:
            if number > 1 and _places(text, replacement):
                raise EditError(
                    f"{name}the old text overlaps with an earlier edit, which changed it. Combine "
                    "both into one edit, or quote the text as it is after the earlier edit"
                ) from None
            raise EditError(f"{name}{error}") from None
        except EditError as error:
            raise EditError(f"{name}{error}") from None
    return result


def rewritten(text: str, content: str) -> str:
    """A file's whole new text, with the file's line endings unless the new text has CRLF itself.

    Raises EditError.
    """
    if placeholder := elided_line(content, text):
        raise EditError(_placeholder(placeholder))
    if "\r\n" in content or "\r\n" not in text:
        return content
    return _fitted(text, _with_lf(text), content, _ending(_Text.of(text), 0, len(text), content))


class _NoPlaceError(EditError):
    """The old text matches no place."""


def _replaced(text: str, replacement: Replacement) -> str:
    old, new = replacement.old, replacement.new
    if old == new:
        raise EditError(
            "old and new text are the same. Leave this edit out, or change the new text"
        )
    if not old:
        if text:
            raise EditError(
                "the old text is empty. Quote the text to replace, or the lines next to the place "
                "for the new text"
            )
        return rewritten(text, new)
    places = _places(text, replacement)
    if not places:
        raise _NoPlaceError(_no_place(text, replacement))
    if placeholder := elided_line(new, text):
        raise EditError(_placeholder(placeholder))
    if len(places) > 1 and not replacement.all:
        raise EditError(_several_places(text, places))
    result = _joined(text, places)
    if result == text:
        raise EditError("this edit changes nothing: the text is already like this. Leave it out")
    return result


def _joined(text: str, places: Sequence[_Place]) -> str:
    pieces, end = list[str](), 0
    for place in places:
        pieces += text[end : place.start], place.new
        end = place.end
    return "".join([*pieces, text[end:]])


def _placeholder(line: str) -> str:
    return (
        f"the new text has a placeholder instead of code: {line!r}. Write the new text in full, or "
        "replace a smaller part"
    )


def _several_places(text: str, places: Sequence[_Place]) -> str:
    lines = [str(text.count("\n", 0, place.start) + 1) for place in places]
    more = " and more" if len(lines) > _MOST_LINES_NAMED else ""
    return (
        f"the old text matches several places, at lines {', '.join(lines[:_MOST_LINES_NAMED])}"
        f"{more}. Include more of the lines around one place, or set all to true"
    )


def _no_place(text: str, replacement: Replacement) -> str:
    old, new = _with_lf(replacement.old), _with_lf(replacement.new)
    plain = _with_lf(text)
    if hint := old_text_hint(plain, old):
        return f"the old text is not in the file. {hint}"
    if new.strip() and new in plain:
        at = plain.count("\n", 0, plain.index(new)) + 1
        return (
            f"the old text is not in the file, but the new text is, at line {at}. The edit may have "
            "been applied before"
        )
    nearest = nearest_places(plain, old)
    if not nearest:
        return "the old text is not in the file, and nothing resembles it. Read the file again"
    names = "place" if len(nearest) == 1 else f"{len(nearest)} places"
    shown = "\n".join(f"{place.heading}:\n{place.text}" for place in nearest)
    return (
        "the old text is not in the file. Quote the file's text exactly, without omissions. "
        f"The nearest {names}:\n{shown}"
    )


# --- Matching -------------------------------------------------------------------------------------


@frozen
class _Text:
    """A text to search. `ending` is the line ending of all its lines: "" if there is no line break,
    None if there are different ones.
    """

    text: str
    ending: str | None

    @classmethod
    def of(cls, text: str) -> _Text:
        crlf = text.count("\r\n")
        lf = text.count("\n") - crlf
        return cls(text, None if crlf and lf else "\r\n" if crlf else "\n" if lf else "")


def _places(text: str, replacement: Replacement) -> list[_Place]:
    """The places that `old` matches in the strictest way that matches any; in order, without
    overlaps if `all` is true, else enough of them to name.
    """
    searched = _Text.of(text)
    for find in (_exact, _plain, _by_line, _by_indentation, _typographic, _typographic_by_line):
        places = find(searched, replacement)
        most = None if replacement.all else _MOST_LINES_NAMED + 1
        limited = [place for place, _ in zip(places, range(most or len(text) + 1), strict=False)]
        if limited:
            return limited
    return []


def _exact(searched: _Text, replacement: Replacement) -> Iterator[_Place]:
    """The places with exactly the characters of `old`; no place begins or ends inside a CRLF."""
    text, old, new = searched.text, replacement.old, replacement.new
    old_lf, new_lf = _with_lf(old), _with_lf(new)
    for start, end in _occurrences(text, old, replacement.all):
        if text[max(0, start - 1) : start + 1] == "\r\n" or text[end - 1 : end + 1] == "\r\n":
            continue
        is_same = old_lf == new_lf  # the edit changes only line endings
        ending = _ending(searched, start, end, new)
        yield _Place(
            start, end, new if is_same else _fitted(text[start:end], old_lf, new_lf, ending)
        )


def _plain(searched: _Text, replacement: Replacement) -> Iterator[_Place]:
    """The places that differ from `old` only in line endings."""
    return _by_character(searched, replacement, lambda part: part)


def _typographic(searched: _Text, replacement: Replacement) -> Iterator[_Place]:
    """The places that differ from `old` only in line endings, quotes, dashes and spaces."""
    return _by_character(searched, replacement, _ascii)


def _by_character(
    searched: _Text, replacement: Replacement, key: Callable[[str], str]
) -> Iterator[_Place]:
    """The places whose text has the same key as `old`, ignoring line endings. A key has the length
    of its text.
    """
    text = searched.text
    old, new = _with_lf(replacement.old), _with_lf(replacement.new)
    # each CRLF's position in the text with LF
    crlf = [match.start() - n for n, match in enumerate(re.finditer("\r\n", text))]
    for first, last in _occurrences(key(_with_lf(text)), key(old), replacement.all):
        start, end = (position + bisect_left(crlf, position) for position in (first, last))
        ending = _ending(searched, start, end, replacement.new)
        yield _Place(start, end, _fitted(text[start:end], old, new, ending))


def _occurrences(text: str, part: str, without_overlaps: bool) -> Iterator[tuple[int, int]]:
    """Start and end of each occurrence of a part."""
    if without_overlaps:
        start = 0
        for piece in text.split(part)[:-1]:
            start += len(piece) + len(part)
            yield start - len(part), start
        return
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + 1)


def _fitted(region: str, old: str, new: str, ending: str) -> str:
    """The new text of a region: characters that `old` and `new` have in common at both ends stay as
    they are in the region, and the other lines get a line ending.
    """
    units = re.findall(r"\r\n|[\s\S]", region) if "\r\n" in region else region
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle = new[head : len(new) - tail].replace("\n", ending)
    return "".join([*units[:head], middle, *units[len(units) - tail :]])


def _common(one: Sequence[object], two: Sequence[object]) -> int:
    """How many items two sequences have in common at their beginning."""
    least, most = 0, min(len(one), len(two))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == two[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


# --- Matching lines -------------------------------------------------------------------------------


@frozen
class _Line:
    """A line of a text, and its ending: LF, CRLF, or none at the end of the text."""

    start: int
    content: str
    ending: str


def _line(start: int, piece: str, is_last: bool) -> _Line:
    if is_last:
        return _Line(start, piece, "")
    content = piece.removesuffix("\r")
    return _Line(start, content, "\n" if content == piece else "\r\n")


Fit = Callable[[Sequence[str], Sequence[str], Sequence[str]], Reindent | None]
"""From the lines of a place, of `old` and of `new`: how a new line is indented there, or None if the
place does not match.
"""


def _by_line(searched: _Text, replacement: Replacement) -> Iterator[_Place]:
    """The places that differ from `old` only in line endings and trailing blanks."""
    return _of_lines(searched, replacement, _trimmed, _literally)


def _by_indentation(searched: _Text, replacement: Replacement) -> Iterator[_Place]:
    """The places whose lines also differ in one uniform change of indentation."""
    return _of_lines(searched, replacement, _without_indent, reindent)


def _typographic_by_line(searched: _Text, replacement: Replacement) -> Iterator[_Place]:
    """The places that differ in line endings, trailing blanks, quotes, dashes and spaces."""
    return _of_lines(searched, replacement, lambda line: _trimmed(_ascii(line)), _literally)


def _literally(_place: Sequence[str], _old: Sequence[str], _new: Sequence[str]) -> Reindent | None:
    return lambda line: line


def _of_lines(
    searched: _Text, replacement: Replacement, key: Callable[[str], str], fit: Fit
) -> Iterator[_Place]:
    """The places whose lines have the same keys as the lines of `old`. Raises EditError."""
    old, is_whole = _split(replacement.old)
    new, has_end = _split(replacement.new) if is_whole else (_open_lines(replacement.new), False)
    keys = list(map(key, old))
    if not any(keys):
        return
    pieces = searched.text.split("\n")
    count = len(pieces) - (1 if not pieces[-1] else 0)
    starts = list(accumulate((len(piece) + 1 for piece in pieces), initial=0))
    text_letters, old_letters = letters(map(key, pieces[:count]), keys)
    steps, first = 0, text_letters.find(old_letters)
    while first >= 0:
        if (steps := steps + len(old)) > _MOST_STEPS:
            raise EditError("the old text resembles too many places. Include more lines around it")
        place = [
            _line(starts[n], pieces[n], n == len(pieces) - 1)
            for n in range(first, first + len(old))
        ]
        fitted = fit([line.content for line in place], old, new)
        if fitted:
            start, end = place[0].start, place[-1].start + len(place[-1].content)
            last = place[-1].ending if is_whole else ""
            ending = _ending(searched, start, end + len(last), replacement.new)
            new_lines = _fitted_lines(place, old, list(new), fitted, ending)
            region = _text_of(new_lines, last if has_end else "")
            yield _Place(start, end + len(last), region)
        first = text_letters.find(
            old_letters, first + (len(old) if fitted and replacement.all else 1)
        )


def _fitted_lines(
    place: Sequence[_Line], old: Sequence[str], new: Sequence[str], fitted: Reindent, ending: str
) -> list[tuple[str, str]]:
    """The new lines of a place with their endings: lines that `old` and `new` have in common at both
    ends stay as they are in the place.
    """
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle = new[head : len(new) - tail]
    return [
        *((line.content, line.ending or ending) for line in place[:head]),
        *((fitted(line), ending) for line in middle),
        *((line.content, line.ending or ending) for line in place[len(place) - tail :]),
    ]


def _text_of(lines: Sequence[tuple[str, str]], last: str) -> str:
    """Lines as a text whose last line has the given ending."""
    pieces = [content + ending for content, ending in lines[:-1]]
    return "".join([*pieces, *(content + last for content, _ in lines[-1:])])


def _open_lines(text: str) -> list[str]:
    return _with_lf(text).split("\n")


def _split(text: str) -> tuple[list[str], bool]:
    """The lines of a text, and whether the last one has an ending; no lines for no text."""
    lines = _open_lines(text)
    return (lines[:-1], len(lines) > 1) if not lines[-1] else (lines, False)


def _ending(searched: _Text, start: int, end: int, new: str) -> str:
    """The line ending for new lines at a place: the most common one in it, else of its last line,
    else of the line before it, else as in the new text.
    """
    text = searched.text
    if searched.ending is not None:
        return searched.ending or ("\r\n" if "\r\n" in new else "\n")
    crlf = text.count("\r\n", start, end)
    lf = text.count("\n", start, end) - crlf
    if crlf != lf:
        return "\r\n" if crlf > lf else "\n"
    at = text.find("\n", start)
    if at < 0:
        at = text.rfind("\n", 0, start)
    return "\r\n" if text[max(0, at - 1) : at] == "\r" else "\n"


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _trimmed(line: str) -> str:
    return line.rstrip(BLANKS)


def _without_indent(line: str) -> str:
    return _trimmed(line[len(indent_of(line)) :])


_TYPOGRAPHIC = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)


def _ascii(text: str) -> str:
    """The text with typewriter quotes, hyphens and spaces; of the same length."""
    return text.translate(_TYPOGRAPHIC)
