"""The text of an answer alone, as its pieces come: for readers who want no file.

The line in which a model sums up the exchange is a note for later: at the end of a reply it is left out. What
stands between two replies, such as calls of tools, is a blank line.
"""

from __future__ import annotations

import re

from parley.chat.grammar import SUMMARY

_PART = re.compile(r"[^\n]*\n|[^\n]+")


class AnswerText:
    """Takes the pieces of replies, and gives what of their text is sure to be the answer's."""

    def __init__(self) -> None:
        self._rest = ""
        """What may be the end of a reply: blank lines and a summary."""
        self._line = ""
        """The line in hand, as long as it is such a one."""
        self._is_text = False
        self._summary = ""
        self._last = ""
        """What was given last."""
        self._is_between = False

    def feed(self, piece: str) -> str:
        """The text that is sure after a piece."""
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

    def end_reply(self) -> None:
        """The reply is over: what comes next is another one's."""
        self._summary = self._rest.strip() or self._summary
        self._rest, self._line, self._is_text = "", "", False
        self._is_between = True

    def end(self) -> str:
        """The end of the answer: a line's end, or the summary where there is nothing else."""
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


def _may_end(line: str) -> bool:
    """Whether a line, or its start, is blank or a summary."""
    return not line.strip() or line.startswith(SUMMARY) or SUMMARY.startswith(line)
