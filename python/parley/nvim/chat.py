"""The user's commands in one chat: ask, decide, compact, choose an agent.

Knows what each command does; `turns` knows when a command runs, `chat_screen` knows what is shown,
and the engine knows how a turn proceeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from parley import engine
from parley.chat.edits import Edit, content_end
from parley.chat.front_matter import read_front_matter
from parley.chat.head import put_value
from parley.chat.transcript import Choice
from parley.errors import ParleyError
from parley.nvim.announcements import key_name
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.chat_ports import chat_ports
from parley.nvim.chat_screen import ChatScreen
from parley.nvim.mirror import UNKNOWN_TICK
from parley.nvim.prompt_insertion import PromptInsertion
from parley.nvim.start_check import StartCheck
from parley.nvim.tokens import Tokens
from parley.nvim.trust_dialog import TrustDialog
from parley.nvim.turn import Turn
from parley.nvim.turns import Turns
from parley.policy.approval import Rule
from parley.policy.choice import answered_at, continued_at, open_calls
from parley.settings.readiness import has_question

UNSAVED = "save this chat first (:w): choices are recorded for a file"


class Chat:
    """A chat, and its commands."""

    def __init__(
        self,
        buffer: ChatBuffer,
        trust: TrustDialog,
        prompts: PromptInsertion,
        before: asyncio.Event | None = None,
    ) -> None:
        """`before` is the end of an earlier turn in this file; its buffer was closed or
        reloaded.
        """
        self.buffer = buffer
        self.screen = ChatScreen(buffer)
        self.check = StartCheck(buffer)
        self.turns = Turns(buffer, self.screen, self.check, self._continuation, before)
        self._trust = trust
        self._prompts = prompts
        self._is_from_afar = False
        """Whether the last key only warned that it decides several calls from outside their
        lines.
        """

    # --- Commands of the user ---

    def forget(self) -> None:
        """Forget the text of a closed chat, which has no turn any more."""
        self.buffer.mirror.forget()
        self.screen.tokens = Tokens()

    def respond(self, handle: int, row: int) -> None:
        """Continue the exchange at a handle in this row, or queue its question if it is below a
        running turn.

        A queued question is removed from the queue.
        """
        self.turns.ask(handle, row, self._continuation, is_question=True)

    def regenerate(self, handle: int, row: int, agent: str) -> None:
        """Regenerate the answer at a handle in this row, with this agent ("" for the chat's)."""

        async def work(turn: Turn) -> engine.End:
            if (shot := await self._chat_with_question(turn)) is None:
                return engine.End("nothing", engine.NOTHING_ASKED)
            await _go_to(turn, shot, answered_at(shot.transcript, shot.at))
            shot = await turn.document.read()
            chosen = agent or self.buffer.chosen
            if (refusal := self.check.refusal(shot.transcript, chosen)) is not None:
                return engine.End("nothing", refusal)
            self.buffer.once = agent or None
            turn.agent = self.buffer.app.agent_name(shot.transcript, chosen)
            turn.ports = engine.regenerating(turn.ports, turn.agent)
            await self.buffer.app.models.prepare(shot.transcript, chosen, is_new=True)
            resolve = self.buffer.resolve_for(shot, chosen, turn.instructions, is_new=True)
            return await self.turns.run_loop(turn, resolve)

        self.turns.ask(handle, row, work, is_question=False)

    async def _continuation(self, turn: Turn) -> engine.End:
        """The work for a question: put the prompt that it names into it, and continue its
        exchange.
        """
        if await self._chat_with_question(turn) is None:
            return engine.End("nothing", engine.NOTHING_ASKED)
        if end := await self._prompts.expand(self, turn.document):
            return end
        shot = await turn.document.look()
        shot = await _go_to(turn, shot, continued_at(shot.transcript, shot.at))
        return await self._go_on(turn, shot)

    async def _chat_with_question(self, turn: Turn) -> engine.Snapshot | None:
        """The chat in which the user has asked; None if it contains no question."""
        turn.is_question = True
        if not has_question((await turn.document.look()).transcript):
            return None
        turn.instructions = await self._trust.settle_for(self.buffer)
        return await turn.document.look()

    async def _go_on(self, turn: Turn, shot: engine.Snapshot) -> engine.End:
        """Run the loop with the current answer's agent, if the turn may begin."""
        chosen = self.buffer.chosen_for(shot)
        if (refusal := self.check.refusal(shot.transcript, chosen)) is not None:
            return engine.End("nothing", refusal)
        turn.agent = self.buffer.app.agent_name(shot.transcript, chosen)
        await self.buffer.app.models.prepare(shot.transcript, chosen)
        resolve = self.buffer.resolve_for(shot, chosen, turn.instructions)
        return await self.turns.run_loop(turn, resolve)

    def choose(
        self,
        handle: int,
        row: int,
        key: Choice,
        rule: Rule,
        reason: str,
        seen: Iterable[tuple[int, float]],
        *,
        again: float | None,
        edited: str | None = None,
    ) -> None:
        """Decide the waiting calls at a handle that were `seen`; when no call is left, continue the
        turn.

        `edited`: the text that the user approves instead of the call's own.
        `again`: the milliseconds since a message about the same key, which was pressed just before.
        """
        on_screen = self.screen.seen(seen)
        is_repeated = (
            again is not None and self._is_from_afar and on_screen.is_long_enough(again / 1000)
        )
        self._is_from_afar = False

        async def work(turn: Turn) -> engine.End:
            if not self.buffer.name or not Path(self.buffer.path).is_file():  # noqa: ASYNC240 - one look at one file
                return engine.End("nothing", UNSAVED)
            turn.instructions = await self._trust.settle_for(self.buffer)
            line = await self._line_of_choice(turn, rule)
            shot = await turn.document.read()
            chosen = self.buffer.chosen_for(shot)
            if (refusal := self.check.refusal(shot.transcript, chosen)) is not None:
                return engine.End("nothing", refusal)
            turn.agent = self.buffer.app.agent_name(shot.transcript, chosen)
            resolve = self.buffer.resolve_for(shot, chosen, turn.instructions)
            name = key_name(key, self.buffer.app.settings.keys) if rule == "key" else key
            press = engine.Press(key, rule, reason, on_screen, is_repeated, name, edited=edited)
            choice = await engine.choose(turn.ports, resolve, line, press)
            self._is_from_afar = choice.is_from_afar
            self.buffer.editor.message(choice.message)
            if not choice.decided:
                turn.doubts = choice.doubts
                return engine.End(
                    "waiting" if choice.doubts else "nothing"
                )  # then the cursor stays
            return await self.turns.run_loop(turn, resolve)

        self.turns.start(handle, row, work)

    def choose_agent(self, name: str, *, stays: bool) -> None:
        """Use this agent while the chat is open; with `stays`, also record it in the file."""
        self.buffer.chosen, self.buffer.once = name, None
        self.buffer.app.warm(self.buffer.editor.loop, self.buffer.agent)
        self.buffer.editor.tell("agent", self.buffer.buf, name)
        self.screen.tell_offer()
        self.buffer.editor.spawn(self._write_agent(name) if stays else self._name_agent(name))

    async def _lack(self, name: str) -> str:
        from parley.nvim.agents import lack_of  # only after a choice

        return await lack_of(self.buffer.app, name)

    async def _name_agent(self, name: str) -> None:
        """Tell the user which agent the chat uses, and why it cannot answer yet."""
        self.buffer.editor.message(
            f"this chat now uses {name}{await self._lack(name)}; "
            ":ParleyAgent! writes the agent into its file"
        )

    async def _write_agent(self, name: str) -> None:
        """Write the chat's agent into the front matter, as one undo step."""

        def change(shot: engine.Snapshot) -> list[Edit]:
            keys = read_front_matter(shot.transcript.front_matter).keys
            if others := [key for key in ("provider", "model") if key in keys]:
                raise ParleyError(
                    f"the front matter sets {others[0]}. Write the agent there yourself"
                )
            try:
                return put_value(shot.lines, shot.transcript, "agent", name)
            except ValueError as error:
                raise ParleyError(str(error)) from error

        await self.buffer.look()
        handle = await self.buffer.editor.ask("open_after", self.buffer.buf, UNKNOWN_TICK, 0)
        if handle is not None:
            await self.change(handle, change)
            self.buffer.app.confirm(self.buffer.transcript, self.buffer.path)
            lack = await self._lack(name)
            self.buffer.editor.message(
                f"this chat now uses {name}{lack}, and its front matter says so"
            )

    def compact(self, handle: int, row: int, keep: int) -> None:
        """Summarize older exchanges, as one undo step."""

        async def work(turn: Turn) -> engine.End:
            turn.has_answer = False
            shot = await turn.document.look()
            if not shot.transcript.exchanges:
                return engine.End("nothing", engine.NOTHING_ASKED)
            turn.document.move(shot.transcript.exchanges[-1].span.start)
            chosen = self.buffer.chosen
            if (refusal := self.check.refusal(shot.transcript, chosen)) is not None:
                return engine.End("nothing", refusal)
            ports = chat_ports(self.buffer, self.screen, turn.document, turn, is_beside=True)
            return await engine.sum_up(ports, self.buffer.resolve_for(shot, chosen), keep)

        self.turns.start(handle, row, work)

    async def change(
        self, handle: int, change: engine.Change, then: Callable[[], None] = lambda: None
    ) -> None:
        """Change the text, even during a turn, as one undo step; `then` still has the handle."""
        await self.buffer.change(handle, change, then)
        await self.turns.refresh()

    async def _line_of_choice(self, turn: Turn, rule: Rule) -> int:
        """The cursor's line; but a command may apply to the last waiting answer, wherever the
        cursor is.
        """
        shot = await turn.document.look()
        waiting = [calls for e in shot.transcript.exchanges if (calls := open_calls(e))]
        if rule != "command" or open_calls(shot.exchange) or not waiting:
            return shot.anchor
        line = waiting[-1][0].span.start
        turn.document.move(line)
        return line


async def _go_to(turn: Turn, shot: engine.Snapshot, at: int) -> engine.Snapshot:
    """The chat at another exchange, whose last line becomes the turn's place."""
    if at == shot.at:
        return shot
    turn.document.move(content_end(shot.lines, shot.transcript.exchanges[at].span) - 1)
    return await turn.document.look()
