"""Parley as a library: a conversation in memory, run by the same engine as in the editor.

async with Session(agent="Claude") as session:
    async for chunk in session.send_message_stream("What is the price of GOOGL?"):
        ...
"""

from __future__ import annotations

import asyncio
import inspect
import os
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from parley import engine
from parley.chat.grammar import fit
from parley.chat.rounds import UNFINISHED, last_notice, rounds
from parley.chat.transcript import (
    CHOICES,
    YES,
    Broken,
    Choice,
    Proposal,
    Question,
    Text,
    without_blank_edges,
)
from parley.chat.writer import join_blocks, question_blocks
from parley.chunks import Chunk, Chunks, in_python
from parley.engine.notices import end_unfinished
from parley.errors import BusyError, ParleyError, SettingsError, UserCancelled
from parley.iterators import closing
from parley.late_patterns import late_pattern
from parley.mcp.functions import FUNCTIONS, InProcess, server_of
from parley.models.events import Usage
from parley.models.formats import PACKAGE
from parley.models.package import Provider
from parley.policy.doubts import LEAST_SEEN_S, Seen, sighting
from parley.policy.file_changes import by_file
from parley.policy.previews import FilePreview
from parley.policy.turn_limits import calls_left
from parley.runtime.app import App, FrontEnd, ProgramObjects
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.load import with_files
from parley.settings.read import read_settings
from parley.settings.readiness import Ready, Refusal, no_such_agent
from parley.settings.values import PROVIDERS, Agent, ProviderSettings, Settings
from parley.storage.chat_file import TextDocument
from parley.storage.ledger import LedgerFile
from parley.text import one_line
from parley.tools.line_diff import unified_diff
from parley.tools.server_settings import RESERVED, ServerSettings

No: TypeAlias = Literal[False, "yn", "yN"]
Decision: TypeAlias = bool | Choice | tuple[No, str]
"""The decision on one call: approval (True or False), a choice key, or a refusal with a reason for
the model.
"""
MayRead: TypeAlias = Callable[[Path], bool | Awaitable[bool]]
"""A function that decides whether a question may include a hidden file; may be asynchronous."""
Approve: TypeAlias = Callable[[Proposal], Decision | Awaitable[Decision]]
"""A function that decides on a call; may be asynchronous."""

_NAME = late_pattern(r"[A-Za-z0-9][\w.-]*")
_LONGEST = 100
REQUEST_TIMES = list[float]()
"""The times of all requests in this process, because its sessions share one rate limit."""
_DECISIONS = (
    f"True, False, a choice ({', '.join(CHOICES)}) or False with a reason, such as (False, 'why')"
)


class Session:
    """A conversation with a model: its messages, its tools and its transcript.

    If the transcript is unreadable, or asks for an agent that you do not have, messages are
    refused.
    """

    def __init__(
        self,
        settings: Settings | Mapping[str, object] | None = None,
        *,
        agent: str | None = None,
        approve: Approve | None = None,
        on_status: Callable[[str], object] = lambda _: None,
        tools: Sequence[Callable[..., object]] = (),
        servers: Mapping[str, InProcess] | None = None,
        transcript: str = "",
        references: str | os.PathLike[str] | None = None,
        provider: Provider | None = None,
        environ: Mapping[str, str] | None = None,
        workspace: str | os.PathLike[str] | None = None,
        may_read: MayRead | None = None,
        instructions: str = "",
    ) -> None:
        """Create a session from `settings`: values, or a table as in `config.toml`.

        `agent` is the name of the agent that answers. `approve` decides on tool calls; without it,
        calls that no rule approves are declined. `on_status` receives each status, and "" when the
        session is idle. `tools` are functions that the model may call; `servers` maps names to MCP
        servers in this process. `transcript` is a chat to continue. `environ` contains the
        environment variables, including the API keys; the default is this process's environment.
        `references` is the folder whose files a question may include with `@@path@@`; without it,
        references stay plain text. `may_read` decides, once for each file, whether a question may
        include a hidden file of this folder, and receives the file's real path; without it, no
        hidden file is included. `provider` generates the replies for agents that use it; if
        there are no such agents, Parley adds an agent with the provider's name. `workspace` is the
        folder in which the model may use Parley's own file tools; without it, they are offered only
        if the settings set `workspace.root` or `workspace.enabled = true`. `instructions` is a text
        that follows the system prompt; a session never reads `AGENTS.md` by itself.

        Raises SettingsError if the settings, or files that they refer to, are faulty, or if a
        function cannot become a tool.
        """
        name = _name_of(provider)
        settings = _complete(
            settings if isinstance(settings, Settings) else _read(settings or {}, name)
        )
        environ = os.environ if environ is None else environ
        objects = {**(servers or {}), **({FUNCTIONS: server_of(tools)} if tools else {})}
        self._settings = _with_objects(
            settings, [*(servers or {}), *([FUNCTIONS] if tools else [])]
        )
        if name:
            self._settings = _with_provider(self._settings, name)
        self._settings = replace(_with_workspace(self._settings, workspace), instructions=())
        self._references = _folder(references)
        with ExitStack() as failing:
            ledger = LedgerFile(None)
            failing.callback(ledger.close)
            self._app = App(
                self._settings,
                environ,
                ledger,
                front_end=FrontEnd(may_read_hidden=partial(_may_read, may_read)),
                objects=ProgramObjects(objects, provider, REQUEST_TIMES, instructions),
            )
            if workspace is not None and self._app.workspace.root.reason:
                raise SettingsError(f"workspace: {self._app.workspace.root.reason}")
            failing.pop_all()
        self._agent = agent
        self._approve: Approve = approve or (lambda _: False)
        self._on_status = on_status
        self._document = TextDocument(transcript, 0)
        self._turn: _Turn | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: asyncio.Runner | None = None
        self._tokens: Usage | None = None
        """The total of all tokens, set when the session is closed."""

    @property
    def transcript(self) -> str:
        """The conversation as the text of a chat file. Save it to continue later."""
        return self._document.text

    @property
    def usage(self) -> Usage:
        """The tokens of all requests so far, including requests for status texts."""
        if self._tokens is not None:
            return self._tokens
        records = self._app.ledger("").history()
        tokens = (Usage(**facts["tokens"]) for _, kind, facts in records if kind == "request")
        return sum(tokens, Usage())

    @property
    def calls_left(self) -> int | None:
        """How many more tool calls may run in the current or next answer; None if unlimited."""
        transcript = engine.Snapshot.of(self.transcript, 0).transcript
        is_answering = self._turn is not None and not self._turn.is_over
        in_hand = transcript.exchanges[-1].answers if is_answering and transcript.exchanges else ()
        return calls_left(self._app.resolve(self._agent)(transcript).limits, in_hand, transcript)

    def send_message_stream(self, text: str) -> AsyncGenerator[Chunk, None]:
        """Ask, and yield chunks until the answer is complete; the last chunk is `done`.

        If the consumer stops early, the answer ends: Parley cancels its calls, and adds a notice to
        the transcript. Raises BusyError while another message is being answered.
        """
        return self._stream(text, _Turn())

    def regenerate_stream(self, agent: str | None = None) -> AsyncGenerator[Chunk, None]:
        """Regenerate the last answer, and yield chunks as `send_message_stream` does.

        `agent` is the name of an agent that writes only this answer. The old answer stays in the
        transcript until the new answer begins, and also if the new answer fails before that.
        """
        return self._stream(None, _Turn(agent))

    def _stream(self, text: str | None, turn: _Turn) -> AsyncGenerator[Chunk, None]:
        stream = self._chunks(text, turn)
        turn.reader = weakref.ref(stream)
        return stream

    async def process_message(self, text: str) -> str:
        """Ask, and return the complete answer's text. Raises ParleyError if the answer fails."""
        return await self._completed(text, _Turn())

    async def regenerate(self, agent: str | None = None) -> str:
        """Regenerate the last answer, as `regenerate_stream` does, and return the complete new
        answer's text. Raises ParleyError if the answer fails.
        """
        return await self._completed(None, _Turn(agent))

    async def _completed(self, text: str | None, turn: _Turn) -> str:
        """The text of a complete answer. Raises ParleyError if the answer fails."""
        async with closing(self._stream(text, turn)) as chunks:
            async for _ in chunks:
                pass
        if turn.failure:
            raise turn.failure
        snapshot = await self._document.read()
        answers = [
            exchange.answers[-1] for exchange in snapshot.transcript.exchanges if exchange.answers
        ]
        segments = rounds(answers[-1])[-1].segments
        return "\n\n".join(segment.text for segment in segments if isinstance(segment, Text))

    def ask(self, text: str) -> str:
        """Ask, wait, and return the complete answer. For programs without an event loop.

        Raises ParleyError if the answer fails, or if an event loop is running, because this call
        would block it.
        """
        self._must_be_open()
        _must_not_wait("ask()", "process_message()")
        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(self.process_message(text))

    async def stop(self) -> None:
        """End the current answer, if any, and return when the transcript contains the notice."""
        if self._turn and not self._turn.is_over:
            await self._turn.stop()

    async def changes(self) -> dict[Path, str]:
        """The files that calls of Parley's own tools have changed in this session, the last changed
        one first, each with a unified diff.

        The diff is "" if the content is not text. Reverted changes are left out.
        """
        self._must_be_open()
        reverter = self._app.reverter("")
        files = [file for file in by_file(await reverter.histories()) if file.standing]
        return {file.place: await reverter.diff(file) for file in files}

    async def revert(self, *paths: str | os.PathLike[str]) -> list[Path]:
        """Restore the files that calls have changed in this session, or only the named ones; returns
        the restored files.

        A file that has changed since stays as it is: then, when the other files are restored,
        raises ParleyError. Raises BusyError while a message is being answered.
        """
        self._must_be_open()
        if self._turn and not self._turn.is_over:
            raise BusyError("this session is answering a message. Wait for it, or stop() it")
        reverter, named = self._app.reverter(""), set(map(_real, paths))
        files = by_file(await reverter.histories())
        chosen = [file for file in files if not named or file.place in named]
        outcome = await reverter.revert([each for file in chosen for each in file.standing])
        stale = [f"{conflict.path} has changed since" for conflict in outcome.conflicts]
        if problems := [*stale, *outcome.problems]:
            raise ParleyError(f"not reverted: {'; '.join(problems)}")
        return outcome.reverted

    async def aclose(self) -> None:
        """End the current answer, all connections and all servers."""
        await self.stop()
        if self._tokens is None:
            self._tokens = self.usage
            await self._app.close()

    def close(self) -> None:
        """Close the session after `ask`. Raises ParleyError if an event loop is running."""
        _must_not_wait("close()", "aclose()")
        if self._tokens is not None:
            return
        with self._runner or asyncio.Runner() as runner:
            runner.run(self.aclose())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def _chunks(self, text: str | None, turn: _Turn) -> AsyncGenerator[Chunk, None]:
        await self._take_turn(turn)
        task = turn.start(self._answer(text, turn))
        try:
            while (chunk := await turn.queue.get()) is not None:
                yield chunk
        finally:
            await turn.stop()
        if not task.cancelled():
            task.result()  # raise any other error: it is a bug
        yield {"type": "done"}

    async def _take_turn(self, turn: _Turn) -> None:
        """Start this turn, after ending a turn that is no longer read. Raises BusyError."""
        self._must_be_open()
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise ParleyError("a session must stay in the event loop of its first message")
        while self._turn and not self._turn.is_over:
            if self._turn.is_read:
                raise BusyError(
                    "this session is answering another message. Wait for it, or stop() it"
                )
            await self._turn.stop()
        self._loop, self._turn = loop, turn

    def _must_be_open(self) -> None:
        if self._tokens is not None:
            raise ParleyError(
                "this session is closed. Pass its transcript to a new Session to continue"
            )

    async def _answer(self, text: str | None, turn: _Turn) -> None:
        """Run the turn for a message, or for the last answer again if there is no message; every
        outcome leaves a valid transcript.
        """
        before = list(self._document.lines)
        try:
            if hint := self._begin(text, turn.agent or self._agent):
                turn.tell({"type": "hint", "content": in_python(hint)})
        except ParleyError as error:
            turn.fail(error)
            return
        ports = self._ports(turn)
        try:
            if text is None:
                ports = self._again(ports, turn)
            else:
                self._ask(text)
            end = await self._run(ports, turn.agent or self._agent)
            if end.kind in ("interrupted", "stopped", "nothing"):
                turn.fail(ParleyError(end.message))
        except asyncio.CancelledError:
            await engine.stopped(ports)
            turn.fail(UserCancelled())
        except ParleyError as error:
            await self._interrupted(ports, str(error))
            turn.fail(error)
        except Exception as error:
            await self._interrupted(
                ports, ": ".join(filter(None, (type(error).__name__, str(error))))
            )
            raise
        finally:
            if not (await self._document.read()).exchange.answers:
                self._document.lines = before  # the caller sends the question again

    def _begin(self, text: str | None, chosen: str | None) -> str:
        """A hint for the user, or "". Raises ParleyError if no turn may begin."""
        transcript, agent = engine.Snapshot.of(self.transcript, 0).transcript, self._settings.agent
        if agent and not chosen and self._settings.named_agent(agent) is None:
            raise ParleyError(no_such_agent(agent, self._settings))
        if text is None and not any(exchange.answers for exchange in transcript.exchanges):
            raise ParleyError("there is no answer to regenerate")
        match self._app.start(transcript, "", chosen, question=text):
            case Ready(hint):
                return hint
            case Refusal("no question"):
                raise ParleyError("the message is empty")
            case Refusal("unconfirmed agent", wish):
                name = self._app.agent_name(transcript, None)
                raise ParleyError(f"the transcript asks for {wish}. To accept, pass agent={name!r}")
            case Refusal() as refusal:
                raise ParleyError(refusal.text("agent=NAME", "transcript: "))

    def _ports(self, turn: _Turn) -> engine.Ports:
        chunks = Chunks()

        def status(text: str) -> None:
            if not turn.is_mute:
                turn.is_mute = True  # if this call fails, do not call again; the turn ends normally
                self._on_status(text)
                turn.is_mute = False
            if text:
                turn.tell({"type": "status", "content": text})

        def on_event(what: engine.TurnEvent) -> None:
            for chunk in chunks.of(what):
                turn.tell(chunk)

        return self._app.ports(self._document, "", Callbacks(status, on_event), self._references)

    def _again(self, ports: engine.Ports, turn: _Turn) -> engine.Ports:
        """The ports for a turn that regenerates the last answer."""
        transcript = engine.Snapshot.of(self.transcript, 0).transcript
        answered = [exchange for exchange in transcript.exchanges if exchange.answers]
        self._document.anchor = answered[-1].span.start
        name = self._app.agent_name(transcript, turn.agent or self._agent)
        return engine.regenerating(ports, name)

    async def _run(self, ports: engine.Ports, chosen: str | None) -> engine.End:
        transcript = (await self._document.read()).transcript
        await self._app.models.prepare(transcript, chosen)
        resolve = self._app.resolve(chosen)
        while (end := await engine.run_turn(ports, resolve)).kind == "waiting":
            await self._decide(ports, resolve)
        return end

    async def _decide(self, ports: engine.Ports, resolve: engine.Resolve) -> None:
        """Let `approve` decide on the first undecided call. Raises ParleyError if it cannot.

        An approval counts only for diffs that `approve` has seen. It does not count if a file has
        changed in the meantime: then the call still waits. It does not reach other calls with
        diffs.
        """
        observed = await engine.observe(ports, resolve)
        call, *others = observed.undecided()
        press = engine.Press("yn", "command")
        if isinstance(call, Proposal):
            diff = await asyncio.to_thread(_diff, _changes(observed, call))
            choice, reason = await self._choice(replace(call, diff=diff))
            press = replace(press, key=choice, reason=reason, seen=_seen(observed, call))
            if choice in YES and any(_changes(observed, other) for other in others):
                press = replace(press, reach="one")
        outcome = await engine.choose(ports, resolve, call.span.start, press)
        has_new_diff = any(doubt.kind == "changed" for doubt in outcome.doubts)
        if not outcome.decided and not has_new_diff:
            raise ParleyError(outcome.message)

    async def _choice(self, call: Proposal) -> tuple[Choice, str]:
        decision: object = self._approve(call)
        if inspect.isawaitable(decision):
            decision = await decision
        match decision:
            case bool():
                return "yo" if decision else "yn", ""
            case "yA" | "ya" | "yo" | "yO" | "yn" | "yN":
                return decision, ""
            case (False, str(reason)):
                return "yn", reason
            case ("yn" | "yN" as choice, str(reason)):
                return choice, reason
            case _:
                raise TypeError(f"approve must return {_DECISIONS}; it returned {decision!r}")

    async def _interrupted(self, ports: engine.Ports, reason: str) -> None:
        """Add to the transcript why the answer is incomplete, unless a notice is already there."""
        answers = (await self._document.read()).exchange.answers
        if answers and last_notice(answers[-1]) in (None, UNFINISHED):
            await end_unfinished(ports, "Interrupted", one_line(reason))

    def _ask(self, text: str) -> None:
        """Append the question, or fill an empty question at the end."""
        lines = self._document.lines
        question = join_blocks(question_blocks(Question((Text(fit(without_blank_edges(text))),))))
        exchanges = engine.Snapshot.of(self.transcript, 0).transcript.exchanges
        if exchanges and not exchanges[-1].answers and exchanges[-1].question == Question():
            del lines[exchanges[-1].span.start :]
        self._document.anchor = len(lines) + (1 if lines and lines[-1] else 0)
        lines += ["", *question] if lines and lines[-1] else question


async def _may_read(decide: MayRead | None, path: Path) -> bool:
    """Whether the program lets a question include a hidden file."""
    answer = decide(path) if decide else False
    return (await answer if inspect.isawaitable(answer) else answer) is True


class _Turn:
    """The turn for one message: its unread chunks, and their reader."""

    def __init__(self, agent: str | None = None) -> None:
        """`agent` answers only in this turn, instead of the session's agent."""
        self.agent = agent
        self.queue = asyncio.Queue[Chunk | None]()
        self.tell = self.queue.put_nowait
        self.reader: Callable[[], object] = lambda: None
        """Returns the stream, or None if the stream is no longer referenced."""
        self.is_mute = False
        """Whether statuses are suppressed because `on_status` has failed."""
        self.failure: ParleyError | None = None
        """The reason for an incomplete answer."""
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False

    def start(self, work: Awaitable[None]) -> asyncio.Future[None]:
        """Begin the work; when it ends, end the queue."""
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(lambda _: self.tell(None))
        return self._task

    @property
    def is_over(self) -> bool:
        """Whether the turn has ended, and its transcript is complete."""
        return self._task is not None and self._task.done()

    @property
    def is_read(self) -> bool:
        """Whether the consumer still waits for chunks."""
        return self.reader() is not None and not self._is_stopped

    def fail(self, error: ParleyError) -> None:
        """Record that there is no complete answer, and why."""
        error.args = (in_python(str(error)),)
        self.failure = error
        self.tell({"type": "error", "error": str(error)})

    async def stop(self) -> None:
        """End the work unless it is over, and return when everything is written."""
        self._is_stopped = True
        if self._task and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})


def _changes(observed: engine.Observation, call: Proposal | Broken) -> Sequence[FilePreview]:
    """The files that a call would change."""
    approvals = observed.situation.approvals
    preview = approvals.preview(call) if isinstance(call, Proposal) else None
    return preview.changes if preview else ()


def _diff(changes: Sequence[FilePreview]) -> str:
    """The unified diff of these files."""
    lines = (unified_diff(c.before, c.after, c.path, c.moved_to) for c in changes)
    return "\n".join(chain.from_iterable(lines))


def _seen(observed: engine.Observation, call: Proposal) -> Seen | None:
    """The calls as they were when `approve` was asked; None if this call's diff binds nothing."""
    approvals = observed.situation.approvals
    if not sighting(call, approvals).base:
        return None
    waiting = [each for each in observed.undecided() if isinstance(each, Proposal)]
    return Seen({sighting(each, approvals): LEAST_SEEN_S for each in waiting})


def _real(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(path))


def _must_not_wait(what: str, instead: str) -> None:
    """Raises ParleyError if an event loop is running in this thread."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise ParleyError(f"{what} would block the running event loop. Await {instead} instead")


def _read(table: Mapping[str, object], provider: str) -> Settings:
    """The settings in a table; its agents may use this provider. Raises SettingsError."""
    known = table.get("providers", {})
    if (
        provider
        and isinstance(known, Mapping)
        and provider not in known
        and provider not in PROVIDERS
    ):
        table = {**table, "providers": {**known, provider: {"kind": PACKAGE}}}
    settings, problems = read_settings(dict(table))
    if problems:
        raise SettingsError("\n".join(problems))
    return settings


def _folder(references: str | os.PathLike[str] | None) -> Callable[[], Path] | None:
    """The folder from which questions may include files. Raises SettingsError if the folder does
    not exist.
    """
    if references is None:
        return None
    folder = Path(references).absolute()
    if not folder.is_dir():
        raise SettingsError(f"references: no such folder: {one_line(str(folder))}")
    return lambda: folder


def _complete(settings: Settings) -> Settings:
    """The settings, including the content of the files that they refer to. Raises SettingsError."""
    settings, problems = with_files(settings)
    if problems:
        raise SettingsError("\n".join(problems))
    return settings


def _name_of(provider: Provider | None) -> str:
    """A provider's name; "" if there is no provider. Raises SettingsError if the name is
    invalid.
    """
    name: object = provider.name if provider else ""
    if provider and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise SettingsError(
            f"provider: expected a word as its name, got {one_line(repr(name), _LONGEST)}"
        )
    return str(name)


def _with_provider(settings: Settings, name: str) -> Settings:
    """The settings with this in-process provider, and an agent for it. Raises SettingsError."""
    entry = settings.provider(name) or ProviderSettings(name, kind=PACKAGE)
    agents = [agent.name for agent in settings.agents if agent.provider == name]
    if entry.kind != PACKAGE or (not agents and any(a.name == name for a in settings.agents)):
        raise SettingsError(f"provider: the name {name!r} is taken")
    if not agents:
        settings = replace(settings, agents=(*settings.agents, Agent(name, name, name)))
    providers = {**settings.providers, name: entry}
    return replace(settings, providers=providers, agent=settings.agent or (agents or [name])[0])


def _with_workspace(settings: Settings, folder: str | os.PathLike[str] | None) -> Settings:
    """The settings with this workspace; a program's working directory alone is not a workspace.

    A session has no skills, because a program's requests must not depend on files in a home
    directory.
    """
    settings = replace(settings, skills=replace(settings.skills, enabled=False))
    table = settings.workspace
    if folder is not None:
        path = str(Path(folder).absolute())
        return replace(settings, workspace=replace(table, enabled=True, root=path))
    if table.enabled == "project" and not table.root:
        return replace(settings, workspace=replace(table, enabled=False))
    return settings


def _with_objects(settings: Settings, names: Sequence[str]) -> Settings:
    """The settings with these in-process servers. Raises SettingsError if a name is taken."""
    for number, name in enumerate(names):
        if name in RESERVED or name in settings.mcp.servers or name in names[:number]:
            raise SettingsError(f"servers: the name {name!r} is taken")
    return settings.with_servers({name: ServerSettings(name, builtin=True) for name in names})
