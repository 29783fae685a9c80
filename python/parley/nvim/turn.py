"""One turn in a chat buffer, from its beginning to its end: complete, stopped, lost.

Also the engine's observer while it runs. Knows how a turn ends; its work is passed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from parley import engine
from parley.chat.rounds import read_notice
from parley.chat.transcript import Broken, Note, Proposal, Transcript
from parley.display.view import ChatView
from parley.errors import GoneError, UserCancelled
from parley.models.events import Aside, RateLimits, Usage
from parley.nvim.announcements import announcement, reminder, title
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.chat_screen import ChatScreen
from parley.nvim.document import BufferDocument
from parley.nvim.editor import LATER_S
from parley.nvim.running import RunningCalls
from parley.policy.choice import exchange_at, open_calls
from parley.policy.doubts import Doubt
from parley.policy.plan import waiting
from parley.policy.status_texts import ANALYZING, waiting_for
from parley.runtime.app_instructions import ProjectInstructions

_EVENTS: Mapping[engine.EndKind, str] = {
    "complete": "ParleyAnswered",
    "stopped": "ParleyStopped",
    "interrupted": "ParleyStopped",
}
"""The event of each end; waiting calls have their own event."""
_GOOD = ("complete", "waiting", "nothing", "answered")

Work: TypeAlias = Callable[["Turn"], Awaitable[engine.End]]


class Turn:
    """A turn at a handle; also its engine's observer."""

    def __init__(
        self,
        buffer: ChatBuffer,
        screen: ChatScreen,
        ports: Callable[[BufferDocument, engine.Observer], engine.Ports],
        handle: int,
        row: int | None,
        is_followed: Callable[[], bool],
    ) -> None:
        """`row` is the handle's row, None if unknown; `is_followed` returns whether another turn
        begins at the end of this turn.
        """
        self.buffer = buffer
        self.screen = screen
        self.handle = handle
        self._editor = buffer.editor
        self._is_followed = is_followed
        self.document = BufferDocument(
            self._editor, buffer.mirror, handle, row, self._cancel, self._redraw_calls
        )
        self.ports = ports(self.document, self)
        self._task: asyncio.Task[Any] | None = None
        self._why: Exception | None = None
        self._running = RunningCalls(self._editor.loop.time)
        self._facts = list[dict[str, Any]]()
        """Facts about calls to send to Neovim soon."""
        self._has_calls = False
        self._due: asyncio.TimerHandle | None = None
        """The next drawing of the calls."""
        self.ending = False
        self._awaits_servers = False
        self.has_answer = True
        """Whether there is an answer that a stop leaves unfinished."""
        self.doubts: tuple[Doubt, ...] = ()
        """The reasons why approvals were not accepted."""
        self.agent = ""
        """The name of the agent that answers, when that is known."""
        self.is_question = False
        """Whether the user asked for the turn without a decision."""
        self.instructions: ProjectInstructions | None = None
        """The project's instructions when the turn began; None if the user was not asked about
        them.
        """
        self.has_begun = False
        """Whether the turn did any work."""
        self.kind: engine.EndKind = "stopped"
        """The end of the turn."""
        self.is_drawn = False
        """Whether the drawing shows the turn's final text."""
        self.tick: int | None = None
        """The changedtick of a complete answer; None after any other end."""
        self.end = asyncio.Event()
        """Set when no part of the turn is running any more."""

    async def run(self, work: Work) -> None:
        """Do the work; however it ends, leave a valid file and tell the user."""
        self._task = asyncio.current_task()
        try:
            self.screen.status(ANALYZING, self.handle)
            await self._show(await self._end(work))
        except GoneError as gone:
            if not self._is_followed():
                self._announce(engine.End("stopped", str(gone)), self.buffer.transcript, 0)
        finally:
            self.screen.status("", self.handle)
            self._reload_files(at_end=True)
            if self._has_calls:
                self._tell_calls()
                self._editor.tell("calls_end", self.buffer.buf)
            self.document.close()

    async def _end(self, work: Work) -> engine.End:
        try:
            if self._why is not None:  # stopped before it began
                raise self._why
            return await self._run(work)
        except UserCancelled:
            if self.has_answer:
                await engine.stopped(self.ports)
            return engine.remark_on_old_answer(
                self.ports, engine.End("stopped", "stopped by the user")
            )

    async def _run(self, work: Work) -> engine.End:
        try:
            return await work(self)
        except asyncio.CancelledError:
            if self._why is None or self._task is None:
                raise
            self._task.uncancel()
            raise self._why from None

    def running_tools(self, server: str) -> list[str]:
        """The names of a server's running tools."""
        return self._running.tools(server)

    def stop(self) -> None:
        """End the turn, with a notice in the file, or proceed without the servers that are still
        starting.
        """
        if self._awaits_servers and not self._open_calls():
            self.ports.tools.go_without()
            return
        self.has_answer = self.has_answer and not self._awaits_servers  # waiting calls stay
        self._cancel(UserCancelled())

    def _open_calls(self) -> bool:
        """Whether calls are waiting in the current exchange: they need their servers."""
        transcript = self.buffer.transcript
        at = exchange_at(transcript, self.document.anchor)
        return at is not None and bool(open_calls(transcript.exchanges[at]))

    def lose(self, why: str) -> None:
        """The buffer or the answer is gone: end the turn."""
        self.ending = True
        self._cancel(GoneError(why))

    def _cancel(self, why: Exception) -> None:
        if self._why is None and self._task is not None:
            self._task.cancel()
        self._why = why

    async def _show(self, end: engine.End) -> None:
        """Draw the end of the turn, and put the cursor where the user continues."""
        self.ending, self.kind = True, end.kind
        shot = await self.document.read()
        view = await self.screen.draw()
        goes_on = self._doubted(shot, view) if self.doubts else _goes_on(end, shot, view)
        end, goes_on = self._reminder(end, shot, view) or (end, goes_on)
        calls = sum(len(calls) for _, calls in view.waiting())
        self._announce(end, shot.transcript, calls)
        tick = await self._editor.ask("finish", self.handle, goes_on)
        self.tick = tick if end.kind == "complete" else None
        self.is_drawn = True

    def _reminder(
        self, end: engine.End, shot: engine.Snapshot, view: ChatView
    ) -> tuple[engine.End, dict[str, Any]] | None:
        """The message and the cursor's new place if the user asks when only a decision helps."""
        calls = [
            calls
            for exchange, calls in view.waiting()
            if end.kind == "nothing" or exchange is shot.exchange
        ]
        is_unasked = end.kind == "nothing" and not (
            shot.exchange.question and shot.exchange.question.text
        )
        if (
            not calls
            or self.has_begun
            or not self.is_question
            or not (is_unasked or end.kind == "waiting")
        ):
            return None
        end = engine.End("waiting", reminder(len(calls[-1]), self.buffer.app.settings.keys))
        return end, _calls(calls[-1]) | {"stays": True}

    def _announce(self, end: engine.End, transcript: Transcript, calls: int) -> None:
        """Announce the end of the turn: to listeners and on the screen, in different words if the
        chat is out of view.
        """
        buffer = self.buffer
        unseen = announcement(end, calls, title(transcript, buffer.name))
        facts = {
            "event": _EVENTS.get(end.kind, ""),
            "agent": self.agent or buffer.agent.name,
            "why": end.message,
            "seen": end.message,
            "unseen": unseen if buffer.app.settings.status.notify else end.message,
            "level": "info" if end.kind in _GOOD else "warn",
        }
        self.screen.status("", self.handle)
        self._editor.tell("ended", buffer.buf, facts)

    def _doubted(self, shot: engine.Snapshot, view: ChatView) -> dict[str, Any] | None:
        """The place to look at before the next approval: the calls in doubt, as drawn now."""
        doubted = [doubt.proposal for doubt in self.doubts]
        calls = [c for c in waiting(shot.answer) if isinstance(c, Proposal) and c in doubted]
        if not calls:
            return None
        first, last = calls[0], calls[-1]
        numbers = [self.screen.number(view, call) for call in calls]
        return {
            "row": first.span.start,
            "to_end": False,
            "reveal": last.span.start,
            "sightings": numbers,
        }

    # --- The engine's observer ---

    def status(self, text: str) -> None:
        """Show the status; no call is waiting for a choice any more."""
        self._reload_files()
        if text:
            self.has_begun = True
            self.screen.waits(0)
            self._editor.tell("clear", self.buffer.buf)
        self.screen.status(text, self.handle)

    def on_event(self, what: engine.TurnEvent) -> None:
        """Count tokens, and tell the user about notable events."""
        match what:
            case Usage() | RateLimits():
                self.screen.used(what)
            case Aside(text):
                self._editor.message(text)
            case engine.MissingTools() if self.is_question:
                self._editor.message(what.message)
            case engine.ServerWait(servers):
                self._awaits_servers = bool(servers)
                self.screen.status(self._wait_text(servers) if servers else ANALYZING, self.handle)
            case engine.CallBegan() | engine.CallEnded() | engine.CallRefused():
                self._has_calls = True
                self._facts += self._running.facts(what)
                self._redraw_calls()
            case engine.TaskBegan():
                self._editor.spawn(self._keep())
            case engine.CallProgress():
                self._facts += self._running.facts(what)
                if not self._due:  # otherwise after the call's beginning
                    self._tell_facts()
            case _:
                pass

    async def _keep(self) -> None:
        """Save the chat if it is in the chat folder: it now contains a task's id, and the task
        continues even without Neovim.
        """
        with suppress(GoneError):
            await self.document.settle()
            self._editor.tell("keep", self.buffer.buf)

    def _wait_text(self, servers: Sequence[str]) -> str:
        """The status while servers start, with the key that asks without these servers if no call
        needs them.
        """
        if self._open_calls():
            return waiting_for(servers)
        key, them = (
            self.buffer.app.settings.keys.stop or ":ParleyStop",
            "it" if len(servers) == 1 else "them",
        )
        return f"{waiting_for(servers)} ({key} asks without {them})"

    def _reload_files(self, *, at_end: bool = False) -> None:
        """Reload the buffers of changed files, once for all calls of a step."""
        if self._running.take_changes(at_end=at_end):
            self._editor.tell("reload")

    def _redraw_calls(self) -> None:
        """Draw this answer's calls soon, only once for changes that follow each other at once."""
        if self._has_calls and not self._due:
            self._due = self._editor.loop.call_later(LATER_S, self._tell_calls)

    def _tell_calls(self) -> None:
        if self._due:
            self._due.cancel()
        self._due = None
        calls = [] if self.is_drawn else self.screen.draw_calls(self.document.anchor)
        waiting = [call.id for call in calls if call.id not in self._running]
        self._facts = [*({"id": name, "state": "waiting"} for name in waiting), *self._facts]
        self._tell_facts()
        self._editor.tell_now()  # this has waited already

    def _tell_facts(self) -> None:
        facts, self._facts = self._facts, []
        for fact in facts:
            self._editor.tell("call", self.buffer.buf, fact)


def _goes_on(end: engine.End, shot: engine.Snapshot, view: ChatView) -> dict[str, Any] | None:
    """The place where the user continues after a turn; None if the cursor should stay."""
    if end.kind == "waiting":
        mine = next(
            (calls for exchange, calls in view.waiting() if exchange is shot.exchange), None
        )
        return _calls(mine) if mine else None
    below = shot.transcript.exchanges[shot.at + 1 : shot.at + 2]
    question = below[0].question if below else None
    if end.kind not in ("complete", "stopped", "interrupted"):
        return None
    if question and not question.text:
        return {"row": question.span.start, "to_end": True}
    if end.kind == "complete":
        return None
    last = shot.exchange.answers[-1].segments[-1:] if shot.exchange.answers else ()
    match last:
        case (Note() as note,) if read_notice(note):
            end_row = question.span.start if question else note.span.start
            return {"row": note.span.start, "to_end": False, "reveal": end_row}
        case _:
            return None


def _calls(calls: Sequence[Proposal | Broken]) -> dict[str, Any]:
    """The first of some calls, as the place for the cursor; the last call is shown, too."""
    return {"row": calls[0].span.start, "to_end": False, "reveal": calls[-1].span.start}
