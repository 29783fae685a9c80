"""The end of a turn in the file: why an answer is not complete, and room for the next question."""

from __future__ import annotations

from contextlib import suppress

from parley.chat import edits
from parley.chat.edits import Edit
from parley.chat.rounds import Notice, NoticeKind
from parley.engine.calls import cut_off
from parley.engine.ports import Document, Ports, Snapshot
from parley.errors import GoneError
from parley.policy import status


async def end_unfinished(ports: Ports, kind: NoticeKind, reason: str) -> None:
    """Say, in the file too, why the answer in hand is not complete; then it is the user's turn."""
    notice = Notice(kind, reason)
    ports.observer.status(status.stopped(reason))
    await ports.document.change(lambda s: edits.append_notice(s.lines, s.answer, notice))
    await open_question(ports.document)


async def open_question(document: Document) -> None:
    """Room for the next question, where the exchange in hand is the last."""

    def change(shot: Snapshot) -> list[Edit]:
        last = shot.at == len(shot.transcript.exchanges) - 1
        return [edits.open_question(shot.lines, shot.exchange)] if last else []

    await document.change(change)


async def stopped(ports: Ports) -> bool:
    """The user ended the turn: say so in the file, where an answer was begun, and to the calls that ran.

    False where there was none: then the file is as it was.
    """
    with suppress(GoneError):
        await ports.document.settle()
        if (await ports.document.read()).exchange.answers:
            await cut_off(ports, "the user stopped it")
            await end_unfinished(ports, "Stopped", "by the user")
            return True
    return False
