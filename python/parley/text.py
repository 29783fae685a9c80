"""Makes strangers' text safe to show in files, on screens, in terminals and in messages.

Contains Parley's only table of hidden characters; knows nothing else about Parley. Text from a
model, a server, a file or a user's settings passes through here before Parley shows it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

from parley.late_patterns import late_pattern

_IGNORABLE = late_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that are invisible, or that reorder the text around them.

Unicode 17.0, DerivedCoreProperties.txt: all of Default_Ignorable_Code_Point, which contains all of
Bidi_Control (PropList.txt). The ranges include code points that are reserved for more such
characters (UAX #44).
"""
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode's general categories (UnicodeData.txt in this Python's version) that are not letters,
marks or signs."""
_PICTOGRAPH = late_pattern("[\U0001f000-\U0001faff]")
"""Pictures newer than this Python's Unicode are shown: in emoji-data.txt, the whole range is
Extended_Pictographic, including unassigned code points."""
_BLANK = frozenset("\u2800")
"""Signs that look like a blank: the Braille pattern without dots."""

_STYLED = late_pattern(
    "((?:[#*0-9©®‼⁉™ℹ←-⇿⌀-⏿Ⓜ■-➿⤴⤵⬀-⯿〰〽㊗㊙]|[\U0001f000-\U0001faff])[\ufe0e\ufe0f])"
)
"""A sign with one selector for or against its picture form (emoji-variation-sequences.txt)."""


def is_hidden(character: str) -> bool:
    """Whether a character is a control, is invisible, or reorders text.

    To add such a character, put it into `_IGNORABLE` if Unicode calls it ignorable, or else into
    `_BLANK`.
    """
    if _IGNORABLE.match(character) or character in _BLANK:
        return True
    category = unicodedata.category(character)
    return category in _HIDDEN_CATEGORIES and not (
        category == "Cn" and _PICTOGRAPH.match(character)
    )


class _Table(dict[int, str]):
    """A table for `str.translate`: computes each character's replacement when first needed."""

    def __init__(self, stand_in: Callable[[str], str]) -> None:
        super().__init__()
        self._stand_in = stand_in

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = text = self._stand_in(character)
        return text


def _escape(character: str) -> str:
    if character in "\n\t" or not is_hidden(character):
        return character
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    is_other_blank = character != " " and unicodedata.category(character) == "Zs"
    if not (is_hidden(character) or is_other_blank or character == "`"):
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


_ESCAPES, _JSON_ESCAPES = _Table(_escape), _Table(_json_escape)


def visible(text: str) -> str:
    r"""`text` with escapes for hidden characters (`\x1b`), and U+FFFD for lone surrogates.

    Line endings become `\n`; a lone carriage return is a control character. Line ends and tabs
    stay.
    """
    parts = _STYLED.split(text.replace("\r\n", "\n"))
    return "".join(part if at % 2 else part.translate(_ESCAPES) for at, part in enumerate(parts))


def one_line(text: str, most: int | None = None) -> str:
    """`text` on one line, cut to `most` characters, without runs of blanks or hidden characters."""
    line = " ".join(text.split())
    return visible(line if most is None or len(line) <= most else line[: most - 1] + "…")


_FRAME = late_pattern(r"^[\s\u2500-\u259f]+|[\s\u2500-\u259f]+$")


def last_words(lines: Iterable[str]) -> list[str]:
    """The last line that contains a letter or a digit, without its frame, in a list; or an empty
    list.
    """
    spoken = [line for line in lines if any(map(str.isalnum, line))]
    return [_FRAME.sub("", line) for line in spoken[-1:]]


def legible(json_text: str) -> str:
    r"""One line of JSON, or any text, with hidden characters as `\uXXXX`.

    Also escapes backticks, because backticks enclose such a line, and all blanks except the
    ordinary space. The JSON keeps its meaning.
    """
    return json_text.translate(_JSON_ESCAPES)


class VisiblePieces:
    """`visible` for a text that arrives in pieces; the cuts do not change the output."""

    def __init__(self) -> None:
        self._last = ""
        self._rest = ""

    def feed(self, piece: str) -> str:
        """The next visible piece; a carriage return at the end is held back until the next call."""
        text = self._rest + piece
        self._rest = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r") if self._rest else text
        piece = visible(self._last + text)[len(visible(self._last)) :]
        self._last = text[-1:] or self._last
        return piece

    def end(self) -> str:
        """The text that was held back. A new text may follow."""
        rest, self._rest, self._last = visible(self._rest), "", ""
        return rest


_MOST_MARKS = 3
"""The maximum number of marks on one letter: Hebrew and Vietnamese need two; Thai, and letters with
stress marks, need three."""
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
"""The Unicode Bidi_Class values that change the direction of surrounding text (UAX #9, table 4)."""


_MOST_JOINED = 6
"""The maximum number of characters that share a cell with the character before them. Neovim does
not draw all of a longer sequence (0.10: MAX_MCO; later: the 32 bytes of MAX_SCHAR_SIZE;
src/nvim/grid_defs.h and mbyte.c)."""
_LEADS = late_pattern("[\u1100-\u115f\ua960-\ua97f]")
_FOLLOWS = late_pattern("[\u1160-\u11ff\ud7b0-\ud7ff\uff9e\uff9f\U0001f3fb-\U0001f3ff]")
_PREPENDS = late_pattern(
    "[\u0d4e\U0001193f\U00011941\U000111c2\U000111c3\U000113d1\U00011a3a\U00011a84-\U00011a89"
    "\U00011d46\U00011f02]"
)
"""Parts of a grapheme cluster other than marks: leading Hangul consonants, characters that join
the character before them, and characters that join the character after them (UAX #29, GB6 to GB9c;
GraphemeBreakProperty.txt in Unicode 17.0).
"""
_VIRAMA = 9
"""Canonical_Combining_Class of a mark that joins two consonants."""


def contained(text: str) -> str:
    r"""`text` with escapes for marks without a letter, and for excessive marks.

    Characters that would share a cell with too many others also become escapes.
    """
    if text.isascii():
        return text
    out, marks, joined, before, is_linked = list[str](), _MOST_MARKS, 0, "", False
    for character in text:
        category = unicodedata.category(character)
        is_mark = category in ("Mn", "Me")
        if is_mark:
            marks += 1
        else:
            marks = 0 if category[0] in "LNM" or category == "So" else _MOST_MARKS
        joined = joined + 1 if _is_joined(before, character, category, is_linked=is_linked) else 0
        is_linked = unicodedata.combining(character) == _VIRAMA or (
            is_linked and category[0] == "M"
        )
        if joined > _MOST_JOINED or (is_mark and marks > _MOST_MARKS):
            out.append(_code(character))
            before, joined, is_linked = "", 0, False
        else:
            out.append(character)
            before = character
    return "".join(out)


def _is_joined(before: str, character: str, category: str, *, is_linked: bool) -> bool:
    """Whether a character may share a cell with the character before it."""
    return bool(
        category[0] == "M"
        or _FOLLOWS.match(character)
        or _PREPENDS.match(before)
        or (is_linked and category == "Lo")
        or (_LEADS.match(before) and (_LEADS.match(character) or "\uac00" <= character <= "\ud7a3"))
    )


def upright(text: str) -> str:
    """Contained `text` with escapes for right-to-left letters."""
    text = contained(text)
    if text.isascii():
        return text
    return "".join(_code(c) if unicodedata.bidirectional(c) in _RIGHT_TO_LEFT else c for c in text)


def _code(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_WORD = late_pattern(r"[^\W\d_]+")
_TOGETHER = frozenset(
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"}
)
"""Scripts that may be mixed within a word (UTS #39, 5.2: Highly Restrictive)."""


def mixed_scripts(name: str) -> str:
    """A phrase about an odd letter if a word mixes scripts with similar letters, else "".

    The first word in a letter's Unicode name is its script.
    """
    for word in _WORD.findall(name):
        letters = {unicodedata.name(c, "UNKNOWN").partition(" ")[0]: c for c in reversed(word)}
        strangers = [s for s in letters if s != "LATIN"] if "LATIN" in letters else list(letters)
        if len(letters) > 1 and not _TOGETHER.issuperset(letters):
            script = strangers[0]
            return f"{letters[script]} is {script.lower()}"
    return ""


def fence(text: str) -> str:
    """A fence of backticks that is longer than any run of backticks in the text."""
    return "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)


def size_text(size: int) -> str:
    """A size in bytes in readable form: `512 B`, `12 kB`, `3.4 MB`."""
    if size < 1000:
        return f"{size} B"
    if size < 1_000_000:
        return f"{round(size / 1000)} kB"
    return f"{size / 1_000_000:.1f} MB"


def counted(count: int, noun: str) -> str:
    """A number of things in words: `1 call`, `2 calls`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
