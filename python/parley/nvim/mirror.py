"""A buffer's text as Neovim last reported it; each message from Neovim contains the changes.

Knows lines and changedticks, but not Neovim's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from parley.chat.edits import Edit, apply_edits
from parley.chat.reader import parse_lines
from parley.chat.reread import LineChange, reread
from parley.chat.transcript import Transcript
from parley.engine import Snapshot

NONE = LineChange(0, 0, 0)
CURRENT_S = 0.05
"""For this many seconds, a reported text counts as current."""
_BYTE_ORDER_MARK = "\ufeff"
UNKNOWN_TICK = -1
"""The changedtick if the buffer's text is unknown."""


class BufferText:
    """A buffer's lines at one moment, without a byte order mark, and without the CRs if every line
    ends in CR.

    The transcript is parsed when first needed; this reuses an earlier text's transcript.
    """

    def __init__(
        self,
        lines: list[str],
        line_end: str = "",
        before: BufferText | None = None,
        change: LineChange = NONE,
        *,
        mark: str = "",
    ) -> None:
        """`change` turned `before` into this text; `mark` precedes the first line."""
        self.lines = lines
        self.line_end = line_end
        self.mark = mark
        self._earlier = before.source(change) if before and before.line_end == line_end else None

    @classmethod
    def of(
        cls, raw: list[str], before: BufferText | None = None, change: LineChange = NONE
    ) -> BufferText:
        """The text that consists of these lines, which are in Neovim's form."""
        is_crlf = all(line.endswith("\r") for line in raw)
        lines = [line[:-1] for line in raw] if is_crlf else raw
        mark = _BYTE_ORDER_MARK if lines[0].startswith(_BYTE_ORDER_MARK) else ""
        lines = [lines[0].removeprefix(mark), *lines[1:]]
        return cls(lines, "\r" if is_crlf else "", before, change, mark=mark)

    @cached_property
    def transcript(self) -> Transcript:
        """The parsed lines."""
        earlier, self._earlier = self._earlier, None
        return (
            reread(earlier[0].transcript, earlier[1], self.lines)
            if earlier
            else parse_lines(self.lines)
        )

    def source(self, change: LineChange) -> tuple[BufferText, LineChange] | None:
        """The text whose transcript can be reused, and all changes since, including `change`."""
        if "transcript" in vars(self):
            return self, change
        return self._earlier and (self._earlier[0], self._earlier[1].then(change))

    def replaced(self, start: int, end: int, raw: list[str]) -> BufferText:
        """The text after replacing these lines with others, which are in Neovim's form."""
        before = [line + self.line_end for line in self.lines] if self.line_end else self.lines
        before = [self.mark + before[0], *before[1:]] if self.mark else before
        lines = [*before[:start], *raw, *before[end:]] or [""]
        change = LineChange(start, end, end - start + len(lines) - len(before))
        is_plain = start > 0 and not self.mark and not lines[0].endswith("\r")
        return (
            BufferText(lines, "", self, change) if is_plain else BufferText.of(lines, self, change)
        )

    def edited(self, edits: Iterable[Edit]) -> BufferText:
        """The text after some edits."""
        edits = list(edits)
        if not edits:
            return self
        start, end = min(edit.start for edit in edits), max(edit.end for edit in edits)
        lines = apply_edits(self.lines, edits)
        change = LineChange(start, end, end - start + len(lines) - len(self.lines))
        return BufferText(lines, self.line_end, self, change, mark=self.mark if start else "")

    def shot(self, anchor: int) -> Snapshot:
        """A snapshot of the text, with a line in the current exchange."""
        return Snapshot(self.lines, anchor, lambda _: self.transcript)


class Mirror:
    """The text of one buffer; `now` is a clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._time = 0.0
        self._is_old = True
        self.tick = UNKNOWN_TICK
        self.text = BufferText.of([""])

    @property
    def is_known(self) -> bool:
        """Whether the text is known to be the buffer's, as last reported or written."""
        return self.tick != UNKNOWN_TICK and not self._is_old

    @property
    def is_current(self) -> bool:
        """Whether Neovim has just reported the text."""
        return self.is_known and self._now() - self._time < CURRENT_S

    def expire(self) -> None:
        """Record that the buffer has changed, and that its new text is unknown here."""
        self._is_old = True

    def receive(self, reply: Mapping[str, Any]) -> None:
        """Apply the change in a reply from Neovim, unless the buffer is gone."""
        if "gone" not in reply:
            self.take(reply["change"])

    def take(self, change: Mapping[str, Any]) -> None:
        """Apply a change: `{tick, count, since, start, end, lines}`; without `since`, `lines` is
        the whole text.

        If a change is based on another text, this text becomes unknown; Neovim then sends all
        lines.
        """
        text, lines = self.text, change.get("lines")
        if "since" not in change:
            text = BufferText.of(change["lines"])
        elif lines is not None:
            text = text.replaced(change["start"], change["end"], lines)
        if change.get("since", self.tick) == self.tick and len(text.lines) == change["count"]:
            self.put(change["tick"], text)
        else:
            self.tick = UNKNOWN_TICK

    def forget(self) -> None:
        """Forget the text of a closed buffer, with its transcript."""
        self.tick, self.text = UNKNOWN_TICK, BufferText.of([""])

    def put(self, tick: int, text: BufferText) -> None:
        """Record the text that the buffer has now."""
        self.tick, self.text, self._time, self._is_old = tick, text, self._now(), False
