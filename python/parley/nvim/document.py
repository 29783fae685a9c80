"""A chat in a buffer, as the engine's document.

Edits are computed for the text that is known here. If the buffer has changed, Lua does not apply
the edits, and they are computed again. Knows the buffer by a handle in Lua, whose marks move with
the text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from parley.chat.edits import BELOW_TIP, Edit
from parley.chat.grammar import marker_of
from parley.engine import REMOVED, Change, Snapshot
from parley.errors import GoneError
from parley.nvim.editor import LATER_S, Editor
from parley.nvim.mirror import UNKNOWN_TICK, BufferText, Mirror
from parley.nvim.stream import STARTS, BufferStream, pieces
from parley.policy.choice import exchange_at


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
        self._ahead: tuple[BufferText, Snapshot] | None = None
        """The text and the snapshot as they will be after all begun work."""
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
        return self._ahead[1] if self._ahead else await self._look()

    async def change(self, change: Change) -> None:
        """Apply the edits that `change` returns for the buffer's current text."""
        await self.settle()  # a stopped turn did not wait for its changes
        await self._change(change)

    async def begin(self, change: Change) -> None:
        """Begin a change: from now on, reads include it, and later writes follow it."""
        async with self._beginning:  # concurrent calls begin changes concurrently
            shot = await self.look()
            text = self._ahead[0] if self._ahead else self._mirror.text
            after, anchor = _edited(text, shot.anchor, trimmed(shot.lines, change(shot)))
            self._begin((after, after.shot(anchor)), lambda: self._change(change))

    async def open_stream(
        self, tip: Callable[[Snapshot], tuple[Edit, int]], text: str = ""
    ) -> None:
        """Begin an edit; `append` writes at the line that the edit specifies, after `text`."""
        if not self._work:
            await self._stream.settle()
        shot = await self.look()
        first, *rest = pieces(text) or [""]
        self._begin(self._ahead or (self._mirror.text, shot), lambda: self._open(tip, first))
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

    def _begin(
        self, ahead: tuple[BufferText, Snapshot], work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        before = self._work

        async def begun() -> None:
            if before:
                await before
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), LATER_S)
            await work()

        self._ahead, self._work = ahead, self._editor.loop.create_task(begun())
        self._work.add_done_callback(self._ended)

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
        failure = None if work.cancelled() else work.exception()
        if isinstance(failure, Exception) and work is self._work and not self._waiting:
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

    async def _change(self, change: Change) -> None:
        while True:
            shot = await self._look(may_be_old=True)
            text = self._mirror.text
            edits = trimmed(shot.lines, change(shot))
            if edits:
                if await self._is_applied("apply", text, edits, STARTS):
                    return
            elif (await self._look()).lines is shot.lines:
                return

    async def _open(self, tip: Callable[[Snapshot], tuple[Edit, int]], first: str) -> None:
        while True:
            shot = await self._look(may_be_old=True)
            text, first = self._mirror.text, first or self._stream.take()
            edit, row = _with_text(*tip(shot), first)
            self._stream.reset(f"{text.line_end}\n", is_fresh=not first or first.endswith("\n"))
            more = BELOW_TIP + text.line_end
            if await self._is_applied(
                "open_stream", text, trimmed(shot.lines, [edit]), row, STARTS, more
            ):
                return

    async def _is_applied(self, how: str, text: BufferText, edits: list[Edit], *more: Any) -> bool:
        """Apply edits; if the text had changed, return False; the new text is then known."""
        after, anchor = _edited(text, self._anchor, edits)
        answer = None if self._is_pinned else answer_row(after.shot(anchor))

        def on_reply(reply: dict[str, Any]) -> None:
            if reply.get("applied"):
                self._mirror.put(reply["tick"], after)
                self._anchor, self._tick = reply["anchor"], reply["tick"]
                self._is_pinned = self._is_pinned or answer is not None
                self._on_change()
            else:
                self._receive(reply)

        changes = as_tables(edits, text.line_end)
        reply = await self._ask(on_reply, how, self._handle, self._tick, changes, answer, *more)
        return bool(reply.get("applied"))

    def _receive(self, reply: dict[str, Any]) -> None:
        if "gone" not in reply:
            self._mirror.take(reply["change"])
            self._anchor, self._tick = reply["anchor"], self._mirror.tick
            self._is_pinned = reply["pinned"]

    async def _ask(self, on_reply: Callable[[Any], None], *question: Any) -> dict[str, Any]:
        return checked(await self._editor.ask(*question, on_reply=on_reply))


def _edited(text: BufferText, anchor: int, edits: list[Edit]) -> tuple[BufferText, int]:
    """The text after the edits, and the new place of the current line."""
    shift = sum(len(e.lines) - (e.end - e.start) for e in edits if e.end <= anchor)
    return text.edited(edits), anchor + shift


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


def as_tables(edits: list[Edit], line_end: str) -> list[dict[str, Any]]:
    """Edits in the form that Lua expects."""
    return [
        {"start": e.start, "stop": e.end, "lines": [line + line_end for line in e.lines]}
        for e in edits
    ]
