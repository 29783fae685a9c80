"""All agents: one process for each provider and root, and one session for each chat.

A session is a hint: if the chat's text is no longer what the agent knows, a new session receives the
whole text. Knows when a process is needed, but not how it starts.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from parley.chat.front_matter import read_front_matter
from parley.chat.history import ModelTurn, Turn, UserTurn, history
from parley.hints import Hints
from parley.iterators import closing
from parley.models.acp import ConversationDigest, conversation_digest, prompt
from parley.models.agent_offers import AgentOffer, offer_of
from parley.models.events import Aside, Event
from parley.models.request import Request
from parley.models.searches import WEB_SEARCH
from parley.paths import state_folder
from parley.processes.reaper import Reaper
from parley.programs import start_folder
from parley.settings.values import OWN_MODEL, ProviderSettings
from parley.text import one_line
from parley.tools.agent_calls import NOT_AWAITED
from parley.tools.passed_servers import PassedServers
from parley.tools.results import Outcome

if TYPE_CHECKING:
    from parley.acp.agent_process import AgentProcess
    from parley.acp.agent_session import AgentSession
    from parley.acp.client_request import AgentTerminal, ClientRequest, ClientTools
    from parley.models.agent_status import AgentStatus
    from parley.tools.client_calls import ApprovedChange, ApprovedCommand

IDLE_S = 600.0
"""An agent without an open prompt ends after this time."""
UNSAVED_CHATS = "/unsaved/"
"""The beginning of the keys of chats without a file."""
_CLOSE_S = 3.0
_COMMANDS_S = 0.3
"""How long a new session may take to report its commands, before the user sees what it offers."""
_PROJECT = "project"
_NO_SERVERS = PassedServers()
_OWN_SEARCH = "{} itself decides whether to search the web, so web_search has no effect"
_NEW_SESSION = "{} does not know this chat yet, so its new session begins with the whole text"


class AgentProcesses:
    """The running agents, for the lifetime of Parley's process."""

    def __init__(self, environ: Mapping[str, str], max_bytes: int, idle_s: float = IDLE_S) -> None:
        """`max_bytes` limits each call's result."""
        self._environ = environ
        self._max_bytes = max_bytes
        self._idle_s = idle_s
        self._reaper = Reaper()
        self._hints = Hints(state_folder(environ) / "agent-sessions.json")
        self._offer_hints = Hints(state_folder(environ) / "agent-offers.json")
        self._offers: dict[tuple[str, ...], AgentOffer] = {}
        """What each agent offered last, by its command."""
        self._processes: dict[tuple[str, Path, frozenset[str]], AgentProcess] = {}
        self._sessions: dict[str, AgentSession] = {}
        self._ids = count(1)
        self._token = secrets.token_hex(4)
        self._informed_chats = set[str]()
        self._messages = set[tuple[str, str]]()
        """The other messages that chats have shown."""

    def _next_id(self) -> str:
        """An id that no call of any chat has, so that neither an agent nor a file can forge it."""
        return f"{self._token}.{next(self._ids)}"

    async def stream(
        self,
        provider: ProviderSettings,
        request: Request,
        chat: str,
        folder: Path,
        client: ClientTools | None = None,
        servers: PassedServers = _NO_SERVERS,
        note_start: Callable[[bool], None] = lambda _: None,
    ) -> AsyncIterator[Event]:
        """The events of an agent's next reply. If the chat continues the open prompt, the prompt
        continues; otherwise, Parley sends a new prompt. `folder` is the chat's project, `client`
        the workspace, which an agent may use that works in it, and `servers` are those that the
        agent may start itself. If the agent does not run, `note_start` is called with True before
        its start, and with False after it. Raises ModelError.
        """
        turns, session = _whole(request), self._sessions.get(chat)
        digest, root = ConversationDigest(turns), self._root(provider, folder)
        if client and not root.is_relative_to(client.root):
            client = None
        if session and self._is_of(session, provider, root) and _continues(session, turns):
            session.requests.client = client
            results = _results(turns)
            session.dismiss({each: results.get(each, "") for each in session.asked_calls})
        else:
            if session:
                await self._close(session)
            names = client.names if client else frozenset[str]()
            session, is_known = await self._begun(
                provider, root, chat, request, names, servers, note_start
            )
            session.requests.client = client
            if (text := _left_out(session)) and (chat, text) not in self._messages:
                self._messages.add((chat, text))
                yield Aside(text)
            if _wants_search(request) and (chat, WEB_SEARCH) not in self._messages:
                self._messages.add((chat, WEB_SEARCH))
                yield Aside(_OWN_SEARCH.format(provider.name))
            if len(turns) > 1 and not is_known and chat not in self._informed_chats:
                self._informed_chats.add(chat)
                yield Aside(_NEW_SESSION.format(provider.name))
            from parley.models.agent_modes import is_asking_mode

            if not is_asking_mode(session.process.name, session.options.mode):
                yield Aside(
                    f"{provider.name} works in the mode {one_line(session.options.mode, 60)}"
                )
            images = session.process.capabilities.get("promptCapabilities")
            has_pictures = isinstance(images, dict) and images.get("image") is True
            session.question = conversation_digest(_to_question(turns))
            session.begin(prompt(request, is_new=not is_known, with_pictures=has_pictures))
        try:
            async with closing(session.reply(provider.name, request.model, digest)) as events:
                async for event in events:
                    yield event
        finally:
            self._rest(session.process)
            self._note_offer(session)
        if session.digest and _has_file(chat):
            key = _key(provider, root, chat, request)
            self._hints.put(key, f"{session.id}\n{session.digest}")

    def offer(self, provider: ProviderSettings, chat: str) -> AgentOffer:
        """The modes, models and commands that an agent offers in a chat, as far as they are
        known."""
        session = self._sessions.get(chat)
        if (
            session
            and session.process.provider == provider
            and session.options.offer != AgentOffer()
        ):
            return session.options.offer
        if provider.command not in self._offers:
            known = self._offer_hints.get("\n".join(provider.command))
            self._offers[provider.command] = offer_of(known)
        return self._offers[provider.command]

    async def look(
        self,
        provider: ProviderSettings,
        folder: Path,
        chat: str,
        tools: Callable[[Path], frozenset[str]],
    ) -> AgentOffer:
        """The modes, models and commands that an agent offers in a chat; opens the chat's session
        if it is missing. The other parameters are those of `process`. Raises ModelError.
        """
        session, root = self._sessions.get(chat), self._root(provider, folder)
        if session is None or not self._is_of(session, provider, root):
            process = await self._process(provider, root, tools(root))
            session = self._new_session(process)
            await session.open("")
            session.digest = conversation_digest(())
            await asyncio.sleep(_COMMANDS_S)
            self._rest(process)
            if chat in self._sessions or provider.servers:  # a turn has begun, or needs servers
                process.sessions.pop(session.id, None)
            else:
                self._sessions[chat] = session
        self._note_offer(session)
        return session.options.offer

    def _note_offer(self, session: AgentSession) -> None:
        command, offer = session.process.provider.command, session.options.offer
        self._offers[command], key = offer, "\n".join(command)
        if self._offer_hints.get(key) != (hint := offer.hint()):
            self._offer_hints.put(key, hint)

    def _root(self, provider: ProviderSettings, folder: Path) -> Path:
        place = folder if provider.cwd == _PROJECT else start_folder(provider.cwd, folder)
        return (place or folder).absolute()

    def _is_of(self, session: AgentSession, provider: ProviderSettings, root: Path) -> bool:
        process = session.process
        return process.provider == provider and process.root == root and not process.is_over

    async def _close(self, session: AgentSession) -> None:
        session.cancel()
        await session.settled()

    async def _begun(
        self,
        provider: ProviderSettings,
        root: Path,
        chat: str,
        request: Request,
        client_tools: frozenset[str],
        servers: PassedServers,
        note_start: Callable[[bool], None],
    ) -> tuple[AgentSession, bool]:
        """A session for a prompt, and whether it knows the conversation. Raises ModelError."""
        must_start = not self._running(provider, root, client_tools)
        if must_start:
            note_start(True)
        process = await self._process(provider, root, client_tools)
        before = conversation_digest(_whole(request)[:-1])
        session = self._sessions.get(chat)
        if session and session.process is process and session.digest == before:
            await _prepare(session, request)
            return session, bool(session.question)  # without one, it has had no prompt
        if session:
            session.process.sessions.pop(session.id, None)
        session = self._new_session(process)
        session.servers = servers
        is_known = await session.open(self._hint(provider, root, chat, request, before))
        if must_start:
            note_start(False)
        self._sessions[chat] = session
        await _prepare(session, request)
        return session, is_known

    def _new_session(self, process: AgentProcess) -> AgentSession:
        from parley.acp.agent_session import AgentSession  # most chats have no such agent

        return AgentSession(process, self._next_id, self._max_bytes)

    def _hint(
        self, provider: ProviderSettings, root: Path, chat: str, request: Request, digest: str
    ) -> str:
        """The id of the session that knows the conversation with this digest; "" if none does, or for
        a chat without a file.
        """
        if not _has_file(chat):
            return ""
        key = _key(provider, root, chat, request)
        known, _, last = (self._hints.get(key) or "").partition("\n")
        return known if last == digest else ""

    async def process(
        self, provider: ProviderSettings, folder: Path, tools: Callable[[Path], frozenset[str]]
    ) -> AgentProcess:
        """The agent's started process for the project in `folder`, which chats will use; `tools`
        returns the workspace's tools in its root. Raises ModelError.
        """
        root = self._root(provider, folder)
        return await self._process(provider, root, tools(root))

    async def _process(
        self, provider: ProviderSettings, root: Path, client_tools: frozenset[str]
    ) -> AgentProcess:
        """The process for an agent that knows of these tools; a process learns them at its start.
        Raises ModelError.
        """
        process = self._running(provider, root, client_tools)
        if process is None:
            key = (provider.name, root, client_tools)
            if (other := self._processes.get(key)) and not other.is_over:
                other.end()
            from parley.acp.agent_process import AgentProcess

            process = self._processes[key] = AgentProcess(
                provider, root, self._environ, self._reaper, client_tools
            )
        try:
            await process.started()
        finally:
            self._rest(process)  # perhaps no prompt follows
        return process

    def _running(
        self, provider: ProviderSettings, root: Path, client_tools: frozenset[str]
    ) -> AgentProcess | None:
        """The process for an agent with these settings; None if none runs."""
        process = self._processes.get((provider.name, root, client_tools))
        is_usable = process and not process.is_over and process.provider == provider
        return process if is_usable else None

    def status(self) -> tuple[AgentStatus, ...]:
        """The processes that run, or ran last."""
        return tuple(process.status() for process in self._processes.values())

    def renew(self, provider: ProviderSettings, but: AgentProcess | None = None) -> None:
        """End an agent's other processes that no chat waits for, so the next question starts a new
        one.
        """
        busy = {id(each.process) for each in self._sessions.values() if each.is_open}
        for (name, *_), process in self._processes.items():
            is_idle = id(process) not in busy and process is not but
            if name == provider.name and is_idle and not process.is_over:
                process.end()

    def _rest(self, process: AgentProcess) -> None:
        """End a process that stays idle from now on. A process with an open prompt rests again
        after its next reply.
        """
        known = process.rested = object()

        def end() -> None:
            if process.rested is not known or process.is_over:
                return
            if process.is_busy:
                self._rest(process)
            elif not any(s.process is process and s.is_open for s in self._sessions.values()):
                process.end()

        asyncio.get_running_loop().call_later(self._idle_s, end)

    async def call(
        self,
        chat: str,
        call_id: str,
        changes: Sequence[ApprovedChange] = (),
        commands: Sequence[ApprovedCommand] = (),
    ) -> Outcome:
        """Allow a call that the user approved, once, and wait for its outcome. The call shows these
        changes of files, and these commands.
        """
        session = self._sessions.get(chat)
        if session is None:
            return Outcome("error", NOT_AWAITED)
        return await session.answer(call_id, changes, commands)

    async def serve(
        self,
        chat: str,
        call_id: str,
        work: Callable[[ClientRequest], Awaitable[Outcome | AgentTerminal]],
    ) -> Outcome | None:
        """Carry out the request that became this call; None if there is no such request."""
        session = self._sessions.get(chat)
        return await session.serve(call_id, work) if session else None

    def awaits(self, chat: str, call_id: str) -> bool:
        """Whether an agent waits for the user's choice on this call."""
        session = self._sessions.get(chat)
        return session is not None and session.awaits(call_id)

    def dismiss(self, chat: str, reasons: Mapping[str, str]) -> None:
        """Tell a chat's agent that the calls with these ids must not run, and why."""
        if session := self._sessions.get(chat):
            session.dismiss(reasons)

    def mode(self, chat: str) -> str:
        """The mode of a chat's session; "" if the agent has no modes."""
        session = self._sessions.get(chat)
        return session.options.mode if session else ""

    async def close(self) -> None:
        """End all agents; their permissions are cancelled."""
        for session in self._sessions.values():
            session.cancel()
        processes = [process.close() for process in self._processes.values()]
        terminals = [session.requests.terminals.closed() for session in self._sessions.values()]
        if processes:
            await asyncio.wait(
                map(asyncio.ensure_future, (*processes, *terminals)), timeout=_CLOSE_S
            )
        await self._reaper.close()


def _whole(request: Request) -> tuple[Turn, ...]:
    """The whole conversation, even if a prompt would contain only a part of it."""
    return history(request.transcript, request.at, max_full_exchanges=None)


def _continues(session: AgentSession, turns: Sequence[Turn]) -> bool:
    """Whether the conversation continues an open prompt: the same question, and all calls that ended
    the last reply have results."""
    last = len(_to_question(turns))
    is_same = session.question == conversation_digest(turns[:last])
    has_all = session.asked_calls <= _results(turns).keys()
    return session.is_open and is_same and bool(session.asked_calls) and has_all


def _results(turns: Sequence[Turn]) -> Mapping[str, str]:
    """The results of the calls since the last question, by id."""
    return {
        outcome.call.id: outcome.content
        for turn in turns[len(_to_question(turns)) :]
        if isinstance(turn, ModelTurn)
        for outcome in turn.calls
    }


def _to_question(turns: Sequence[Turn]) -> Sequence[Turn]:
    """The turns up to the last question."""
    questions = [number for number, turn in enumerate(turns) if isinstance(turn, UserTurn)]
    return turns[: questions[-1] + 1] if questions else turns


def _left_out(session: AgentSession) -> str:
    """A message about the servers that the user named, and that the agent does not receive; "" if it
    receives all of them.
    """
    _, others = session.servers.accepted(session.process.capabilities)
    reasons = [f"{name} (the agent does not support its transport)" for name in others]
    reasons += session.servers.problems
    name = session.process.provider.name
    return f"{name} does not receive these servers: {', '.join(reasons)}" if reasons else ""


def _has_file(chat: str) -> bool:
    """Whether a chat with this key has a file, so that another process may continue it."""
    return not chat.startswith(UNSAVED_CHATS)


def _wants_search(request: Request) -> bool:
    """Whether the user's settings or the chat's front matter turn the web search on."""
    keys = read_front_matter(request.transcript.front_matter).keys
    return request.web_search or keys.get("web_search") is True


async def _prepare(session: AgentSession, request: Request) -> None:
    """Give a session the request's model and mode. Raises ModelError."""
    await session.options.set_model(_chosen_model(request))
    await session.options.set_mode(request.mode)


def _chosen_model(request: Request) -> str:
    """The model that the user chose; "" if the agent chooses its model itself."""
    return "" if request.model == OWN_MODEL else request.model


def _key(provider: ProviderSettings, root: Path, chat: str, request: Request) -> str:
    """The key of a chat's session. A session that was given a model cannot return to the agent's
    own.
    """
    words = (*provider.command, "", root, chat, *(["model"] if _chosen_model(request) else []))
    return "\n".join(map(str, words))
