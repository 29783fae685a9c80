"""Finds the JSON tool calls in a model's text while the text arrives, and takes the calls out.

A call may be bare, in a code fence, inside prose, in an array or next to other calls. A possible
start of a call is held back until its meaning is settled; other JSON stays prose, unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from parley.late_patterns import late_pattern
from parley.models.pending_text import PendingText, portions
from parley.models.text_tools.json_calls import INVALID, NAMES, calls_in, is_attempt
from parley.models.text_tools.json_scan import QUOTES, JsonScan
from parley.models.text_tools.text_calls import Failed, Item, Prose, ToolLimitReached, joined

_TRIGGER = late_pattern(r"[{\[`<]")

_NAME = "|".join(NAMES)
_START = rf"(?:\[\s*)?\{{\s*(?:[{QUOTES}][^{QUOTES}\n{{}}]{{1,40}}[{QUOTES}]|'(?:{_NAME})'|(?:{_NAME}))\s*:"
"""How an object that may be a call begins, with its keys in any order."""
_HALF = (
    rf"(?:\[\s*|(?:\[\s*)?\{{\s*(?:[{QUOTES}](?:[^{QUOTES}\n{{}}]{{0,40}}(?:[{QUOTES}]\s*)?)?"
    r"|'[a-z_]{0,9}(?:'\s*)?|[a-z_]{1,9}\s*)?)?"
)
"""Any prefix of it."""


class _Wrap(NamedTuple):
    """A wrapper that models put around a call: its start, any prefix of the start, and its end."""

    start: re.Pattern[str]
    half: re.Pattern[str]
    end: str
    """A group of `start`, or the text itself."""


def _wrap(start: str, half: str, end: str) -> _Wrap:
    return _Wrap(re.compile(rf"{start}(?P<json>{_START})"), re.compile(rf"{half}{_HALF}"), end)


_INFO = r"[ \t]*[\w+.-]{0,20}[ \t]*"
_WRAPS = {
    "{": (_wrap("", "", ""),),
    "[": (_wrap("", "", ""), _wrap(r"\[TOOL_CALLS\]\s*", r"\[TOOL_CALLS\]\s*", "")),
    "`": (
        _wrap(rf"(?P<ticks>`{{3,}})(?P<info>{_INFO})\n\s*", rf"`{{3,}}{_INFO}\n\s*", "ticks"),
        _wrap(r"(?P<ticks>`{1,2})", r"`{1,2}", "ticks"),
    ),
    "<": (_wrap(r"<tool_call>\s*", r"<tool_call>\s*", "</tool_call>"),),
}
_HALF_FENCE = late_pattern(rf"`+|`{{3,}}{_INFO}")
_LITERALS = ("<tool_call>", "[TOOL_CALLS]")
_INLINE = ("`", "``")


class JsonExtractor:
    """Takes the text of one reply; returns its prose, and its valid and failed calls, in order.

    `known` are the names of the tools.
    """

    def __init__(self, known: Collection[str] = ()) -> None:
        self.limit: ToolLimitReached | None = None
        self._known = known
        self._items = list[Item]()
        self._buffer = ""
        self._waiting = PendingText()
        self._scan: JsonScan | None = None
        self._json_at = self._scanned = 0
        self._wrap_end = ""
        """The end of the wrapper around the value being scanned."""
        self._end = ""
        """The end of the last call's wrapper: this end belongs to the call, even after other
        text.
        """
        self._is_after_call = False
        self._code = ""
        """The fence that closes the prose's current code block; "" outside of a code block."""
        self._is_line_start = True
        """Whether only blanks precede the next text on its line; only there can a code block begin
        or end."""

    def feed(self, piece: str) -> list[Item]:
        """The items that this piece settles; the rest waits."""
        items = [item for portion in portions(piece) for item in self._fed(portion)]
        return joined(items)

    def _fed(self, piece: str) -> list[Item]:
        if self._scan:
            return self._scanned_on(self._scan, piece)
        if self._waiting.goes_on(self._buffer, piece):
            self._waiting.add(piece)
            return []
        self._buffer += self._waiting.take() + piece
        return self._settled(is_final=False)

    def _scanned_on(self, scan: JsonScan, piece: str) -> list[Item]:
        """The items that a piece settles within a value, found without reading earlier text
        again.
        """
        self._waiting.add(piece)
        self._scanned += scan.feed(piece, 0)
        if scan.state == "open":
            return []
        self._buffer += self._waiting.take()
        return self._settled(is_final=False)

    def end(self, *, cut: bool = False) -> list[Item]:
        """The waiting items at the end of the reply; if the reply was `cut`, an incomplete call is
        dropped.
        """
        self._buffer += self._waiting.take()
        items = self._settled(is_final=True)
        while not cut and self._scan and self._buffer[self._json_at] == "[":  # not a list of calls
            self._scan = None
            self._say(self._json_at + 1)
            items = joined([*items, *self._settled(is_final=True)])
        rest, self._buffer, self._scan = self._buffer, "", None
        if not rest:
            return items
        if not is_attempt(rest[self._json_at :], self._known):
            return joined([*items, Prose(rest)])
        return items if cut else [*items, Failed(INVALID, rest)]

    def _settled(self, *, is_final: bool) -> list[Item]:
        while self._buffer and self._step(is_final=is_final):
            pass
        items, self._items = self._items, []
        return joined(items)

    def _step(self, *, is_final: bool) -> bool:
        """Settle the next part; False if more text is needed."""
        if self._scan:
            return self._value(self._scan)
        if self._is_after_call:
            return self._after_call(is_final=is_final)
        return self._prose(is_final=is_final)

    def _prose(self, *, is_final: bool) -> bool:
        match = _TRIGGER.search(self._buffer)
        plain = match.start() if match else len(self._buffer)
        if plain:
            self._say(plain)
        elif self._ends(is_final=is_final):
            self._take(len(self._end))
            self._end = ""
        elif not self._begins():
            if not is_final and (self._may_end() or self._may_begin()):
                return False
            ticks = len(self._buffer) - len(self._buffer.lstrip("`"))
            if ticks:
                self._end = ""  # another fence or code span begins, and ends next
            self._say(max(ticks, 1))
        return True

    def _say(self, length: int) -> None:
        """The next part is prose: note a code block that it begins or ends."""
        text = self._take(length)
        self._items.append(Prose(text))
        if text.startswith("```") and self._is_line_start:
            ticks = text[: len(text) - len(text.lstrip("`"))]
            self._code = "" if self._code and ticks.startswith(self._code) else self._code or ticks
        _, is_new_line, line = text.rpartition("\n")
        self._is_line_start = not line.strip() and bool(is_new_line or self._is_line_start)

    def _ends(self, *, is_final: bool) -> bool:
        """Whether the last call's wrapper ends here, without starting another fence."""
        rest = self._buffer.removeprefix(self._end).lstrip(" \t")
        is_line = rest.startswith("\n") or (is_final and not rest)
        return is_line and bool(self._end) and self._buffer.startswith(self._end)

    def _may_end(self) -> bool:
        text = self._buffer.rstrip(" \t")
        return bool(self._end) and (self._end.startswith(self._buffer) or text == self._end)

    def _begins(self) -> bool:
        for wrap in _WRAPS[self._buffer[0]]:
            match = wrap.start.match(self._buffer)
            if match and not (self._code and not match.groupdict().get("info", "x").strip()):
                self._scan = JsonScan()
                self._json_at = self._scanned = match.start("json")
                self._wrap_end = match["ticks"] if wrap.end == "ticks" else wrap.end
                return True
        return False

    def _may_begin(self) -> bool:
        text = self._buffer
        return (
            any(wrap.half.fullmatch(text) for wrap in _WRAPS[text[0]])
            or bool(_HALF_FENCE.fullmatch(text))
            or any(literal.startswith(text) for literal in _LITERALS)
        )

    def _value(self, scan: JsonScan) -> bool:
        if scan.state == "open":
            self._scanned = scan.feed(self._buffer, self._scanned)
        if scan.state == "open":
            return False
        raw = self._buffer[self._json_at : self._scanned]
        whole = scan.text if scan.state == "closed" else raw
        calls = calls_in(whole, self._known)
        if not calls:
            self._say(self._scanned)
        else:
            self._take(self._scanned)
            self._items += calls
            self._end = self._wrap_end or self._end
            self._is_after_call = bool(self._end)
        self._scan, self._json_at = None, 0
        return True

    def _after_call(self, *, is_final: bool) -> bool:
        rest = self._buffer.lstrip()
        if not is_final and self._end.startswith(rest) and rest != self._end:
            return False
        self._is_after_call = False
        if rest.startswith(self._end):
            self._take(len(self._buffer) - len(rest) + len(self._end))
            self._end = ""
        elif self._end in _INLINE:
            self._end = ""
        return True

    def _take(self, length: int) -> str:
        text, self._buffer = self._buffer[:length], self._buffer[length:]
        return text
