"""Regenerates or continues an answer: the old text stays until the new text has begun.

Wraps a turn's document and ledger. The loop reads the chat as if the answer, or its unfinished end,
were removed already, and the first new content replaces it in a single change. So a request that
fails, is refused or is stopped loses nothing. Does not know who requests the new text, or which
agent answers.
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


async def continuing(ports: Ports, agent: str) -> Ports:
    """The ports for the rest of a turn that continues the current exchange's unfinished answer."""
    document = _ContinuedAnswer(ports.document, agent)
    if not await document.has_text():
        await document.remove()
    return replace(ports, document=document)


async def remove_unfinished(ports: Ports) -> None:
    """Remove the unfinished end of an answer, although no reply replaces it."""
    if isinstance(ports.document, _ContinuedAnswer):
        await ports.document.remove()


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


class _HeldText:
    """The document of such a turn. While it `is_pending`, readers see the answer without the old
    text, and the first change with content replaces that text.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._tip: Callable[[Snapshot], tuple[Edit, int]] | None = None
        """The place of the stream that was opened last."""
        self.is_pending = True
        """Whether the old text is still in its place."""

    async def read(self) -> Snapshot:
        """The document, without the old text while it is pending."""
        shot = await self._look()
        return self._bare(shot) if self.is_pending else shot

    async def change(self, change: Change) -> None:
        """Change the document. Pending text is only replaced by content, not by a notice."""
        shot = await self._look()
        if not self.is_pending:
            await self._document.change(change)
        elif _differs(self._bare(shot), self._replaced(shot, change)):
            await self._replace(shot, change)
        else:
            await self._change_around(change)

    async def begin(self, change: Change) -> None:
        """Change the document without waiting, unless text is pending."""
        if self.is_pending:
            await self.change(change)
        else:
            await self._document.begin(change)

    async def open_stream(
        self, tip: Callable[[Snapshot], tuple[Edit, int]], text: str = ""
    ) -> None:
        """Add a line for the reply; while text is pending, the first new text does so, or a call
        that others run."""
        if self.is_pending:
            self._tip = tip
        shot = await self._look()
        if text or not self.is_pending or self._writes(shot, tip):
            await self._open(tip, text)

    async def append(self, text: str) -> None:
        """Write at the tip; the first text replaces the old text."""
        if self.is_pending and self._tip:
            await self._open(self._tip, text)
        else:
            await self._document.append(text)

    async def settle(self) -> None:
        """Wait until all appended text is in the document."""
        await self._document.settle()

    async def remove(self) -> None:
        """Remove pending text now."""
        shot = await self._look()
        if self.is_pending:
            await self._replace(shot, lambda _: [])

    async def _look(self) -> Snapshot:
        """The document as it is. Without an answer, nothing is pending."""
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
            bare, span = self._bare(shot), shot.answer.span
            edit, row = tip(bare)
            lines = apply_edits(bare.lines, [edit])
            end = len(lines) - (len(shot.lines) - span.end)
            return Edit(span.start, span.end, tuple(lines[span.start : end])), row

        self._start(shot)
        await self._document.open_stream(place, text)

    async def _replace(self, shot: Snapshot, change: Change) -> None:
        self._start(shot)
        await self._document.change(lambda s: [_between(s, self._replaced(s, change))])

    async def _change_around(self, change: Change) -> None:
        """Make a change without content."""

    def _start(self, shot: Snapshot) -> None:
        """From now on, nothing is pending."""
        self.is_pending = False

    def _bare(self, shot: Snapshot) -> Snapshot:
        """The document without the old text."""
        raise NotImplementedError

    def _writes(self, shot: Snapshot, tip: Callable[[Snapshot], tuple[Edit, int]]) -> bool:
        """Whether this place for a stream follows new content of the answer."""
        bare = self._bare(shot)
        edit, _ = tip(bare)
        return _differs(bare, edited(bare, [edit]))

    def _replaced(self, shot: Snapshot, change: Change) -> Snapshot:
        bare = self._bare(shot)
        return edited(bare, list(change(bare)))


class _NewAnswer(_HeldText):
    """Holds the whole old answer, and the facts for the ledger."""

    def __init__(self, document: Document, ledger: _HeldLedger, agent: str) -> None:
        super().__init__(document)
        self._ledger = ledger
        self._agent = agent

    def _start(self, shot: Snapshot) -> None:
        """Write and record from now on; the calls of the old answer are removed."""
        super()._start(shot)
        answers = shot.exchange.answers[-1:]
        calls = tuple(
            (p.call.id, p.call.arguments)
            for answer in answers
            for p in answer.proposals
            if p.result is None or p.result.status != "refused"
        )
        self._ledger.release(*([Removed(calls)] if answers else []))

    def _bare(self, shot: Snapshot) -> Snapshot:
        return edited(shot, [edits.empty_answer(shot.lines, shot.answer, self._agent)])


class _ContinuedAnswer(_HeldText):
    """Holds the unfinished end of an answer."""

    def __init__(self, document: Document, agent: str) -> None:
        super().__init__(document)
        self._agent = agent

    async def has_text(self) -> bool:
        """Whether the unfinished end has text, and not only a notice."""
        shot = await self._document.read()
        return _differs(self._bare(shot), shot)

    async def _change_around(self, change: Change) -> None:
        """Write the new notice, instead of the old one, and the next question."""

        def keeping(shot: Snapshot) -> list[Edit]:
            changes = list(change(shot))
            return [] if _differs(shot, edited(shot, changes)) else changes

        await self._document.change(keeping)

    def _bare(self, shot: Snapshot) -> Snapshot:
        rest = edited(shot, edits.drop_unfinished(shot.lines, shot.answer))
        return edited(rest, edits.name_answer(rest.answer, self._agent))


def _differs(one: Snapshot, other: Snapshot) -> bool:
    """Whether an answer differs in more than notes."""
    before, now = (
        [s for s in shot.answer.segments if not isinstance(s, Note)] for shot in (one, other)
    )
    return before != now


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
