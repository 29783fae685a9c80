"""Extracts an answer's plain text from the stream, for consumers that do not use the chat file.

The model's summary line at the end of a reply is for later requests, so it is left out. A blank
line replaces anything between two texts, such as tool calls.
"""

from __future__ import annotations

from parley.chat.grammar import SUMMARY
from parley.chat.rounds import rounds
from parley.chat.transcript import Answer, Proposal, Text
from parley.late_patterns import late_pattern

_PART = late_pattern(r"[^\n]*\n|[^\n]+")


class AnswerText:
    """Takes the pieces of replies, and returns the text that is certain to be in the answer."""

    def __init__(self) -> None:
        self._rest = ""
        """The possible end of a reply: blank lines and a summary."""
        self._line = ""
        """The current line, while it may still be part of a reply's end."""
        self._is_text = False
        self._summary = ""
        self._last = ""
        """The last text that was returned."""
        self._is_between = False

    def feed(self, piece: str) -> str:
        """Take a piece, and return the text that is now certain."""
        text = ""
        for part in _PART.findall(piece):
            self._rest += part
            if not self._is_text:
                self._line += part
                self._is_text = not _may_end(self._line)
            if self._is_text:
                text, self._rest = text + self._rest, ""
            if part.endswith("\n"):
                self._line, self._is_text = "", False
        return self._joined(text)

    def end_text(self) -> str:
        """End a text of a reply above a call that others ran, and return the rest of it."""
        rest = self._rest.rstrip()
        self._rest, self._line, self._is_text = "", "", False
        text = self._joined(rest)
        self._is_between = True
        return text

    def end_reply(self) -> None:
        """End the reply; further text belongs to the next reply."""
        self._summary = self._rest.strip() or self._summary
        self._rest, self._line, self._is_text = "", "", False
        self._is_between = True

    def end(self) -> str:
        """The end of the answer: a missing newline, or the summary if the answer has no text."""
        self.end_reply()
        if not self._last:
            return f"{self._summary}\n" if self._summary else ""
        return "" if self._last.endswith("\n") else "\n"

    def _joined(self, text: str) -> str:
        if not text:
            return ""
        if not self._last:
            text = text.lstrip("\n")
        elif self._is_between:
            text = ("\n" if self._last.endswith("\n") else "\n\n") + text.lstrip("\n")
        self._is_between = False
        self._last = text
        return text


def text_of_answer(answer: Answer) -> str:
    """A written answer's text, as from its stream."""
    text, pieces = AnswerText(), list[str]()
    for reply in rounds(answer):
        for part in reply.segments:
            if isinstance(part, Text):
                pieces.append(text.feed(f"{part.text}\n\n"))
            elif isinstance(part, Proposal) and part.ran_by:
                pieces.append(text.end_text())
        text.end_reply()
    return "".join([*pieces, text.end()])


def _may_end(line: str) -> bool:
    """Whether a line, or its start, is blank or a summary."""
    return not line.strip() or line.startswith(SUMMARY) or SUMMARY.startswith(line)
