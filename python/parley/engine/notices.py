"""The end of a turn in the file: why an answer is not complete, and room for the next question."""

from __future__ import annotations

from contextlib import suppress

from parley.chat import edits
from parley.chat.edits import Edit
from parley.chat.rounds import Notice, NoticeKind
from parley.engine.ports import Document, Snapshot
from parley.errors import GoneError


async def write_notice(document: Document, kind: NoticeKind, reason: str) -> None:
    """Say in the file why the answer in hand is not complete."""
    notice = Notice(kind, reason)
    await document.change(lambda s: [edits.append_notice(s.lines, s.answer, notice)])


async def open_question(document: Document) -> None:
    """Room for the next question, where the exchange in hand is the last."""

    def change(shot: Snapshot) -> list[Edit]:
        last = shot.at == len(shot.transcript.exchanges) - 1
        return [edits.open_question(shot.lines, shot.exchange)] if last else []

    await document.change(change)


async def stopped(document: Document) -> None:
    """Say in the file that the user ended the turn, where it had begun an answer."""
    with suppress(GoneError):
        await document.settle()
        if (await document.read()).exchange.answers:
            await write_notice(document, "Stopped", "by the user")
            await open_question(document)
