"""One chat buffer: its turn, its choices, and its display.

At most one piece of work runs in a chat at a time. Knows what a command means; the engine knows how
a turn runs, and Lua how things are drawn.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from parley import engine
from parley.chat.edits import Edit
from parley.chat.fork import fork_lines
from parley.chat.front_matter import read_front_matter
from parley.chat.head import height, lacks_topic, put_topic, put_value
from parley.chat.transcript import YES, Choice, Proposal, Result, ToolCall, Transcript
from parley.display.summary import UNREADABLE
from parley.display.view import ChatView, details, drawing
from parley.errors import GoneError, ParleyError
from parley.models.events import Event, RateLimits, Usage
from parley.models.request import Request
from parley.nvim.announcements import key_name
from parley.nvim.context import editor_text
from parley.nvim.document import BufferDocument, checked
from parley.nvim.editor import Editor
from parley.nvim.folds import FoldTexts, exchange_folds, folds
from parley.nvim.mirror import UNKNOWN, Mirror
from parley.nvim.pages import write_page
from parley.nvim.pictures import picture_rows, pictures_of
from parley.nvim.queue import Queue, not_asked
from parley.nvim.sightings import SeenCalls
from parley.nvim.tokens import Tokens
from parley.nvim.trust import TrustDialog
from parley.nvim.turn import Turn, Work
from parley.policy.approval import Rule, unclaimed
from parley.policy.choice import exchange_at, open_calls, open_keys
from parley.policy.doubts import Seen, sighting
from parley.policy.status import ANALYZING, waiting_for
from parley.policy.topic import fill_topic
from parley.runtime.app import App
from parley.runtime.tasks import Callbacks
from parley.settings.start import Ready, Refusal, has_question, wanted_agent
from parley.settings.values import Agent
from parley.storage.content import encoded
from parley.storage.forks import fork_paths, own_path, write_new
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.tasks import TaskHandle

UNSAVED = "save this chat first (:w): a choice is bound to its file"


class Chat:
    """A chat buffer."""

    def __init__(
        self,
        editor: Editor,
        app: App,
        trust: TrustDialog,
        buf: int,
        name: str,
        before: asyncio.Event | None = None,
    ) -> None:
        """`before` is the end of a turn of this file whose buffer was closed or reloaded."""
        self.editor = editor
        self.app = app
        self.trust = trust
        self.buf = buf
        self.name = name
        self.folder = Path.cwd()
        self.chosen: str | None = None
        self.catalogue: Catalogue | None = None
        self._seen_calls = SeenCalls()
        self._is_from_afar = False
        """Whether the last key only warned that it decides several calls from outside their
        lines.
        """
        self._fold_texts = FoldTexts()
        self.usage = Tokens()
        self.mirror = Mirror(editor.loop.time)
        """The text as last told."""
        self.queue = Queue(editor, self.mirror, buf)
        self._before = before
        self._turn: Turn | None = None
        self.task: asyncio.Task[None] | None = None
        """The running turn, or the last one, with its task."""
        self._next: tuple[int, Work] | None = None
        self._insertions = set[asyncio.Task[None]]()
        """The text being put into a question: a turn requested in the meantime includes it."""
        self.asks_soon = False
        """Whether a question is being inserted that is asked as soon as it is in the text."""
        self._to_confirm = ""
        self._previous = ("", "")
        """Who answered last, and who would answer now, as the user was told."""
        self.is_loaded_anew = True
        self._file_agents = set[str]()
        """The agents (or provider, model) that the file asked for at each load."""
        self._doing = ("", 0)
        self._waiting = 0
        self._question = ""
        self._has_pictures = False
        self._has_title = False
        """Whether a model was asked for a title."""

    @property
    def path(self) -> str:
        """The key by which the ledger knows this chat; without a file, only this process knows
        it.
        """
        return self.name or f"/unsaved/{os.getpid()}/{self.buf}"

    @property
    def agent(self) -> Agent:
        """The agent of this chat, by its text as last told."""
        return self.app.agent(self.mirror.text.transcript, self.chosen)

    @property
    def resolve(self) -> engine.Resolve:
        """The settings for drawing this chat."""
        return self.app.resolve(self.chosen)

    def _resolve_for(self, shot: engine.Snapshot) -> engine.Resolve:
        """The settings of a turn: the agent accepted at its start is asked until its end."""
        return self.app.resolve(self.chosen, self.app.agent(shot.transcript, self.chosen))

    # --- Commands of the user ---

    def respond(self, handle: int, row: int, regenerate: bool) -> None:
        """Continue the exchange at a handle in this row; below a running turn, queue its question.

        A queued question is removed from the queue.
        """
        turn, work = self._turn, self._response(regenerate)
        if self.asks_soon and not regenerate:
            self.editor.tell("close", handle)
        elif not regenerate and (self.queue.is_used or (turn is not None and not turn.ending)):
            self.editor.spawn(self._switch(handle, work))
        else:
            self._start(handle, row, work)

    async def _switch(self, handle: int, work: Work) -> None:
        """Queue a question, or remove it; any other is answered at once, if nothing else runs."""
        place = await self.queue.place(handle, self._turn.handle if self._turn else None)
        turn = self._turn  # it may have ended meanwhile
        if place and place.marks:
            self.queue.remove(place.marks)
            self.editor.tell("close", handle)
            self.editor.message("removed from the queue: this question is only text again")
        elif place and place.is_below and turn and (self._next or not turn.ending):
            self.queue.put(handle, place.up)
            self.editor.message("queued: it is asked when the answer above is complete")
        else:
            self._start(handle, None, work)

    def _response(self, regenerate: bool) -> Work:
        async def work(turn: Turn) -> engine.End:
            turn.is_question = True
            if not has_question((await turn.document.read()).transcript):
                return engine.End("nothing", engine.NOTHING_ASKED)
            await self.trust.settle(self.app)
            if (refusal := self._refusal(shot := await turn.document.read())) is not None:
                return engine.End("nothing", refusal)
            if regenerate:
                await engine.regenerate(
                    turn.ports, self.app.agent_name(shot.transcript, self.chosen)
                )
            return await self._run(turn, self._resolve_for(shot))

        return work

    def _refusal(self, shot: engine.Snapshot) -> str | None:
        """The reason that no turn begins, None if it does; "" if the user is asked about the
        agent.
        """
        self._note_loaded(shot.transcript)
        is_typed = wanted_agent(shot.transcript) not in self._file_agents
        match self.app.start(shot.transcript, self.path, self.chosen, is_typed=is_typed):
            case Refusal("unconfirmed agent", wish):
                self._to_confirm = wish
                return ""
            case Refusal("unknown agent" | "no such agent", problem):
                return f"{problem} (:ParleyAgent)"
            case Refusal("unreadable settings", problem):
                return f"{problem}. Fix it, then restart Neovim"
            case Refusal(_, problem):
                return problem
            case Ready(hint, previous):
                if change := self._change_of_agent(shot.transcript, previous):
                    return change
                self.editor.message(hint and f"{hint} before you start Neovim")
                return None

    def _change_of_agent(self, transcript: Transcript, previous: str) -> str:
        """A message, shown once, before an agent other than `previous` answers; "" for none."""
        change = previous, self.app.agent_name(transcript, self.chosen)
        if not previous or change == self._previous:
            return ""
        self._previous = change
        name = change[1]
        return (
            f"{previous} answered last, {name} would answer now. Press again to ask it, or "
            "use :ParleyAgent"
        )

    def _note_loaded(self, transcript: Transcript) -> None:
        self._file_agents |= {wanted_agent(transcript)} if self.is_loaded_anew else set()
        self.is_loaded_anew = False

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
    ) -> None:
        """Decide the waiting calls at a handle that were `seen`; when none is left, continue the
        turn.

        `again`: milliseconds since a message about the same key, pressed just before.
        """
        on_screen = Seen(self._seen_calls.of(seen), self.app.least_seen_s)
        is_repeated = (
            again is not None and self._is_from_afar and on_screen.is_long_enough(again / 1000)
        )
        self._is_from_afar = False

        async def work(turn: Turn) -> engine.End:
            if not self.name or not Path(self.path).is_file():  # noqa: ASYNC240 - one look at one file
                return engine.End("nothing", UNSAVED)
            await self.trust.settle(self.app)
            line = await self._line_of_choice(turn, rule)
            if (refusal := self._refusal(shot := await turn.document.read())) is not None:
                return engine.End("nothing", refusal)
            resolve = self._resolve_for(shot)
            name = key_name(key, self.app.settings.keys) if rule == "key" else key
            choice = await engine.choose(
                turn.ports,
                resolve,
                line,
                key,
                rule,
                reason,
                on_screen,
                is_repeated=is_repeated,
                name=name,
            )
            self._is_from_afar = choice.is_from_afar
            self.editor.message(choice.message)
            if not choice.decided:
                turn.doubts = choice.doubts
                return engine.End(
                    "waiting" if choice.doubts else "nothing"
                )  # then the cursor stays
            return await self._run(turn, resolve)

        self._start(handle, row, work)

    def insert(self, work: Coroutine[Any, Any, None]) -> None:
        """Put something into a question; a turn requested in the meantime waits for it."""
        task = self.editor.spawn(work)
        self._insertions.add(task)
        task.add_done_callback(self._insertions.discard)

    def choose_agent(self, name: str, *, stays: bool) -> None:
        """Talk to an agent from now on, while the chat is open; with `stays`, also write it into
        the file.
        """
        self.chosen = name
        self.app.warm(self.editor.loop, self.agent)
        self.editor.tell("agent", self.buf, name)
        if stays:
            self.editor.spawn(self._write_agent(name))
        else:
            self.editor.message(
                f"this chat talks to {name} now; :ParleyAgent! writes that into its file"
            )

    async def _write_agent(self, name: str) -> None:
        """Write the chat's agent into the front matter, as one undo step."""

        def change(shot: engine.Snapshot) -> list[Edit]:
            keys = read_front_matter(shot.transcript.front_matter).keys
            if others := [key for key in ("provider", "model") if key in keys]:
                raise ParleyError(
                    f"the front matter names a {others[0]}: write the agent there yourself"
                )
            try:
                return put_value(shot.lines, shot.transcript, "agent", name)
            except ValueError as error:
                raise ParleyError(str(error)) from error

        await self.look()
        handle = await self.editor.ask("open_after", self.buf, UNKNOWN, 0)
        if handle is not None:
            await self.change(handle, change)
            self.app.confirm(self.mirror.text.transcript, self.path)
            self.editor.message(f"this chat talks to {name}: its front matter says so now")

    def compact(self, handle: int, row: int, keep: int) -> None:
        """Summarize older exchanges, as one undo step."""

        async def work(turn: Turn) -> engine.End:
            turn.has_answer = False
            shot = await turn.document.look()
            if not shot.transcript.exchanges:
                return engine.End("nothing", engine.NOTHING_ASKED)
            turn.document.move(shot.transcript.exchanges[-1].span.start)
            if (refusal := self._refusal(shot)) is not None:
                return engine.End("nothing", refusal)
            ports = self.ports(turn.document, turn, is_beside=True)
            return await engine.sum_up(ports, self._resolve_for(shot), keep)

        self._start(handle, row, work)

    def stop(self) -> None:
        """End the running turn, and empty the queue."""
        if self._turn is None:
            self.editor.spawn(self.empty_queue("nothing is running in this chat"))
        elif self._turn.ending:
            self._turn.kind = "stopped"  # it changes nothing more, but the queue would
        else:
            self._turn.stop()

    def gone(self, handle: int, why: str) -> None:
        """The buffer or the answer of a turn was taken away."""
        if self._turn is not None and self._turn.handle == handle:
            self._turn.lose(why)

    def show_details(self, handle: int, row: int) -> None:
        """Show the whole proposal at a handle in this row."""

        async def work(document: BufferDocument) -> None:
            shot = await document.read()
            calls = (p for a in shot.exchange.answers for p in a.proposals)
            call = next((p for p in calls if shot.anchor in _first_rows(p)), None)
            if call is None:
                self.editor.message(UNREADABLE, "warn")
                return
            if call.result is not None:
                known = self.catalogue or self.app.servers.known()
                tool = known.get(call.call.name) if known else None
                self.editor.tell("float", details(call, tool), self.buf, 0)
                return
            seen = await engine.observe(self.ports(document, self._beside), self.resolve)
            lapse = seen.situation.approvals.lapsed(call)
            before = self.app.ledger(self.path).definition(lapse.digest) if lapse else None
            now = sighting(call, seen.situation.approvals)
            number = self._seen_calls.number(now) or self._seen_calls.number(
                replace(now, digest="")
            )
            text = details(call, seen.catalogue.get(call.call.name), before)
            self.editor.tell("float", text, self.buf, number)

        self.editor.spawn(self._at(handle, row, work))

    def with_request(self, handle: int, row: int, use: Callable[[Request], None]) -> None:
        """Use the request that the exchange at a handle would send."""

        async def work(document: BufferDocument) -> None:
            ports = self.ports(document, self._beside)
            seen = await engine.observe(ports, self.resolve)
            use(await engine.with_pictures(ports, seen.next_request()))

        self.editor.spawn(self._at(handle, row, work))

    async def export(self, path: Path, force: bool) -> None:
        """Write the chat as a page; overwrite a file only with `force`."""
        await self.refresh()
        transcript = self.mirror.text.transcript
        await self.editor.loop.run_in_executor(
            None, write_page, transcript, self.app.attachments(self.path), path, force
        )
        self.editor.message(f"written to {path}")

    async def fork(self, handle: int, row: int, newline: str) -> None:
        """Copy the chat, down to the exchange at a handle, into a new file next to it, and open
        it.
        """

        async def work(document: BufferDocument) -> None:
            shot = await document.look()
            turn = self._turn
            if turn is not None and exchange_at(shot.transcript, turn.document.anchor) == shot.at:
                raise ParleyError(
                    "this exchange is still being answered: fork it when the turn has ended"
                )
            try:
                lines = fork_lines(shot.lines, shot.exchange, chat.name)
            except ValueError as error:
                raise ParleyError(str(error)) from error
            spelled = (line.replace("\n", "\0") for line in lines)  # as the editor has a NUL
            content = encoded(newline.join([*spelled, ""]))
            for path in fork_paths(chat):
                # A deleted file of this name may have left decisions in the ledger.
                is_free = not self.app.ledger(str(path)).is_known()
                if is_free and await asyncio.to_thread(write_new, path, content):
                    self.editor.tell("forked", handle, str(path))
                    return

        if not self.name:
            self.editor.tell("close", handle)
            raise ParleyError("save this chat first (:w): its fork is created next to it")
        chat = own_path(self.path)
        await self._at(handle, row, work)

    # --- Display ---

    async def look(self) -> Transcript:
        """The buffer's text as it is now."""
        for tick in () if self.mirror.is_current else (self.mirror.tick, UNKNOWN):
            checked(await self.editor.ask("look", self.buf, tick, heed=self.mirror.heed))
            if self.mirror.is_known:
                break
        return self.mirror.text.transcript

    async def refresh(self) -> None:
        """Read and draw the buffer; the changes of a turn are drawn when it ends."""
        try:
            transcript = await self.look()
        except GoneError:
            return  # closed in the meantime: the user knows
        if self._turn is not None:
            return
        self._note_loaded(transcript)
        self._revoke_undone(transcript)
        await self.draw()
        self.app.prepare(transcript, self.chosen)
        gc.collect()
        gc.freeze()  # keep what was parsed: parsing a long chat again would delay a question

    async def draw(self) -> ChatView:
        """Draw the chat by its text as last told."""
        tick, transcript, lines = (
            self.mirror.tick,
            self.mirror.text.transcript,
            self.mirror.text.lines,
        )
        self.editor.tell("agent", self.buf, self.app.agent_name(transcript, self.chosen))
        known = self.catalogue or self.app.servers.known()
        room = self.resolve(transcript).request.tool_room
        known = known and engine.with_own_tools(known, transcript, room)
        ledger = self.app.ledger(self.path)
        missing = await self.app.attachments(self.path).missing(transcript)
        view = ChatView(transcript, known, ledger.view(open_keys(transcript)), missing)
        for news in ledger.news():
            self.editor.message(news, "warn")
        rows, texts = self._fold_texts.rows(folds(view))
        drawn = {**drawing(view, self.app.settings.keys), "sightings": self._seen_calls.draw(view)}
        drawn |= {"folds": rows, "texts": texts}
        if await self.editor.ask("draw", self.buf, tick, drawn):  # else the text has changed since
            self.waits(len(drawn["proposals"]))
            self._draw_pictures(tick, picture_rows(transcript, lines))
        return view

    def _draw_pictures(self, tick: int, rows: list[tuple[int, str]]) -> None:
        """Draw pictures below rows of the text at a changedtick, and remove stale pictures."""
        if rows or self._has_pictures:
            self._has_pictures = bool(rows)
            self.editor.tell("pictures", self.buf, tick, rows)

    async def prove_pictures(self, paths: Sequence[str]) -> None:
        """Check the picture files to draw, and tell the paths of the valid files."""
        pictures = pictures_of(self.mirror.text.transcript, paths)
        contents = await self.app.attachments(self.path).read(pictures)
        folder = own_path(self.path).parent
        files = {
            path: str(folder / path) if isinstance(contents.get(path), bytes) else ""
            for path in paths
        }
        self.editor.tell("picture_files", self.buf, files)

    def draw_calls(self, row: int) -> list[ToolCall]:
        """Draw the calls of the exchange that a row is in: approved calls without a result."""
        transcript = self.mirror.text.transcript
        at = exchange_at(transcript, row)
        if at is None or not self.mirror.is_known:
            return []
        exchange = transcript.exchanges[at]
        ledger = self.app.ledger(self.path)
        view = ChatView(transcript, self.catalogue, ledger.view(open_keys(transcript)))
        rows, texts = self._fold_texts.rows(exchange_folds(view, [exchange]))
        span = {"first": exchange.span.start, "last": exchange.span.end}
        self.editor.tell(
            "folds", self.buf, self.mirror.tick, {"folds": rows, "texts": texts, **span}
        )
        proposals = [p for answer in exchange.answers[-1:] for p in answer.proposals]
        return [p.call for p in proposals if p.choice in YES and p.result is None]

    def running_tools(self, server: str) -> list[str]:
        """The names of a server's tools with a running call in this chat."""
        return self._turn.running_tools(server) if self._turn else []

    def number(self, view: ChatView, call: Proposal) -> int:
        """The number under which a call is drawn."""
        return self._seen_calls.number(view.sighting(call))

    def status(self, text: str, handle: int) -> None:
        """Show the current status; "" for none."""
        self._doing = text, handle
        self.editor.tell("status", self.buf, text and (self._question or text), handle)

    def waits(self, calls: int) -> None:
        """Tell how many calls are waiting for a choice."""
        if calls != self._waiting:
            self._waiting = calls
            self.editor.tell("waiting", self.buf, calls)

    @property
    def _beside(self) -> engine.Observer:
        """The observer of a lookup outside the turns."""

        def on_event(what: engine.TurnEvent) -> None:
            match what:
                case engine.ServerWait([_, *_] as servers):
                    self.editor.message(waiting_for(servers))
                case engine.Aside(text):
                    self.editor.message(text)
                case _:
                    pass

        return Callbacks(on_event=on_event)

    @property
    def end(self) -> asyncio.Event | None:
        """The end of the running turn; None if none runs."""
        return None if self._turn is None else self._turn.end

    @property
    def is_followed(self) -> bool:
        """Whether a request begins when the turn has ended."""
        return self._next is not None

    def waits_for(self, question: str) -> None:
        """Show that a question to the user is open, before any status; "" when all are answered."""
        self._question = question
        self.status(*self._doing)

    def used(self, what: Usage | RateLimits) -> None:
        """Record the tokens of the running request, or its provider's limits."""
        self.usage.say(what)
        self.editor.tell("usage", self.buf, self.usage.table())

    # --- Internals ---

    def _start(self, handle: int, row: int | None, work: Work) -> None:
        if self._turn is not None and self._turn.ending and self._next is None:
            self._next = handle, work  # the ended turn changes nothing more, and the user is quick
        elif self._turn is not None:
            self.editor.message("a turn is running in this chat; :ParleyStop ends it", "warn")
            self.editor.tell("close", handle)
        else:
            self.usage.next_turn()
            self._turn = Turn(self, handle, row)
            self.task = self.editor.spawn(self._running(self._turn, work))

    async def _running(self, turn: Turn, work: Work) -> None:
        try:
            try:
                await turn.run(partial(self._begun, work))
            finally:
                await self._follow(turn)
        finally:
            self._turn = None
            turn.end.set()
            self._begin_next()
        if not turn.is_drawn:
            await self.refresh()
        gc.collect()  # here no caller waits
        agent, self._to_confirm = self._to_confirm, ""
        if agent:
            self.editor.tell("confirm_agent", self.buf, agent)
        if turn.tick is not None:
            await self._find_title(turn.tick, turn.document.anchor)

    async def _begun(self, work: Work, turn: Turn) -> engine.End:
        if self._before is not None:
            await self._before.wait()
            self.status(ANALYZING, turn.handle)  # the turn's end removed it
        if self._insertions:
            await asyncio.wait(self._insertions)
        return await work(turn)

    def _begin_next(self) -> None:
        following, self._next = self._next, None
        if following is not None:
            self._start(following[0], None, following[1])

    async def _follow(self, turn: Turn) -> None:
        """Ask the next queued question after a turn; if calls are waiting, the queue stays as it
        is.
        """
        handle = await self.queue.take() if turn.kind == "complete" and not self._next else None
        if handle is not None and (self._next or turn.kind != "complete"):  # the user was quick
            self.queue.put(handle)
        elif handle is not None:
            self._next = handle, self._response(regenerate=False)
        if turn.kind in ("stopped", "interrupted") or not (
            turn.kind == "complete" or self._waiting
        ):
            await self.empty_queue()

    async def empty_queue(self, otherwise: str = "") -> None:
        """Report how many queued questions were not asked; if none, `otherwise`."""
        in_vain = not_asked(await self.queue.clear())
        self.editor.message(in_vain or otherwise, "warn" if in_vain else "info")

    async def _run(self, turn: Turn, resolve: engine.Resolve) -> engine.End:
        """Run a turn. The first answer's summary fills an empty topic."""
        end = await engine.run_turn(turn.ports, resolve)
        if end.kind == "complete" and self.app.settings.fill_topic:
            await self._put_topic(turn.document, turn.handle, fill_topic)
        return end

    async def _find_title(self, tick: int, row: int) -> None:
        """Have a model find a topic that is still empty after a turn; ask once, and do not wait.

        `tick` is the changedtick after the turn: if it still holds, the topic joins the turn's undo
        step. `row` is where the turn's answer is then.
        """
        transcript = self.mirror.text.transcript
        if self._has_title or not self.app.settings.fill_topic or not lacks_topic(transcript):
            return
        title = await self.app.title(transcript, self.path, self.chosen)
        if self._turn is not None:
            return  # its end looks again
        self._has_title = True
        handle = await self.editor.ask("open_after", self.buf, tick, row) if title else None
        if handle is None:
            return

        async def work(document: BufferDocument) -> None:
            await self._put_topic(document, handle, partial(put_topic, topic=title))
            await self.editor.ask("finish", handle, None)

        with suppress(GoneError):
            await self._at(handle, None, work)
            await self.refresh()

    async def _put_topic(
        self,
        document: BufferDocument,
        handle: int,
        edits: Callable[[list[str], Transcript], list[Edit]],
    ) -> None:
        """Apply the edits of the front matter, unless the user types there."""
        shot = await document.look()
        if edits(shot.lines, shot.transcript):
            row = await self.editor.ask("typing", handle)
            if row is None or row >= height(shot.transcript):
                await document.change(lambda now: edits(now.lines, now.transcript))

    async def change(
        self, handle: int, change: engine.Change, then: Callable[[], None] = lambda: None
    ) -> None:
        """Change the text, even during a turn, as one undo step; `then` still has the handle."""

        async def work(document: BufferDocument) -> None:
            await document.change(change)
            then()

        await self._at(handle, None, work)
        await self.refresh()

    async def _at(
        self,
        handle: int,
        row: int | None,
        work: Callable[[BufferDocument], Coroutine[Any, Any, None]],
    ) -> None:
        document = BufferDocument(self.editor, self.mirror, handle, row)
        try:
            await work(document)
        finally:
            document.close()

    def ports(
        self, document: BufferDocument, observer: engine.Observer, *, is_beside: bool = False
    ) -> engine.Ports:
        """The ports of a turn of this chat; `is_beside` if its requests do not belong to the
        chat itself.
        """
        editor = partial(editor_text, self.editor, self.buf)
        ports = self.app.ports(document, self.path, observer, lambda: self.folder, editor)
        model = CountedModel(
            ports.model, self.usage, None if is_beside else self.app.client.settled
        )
        return replace(ports, model=model, tools=RememberedTools(ports.tools, self._remember))

    def _remember(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    async def _line_of_choice(self, turn: Turn, rule: Rule) -> int:
        """The cursor's line; but a command may mean the last waiting answer, wherever the cursor
        is.
        """
        shot = await turn.document.look()
        waiting = [calls for e in shot.transcript.exchanges if (calls := open_calls(e))]
        if rule != "command" or open_calls(shot.exchange) or not waiting:
            return shot.anchor
        line = waiting[-1][0].span.start
        turn.document.move(line)
        return line

    def _revoke_undone(self, transcript: Transcript) -> None:
        """Revoke approvals whose marks are no longer in the file."""
        ledger = self.app.ledger(self.path)
        if undone := unclaimed(transcript, ledger.view()):
            ledger.revoke(undone)


def _first_rows(call: Proposal) -> tuple[int, ...]:
    """The rows of a call and of the header of its result."""
    return (call.span.start, call.result.span.start) if call.result else (call.span.start,)


class CountedModel:
    """The model, with its requests counted."""

    def __init__(
        self, model: engine.Model, tokens: Tokens, settled: Callable[[Request], Request] | None
    ) -> None:
        """`settled` takes a request in the form its provider accepts; None if it is not the
        chat's.
        """
        self._model = model
        self._tokens = tokens
        self._settled = settled

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The events of the model's reply."""
        self._tokens.next_request(request.price, self._settled and partial(self._settled, request))
        return self._model.stream(request)


class RememberedTools:
    """The tools; the chat remembers the last catalogue, to draw it without starting servers."""

    def __init__(self, tools: engine.Tools, remember: Callable[[Catalogue], None]) -> None:
        self._tools = tools
        self._remember = remember

    async def catalogue(self, narrow: engine.Narrow, calls: Sequence[str]) -> Catalogue:
        """The available tools."""
        catalogue = await self._tools.catalogue(narrow, calls)
        self._remember(catalogue)
        return catalogue

    def go_without(self) -> None:
        """Wait no longer for servers."""
        self._tools.go_without()

    async def call(self, tool: Tool, arguments: str, request: Request, task: TaskHandle) -> Result:
        """Run one call."""
        return await self._tools.call(tool, arguments, request, task)

    async def resources(self, server: str) -> Sequence[str]:
        """The URIs of the resources that a server lists now."""
        return await self._tools.resources(server)
