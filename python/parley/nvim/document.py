"""A chat in a buffer, as the engine's document.

Edits are computed for the text that is known here. If the buffer has changed, Lua does not apply
the edits, and they are computed again. Knows the buffer by a handle in Lua, whose marks move with
the text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

from parley.chat.edits import BELOW_TIP, Edit
from parley.chat.grammar import marker_of
from parley.engine import REMOVED, Change, Snapshot
from parley.errors import GoneError
from parley.frozen import frozen
from parley.nvim.editor import LATER_S, Editor
from parley.nvim.mirror import UNKNOWN_TICK, BufferText, Mirror
from parley.nvim.stream import STARTS, BufferStream, pieces
from parley.policy.choice import exchange_at

Tip: TypeAlias = Callable[[Snapshot], tuple[Edit, int]]


@frozen
class _Plan:
    """The edits that some changes make to a text, in their order, and the text after them."""

    before: BufferText
    row: int
    """The current row before the edits."""
    after: BufferText
    anchor: int
    """The current row after the edits."""
    edits: tuple[Edit, ...] = ()

    @classmethod
    def of(cls, text: BufferText, row: int, changes: Iterable[Change] = ()) -> _Plan:
        """The edits that these changes make, each to the text after the changes before it."""
        plan = cls(text, row, text, row)
        for change in changes:
            plan = plan.then(change(plan.shot))
        return plan

    def then(self, edits: Iterable[Edit]) -> _Plan:
        """The plan with further edits."""
        made = trimmed(self.after.lines, edits)
        shift = sum(len(e.lines) - (e.end - e.start) for e in made if e.end <= self.anchor)
        after, anchor = self.after.edited(made), self.anchor + shift
        return _Plan(self.before, self.row, after, anchor, (*self.edits, *made))

    @property
    def shot(self) -> Snapshot:
        """The text after the edits."""
        return self.after.shot(self.anchor)


class _Begun:
    """Changes that have begun and are not sent yet: they will be sent together."""

    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self.changes = list[Change]()
        self.tip: Tip | None = None
        """If set, these changes open a stream."""
        self.first = ""
        """The stream's first text."""

    def add(self, change: Change) -> None:
        self.plan = self.plan.then(change(self.plan.shot))
        self.changes.append(change)


class BufferDocument:
    """The chat at a handle; call `close` when the turn has ended."""

    def __init__(
        self,
        editor: Editor,
        mirror: Mirror,
        handle: int,
        row: int | None = None,
        on_failure: Callable[[Exception], None] = lambda _: None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """`row` is the handle's row in the mirror's text; None if unknown.

        `on_failure` receives the reason if a change that has begun fails and no caller waits for
        it; `on_change` is called when edits are in the buffer.
        """
        self._editor = editor
        self._on_failure = on_failure
        self._on_change = on_change
        self._mirror = mirror
        self._handle = handle
        self._anchor = row or 0
        self._tick = UNKNOWN_TICK if row is None else mirror.tick
        """The changedtick of the text for which the anchor is valid."""
        self._is_pinned = False
        self._stream = BufferStream(editor, handle, mirror)
        self._ahead: _Plan | None = None
        """The text as it will be after all begun work."""
        self._unsent: _Begun | None = None
        self._work: asyncio.Task[None] | None = None
        self._waiting = 0
        self._hurry = asyncio.Event()
        """Set while a caller waits for the begun change."""
        self._beginning = asyncio.Lock()

    async def read(self) -> Snapshot:
        """The document as it is now, including all begun changes; Neovim sends only changed lines.

        From the first call on, a mark in Lua tracks the current answer, wherever it moves.
        """
        shot = await self.look()
        if not self._ahead and not self._is_pinned and (row := answer_row(shot)) is not None:
            self._editor.tell("pin", self._handle, self._mirror.tick, row)
        return shot

    async def look(self) -> Snapshot:
        """The document as it is now, without tracking an answer."""
        if self._work and self._work.done():
            await self._finish()
        return self._ahead.shot if self._ahead else await self._look()

    async def change(self, change: Change) -> None:
        """Apply the edits that `change` returns for the buffer's current text."""
        await self.settle()  # a stopped turn did not wait for its changes
        await self._look(may_be_old=True)
        begun = _Begun(_Plan.of(self._mirror.text, self._anchor))
        begun.add(change)
        await self._write(begun)

    async def begin(self, change: Change) -> None:
        """Begin a change: from now on, reads include it, and later writes follow it."""
        async with self._beginning:  # concurrent calls begin changes concurrently
            await self.look()
            begun = self._unsent or _Begun(self._next_plan())
            begun.add(change)
            self._begin(begun)

    async def open_stream(self, tip: Tip, text: str = "") -> None:
        """Begin an edit; `append` writes at the line that the edit specifies, after `text`."""
        if not self._work:
            await self._stream.settle()
        await self.look()
        first, *rest = pieces(text) or [""]
        begun = self._unsent or _Begun(self._next_plan())
        begun.tip, begun.first = tip, first
        self._begin(begun)
        self._stream.wait_for(self._finish)
        if text:
            self._hurry.set()
        for piece in rest:
            self._stream.append(piece)

    async def append(self, text: str) -> None:
        """Write text at the stream's end soon."""
        self._stream.append(text)

    async def settle(self) -> None:
        """Return when every begun or appended change is in the buffer."""
        await self._finish()
        await self._stream.settle()

    def move(self, row: int) -> None:
        """Make the exchange at another row the current exchange."""
        self._anchor = row
        self._editor.tell("move", self._handle, row)

    @property
    def anchor(self) -> int:
        """A row in the current exchange, in the text that Neovim last reported."""
        return self._anchor

    def close(self) -> None:
        """Stop writing, and close the handle."""
        self._stream.close()
        if self._work:
            self._work.cancel()
        self._editor.tell("close", self._handle)

    def _next_plan(self) -> _Plan:
        """A plan without edits, for the text after all begun work."""
        ahead = self._ahead
        return _Plan.of(
            *(ahead.after, ahead.anchor) if ahead else (self._mirror.text, self._anchor)
        )

    def _begin(self, begun: _Begun) -> None:
        """Begin these changes, or wait for more if they have begun. None can follow a stream's
        place.
        """
        is_new = begun is not self._unsent
        self._ahead, self._unsent = begun.plan, None if begun.tip else begun
        if is_new:
            self._work = self._editor.loop.create_task(self._write_soon(begun, self._work))
            self._work.add_done_callback(self._ended)

    async def _write_soon(self, begun: _Begun, before: asyncio.Task[None] | None) -> None:
        if before:
            await before
        else:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), LATER_S)
        if self._unsent is begun:
            self._unsent = None
        await self._write(begun)

    async def _finish(self) -> None:
        """Wait for all begun changes."""
        self._hurry.set()
        while self._work:
            work = self._work
            self._waiting += 1
            try:
                await asyncio.shield(work)  # this task may be cancelled, but the change must finish
            finally:
                self._waiting -= 1
            if work is self._work:
                self._ahead = self._work = None
        self._hurry.clear()

    def _ended(self, work: asyncio.Task[None]) -> None:
        """If nothing waits for this work, report its failure, or let the stream begin."""
        if work is not self._work or self._waiting or work.cancelled():
            return
        failure = work.exception()
        if failure is None:
            self._ahead = self._work = None
            self._hurry.clear()
            self._stream.begin()
        elif isinstance(failure, Exception):
            self._on_failure(failure)

    async def _look(self, *, may_be_old: bool = False) -> Snapshot:
        mirror = self._mirror
        is_known = mirror.is_known if may_be_old else mirror.is_current
        if not is_known or mirror.tick != self._tick:
            await self._ask(self._receive, "read", self._handle, mirror.tick)
            if mirror.tick == UNKNOWN_TICK:
                await self._ask(self._receive, "read", self._handle, UNKNOWN_TICK)
            shot = mirror.text.shot(self._anchor)
            if self._is_pinned and answer_row(shot) != self._anchor:
                raise GoneError(REMOVED)
            return shot
        return mirror.text.shot(self._anchor)

    async def _write(self, begun: _Begun) -> None:
        plan, tip, first = begun.plan, begun.tip, begun.first
        while True:
            await self._look(may_be_old=True)
            text = self._mirror.text
            if text is not plan.before or self._anchor != plan.row:
                plan = _Plan.of(text, self._anchor, begun.changes)
            if tip is None:
                if await self._is_written(plan):
                    return
                continue
            first = first or self._stream.take()
            edit, row = _with_text(*tip(plan.shot), first)
            self._stream.reset(f"{text.line_end}\n", is_fresh=not first or first.endswith("\n"))
            more = BELOW_TIP + text.line_end
            if await self._is_applied("open_stream", plan.then([edit]), row, STARTS, more):
                return

    async def _is_written(self, plan: _Plan) -> bool:
        if plan.edits:
            return await self._is_applied("apply", plan, STARTS)
        return (await self._look()).lines is plan.before.lines

    async def _is_applied(self, how: str, plan: _Plan, *more: Any) -> bool:
        """Apply edits; if the text had changed, return False; the new text is then known."""
        answer = None if self._is_pinned else answer_row(plan.shot)

        def on_reply(reply: dict[str, Any]) -> None:
            if reply.get("applied"):
                self._mirror.put(reply["tick"], plan.after)
                self._anchor, self._tick = reply["anchor"], reply["tick"]
                self._is_pinned = self._is_pinned or answer is not None
                self._on_change()
            else:
                self._receive(reply)

        changes = as_tables(plan.edits, plan.before.line_end)
        reply = await self._ask(on_reply, how, self._handle, self._tick, changes, answer, *more)
        return bool(reply.get("applied"))

    def _receive(self, reply: dict[str, Any]) -> None:
        if "gone" not in reply:
            self._mirror.take(reply["change"])
            self._anchor, self._tick = reply["anchor"], self._mirror.tick
            self._is_pinned = reply["pinned"]

    async def _ask(self, on_reply: Callable[[Any], None], *question: Any) -> dict[str, Any]:
        return checked(await self._editor.ask(*question, on_reply=on_reply))


def _with_text(edit: Edit, row: int, text: str) -> tuple[Edit, int]:
    """The edit with a text on its empty line at this row, and the row of the text's last line."""
    at, lines = row - edit.start, text.split("\n")
    return replace(edit, lines=(*edit.lines[:at], *lines, *edit.lines[at + 1 :])), (
        row + len(lines) - 1
    )


def checked(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply from Lua. Raises GoneError if the buffer or the answer is gone."""
    if "gone" in reply:
        raise GoneError(reply["gone"])
    return reply


def answer_row(shot: Snapshot) -> int | None:
    """The row of the current answer; None if there is no answer yet."""
    at = exchange_at(shot.transcript, shot.anchor)
    answers = shot.transcript.exchanges[at].answers if at is not None else ()
    return answers[-1].span.start if answers else None


def trimmed(lines: list[str], edits: Iterable[Edit]) -> list[Edit]:
    """The edits from the bottom up, without unchanged lines, so that marks in those lines stay."""
    parts = (part for edit in edits for part in _parts(lines, edit))
    ordered = sorted(parts, key=lambda e: (e.start, e.end), reverse=True)
    return [small for edit in ordered if (small := _trimmed(lines, edit))]


def _parts(lines: list[str], edit: Edit) -> list[Edit]:
    """If an edit begins with an answer's marker line, split the edit below that line.

    If an edit covers a single line, Lua replaces only the changed part, so the answer's mark stays.
    """
    start, end, new = edit.start, edit.end, edit.lines
    heads = [marker_of(line) for line in (*lines[start : min(start + 1, end)], *new[:1])]
    if len(heads) < 2 or not all(head and head[0] == "answer" for head in heads):
        return [edit]
    return [Edit(start, start + 1, new[:1]), Edit(start + 1, end, new[1:])]


def _trimmed(lines: list[str], edit: Edit) -> Edit | None:
    start, end, new = edit.start, edit.end, edit.lines
    head = 0
    while head < len(new) and start + head < end and lines[start + head] == new[head]:
        head += 1
    tail = 0
    while (
        tail < len(new) - head
        and end - tail > start + head
        and lines[end - tail - 1] == new[-tail - 1]
    ):
        tail += 1
    small = Edit(start + head, end - tail, new[head : len(new) - tail])
    return small if small.lines or small.end > small.start else None


def as_tables(edits: Sequence[Edit], line_end: str) -> list[dict[str, Any]]:
    """Edits in the form that Lua expects."""
    return [
        {"start": e.start, "stop": e.end, "lines": [line + line_end for line in e.lines]}
        for e in edits
    ]
