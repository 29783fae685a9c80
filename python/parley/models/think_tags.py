"""Thinking that local models write at the start of their text, as `<think>…</think>`.

Knows the tag's two forms and how a stream may be split. Knows nothing about events or models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from parley.models.pending_text import PendingText

Kind: TypeAlias = Literal["text", "thinking", "end"]

# No standard defines these tags. Examples of streams from servers that pass these tags on are in
# tests/streams/openai_chat, as local-*.sse (November 2026).
_OPENERS = ("<think>", "<thinking>")
_CLOSERS: Mapping[str, str] = {"<think>": "</think>", "<thinking>": "</thinking>"}


class ThinkTags:
    """Separates a thinking block from the start of a text that arrives in pieces, split anywhere.

    A tag further down is ordinary text. Returns ("thinking", piece), ("end", "") after the block,
    and ("text", piece); whitespace around the tags is dropped.
    """

    def __init__(self) -> None:
        self._buffer = ""
        self._waiting = PendingText()
        self._closer = ""
        self._thought = False
        self._state: Literal["start", "thinking", "after", "text"] = "start"

    @property
    def is_past(self) -> bool:
        """Whether everything from now on is text."""
        return self._state == "text"

    def feed(self, piece: str) -> list[tuple[Kind, str]]:
        """Return the parts that are certain after this piece; the rest is held back."""
        if self._state == "text":
            return [("text", piece)] if piece else []
        if self._waiting.goes_on(self._buffer, piece):
            self._waiting.add(piece)
            return []
        self._buffer += self._waiting.take() + piece
        pieces = list[tuple[Kind, str]]()
        if self._state == "start":
            self._open()
        if self._state == "thinking":
            pieces += self._think()
        if self._state == "after" and (rest := self._buffer.lstrip()):
            self._buffer, self._state = rest, "text"
        if self._state == "text" and self._buffer:
            pieces.append(("text", self._buffer))
            self._buffer = ""
        return pieces

    def end(self) -> list[tuple[Kind, str]]:
        """Return the held-back part, at the end of the reply."""
        rest, state = self._buffer + self._waiting.take(), self._state
        self._buffer, self._state = "", "text"
        if state == "thinking":
            return [*self._thinking(rest.rstrip()), ("end", "")]
        return [("text", rest)] if rest and state == "start" else []

    def _open(self) -> None:
        start = self._buffer.lstrip()
        tag = next((tag for tag in _OPENERS if start.startswith(tag)), None)
        if tag is not None:
            self._closer, self._state = _CLOSERS[tag], "thinking"
            self._buffer = start.removeprefix(tag)
        elif start and not any(tag.startswith(start) for tag in _OPENERS):
            self._state = "text"

    def _think(self) -> list[tuple[Kind, str]]:
        if not self._thought:
            self._buffer = self._buffer.lstrip()
        thought, closed, rest = self._buffer.partition(self._closer)
        if closed:
            self._buffer, self._state = rest, "after"
            return [*self._thinking(thought.rstrip()), ("end", "")]
        keep = len(thought[: len(thought) - self._half_closer(thought)].rstrip())
        self._buffer = thought[keep:]
        return self._thinking(thought[:keep])

    def _thinking(self, piece: str) -> list[tuple[Kind, str]]:
        self._thought = self._thought or bool(piece)
        return [("thinking", piece)] if piece else []

    def _half_closer(self, thought: str) -> int:
        """The number of characters at the end that may be the start of the closing tag."""
        lengths = range(min(len(self._closer) - 1, len(thought)), 0, -1)
        return next((n for n in lengths if self._closer.startswith(thought[-n:])), 0)
