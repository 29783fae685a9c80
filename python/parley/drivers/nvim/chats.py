"""One chat buffer: its turn, its choices, and what is shown of it.

At most one piece of work runs in a chat at a time. Knows what a command means; the engine knows how a turn
goes, and Lua how things are drawn.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from parley import engine
from parley.chat.transcript import Choice, Proposal, Result
from parley.drivers.home import Home
from parley.drivers.nvim.document import BufferDocument, checked
from parley.drivers.nvim.editor import Editor
from parley.drivers.nvim.tokens import Tokens
from parley.drivers.nvim.turns import Turn, Work
from parley.drivers.nvim.view import Sight, details, found
from parley.drivers.world import together
from parley.models.ask import Ask
from parley.models.events import Event, Usage
from parley.settings import Agent
from parley.tools.catalogue import Catalogue, Tool
from parley.turn.approval import Rule
from parley.turn.choice import open_calls

T = TypeVar("T")

UNSAVED = "save this chat first (:w): a choice is bound to its file"


class Chat:
    """A chat buffer."""

    def __init__(self, editor: Editor, home: Home, buf: int, name: str) -> None:
        self.editor = editor
        self.home = home
        self.buf = buf
        self.name = name
        self.chosen: str | None = None
        self.catalogue: Catalogue | None = None
        self.usage = Tokens()
        self._turn: Turn | None = None
        self._tick = -1
        self._shot = engine.Snapshot("", 0)

    @property
    def path(self) -> str:
        """By what the ledger knows this chat; one without a file is known to this process only."""
        return os.path.realpath(self.name) if self.name else f"/unsaved/{os.getpid()}/{self.buf}"

    @property
    def agent(self) -> Agent:
        """Whom this chat talks to, by its text as it was last looked at."""
        return self.home.agent(self._shot.transcript, self.chosen)

    @property
    def resolve(self) -> engine.Resolve:
        """The settings of a look at this chat."""
        return self.home.resolve(self.chosen)

    # --- What the user asks for ---

    def respond(self, handle: int, regenerate: bool) -> None:
        """Move the exchange at a handle on."""

        async def work(turn: Turn) -> engine.End:
            if regenerate:
                shot = await turn.document.read()
                await engine.regenerate(turn.ports, self.home.agent_name(shot.transcript, self.chosen))
            await self._revoke_elsewhere(turn)
            return await engine.run_turn(turn.ports, self.resolve)

        self._start(handle, work)

    def choose(self, handle: int, key: Choice, rule: Rule, reason: str) -> None:
        """Decide on what waits at a handle; when nothing waits any more, the turn goes on."""

        async def work(turn: Turn) -> engine.End:
            if not self.name or not os.path.isfile(self.path):  # noqa: ASYNC240, PTH113 - one stat
                return engine.End("nothing", UNSAVED)
            if rule == "command":
                await self._to_what_waits(turn)
            shot = await turn.document.read()
            made = await engine.choose(turn.ports, self.resolve, shot.anchor, key, rule, reason)
            self.editor.message(made.message)
            if not made.decided:
                return engine.End("waiting")
            return await engine.run_turn(turn.ports, self.resolve)

        self._start(handle, work)

    def stop(self) -> None:
        """End the turn that runs."""
        if self._turn is None:
            self.editor.message("nothing runs in this chat")
        else:
            self._turn.stop()

    def gone(self, handle: int, why: str) -> None:
        """The buffer or the answer of a turn was taken away."""
        if self._turn is not None and self._turn.handle == handle:
            self._turn.lose(why)

    def show_details(self, handle: int) -> None:
        """Show all of the proposal at a handle."""

        async def work(document: BufferDocument) -> None:
            shot = await document.read()
            calls = (p for a in shot.exchange.answers for p in a.proposals)
            call = next((p for p in calls if p.span.start == shot.anchor), None)
            if call is None:
                self.editor.message("this tool call cannot be read", "warn")
                return
            seen = await engine.look(self.ports(document, _Quiet()), self.resolve)
            self.editor.tell("float", details(call, seen.catalogue.get(call.call.name)))

        self._beside(handle, work)

    def with_look(self, handle: int, use: Callable[[engine.Look], None]) -> None:
        """Look at the exchange at a handle and use what is seen."""

        async def work(document: BufferDocument) -> None:
            use(await engine.look(self.ports(document, _Quiet()), self.resolve))

        self._beside(handle, work)

    # --- What is shown ---

    async def refresh(self) -> None:
        """Look at the buffer and draw what is found; what a turn changes is drawn when it ends."""
        if self._turn is not None:
            return
        reply = checked(await self.editor.ask("look", self.buf, self._tick))
        if "text" in reply:
            self._tick, self._shot = reply["tick"], engine.Snapshot(reply["text"], 0)
        if self._turn is None:
            self._revoke_undone(self._shot)
            self.editor.tell("agent", self.buf, self.home.agent_name(self._shot.transcript, self.chosen))
            await self.draw(self._shot, self._tick)

    async def draw(self, shot: engine.Snapshot, tick: int) -> None:
        """Draw what is found in the text of a moment."""
        sight = Sight(shot.transcript, self.catalogue, self.home.ledger(self.path).view())
        await self.editor.ask("draw", self.buf, tick, found(sight))

    def status(self, text: str, handle: int) -> None:
        """Show what is being done."""
        self.editor.tell("status", self.buf, text, handle)

    def used(self, usage: Usage) -> None:
        """Take note of the tokens of the request that runs."""
        self.usage.say(usage)
        self.editor.tell("usage", self.buf, self.usage.table())

    # --- How ---

    def _start(self, handle: int, work: Work) -> None:
        if self._turn is not None:
            self.editor.message("a turn is running in this chat; :ParleyStop ends it", "warn")
            self.editor.tell("close", handle)
            return
        self._turn = Turn(self, handle)
        self.editor.spawn(self._running(self._turn, work))

    async def _running(self, turn: Turn, work: Work) -> None:
        try:
            await turn.run(work)
        finally:
            self._turn = None
        await self.refresh()

    def _beside(self, handle: int, work: Callable[[BufferDocument], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            document = BufferDocument(self.editor, handle)
            try:
                await work(document)
            finally:
                document.close()

        self.editor.spawn(run())

    def ports(self, document: BufferDocument, world: engine.World) -> engine.Ports:
        """The world of a turn of this chat."""
        ports = self.home.ports(document, self.path, world)
        model, tools = _Counting(ports.model, self.usage), _Remembering(ports.tools, self)
        return replace(ports, model=model, tools=tools)

    async def _to_what_waits(self, turn: Turn) -> None:
        """A command may mean the last answer that waits, wherever the cursor is."""
        shot = await turn.document.read()
        if open_calls(shot.exchange):
            return
        waiting = [calls for e in shot.transcript.exchanges if (calls := open_calls(e))]
        if waiting:
            await turn.document.move(waiting[-1][0].span.start)

    def _revoke_undone(self, shot: engine.Snapshot) -> None:
        """A yes whose mark is not in the file any more is taken back."""
        ledger = self.home.ledger(self.path)
        marked = {_call(p) for e in shot.transcript.exchanges for p in open_calls(e) if _is_marked(p)}
        undone = {e.key.id for e in ledger.view().entries if e.state == "live"} - {c for c, _ in marked}
        if undone:
            ledger.revoke(undone)

    async def _revoke_elsewhere(self, turn: Turn) -> None:
        """Whoever asks on has left what was approved before and never ran."""
        shot = await turn.document.read()
        here = {_call(p)[0] for p in open_calls(shot.exchange)}
        ledger = turn.ports.ledger
        left = {e.key.id for e in ledger.view().entries if e.state == "live"} - here
        if left:
            ledger.revoke(left)


def _is_marked(call: Any) -> bool:
    return isinstance(call, Proposal) and call.choice is not None


def _call(call: Any) -> tuple[str, str]:
    return (call.call.id, call.call.arguments) if isinstance(call, Proposal) else ("", "")


class _Counting:
    """The model, each request of which is counted as one."""

    def __init__(self, model: engine.Model, tokens: Tokens) -> None:
        self._model = model
        self._tokens = tokens

    def stream(self, ask: Ask) -> AsyncIterator[Event]:
        self._tokens.next_request()
        return self._model.stream(ask)


class _Remembering:
    """The tools, of which the chat remembers what was last on offer, to draw it without starting servers."""

    def __init__(self, tools: engine.Tools, chat: Chat) -> None:
        self._tools = tools
        self._chat = chat

    async def catalogue(self) -> Catalogue:
        self._chat.catalogue = await self._tools.catalogue()
        return self._chat.catalogue

    async def call(self, tool: Tool, arguments: str) -> Result:
        return await self._tools.call(tool, arguments)


class _Quiet:
    """A world in which nothing is told: for looks that change nothing."""

    def now(self) -> float:
        return time.monotonic()

    def together(self, work: Sequence[Callable[[], Awaitable[T]]], limit_s: float) -> AsyncIterator[T]:
        return together(work, limit_s)

    def status(self, text: str) -> None:
        pass

    def happened(self, what: engine.Happening) -> None:
        pass
