"""Runs one chat's turns: at most one at a time, then a queued question or an early key press.

Knows when a turn begins and ends, but not its work; `turn` knows how a turn ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from parley import engine
from parley.chat.transcript import Transcript
from parley.errors import GoneError, ParleyError
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.chat_ports import chat_ports
from parley.nvim.chat_screen import ChatScreen
from parley.nvim.garbage import collect_garbage, freeze
from parley.nvim.queue import Queue, not_asked
from parley.nvim.start_check import StartCheck
from parley.nvim.topics import TopicWriter
from parley.nvim.turn import Turn, Work
from parley.policy.approval import unclaimed
from parley.policy.choice import exchange_at
from parley.policy.facts import Revoked
from parley.policy.status_texts import ANALYZING


class Turns:
    """A chat's running turn, and the work after it."""

    def __init__(
        self,
        buffer: ChatBuffer,
        screen: ChatScreen,
        check: StartCheck,
        answer: Work,
        before: asyncio.Event | None,
    ) -> None:
        """`answer` is the work for a queued question; `before` is the end of a turn in this file
        whose buffer was closed or reloaded.
        """
        self._buffer = buffer
        self._screen = screen
        self._check = check
        self._answer = answer
        self._before = before
        self._topic = TopicWriter(buffer)
        self._queue = Queue(buffer.editor, buffer.mirror, buffer.buf)
        self._turn: Turn | None = None
        self.task: asyncio.Task[None] | None = None
        """The task of the running or last turn."""
        self._next: tuple[int, Work] | None = None
        """The handle and the work of the turn that begins when the current turn has ended."""
        self._insertions = set[asyncio.Task[None]]()
        """Tasks that put text into a question; a new turn waits for them."""
        self.asks_soon = False
        """Whether a question is being inserted that will then be asked."""

    @property
    def end(self) -> asyncio.Event | None:
        """The event for the running turn's end; None if no turn runs."""
        return None if self._turn is None else self._turn.end

    def running_tools(self, server: str) -> list[str]:
        """The names of a server's tools with a running call in this chat."""
        return self._turn.running_tools(server) if self._turn else []

    def refuse_if_answering(self, shot: engine.Snapshot) -> None:
        """Raises ParleyError if a turn is answering the snapshot's current exchange."""
        turn = self._turn
        if turn is not None and exchange_at(shot.transcript, turn.document.anchor) == shot.at:
            raise ParleyError(
                "this exchange is still being answered: fork it after the turn has ended"
            )

    # --- Beginning and stopping ---

    def ask(self, handle: int, row: int, work: Work, *, is_question: bool) -> None:
        """Continue the exchange at a handle in this row.

        If it `is_question` and is below a running turn, queue it, or remove it from the queue.
        """
        turn = self._turn
        if self.asks_soon and is_question:
            self._buffer.editor.tell("close", handle)
        elif is_question and (self._queue.is_used or (turn is not None and not turn.ending)):
            self._buffer.editor.spawn(self._switch(handle, work))
        else:
            self.start(handle, row, work)

    async def _switch(self, handle: int, work: Work) -> None:
        """Queue a question, or remove it from the queue. If it cannot be queued, start its turn."""
        place = await self._queue.place(handle, self._turn.handle if self._turn else None)
        turn = self._turn  # the turn may have ended during the wait
        if place and place.marks:
            self._queue.remove(place.marks)
            self._buffer.editor.tell("close", handle)
            self._buffer.editor.message("removed from the queue: this question will not be asked")
        elif place and place.is_below and turn and (self._next or not turn.ending):
            self._queue.put(handle, place.up)
            self._buffer.editor.message(
                "question queued: Parley will ask it when the answer above is complete"
            )
        else:
            self.start(handle, None, work)

    def start(self, handle: int, row: int | None, work: Work) -> None:
        """Begin a turn at a handle in this row (None if unknown), unless a turn is running."""
        if self._turn is not None and self._turn.ending and self._next is None:
            self._next = handle, work  # the old turn makes no more changes: start right after it
        elif self._turn is not None:
            self._buffer.editor.message(
                "a turn is running in this chat; :ParleyStop ends it", "warn"
            )
            self._buffer.editor.tell("close", handle)
        else:
            self._screen.tokens.next_turn()
            ports = partial(chat_ports, self._buffer, self._screen)
            self._turn = Turn(
                self._buffer, self._screen, ports, handle, row, lambda: self._next is not None
            )
            self.task = self._buffer.editor.spawn(self._run(self._turn, work))

    def stop(self) -> None:
        """End the running turn, and empty the queue."""
        if self._turn is None:
            self._buffer.editor.spawn(self.empty_queue("nothing is running in this chat"))
        elif self._turn.ending:
            self._turn.kind = "stopped"  # so that the queue does not continue
        else:
            self._turn.stop()

    def lose(self, handle: int, why: str) -> None:
        """End a turn whose buffer or answer is gone."""
        if self._turn is not None and self._turn.handle == handle:
            self._turn.lose(why)

    def insert(self, work: Coroutine[Any, Any, None]) -> None:
        """Put text into a question; turns that are requested in the meantime wait for this."""
        task = self._buffer.editor.spawn(work)
        self._insertions.add(task)
        task.add_done_callback(self._insertions.discard)

    async def empty_queue(self, otherwise: str = "") -> None:
        """Report how many queued questions were not asked; if none, `otherwise`."""
        in_vain = not_asked(await self._queue.clear())
        self._buffer.editor.message(in_vain or otherwise, "warn" if in_vain else "info")

    # --- One turn after the other ---

    async def _run(self, turn: Turn, work: Work) -> None:
        try:
            try:
                await turn.run(partial(self._begin, work))
            finally:
                await self._follow(turn)
        finally:
            self._turn = None
            turn.end.set()
            following, self._next = self._next, None
            if following is not None:
                self.start(following[0], None, following[1])
        if not turn.is_drawn:
            await self.refresh()
        collect_garbage()  # at this point, no caller waits
        self._check.ask_to_confirm()
        if turn.tick is not None and await self._topic.find(
            turn.tick, turn.document.anchor, lambda: self._turn is not None
        ):
            await self.refresh()

    async def _begin(self, work: Work, turn: Turn) -> engine.End:
        """Begin the work when an earlier turn in this file, and all insertions, have ended."""
        if self._before is not None:
            await self._before.wait()
            self._screen.status(ANALYZING, turn.handle)  # the earlier turn's end removed the status
        if self._insertions:
            await asyncio.wait(self._insertions)
        return await work(turn)

    async def run_loop(self, turn: Turn, resolve: engine.Resolve) -> engine.End:
        """Run the engine's loop in a turn. Then fill in an empty topic from the first answer."""
        end = await engine.run_turn(turn.ports, resolve)
        if end.kind == "complete":
            await self._topic.fill(turn.document, turn.handle)
        return end

    async def _follow(self, turn: Turn) -> None:
        """Ask the next queued question after a turn, unless calls are waiting.

        Removing a question from the queue involves waiting for the editor. If the user asks during
        that wait, the question is put back into the queue; if the user stops, the question is
        reported as not asked.
        """
        handle = await self._queue.take() if turn.kind == "complete" and not self._next else None
        if handle is not None and (self._next or turn.kind != "complete"):
            self._queue.put(handle)
        elif handle is not None:
            self._next = handle, self._answer
        if turn.kind in ("stopped", "interrupted") or not (
            turn.kind == "complete" or self._screen.has_waiting_calls
        ):
            await self.empty_queue()

    # --- Between turns ---

    async def refresh(self) -> None:
        """Read and draw the buffer; during a turn, this happens when the turn ends."""
        try:
            transcript = await self._buffer.look()
        except GoneError:
            return  # the user has closed the buffer
        if self._turn is not None:
            return
        self._check.note(transcript)
        self._revoke_undone(transcript)
        await self._screen.draw()
        self._buffer.app.prepare(transcript, self._buffer.chosen)
        freeze()  # later collections skip the parsed chat

    def _revoke_undone(self, transcript: Transcript) -> None:
        """Revoke approvals whose marks are no longer in the file."""
        ledger = self._buffer.app.ledger(self._buffer.path)
        if undone := unclaimed(transcript, ledger.view()):
            ledger.record(Revoked(tuple(undone)))
