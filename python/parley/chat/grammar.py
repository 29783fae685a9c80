"""The syntax of a chat file: its markers, and how to escape text that looks like a marker.

Only this module knows the markers. A marker is recognized at column 0, even inside Markdown blocks.
Text that looks like a marker is written with a leading backslash, which the reader removes. Knows
single lines; `calls` and `results` know how calls and results are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from parley.chat.transcript import SPACING, UNFIT
from parley.late_patterns import late_pattern

Kind: TypeAlias = Literal["question", "answer", "thinking", "proposal", "result", "note"]

MARKERS: dict[Kind, str] = {
    "question": "💬:",
    "answer": "🤖:",
    "thinking": "🧠:[",
    "proposal": "❓:",
    "result": "\U0001f6e0\ufe0f:",
    "note": "🔒:",
}
"""The markers as they are written. The reader accepts each marker with or without U+FE0F."""

VERSION = 1
"""The version of the format in doc/transcript.md; incremented when readers have to change."""

PROMPT = ">> Please choose ("
"""The start of prompt lines in files from older versions, which the reader ignores and keeps. The
editor now draws the prompt."""

SUMMARY = "📝:"
"""The start of a model's summary line, which is plain text, not a marker."""

_VS16 = "\ufe0f"
_KIND_OF: dict[str, Kind] = {marker.replace(_VS16, ""): kind for kind, marker in MARKERS.items()}
_MARKER = late_pattern(
    "|".join(rf"{marker[0]}{_VS16}?{re.escape(marker[1:])}" for marker in _KIND_OF)
)
_ESCAPABLE = late_pattern(rf"\\*(?:{_MARKER.pattern}|{re.escape(PROMPT)})")
_STARTS = frozenset({marker[0] for marker in MARKERS.values()} | {"\\", ">"})
_LONGEST = max(len(PROMPT), *(len(m) + 1 for m in MARKERS.values()))


def marker_of(line: str) -> tuple[Kind, int] | None:
    """The marker at column 0 and the column after it; None for a line of text."""
    if line[:1] not in _STARTS or not (match := _MARKER.match(line)):
        return None
    return _KIND_OF[match[0].replace(_VS16, "")], match.end()


def is_escaped(line: str) -> bool:
    """Whether the line is text with an escaping backslash."""
    return line[:1] == "\\" and bool(_ESCAPABLE.match(line))


def is_prompt(line: str) -> bool:
    """Whether the line is a prompt that an older version wrote."""
    return line.startswith(PROMPT)


def is_plain(line: str) -> bool:
    """Whether the line is certainly plain text. Fast, because nearly every line in a file is plain
    text.
    """
    return line[:1] not in _STARTS


def escape_line(line: str) -> str:
    """Escape one line of any text for column 0."""
    return "\\" + line if line[:1] in _STARTS and _ESCAPABLE.match(line) else line


def escape(text: str) -> list[str]:
    """The lines of any text, escaped for column 0."""
    return [escape_line(line) for line in text.split("\n")]


def may_need_escape(start: str) -> bool:
    """Whether a line with this start may still need escaping, so that it must be held back."""
    bare = start.lstrip("\\")
    if not bare:
        return bool(start)
    if len(bare) >= _LONGEST:
        return False
    spellings = [PROMPT, *_KIND_OF, *(m[0] + _VS16 + m[1:] for m in _KIND_OF)]
    return any(len(bare) < len(spelling) and spelling.startswith(bare) for spelling in spellings)


def fit(text: str) -> str:
    """Make text fit for a transcript: replace NUL with ␀, and lone surrogates with U+FFFD."""
    if "\0" not in text and text.isascii():
        return text
    return UNFIT.sub(lambda match: "␀" if match[0] == "\0" else "\ufffd", text)


def read_thinking_head(content: str) -> tuple[str, str, str, bool] | None:
    """The provider, the model, the signature, and whether the thinking is redacted.

    `content` is the text after `🧠:[`.
    """
    content = content.rstrip(SPACING + "\r")
    if not content.endswith("]"):
        return None
    head, _, signature = content[:-1].partition(" ")
    provider, _, model = head.partition(":")
    redacted = signature.startswith("redacted ")
    if redacted:
        signature = signature.removeprefix("redacted ")
    return provider, model, signature, redacted


def quote(text: str) -> list[str]:
    """Thinking as a block quote, which needs no escaping because each line starts with `>`."""
    return ["> " + line if line else ">" for line in text.split("\n")]


def unquote(lines: Iterable[str]) -> str:
    """The text of a block quote's lines."""
    return "\n".join(line[2:] if line[1:2] == " " else line[1:] for line in lines)
