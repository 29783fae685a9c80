"""Scans one JSON value that arrives in pieces: finds its end, and fixes small mistakes.

Only unambiguous mistakes are fixed: typographic quotes around a string, a comma before a closing
bracket, a line break within a string. Knows nothing of calls.
"""

from __future__ import annotations

import json
from typing import Literal

QUOTES = '"“”„'
_CLOSERS = {"{": "}", "[": "]"}


class JsonScan:
    """Reads a value character by character, from its opening bracket to its closing one."""

    def __init__(self) -> None:
        self.state: Literal["open", "closed", "broken"] = "open"
        self._closers = list[str]()
        self._repaired = list[str]()
        self._quote = ""
        self._is_escaped = False

    @property
    def text(self) -> str:
        """The text so far, with mistakes fixed."""
        return "".join(self._repaired)

    def feed(self, text: str, start: int) -> int:
        """Read characters of `text` from `start` on until the value is settled; returns the place
        after the last character read.
        """
        for at in range(start, len(text)):
            if self._quote:
                self._in_string(text[at])
            else:
                self._outside(text[at])
                if self.state != "open":
                    return at + 1
        return len(text)

    def _in_string(self, char: str) -> None:
        if self._is_escaped:
            self._is_escaped = False
        elif char == "\\":
            self._is_escaped = True
        elif char == self._quote or (self._quote != '"' and char in "“”"):
            self._quote, char = "", '"'
        elif char == '"':
            char = '\\"'
        elif char < " ":
            char = json.dumps(char)[1:-1]
        self._repaired.append(char)

    def _outside(self, char: str) -> None:
        if char in QUOTES:
            self._quote, char = char, '"'
        elif char in _CLOSERS:
            self._closers.append(_CLOSERS[char])
        elif char in "}]":
            self._close(char)
        self._repaired.append(char)

    def _close(self, char: str) -> None:
        if not self._closers or self._closers.pop() != char:
            self.state = "broken"
            return
        last = len(self._repaired) - 1
        while self._repaired[last].isspace():
            last -= 1
        if self._repaired[last] == ",":
            del self._repaired[last]
        if not self._closers:
            self.state = "closed"
