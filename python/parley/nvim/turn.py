"""One turn in a chat buffer, from its beginning to whatever end: complete, stopped, lost.

Also the engine's observer while it runs. Knows how a turn ends; what is done in it is given to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from parley import engine
from parley.chat.transcript import Proposal
from parley.errors import GoneError, UserCancelled
from parley.models.events import Aside, RateLimits, Usage
from parley.nvim.document import BufferDocument
from parley.nvim.editor import Editor
from parley.nvim.mirror import Mirror
from parley.nvim.view import ChatView
from parley.policy.doubts import Doubt
from parley.policy.plan import waiting

Work: TypeAlias = Callable[["Turn"], Awaitable[engine.End]]


class Chat(Protocol):
    """The side of a chat that its turn needs."""

    editor: Editor
    buf: int
    mirror: Mirror

    def ports(self, document: BufferDocument, observer: engine.Observer) -> engine.Ports:
        """The ports of a turn of this chat."""

    def status(self, text: str, handle: int) -> None:
        """Show what is being done; "" when nothing is."""

    def used(self, what: Usage | RateLimits) -> None:
        """Take note of the tokens of the request that runs."""

    async def draw(self) -> ChatView:
        """Draw what is found in the text that was last looked at."""

    def number(self, view: ChatView, call: Proposal) -> int:
        """The number under which a call is drawn."""


class Turn:
    """A turn that runs at a handle; also the engine's observer in it."""

    def __init__(self, chat: Chat, handle: int, row: int | None) -> None:
        self.chat = chat
        self.handle = handle
        self.document = BufferDocument(chat.editor, chat.mirror, handle, row, self._cancel)
        self.ports = chat.ports(self.document, self)
        self._task: asyncio.Task[Any] | None = None
        self._why: Exception | None = None
        self.ending = False
        self.doubts: tuple[Doubt, ...] = ()
        """Reasons for which a yes was not taken."""
        self.is_drawn = False
        """Whether what is drawn is what the turn has left."""
        self.tick: int | None = None
        """The changedtick of a complete answer; None where the turn has ended otherwise."""

    async def run(self, work: Work) -> None:
        """Do the work, and whatever comes of it leave a valid file and tell the user."""
        self._task = asyncio.current_task()
        try:
            self.chat.status("Analyzing request...", self.handle)
            await self._show(await self._end(work))
        except GoneError as gone:
            self.chat.editor.message(str(gone))
        finally:
            self.chat.status("", self.handle)
            self.document.close()

    async def _end(self, work: Work) -> engine.End:
        try:
            if self._why is not None:  # it came before this had begun
                raise self._why
            return await self._run(work)
        except UserCancelled as cancelled:
            await engine.stopped(self.ports)
            return engine.End("stopped", str(cancelled))

    async def _run(self, work: Work) -> engine.End:
        try:
            return await work(self)
        except asyncio.CancelledError:
            if self._why is None or self._task is None:
                raise
            self._task.uncancel()
            raise self._why from None

    def stop(self) -> None:
        """The user ends it; a notice in the file will say so."""
        self._cancel(UserCancelled())

    def lose(self, why: str) -> None:
        """There is nothing to write to any more."""
        self._cancel(GoneError(why))

    def _cancel(self, why: Exception) -> None:
        if self._why is None and self._task is not None:
            self._task.cancel()
        self._why = why

    async def _show(self, end: engine.End) -> None:
        """Draw the end of the turn, and put the cursor where the user goes on."""
        chat, self.ending = self.chat, True
        if end.kind != "waiting":
            chat.editor.message(end.message, "info" if end.kind in ("nothing", "answered") else "warn")
        shot = await self.document.read()
        view = await chat.draw()
        goes_on = self._doubted(shot, view) if self.doubts else _goes_on(end, shot, view)
        tick = await chat.editor.ask("finish", self.handle, goes_on)
        self.tick = tick if end.kind == "complete" else None
        self.is_drawn = True

    def _doubted(self, shot: engine.Snapshot, view: ChatView) -> dict[str, Any] | None:
        """The place to look at before the next yes: the calls in doubt, as they are drawn now."""
        doubted = [doubt.proposal for doubt in self.doubts]
        calls = [c for c in waiting(shot.answer) if isinstance(c, Proposal) and c in doubted]
        if not calls:
            return None
        first, last = calls[0], calls[-1]
        number = self.chat.number(view, first)
        return {"row": first.span.start, "to_end": False, "reveal": last.span.start, "sighting": number}

    # --- The engine's observer ---

    def status(self, text: str) -> None:
        """Show what is being done; what waited for a choice does not any more."""
        if text:
            self.chat.editor.tell("clear", self.chat.buf)
        self.chat.status(text, self.handle)

    def on_event(self, what: engine.TurnEvent) -> None:
        """Count tokens, and say what the user is to know."""
        match what:
            case Usage() | RateLimits():
                self.chat.used(what)
            case Aside(text):
                self.chat.editor.message(text)
            case _:
                pass


def _goes_on(end: engine.End, shot: engine.Snapshot, view: ChatView) -> dict[str, Any] | None:
    """The place at which the user goes on after a turn; None: wherever the cursor is."""
    if end.kind == "waiting":
        mine = next((calls for exchange, calls in view.waiting() if exchange is shot.exchange), None)
        return {"row": mine[0].span.start, "to_end": False, "reveal": mine[-1].span.start} if mine else None
    below = shot.transcript.exchanges[shot.at + 1 : shot.at + 2]
    if end.kind == "complete" and below and below[0].question and not below[0].question.text:
        return {"row": below[0].question.span.start, "to_end": True}
    return None
