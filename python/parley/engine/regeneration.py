"""Regenerates an answer: the old answer stays until the new answer has begun.

Wraps a turn's document and ledger. The loop reads the chat as if the answer were empty already, and
its first content replaces the old answer in a single change. Until then, nothing is written or
recorded, so a request that fails, is refused or is stopped leaves the chat as it was. Does not know
who requests the new answer, or which agent answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from parley.chat import edits
from parley.chat.edits import Edit, apply_edits
from parley.chat.reread import difference, reread
from parley.chat.transcript import Note, Transcript
from parley.engine.ports import Change, Document, End, Ledger, Ports, Snapshot
from parley.policy.approval import CallKey, LedgerView
from parley.policy.facts import Fact, Removed

_CONTINUES, _REGENERATES = ":ParleyRespond asks", ":ParleyRespond! asks"


def regenerating(ports: Ports, agent: str) -> Ports:
    """The ports for a turn in which this agent regenerates the current exchange's last answer.

    If the exchange has no answer, the turn runs as usual.
    """
    ledger = _HeldLedger(ports.ledger)
    return replace(ports, document=_NewAnswer(ports.document, ledger, agent), ledger=ledger)


def remark_on_old_answer(ports: Ports, end: End) -> End:
    """The end of a turn; if the turn left the old answer in its place, the message says so."""
    document = ports.document
    is_kept = isinstance(document, _NewAnswer) and document.is_pending
    if not is_kept or end.kind not in ("interrupted", "stopped"):
        return end
    why = end.message.replace(_CONTINUES, _REGENERATES)
    return End(end.kind, f"{why}. The old answer is unchanged")


class _HeldLedger:
    """The ledger of such a turn, which holds back all facts until the new answer begins."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: list[Fact] | None = []
        """The facts that are held back; None when the new answer has begun."""

    def release(self, *first: Fact) -> None:
        """Record these facts and then the held facts; from now on, hold nothing back."""
        waiting, self._waiting = self._waiting or [], None
        self.record(*first, *waiting)

    def record(self, *facts: Fact) -> None:
        """Record these facts, or hold them back."""
        if self._waiting is not None:
            self._waiting += facts
        elif facts:
            self._ledger.record(*facts)

    def lease(self) -> AbstractContextManager[None]:
        """Hold the right to run a turn in this chat."""
        return self._ledger.lease()

    def view(self, calls: Collection[tuple[str, str]] = ()) -> LedgerView:
        """All records, without the held facts."""
        return self._ledger.view(calls)

    def start(self, key: CallKey) -> bool:
        """Use up this call's approval."""
        return self._ledger.start(key)

    def begin_task(self, key: CallKey, task: str) -> None:
        """Record the task of a started call."""
        self._ledger.begin_task(key, task)


class _NewAnswer:
    """The document of such a turn. While it `is_pending`, it writes nothing: readers see an empty
    answer, and the first change with content replaces the old answer.
    """

    def __init__(self, document: Document, ledger: _HeldLedger, agent: str) -> None:
        self._document = document
        self._ledger = ledger
        self._agent = agent
        self._tip: Callable[[Snapshot], tuple[Edit, int]] | None = None
        """The place of the stream that was opened last."""
        self.is_pending = True
        """Whether the old answer is still in its place."""

    async def read(self) -> Snapshot:
        """The document, with an empty answer while it is pending."""
        shot = await self._look()
        return self._emptied(shot) if self.is_pending else shot

    async def change(self, change: Change) -> None:
        """Change the document. A pending answer is only replaced by an answer with content, not by
        a notice.
        """
        shot = await self._look()
        if not self.is_pending:
            await self._document.change(change)
        elif any(not isinstance(s, Note) for s in self._replaced(shot, change).answer.segments):
            self._start(shot)
            await self._document.change(lambda s: [_between(s, self._replaced(s, change))])

    async def begin(self, change: Change) -> None:
        """Change the document without waiting, unless the answer is pending."""
        if self.is_pending:
            await self.change(change)
        else:
            await self._document.begin(change)

    async def open_stream(
        self, tip: Callable[[Snapshot], tuple[Edit, int]], text: str = ""
    ) -> None:
        """Add a line for the reply; for a pending answer, the first text does so, or a call that
        others run."""
        if self.is_pending:
            self._tip = tip
        shot = await self._look()
        if text or not self.is_pending or self._writes(shot, tip):
            await self._open(tip, text)

    async def append(self, text: str) -> None:
        """Write at the tip; the first text replaces the old answer."""
        if self.is_pending and self._tip:
            await self._open(self._tip, text)
        else:
            await self._document.append(text)

    async def settle(self) -> None:
        """Wait until all appended text is in the document."""
        await self._document.settle()

    async def _look(self) -> Snapshot:
        """The document as it is. Without an answer to regenerate, nothing is pending."""
        shot = await self._document.read()
        if self.is_pending and not shot.exchange.answers:
            self._start(shot)
        return shot

    async def _open(self, tip: Callable[[Snapshot], tuple[Edit, int]], text: str) -> None:
        shot = await self._look()
        if not self.is_pending:
            await self._document.open_stream(tip, text)
            return

        def place(shot: Snapshot) -> tuple[Edit, int]:
            empty, span = self._emptied(shot), shot.answer.span
            edit, row = tip(empty)
            lines = apply_edits(empty.lines, [edit])
            end = len(lines) - (len(shot.lines) - span.end)
            return Edit(span.start, span.end, tuple(lines[span.start : end])), row

        self._start(shot)
        await self._document.open_stream(place, text)

    def _start(self, shot: Snapshot) -> None:
        """Write and record from now on; the calls of the old answer are removed."""
        answers = shot.exchange.answers[-1:]
        calls = tuple(
            (p.call.id, p.call.arguments)
            for answer in answers
            for p in answer.proposals
            if p.result is None or p.result.status != "refused"
        )
        self.is_pending = False
        self._ledger.release(*([Removed(calls)] if answers else []))

    def _emptied(self, shot: Snapshot) -> Snapshot:
        return edited(shot, [edits.empty_answer(shot.lines, shot.answer, self._agent)])

    def _writes(self, shot: Snapshot, tip: Callable[[Snapshot], tuple[Edit, int]]) -> bool:
        """Whether this place for a stream follows new content of the answer."""
        empty = self._emptied(shot)
        edit, _ = tip(empty)
        return any(not isinstance(s, Note) for s in edited(empty, [edit]).answer.segments)

    def _replaced(self, shot: Snapshot, change: Change) -> Snapshot:
        empty = self._emptied(shot)
        return edited(empty, list(change(empty)))


def edited(shot: Snapshot, edited: Sequence[Edit]) -> Snapshot:
    """The document after edits below the current answer's first line."""

    def read(lines: list[str]) -> Transcript:
        return reread(shot.transcript, difference(shot.lines, lines), lines)

    return Snapshot(apply_edits(shot.lines, edited), shot.answer.span.start, read)


def _between(before: Snapshot, after: Snapshot) -> Edit:
    """One edit that makes the lines of `after` from the lines of `before`."""
    change = difference(before.lines, after.lines)
    return Edit(
        change.start, change.end, tuple(after.lines[change.start : change.start + change.count])
    )
