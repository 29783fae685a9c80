"""A chat's queue: Parley asks each question when the answer above it is complete.

A mark in the buffer moves and disappears with its question; the queue is not part of the file. The
chat knows when to ask a question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parley.chat.transcript import Question, Transcript
from parley.errors import GoneError
from parley.frozen import frozen
from parley.nvim.document import checked
from parley.nvim.editor import Editor
from parley.nvim.mirror import UNKNOWN_TICK, Mirror
from parley.policy.choice import exchange_at

WORDS = "queued "
"""The text drawn before a queued question."""


def not_asked(count: int) -> str:
    """A sentence with the number of queued questions that were not asked; "" if there are none."""
    if not count:
        return ""
    return (
        "1 queued question was not asked"
        if count == 1
        else f"{count} queued questions were not asked"
    )


def question_at(transcript: Transcript, row: int | None) -> Question | None:
    """The question that contains a row; None if the question is empty or has an answer."""
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


@frozen
class Place:
    """A handle's place in a question that can be queued."""

    up: int
    """How many rows above the handle the question starts."""
    marks: tuple[int, ...]
    """The question's marks; empty if it is not queued."""
    is_below: bool
    """Whether the question is below the running turn."""


class Queue:
    """One chat's queue."""

    def __init__(self, editor: Editor, mirror: Mirror, buf: int) -> None:
        self._editor = editor
        self._mirror = mirror
        self._buf = buf
        self.is_used = False
        """Whether the queue may contain a question."""

    async def place(self, handle: int, turn: int | None) -> Place | None:
        """A handle's place relative to the running turn; None if no question there can be queued.

        Raises GoneError if the buffer is gone.
        """
        reply, transcript = await self._read(handle, turn)
        row, above = reply.get("row"), reply.get("above")
        question = question_at(transcript, row)
        if row is None or question is None:
            return None
        start = question.span.start
        marks = tuple(mark["id"] for mark in reply["marks"] if mark["row"] == start)
        return Place(row - start, marks, above is not None and above < start)

    def put(self, handle: int, up: int = 0) -> None:
        """Queue the question that starts `up` rows above a handle; close the handle."""
        self.is_used = True
        self._editor.tell("queue_put", handle, up, WORDS)

    def remove(self, marks: Sequence[int]) -> None:
        """Remove the questions with these marks."""
        self._editor.tell("queue_remove", self._buf, marks)

    async def take(self) -> int | None:
        """Remove the first question, and return a handle there; None if the queue is empty."""
        if not self.is_used:
            return None
        self.is_used = False
        try:
            reply, transcript = await self._read()
        except GoneError:
            return None
        for mark in reply["marks"]:
            row = mark["row"]
            question = question_at(transcript, row)
            if question and question.span.start == row:
                self.is_used = True
                height = question.span.end - row
                handle: int | None = await self._editor.ask(
                    "queue_take", self._buf, mark["id"], height
                )
                return handle
            self.remove([mark["id"]])
        return None

    async def clear(self) -> int:
        """Empty the queue; returns how many questions it contained."""
        if not self.is_used:
            return 0
        self.is_used = False
        count: int = await self._editor.ask("queue_remove", self._buf)
        return count

    async def _read(self, *handles: int | None) -> tuple[dict[str, Any], Transcript]:
        """The places of marks and handles, and the text for which they are valid.

        This is the mirror's text at the moment when the reply arrives: the answer may grow before
        the caller continues.
        """
        transcript: Transcript | None = None

        def on_reply(reply: Mapping[str, Any]) -> None:
            nonlocal transcript
            self._mirror.receive(reply)
            transcript = self._mirror.text.transcript if self._mirror.is_known else None

        reply = await self._editor.ask(
            "queue_read", self._buf, self._mirror.tick, *handles, on_reply=on_reply
        )
        if checked(reply) and transcript is None:
            reply = await self._editor.ask(
                "queue_read", self._buf, UNKNOWN_TICK, *handles, on_reply=on_reply
            )
        return checked(reply), transcript or self._mirror.text.transcript
