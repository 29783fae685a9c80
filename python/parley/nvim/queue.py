"""The questions of a chat that are asked when the answer above them is complete.

Each is a mark in the buffer, which moves and goes with its question; the file knows nothing of it. When a
question is asked, the chat knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parley.chat.transcript import Question, Transcript
from parley.errors import GoneError
from parley.nvim.document import checked
from parley.nvim.editor import Editor
from parley.nvim.mirror import UNKNOWN, Mirror
from parley.policy.choice import exchange_at

WORDS = "queued "
"""What is drawn before a question that waits for its turn."""


def not_asked(count: int) -> str:
    """How many questions were queued in vain; "" where none was."""
    if not count:
        return ""
    return "1 queued question was not asked" if count == 1 else f"{count} queued questions were not asked"


def question_at(transcript: Transcript, row: int | None) -> Question | None:
    """The question that a row is in; None where it has an answer, or asks nothing."""
    at = None if row is None else exchange_at(transcript, row)
    exchange = None if at is None else transcript.exchanges[at]
    if exchange is None or exchange.answers or not exchange.question or not exchange.question.text.strip():
        return None
    return exchange.question


@dataclass(frozen=True, slots=True)
class Place:
    """Where a handle is: in a question that can be queued."""

    up: int
    """How many rows the question starts above the handle."""
    marks: tuple[int, ...]
    """Those of the question, if it is queued."""
    is_below: bool
    """Whether the turn that runs is above it."""


class Queue:
    """The queue of one chat."""

    def __init__(self, editor: Editor, mirror: Mirror, buf: int) -> None:
        self._editor = editor
        self._mirror = mirror
        self._buf = buf
        self.is_used = False
        """Whether there may be a question in it."""

    async def place(self, handle: int, turn: int | None) -> Place | None:
        """The place of a handle, seen from that of the turn that runs; None where nothing can be queued.

        Raises GoneError where the buffer is.
        """
        reply, transcript = await self._read(handle, turn)
        row, above = reply.get("row"), reply.get("above")
        question = question_at(transcript, row)
        if row is None or question is None:
            return None
        start = question.span.start
        marks = tuple(mark for mark, place in reply["marks"] if place == start)
        return Place(row - start, marks, above is not None and above < start)

    def put(self, handle: int, up: int = 0) -> None:
        """Queue the question that starts so many rows above a handle, which is closed."""
        self.is_used = True
        self._editor.tell("queue_put", handle, up, WORDS)

    def remove(self, marks: Sequence[int]) -> None:
        """Take questions out."""
        self._editor.tell("queue_remove", self._buf, marks)

    async def take(self) -> int | None:
        """A handle at the first question, which is queued no more; None where there is none."""
        if not self.is_used:
            return None
        self.is_used = False
        try:
            reply, transcript = await self._read()
        except GoneError:
            return None
        for mark, row in reply["marks"]:
            question = question_at(transcript, row)
            if question and question.span.start == row:
                self.is_used = True
                height = question.span.end - row
                handle: int | None = await self._editor.ask("queue_take", self._buf, mark, height)
                return handle
            self.remove([mark])
        return None

    async def clear(self) -> int:
        """Empty it. Returns how many questions were in it."""
        if not self.is_used:
            return 0
        self.is_used = False
        count: int = await self._editor.ask("queue_remove", self._buf)
        return count

    async def _read(self, *handles: int | None) -> tuple[dict[str, Any], Transcript]:
        """Where the marks and handles are, and the text in which they are there.

        That is the mirror's when the reply comes: an answer may grow before anybody goes on with it.
        """
        transcript: Transcript | None = None

        def heed(reply: Mapping[str, Any]) -> None:
            nonlocal transcript
            self._mirror.heed(reply)
            transcript = self._mirror.text.transcript if self._mirror.is_known else None

        reply = await self._editor.ask("queue_read", self._buf, self._mirror.tick, *handles, heed=heed)
        if checked(reply) and transcript is None:
            reply = await self._editor.ask("queue_read", self._buf, UNKNOWN, *handles, heed=heed)
        return checked(reply), transcript or self._mirror.text.transcript
