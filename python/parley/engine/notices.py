"""Ends a turn in the file: writes why an answer is incomplete, and adds an empty question."""

from __future__ import annotations

from contextlib import suppress

from parley.chat import edits
from parley.chat.edits import Edit
from parley.chat.rounds import Notice, NoticeKind, last_notice
from parley.engine.calls import cut_off
from parley.engine.ports import Document, Ports, Snapshot
from parley.errors import GoneError
from parley.policy import status_texts


async def end_unfinished(ports: Ports, kind: NoticeKind, reason: str) -> None:
    """Write to the file why the current answer is incomplete, and add an empty question."""
    notice = Notice(kind, reason)
    ports.observer.status(status_texts.stopped(reason))
    await ports.document.change(lambda s: edits.append_notice(s.lines, s.answer, notice))
    await open_question(ports.document)


async def open_question(document: Document) -> None:
    """Add an empty question if the current exchange is the last exchange."""

    def change(shot: Snapshot) -> list[Edit]:
        last = shot.at == len(shot.transcript.exchanges) - 1
        return [edits.open_question(shot.lines, shot.exchange)] if last else []

    await document.change(change)


async def stopped(ports: Ports) -> bool:
    """Record in the file that the user stopped the turn, and in the results of calls that ran.

    Returns False, and leaves the file unchanged, if no answer was started, or if an old answer is
    still in its place.
    """
    with suppress(GoneError):
        await ports.document.settle()
        if (await ports.document.read()).exchange.answers:
            await cut_off(ports, "the user stopped it")
            await end_unfinished(ports, "Stopped", "by the user")
            return last_notice((await ports.document.read()).answer) is not None
    return False
