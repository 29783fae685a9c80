"""The questions of a chat that are asked when the answer above them is complete.

Each is a mark in the buffer, which moves and disappears with its question; the file knows nothing
of it. The chat knows when a question is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parley.chat.transcript import Question, Transcript
from parley.errors import GoneError
from parley.nvim.document import checked
from parley.nvim.editor import Editor
from parley.nvim.mirror import UNKNOWN_TICK, Mirror
from parley.policy.choice import exchange_at

WORDS = "queued "
"""The sign drawn before a queued question."""


def not_asked(count: int) -> str:
    """How many queued questions were not asked; "" if none."""
    if not count:
        return ""
    return (
        "1 queued question was not asked"
        if count == 1
        else f"{count} queued questions were not asked"
    )


def question_at(transcript: Transcript, row: int | None) -> Question | None:
    """The question that a row is in; None if it has an answer or is empty."""
    at = None if row is None else exchange_at(transcript, row)
    exchange = None if at is None else transcript.exchanges[at]
    if (
        exchange is None
        or exchange.answers
        or not exchange.question
        or not exchange.question.text.strip()
    ):
        return None
    return exchange.question


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a handle in a question that can be queued."""

    up: int
    """How many rows the question starts above the handle."""
    marks: tuple[int, ...]
    """The question's marks, if it is queued."""
    is_below: bool
    """Whether the running turn is above it."""


class Queue:
    """The queue of one chat."""

    def __init__(self, editor: Editor, mirror: Mirror, buf: int) -> None:
        self._editor = editor
        self._mirror = mirror
        self._buf = buf
        self.is_used = False
        """Whether the queue may hold a question."""

    async def place(self, handle: int, turn: int | None) -> Place | None:
        """The place of a handle relative to the running turn's; None if nothing there can be
        queued.

        Raises GoneError if the buffer is gone.
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
        """Queue the question that starts so many rows above a handle; close the handle."""
        self.is_used = True
        self._editor.tell("queue_put", handle, up, WORDS)

    def remove(self, marks: Sequence[int]) -> None:
        """Remove questions."""
        self._editor.tell("queue_remove", self._buf, marks)

    async def take(self) -> int | None:
        """Remove the first question, and return a handle at it; None if the queue is empty."""
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
        """Empty the queue. Returns how many questions were in it."""
        if not self.is_used:
            return 0
        self.is_used = False
        count: int = await self._editor.ask("queue_remove", self._buf)
        return count

    async def _read(self, *handles: int | None) -> tuple[dict[str, Any], Transcript]:
        """The places of marks and handles, and their text.

        It is the mirror's text when the reply comes: an answer may grow before the caller resumes.
        """
        transcript: Transcript | None = None

        def heed(reply: Mapping[str, Any]) -> None:
            nonlocal transcript
            self._mirror.heed(reply)
            transcript = self._mirror.text.transcript if self._mirror.is_known else None

        reply = await self._editor.ask(
            "queue_read", self._buf, self._mirror.tick, *handles, heed=heed
        )
        if checked(reply) and transcript is None:
            reply = await self._editor.ask(
                "queue_read", self._buf, UNKNOWN_TICK, *handles, heed=heed
            )
        return checked(reply), transcript or self._mirror.text.transcript
