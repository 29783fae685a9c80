"""Turns a model's stream into the exact text for the file, piece by piece.

Each call returns all text that can be written now. The text from the first method call is written
at column 0 of an empty line, and the text from each later call directly after the earlier text.
Text is held back while its meaning may still change: the start of a line that may become a marker,
and trailing whitespace. Knows nothing about calls, which are written on their own lines when
complete.
"""

from __future__ import annotations

import re

from parley.chat import grammar
from parley.chat.grammar import MARKERS
from parley.chat.transcript import Thinking
from parley.chat.writer import thinking_lines

_BLANKS = " \t\r\n"
_NO_WORD = r"[\s\[\]\0\ud800-\udfff]"


def thinker(provider: str, model: str) -> tuple[str, str]:
    """The provider and the model, with `_` for characters that a thinking block cannot contain."""
    return re.sub(f"{_NO_WORD}|:", "_", provider) or "_", re.sub(_NO_WORD, "_", model) or "_"


class ReplyWriter:
    """Writes one reply's thinking and prose, in the order of arrival."""

    def __init__(self) -> None:
        self._gap = ""
        self._prose: _Prose | None = None
        self._quote: _Quote | None = None

    def text(self, piece: str) -> str:
        """Add a piece of prose, of any size."""
        ended = self.end_thinking()
        self._prose = self._prose or _Prose()
        return ended + self._of(self._prose, self._prose.feed(piece))

    def thinking(self, provider: str, model: str, piece: str) -> str:
        """Add a piece of thinking, kept byte for byte; the first piece opens a block."""
        if self._quote:
            return self._quote.feed(piece)
        ended = self._end_prose()
        self._quote = _Quote()
        head = f"{MARKERS['thinking']}{provider}:{model}]"
        return ended + self._apart() + head + self._quote.feed(piece)

    def sealed(self, thinking: Thinking) -> str:
        """Add a thinking block that arrived in one piece: redacted, or signed without text."""
        return (
            self.end_thinking()
            + self._end_prose()
            + self._apart()
            + "\n".join(thinking_lines(thinking))
        )

    def end_thinking(self) -> str:
        """End the thinking block, if one is open."""
        quote, self._quote = self._quote, None
        return quote.end() if quote else ""

    def end(self) -> str:
        """End the reply: return the remaining text that was held back."""
        return self.end_thinking() + self._end_prose()

    def _end_prose(self) -> str:
        prose, self._prose = self._prose, None
        return self._of(prose, prose.end()) if prose else ""

    def _of(self, prose: _Prose, text: str) -> str:
        if not text or not prose.fresh:
            return text
        prose.fresh = False
        return self._apart() + text

    def _apart(self) -> str:
        """The gap between a new block and the previous block."""
        gap, self._gap = self._gap, "\n\n"
        return gap


class _Prose:
    """One text, escaped line by line, without blank lines at its ends.

    Held-back text is kept in pieces, so each character is examined only once, however the stream is
    split.
    """

    def __init__(self) -> None:
        self.fresh = True
        self._cr = ""
        self._blanks = list[str]()
        """Whitespace to write before the next word, if any follows."""
        self._start = list[str]()
        """The start of a line, while the line may still need escaping."""
        self._bare = ""
        """The held-back line without its leading backslashes."""
        self._at_start = True
        self._begun = False

    def feed(self, piece: str) -> str:
        piece, self._cr = self._cr + piece, ""
        if piece.endswith("\r"):  # this may be half of a CRLF whose other half has not arrived
            piece, self._cr = piece[:-1], "\r"
        first, *rest = grammar.fit(piece.replace("\r\n", "\n")).split("\n")
        ready = [self._of_line(first)]
        for line in rest:
            ready += [self._end_line(), self._of_line(line)]
        return "".join(ready)

    def end(self) -> str:
        return self._decided()

    def _end_line(self) -> str:
        ready = self._decided()
        self._blanks.append("\n")
        self._at_start = True
        return ready

    def _of_line(self, part: str) -> str:
        if not self._at_start or not part:
            return self._hold_blanks(part)
        self._start.append(part)
        self._bare += part if self._bare else part.lstrip("\\")
        return "" if not self._bare or grammar.may_need_escape(self._bare) else self._decided()

    def _decided(self) -> str:
        """The line that was held back, now that its meaning is known."""
        line = "".join(self._start)
        self._start, self._bare, self._at_start = [], "", False
        return self._hold_blanks(grammar.escape_line(line))

    def _hold_blanks(self, text: str) -> str:
        words = text.rstrip(_BLANKS)
        if not words:
            self._blanks += [text] if text else []
            return ""
        before = "".join(self._blanks)
        self._blanks = [text[len(words) :]]
        if not self._begun:
            self._begun, before = True, before[before.rfind("\n") + 1 :]
        return before + words


class _Quote:
    """One block quote; writes a line when part of it, or the next line, has arrived."""

    def __init__(self) -> None:
        self._line_due = True
        self._empty = True

    def feed(self, piece: str) -> str:
        self._empty = self._empty and not piece
        pieces = []
        for number, line in enumerate(grammar.fit(piece).split("\n")):
            if number > 0:
                pieces.append("\n>" if self._line_due else "")
                self._line_due = True
            if line:
                pieces.append(("\n> " if self._line_due else "") + line)
                self._line_due = False
        return "".join(pieces)

    def end(self) -> str:
        return "\n>" if self._line_due and not self._empty else ""
