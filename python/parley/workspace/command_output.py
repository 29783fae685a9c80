"""A command's output: bounded while it arrives, then as text that is safe to show. Pure.

Knows bytes and text, not where they come from.
"""

from __future__ import annotations

import re

from parley.late_patterns import late_pattern
from parley.text import one_line, visible

_MOST_OF_A_LINE = 200
_CONTINUATION = re.compile(rb"\A[\x80-\xbf]{1,3}")
"""The rest of a UTF-8 character that was cut."""
_UNFINISHED = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
"""The beginning of a UTF-8 character that was cut."""
_STYLES = late_pattern(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\x1b\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[()][0-9A-B]"
)
"""Control sequences of terminals that contain no text (ECMA-48, 5.4; XTerm Control Sequences)."""


class OutputBuffer:
    """Keeps the first and the last bytes of an output, and counts the bytes between them."""

    def __init__(self, most: int) -> None:
        """`most` is the number of bytes to keep."""
        self._half = most // 2
        self._head, self._tail = bytearray(), bytearray()
        self.size = 0
        """The number of bytes that arrived."""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        self.size += len(piece)
        room = self._half - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:][-self._half :]
        if len(self._tail) > 2 * self._half:  # rarely, because each cut moves all bytes
            del self._tail[: -self._half]

    @property
    def is_cut(self) -> bool:
        """Whether bytes between the first and the last ones are missing."""
        return self.size > len(self._head) + min(len(self._tail), self._half)

    def text(self) -> str:
        """The output as safe text; a line in the middle counts the bytes that are missing."""
        tail = bytes(self._tail[-self._half :])
        if self.size == len(self._head) + len(tail):
            return readable(bytes(self._head) + tail)
        head = _UNFINISHED.sub(b"", bytes(self._head))
        tail = _CONTINUATION.sub(b"", tail)
        gap = _gap(f"{self.size - len(head) - len(tail):,} bytes")
        return f"{_closed(readable(head))}{gap}{readable(tail)}"

    def last_line(self) -> str:
        """The last line with a letter or a sign, as one safe line; "" if there is none."""
        end = bytes((self._tail or self._head)[-10 * _MOST_OF_A_LINE :])
        lines = [line for line in readable(end).split("\n") if line.strip()]
        return one_line(lines[-1], _MOST_OF_A_LINE) if lines else ""


def readable(output: bytes) -> str:
    r"""Output as text without terminal styles; other control characters become escapes.

    A carriage return, which would move the cursor, ends a line.
    """
    text = _STYLES.sub("", output.decode(errors="replace"))
    return visible(text.replace("\r\n", "\n").replace("\r", "\n"))


def head_and_tail(text: str, most: int) -> str:
    """A text of at most about `most` characters: its beginning, a line that counts the characters
    left out, and its end. It is cut between lines if there are any.
    """
    if len(text) <= most:
        return text
    head, tail = text[: most // 2], text[-(most // 2) :]
    head = head[: head.rfind("\n") + 1] or head
    tail = tail[tail.find("\n") + 1 :] or tail
    return f"{_closed(head)}{_gap(f'{len(text) - len(head) - len(tail):,} characters')}{tail}"


def _closed(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"


def _gap(size: str) -> str:
    return f"[… {size} left out …]\n"
