"""The application, which outlives chats: settings, provider connections, MCP servers, ledger, demo.

Each part is started when it is first needed; one app serves all chats in a process.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley import engine
from parley.acp.agent_processes import UNSAVED_CHATS, AgentProcesses
from parley.chat.front_matter import read_front_matter
from parley.chat.transcript import Transcript
from parley.clock import PausableClock
from parley.demo import PACE_HEADER
from parley.errors import ModelError, ParleyError
from parley.frozen import frozen
from parley.instructions.project import Instructions
from parley.instructions.skills import skill_list
from parley.mcp.servers import Servers
from parley.models.attempts import Attempts
from parley.models.encode import encoded
from parley.models.formats import ACP
from parley.models.model_list import ModelList
from parley.models.request import Request
from parley.models.text_tools.template import load_templates
from parley.policy import topic
from parley.policy.doubts import LEAST_SEEN_S
from parley.policy.permissions import in_any_folder
from parley.policy.rate import RateWindow
from parley.providers.client import ProviderClient, wire_format
from parley.providers.model_lists import ModelLists
from parley.providers.sampling_requests import Sampler
from parley.providers.sdk_imports import warm, warm_tools
from parley.runtime.agent_accounts import AgentAccounts
from parley.runtime.agent_servers import AgentServers
from parley.runtime.app_accounts import AppAccounts
from parley.runtime.app_instructions import AppInstructions, ProjectInstructions
from parley.runtime.app_models import AppModels
from parley.runtime.app_workspace import AppWorkspace
from parley.runtime.asyncio_ports import TurnClock
from parley.runtime.audit import AuditedObserver
from parley.runtime.chat_agents import ChatAgents
from parley.runtime.model_port import ModelPort
from parley.runtime.prompt_list import PromptList
from parley.runtime.reply_retries import ReplyRetries
from parley.runtime.skill_texts import SkillTexts
from parley.runtime.text_tool_caller import TextToolCaller
from parley.runtime.tools_port import ToolsPort
from parley.runtime.turn_attachments import TurnAttachments
from parley.settings import resolve
from parley.settings.installed_agents import agents_files, with_installed
from parley.settings.load import ConfigFile
from parley.settings.readiness import (
    Ready,
    Refusal,
    depends_on_logins,
    readiness,
    wanted_agent,
    wants_more,
)
from parley.settings.resolve import ListedAgent, listed_agent
from parley.settings.values import Agent, ProviderSettings, Settings
from parley.storage.attachment_files import AttachmentCache, ChatAttachments
from parley.storage.ledger import ChatLedger, LedgerFile, default_path
from parley.storage.prompt_folders import PromptFolders
from parley.storage.reference_texts import (
    EditorTexts,
    FileReferences,
    HiddenFiles,
    no_editor,
    nobody_asked,
)
from parley.storage.skill_folders import SkillFolders
from parley.storage.text_trust import TextTrust
from parley.storage.trust import ProjectTrust
from parley.tools.catalogue import Tool
from parley.tools.server_settings import MOCK, ServerSettings
from parley.tools.skill_tool import skill_tool
from parley.workspace.editor_files import EditorFiles, NoEditor
from parley.workspace.root import work_tree

if TYPE_CHECKING:
    from parley.demo.server import DemoServer
    from parley.mcp.callbacks import Elicitor
    from parley.mcp.functions import InProcess
    from parley.models.package import Provider
    from parley.policy.permissions import Permission
    from parley.runtime.agent_changes import AgentChanges
    from parley.runtime.reverting import Reverter
    from parley.workspace.editor_code import EditorCode


@frozen
class FrontEnd:
    """What a front end offers: it shows servers' forms, and asks about files elsewhere.

    `files` has the texts of the files that are open in an editor, and `code` asks the editor's
    language servers, for the workspace tools.
    `may_read` asks the user about a referenced file outside the working directory, and
    `may_read_hidden` about a hidden file in it, whose yes holds for the chat. `patience` is
    passed to `TextToolCaller`; set it only if text that was shown can be withdrawn.
    """

    elicitor: Elicitor | None = None
    may_read: Callable[[Path], Awaitable[bool]] = nobody_asked
    patience: int | None = None
    files: EditorFiles = field(default_factory=NoEditor)
    code: EditorCode | None = None
    may_read_hidden: Callable[[Path], Awaitable[bool]] = nobody_asked


@frozen
class ProgramObjects:
    """What a program that uses Parley as a library passes as objects.

    `servers` maps names in the settings to servers in this process. `provider` creates replies; its
    name is in the settings. Apps with the same `request_times` share one rate limit. `instructions`
    is a text for all system prompts.
    """

    servers: Mapping[str, InProcess] | None = None
    provider: Provider | None = None
    request_times: list[float] | None = None
    instructions: str = ""


_NOBODY, _NO_OBJECTS, _EMPTY = FrontEnd(), ProgramObjects(), Transcript()
_TOOLS_S = 1.0
"""How many seconds later the SDKs for calls are imported."""


class App:
    """The application: one for each process, closed when the process ends."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        ledger: LedgerFile | None = None,
        *,
        trust: LedgerFile | None = None,
        folder: Callable[[], Path] = Path.cwd,
        front_end: FrontEnd = _NOBODY,
        objects: ProgramObjects = _NO_OBJECTS,
        before: App | None = None,
        fault: str = "",
    ) -> None:
        """`folder` returns the folder that may contain a project's server file. `trust`, by default
        the ledger, records the user's trust in this file.

        If the app `before` is about to close, its servers with unchanged settings continue here. If
        the settings contain a `fault`, no turn begins.
        """
        self.settings = self._own = settings
        self.environ = environ
        pace = environ.get("PARLEY_DEMO_PACE")
        self.client = ProviderClient(
            environ,
            self._demo_url,
            builtin_headers={PACE_HEADER: pace} if pace else {},
            in_process=objects.provider,
            has_own_process=objects is _NO_OBJECTS,
        )
        self.models = AppModels(ModelLists(self.client, environ), lambda: self.settings, environ)
        self._rate = RateWindow(settings.safety.rate_limit_per_minute, objects.request_times)
        sample = Sampler(self.client, self._rate, self._sampled).sample
        self._closes_servers = True
        taken = before and before.hand_over(settings)
        self.workspace: AppWorkspace = (
            before.workspace if before and taken else AppWorkspace(environ)
        )
        self.workspace.use(front_end.files, front_end.code, self._ledger_file)
        self.servers = taken or Servers(
            {},
            environ=environ,
            max_bytes=settings.loop.result_max_bytes,
            elicitor=front_end.elicitor,
            folder=folder,
            sample=sample,
            in_process=objects.servers,
            workspace=self.workspace.server,
            known_tools=self.workspace.known_tools,
        )
        self.servers.sample = sample
        self.agent_processes: AgentProcesses = (
            before.agent_processes
            if before and taken
            else AgentProcesses(environ, settings.loop.result_max_bytes)
        )
        self.agent_accounts = AgentAccounts(
            self.agent_processes, environ, lambda: Path(self.project()), self.workspace.client_tools
        )
        self.accounts = AppAccounts(
            self.servers, self.client.accounts, lambda: self.settings, self.look_at_logins
        )
        self._folder = folder
        self._ledger = ledger
        self._trust = trust
        self._fault = fault
        self._has_given_hint = False
        self._warm = set[tuple[str, bool, bool]]()
        self._notices: dict[str, set[str]] = {}
        """The notices that each chat's requests have caused so far."""
        self._may_read = front_end.may_read
        self._may_read_hidden = front_end.may_read_hidden
        self._attachments = AttachmentCache()
        self._config_file = ConfigFile()
        self._project = ProjectTrust(folder, self._trust_file)
        self.text_trust = TextTrust(self._trust_file)
        """The project's texts that the user has agreed to."""
        own_folders = environ, self._project_folder, self.text_trust
        self.skills = SkillFolders(*own_folders)
        self.prompts = PromptList(PromptFolders(*own_folders), self.servers)
        self._skill_tool: Tool | None = None
        self._known: dict[bool, tuple[tuple[object, ...], engine.ChatSettings]] = {}
        """With and without instructions, the last settings of a chat and their sources, before the
        corrections that requests have taught.
        """
        self._instructions = AppInstructions(environ, self.text_trust, objects.instructions)
        self._look_at_project()
        self.look_at_logins()
        text_tools = settings.prompt_tools
        attempts = Attempts(
            text_tools.max_retries, text_tools.retry_delay_ms, text_tools.temperature_reduction
        )
        self._text_tools = TextToolCaller(
            attempts, text_tools.records, front_end.patience, has_tools=self._has_tools
        )
        self._templates, _ = load_templates(text_tools.templates)
        self._demo: asyncio.Task[DemoServer] | None = None

    def hand_over(self, settings: Settings) -> Servers | None:
        """Hand the servers over to another app that has these settings; returns None if the servers
        cannot be used with these settings.

        The servers keep their elicitor and folder.
        """
        if settings.loop.result_max_bytes != self.servers.max_bytes:
            return None
        self._closes_servers = False
        return self.servers

    def untrusted(self) -> list[Path]:
        """The working directory's current server files that the user has not trusted.

        Show them to the user, then pass them to `trust`. This method reads the folder again:
        Parley now also uses files that the user has trusted elsewhere.
        """
        self._look_at_project()
        return list(self._project.untrusted)

    def trusted(self) -> list[Path]:
        """The working directory's server files that are in use, as last read."""
        return list(self._project.trusted)

    def seen(self, path: Path) -> bytes:
        """The content of an untrusted file, as last read, to show to the user."""
        return self._project.seen(path)

    def trust(self, path: Path, content: bytes | None = None, *, pinned: bool = False) -> None:
        """Trust `content`, by default the content that `untrusted` read last, and use its servers.

        `pinned` extends the trust to the current versions of the project's own programs that the
        file refers to. Raises ParleyError if the file has changed.
        """
        self._project.trust(path, content, pinned=pinned)
        self._look_at_project()

    def problems(self) -> tuple[str, ...]:
        """The problems in the project's server files and instructions, and in an edited
        `mcp.config_file`, one line each."""
        own, project = self._config_file.problems, self._project.file.problems
        return (*own, *project, *self._instructions.problems)

    def instructions(
        self, transcript: Transcript, folder: Callable[[], Path] | None = None
    ) -> ProjectInstructions:
        """The instructions for a chat now; `folder` returns the user's working directory."""
        return self._instructions.look(transcript, self.settings, (folder or self._folder)())

    def instruction_news(self, transcript: Transcript) -> tuple[list[str], list[str]]:
        """The names of a chat's instruction files to which the user has not agreed, and the
        problems; each only once.
        """
        return self._instructions.news(self.instructions(transcript).offered)

    @property
    def has_unreadable_file(self) -> bool:
        """Whether `mcp.config_file` is unreadable, so that the user's own servers are missing."""
        return self._config_file.is_unreadable

    def _look_at_project(self) -> None:
        before, had_servers = self._own, bool(self._project.file.servers)
        self._own = self._config_file.settings(self._own)
        self._project.look(self._own.mcp.servers)
        servers = self._project.file.servers
        if self._own is not before or had_servers or servers:
            settings = self._own.with_servers(servers).with_logins(self.settings.logins)
            self.settings = settings.with_installed(self.settings.installed)
        own = [ServerSettings(MOCK, builtin=True)]
        if workspace := self.workspace.look(self.settings.workspace, self._folder()):
            own.append(workspace)
        self.servers.use({**self.settings.mcp.servers, **{server.name: server for server in own}})

        self.look_at_skills()

    def look_at_logins(self) -> None:
        """Find out which providers the user is signed in to, and which agents' programs are
        installed; another process may have changed it."""
        providers = self.settings.all_providers().values()
        settings = self.settings.with_logins(self.client.accounts.signed_in(providers))
        self.settings = with_installed(settings, self.environ)

    def look_at_skills(self) -> None:
        """Read the skills again, if the settings use them."""
        settings = self.settings.skills
        if settings.enabled:
            self.skills.look()
        offered = [s.skill for s in self.skills.skills.values() if s.skill.is_offered]
        listed = skill_list(offered, settings.budget_tokens)
        self._skill_tool = skill_tool(listed) if listed else None

    def _project_folder(self) -> Path:
        return Path(self.project())

    def _project_of(self, folder: Callable[[], Path] | None) -> Path:
        return Path(self.project(folder))

    def agents(self) -> list[str]:
        """The names of all agents."""
        return [agent.name for agent in self.settings.all_agents()]

    def agent(self, transcript: Transcript, chosen: str | None) -> ListedAgent:
        """A chat's agent; `chosen` is the user's choice in this session."""
        return self.models.listed(resolve.agent_of(transcript, self.settings, self.environ, chosen))

    def agent_name(self, transcript: Transcript, chosen: str | None) -> str:
        """The name of a chat's agent."""
        return self.agent(transcript, chosen).name

    def start(
        self,
        transcript: Transcript,
        chat: str,
        chosen: str | None,
        *,
        is_typed: bool = False,
        question: str | None = None,
        folder: Callable[[], Path] | None = None,
    ) -> Ready | Refusal:
        """Whether a turn may begin in the chat at this path; the hint is given only the first time.

        If `is_typed`, the user has typed the agent that the chat asks for after the file was read.
        In a chat that was created here, this counts as the user's agreement.
        """
        if self._fault:
            return Refusal("unreadable settings", self._fault)
        if depends_on_logins(transcript, self.settings, chosen):
            self.look_at_logins()
        outcome = readiness(
            transcript,
            self.settings,
            self.environ,
            chosen,
            may_want=lambda agent: self.ledger(chat).may_want(agent, is_typed=is_typed),
            question=question,
            agents_files=lambda: agents_files(self._project_of(folder), self.environ),
        )
        if isinstance(outcome, Ready) and outcome.hint:
            hint, self._has_given_hint = "" if self._has_given_hint else outcome.hint, True
            outcome = replace(outcome, hint=hint)
        return outcome

    def confirm(self, transcript: Transcript, chat: str, *, is_shown: bool = False) -> bool:
        """Record that the user agrees to the agent, provider and model that a file asks for, because
        the user chose them. Returns False if the file asks for more, so that the user must first see
        it; with `is_shown`, the user has seen it.
        """
        if wants_more(transcript) and not is_shown:
            return False
        if agent := wanted_agent(transcript):
            self.ledger(chat).confirm(agent)
        return True

    def resolve(
        self,
        chosen: str | None,
        fixed: Agent | None = None,
        folder: Callable[[], Path] | None = None,
        project: ProjectInstructions | None = None,
    ) -> engine.Resolve:
        """The function that makes a chat's settings from its text; a `fixed` agent overrides the
        agent in the text.

        The instructions of the `project` (by default, of the one in `folder` now) and each
        provider's list of models, stay the same for as long as the function is used, so their
        changes do not change the turn.
        """
        known = {project.choice: project.agreed} if project else dict[Any, Instructions]()

        def instructions_of(transcript: Transcript) -> Instructions:
            wanted = read_front_matter(transcript.front_matter).keys.get("instructions")
            if wanted not in known:
                known[wanted] = self.instructions(transcript, folder).agreed
            return known[wanted]

        return self._resolve(chosen, fixed, instructions_of)

    def resolve_to_draw(self, chosen: str | None) -> engine.Resolve:
        """The same function for drawing a chat, which needs no instructions and reads no files."""
        return self._resolve(chosen, None, lambda _: ())

    def _resolve(
        self,
        chosen: str | None,
        fixed: Agent | None,
        instructions_of: Callable[[Transcript], Instructions],
    ) -> engine.Resolve:
        lists: dict[str, ModelList] = {}

        def agent_of(transcript: Transcript) -> ListedAgent:
            agent = resolve.agent_of(transcript, self.settings, self.environ, chosen)
            known = self.models.known(agent.provider)
            return listed_agent(agent, lists.setdefault(agent.provider, known))

        def settings_of(transcript: Transcript) -> engine.ChatSettings:
            agent, instructions = fixed or agent_of(transcript), instructions_of(transcript)
            sources = transcript.front_matter, self.settings, agent, self._skill_tool, instructions
            known = self._known.get(bool(instructions))
            if known is None or known[0] != sources:
                settings = resolve.chat_settings(
                    replace(_EMPTY, front_matter=transcript.front_matter),  # keeps no text
                    self.settings,
                    agent,
                    self._templates,
                    skills=self._skill_tool,
                    instructions=instructions,
                )
                known = self._known[bool(instructions)] = sources, settings
            settings = known[1]
            request = self.client.settled(self._text_tools.settled(settings.request))
            if chosen:  # the user has not agreed to the file's mode and search, so neither is used
                searches = request.web_search and agent.web_search
                request = replace(request, mode="", web_search=searches)
                settings = replace(settings, agent=agent.name)
            return replace(settings, request=replace(request, transcript=transcript))

        return settings_of

    def prepare(self, transcript: Transcript, chosen: str | None) -> None:
        """Prepare the parts of the next request that come from earlier exchanges; the transcript
        caches them."""
        if transcript.exchanges:
            with suppress(ParleyError):  # the turn itself will report it
                request = self.resolve_to_draw(chosen)(transcript).request
                request = replace(request, transcript=transcript, at=len(transcript.exchanges) - 1)
                encoded(wire_format(self.provider(request.provider), request).body(request))

    def ledger(self, chat: str, folder: Callable[[], Path] | None = None) -> ChatLedger:
        """The ledger of the chat at this path; `folder` returns the user's working directory, for
        permissions.
        """
        return self._ledger_file().chat(chat, partial(self.project, folder))

    def project(self, folder: Callable[[], Path] | None = None) -> str:
        """The folder of the user's current project, for permissions: the Git work tree of the
        working directory, else the working directory.
        """
        place = Path(os.path.realpath((folder or self._folder)()))
        return str(work_tree(place) or place)

    def permissions(self) -> list[tuple[Permission, float]]:
        """The user's permissions, oldest first, with their times."""
        return self._ledger_file().permissions()

    def allow(self, permission: Permission, tool: Tool) -> Permission:
        """Store a permission that the user gives for this tool; returns it with its number."""
        known = in_any_folder(tool) if permission.is_everywhere else tool
        return self._ledger_file().allow(permission, known.definition)

    def disallow(self, number: int) -> bool:
        """Remove the user's permission with this number; returns whether there was one."""
        return self._ledger_file().disallow(number)

    def _ledger_file(self) -> LedgerFile:
        if self._ledger is None:
            self._ledger = LedgerFile(default_path(self.environ))
        self._ledger.keep_days = self.settings.log.keep_days
        return self._ledger

    def _trust_file(self) -> LedgerFile:
        return self._trust or self._ledger_file()

    def ports(
        self,
        document: engine.Document,
        chat: str,
        observer: engine.Observer,
        folder: Callable[[], Path] | None = Path.cwd,
        editor: EditorTexts = no_editor,
        *,
        can_take_back: bool = True,
    ) -> engine.Ports:
        """The ports for a turn in the chat at this path; `can_take_back` is false if text that was
        shown cannot be replaced.

        `folder` returns the user's working directory, because questions may refer to its files;
        if it is None, references stay plain text. `editor` returns the texts that a question
        includes from an editor.
        """
        ledger, clock = self.ledger(chat, folder), PausableClock()
        audited = AuditedObserver(observer, ledger)
        shared = self.provider, audited, clock, ledger, self._rate
        project, watch = partial(self._project_of, folder), partial(self._agent_changes, chat)
        most = self.settings.loop.result_max_bytes
        servers = partial(self._agent_servers, folder or self._folder)
        key = (
            chat or f"{UNSAVED_CHATS}document/{id(document)}"
        )  # a session lasts as long as its text
        agents = ChatAgents(
            self.agent_processes, chat, key, project, watch, self.workspace.tools, servers, most
        )
        model = ModelPort(
            self.client,
            *shared,
            self._text_tools,
            self._notices.setdefault(chat, set()),
            ReplyRetries(self.settings.retry.broken_replies, can_take_back),
            agents.stream,
        )
        attachments = self.attachments(chat)
        kept, status = TurnAttachments(attachments, audited), self.settings.status
        tools = ToolsPort(self.servers, self.client, *shared, status, kept, agents.call)

        async def may_read(path: Path) -> bool:
            with clock.paused():
                return await self._may_read(path)

        async def may_read_hidden(path: Path) -> bool:
            if not ledger.may_read(str(path)):
                with clock.paused():
                    if not await self._may_read_hidden(path):
                        return False
                ledger.agree_to_read(str(path))
            return True

        references: engine.References = engine.NoReferences()
        if folder:
            read, hidden = self.servers.read_resource, HiddenFiles(_sealed, may_read_hidden)
            references = FileReferences(folder, read, may_read, attachments, editor, hidden=hidden)
        return engine.Ports(
            document,
            model,
            tools,
            ledger,
            TurnClock(clock),
            audited,
            references,
            kept,
            self.workspace.previews((folder or self._folder)()),
            SkillTexts(self.skills),
            agents,
        )

    def _agent_servers(self, folder: Callable[[], Path]) -> AgentServers:
        return AgentServers(self.settings.mcp.servers, self.environ, folder())

    def _agent_changes(self, chat: str, call_id: str, project: Path) -> AgentChanges:
        from parley.runtime.agent_changes import AgentChanges
        from parley.runtime.recording import CallRecorder
        from parley.storage.changed_files import ChangedFiles

        changes = ChangedFiles(self._ledger_file(), chat)
        recorder = CallRecorder(changes, self.workspace.checkpoints, call_id)
        return AgentChanges(recorder, project, self.environ)

    def reverter(self, chat: str) -> Reverter:
        """Lists and reverts the changes that the calls of the chat at this path made to files."""
        from parley.runtime.reverting import Reverter
        from parley.storage.changed_files import ChangedFiles

        changes = ChangedFiles(self._ledger_file(), chat)
        return Reverter(
            changes, self.workspace.checkpoints, self.workspace.files, self.ledger(chat)
        )

    def attachments(self, chat: str) -> ChatAttachments:
        """The files next to the chat at this path."""
        return ChatAttachments(chat, self._attachments)

    async def title(self, transcript: Transcript, chat: str, chosen: str | None) -> str:
        """A chat's title, written by a model; "" if that fails or Parley may not ask a model."""
        request = self.resolve_to_draw(chosen)(transcript).request
        prompt = topic.title_prompt(transcript)
        provider, status = self.provider(request.provider), self.settings.status
        if not prompt or not status.llm or provider.builtin or provider.is_agent:
            return ""
        from parley.runtime.short_reply import short_reply, short_request
        from parley.runtime.totals import FOR_TOPIC

        reply = await short_reply(
            self.client,
            provider,
            short_request(request, provider, prompt, status.model, topic.TITLE_TOKENS),
            rate=self._rate,
            audit=self.ledger(chat),
            purpose=FOR_TOPIC,
            limit_s=topic.TITLE_SECONDS,
        )
        return topic.title(reply)

    def provider(self, name: str) -> ProviderSettings:
        """The settings for the provider with this name."""
        return self.settings.provider(name) or ProviderSettings(name)

    async def _has_tools(self, request: Request) -> bool:
        return await self.client.supports_tools(self.provider(request.provider), request.model)

    def _sampled(self) -> tuple[Agent, ProviderSettings]:
        """The agent that replies to servers: the default agent, because servers' requests do not
        belong to a chat.
        """
        agent = self.models.listed(self.settings.default_agent(self.environ))
        return agent, self.provider(agent.provider)

    def warm(self, loop: asyncio.AbstractEventLoop, agent: Agent) -> None:
        """Import, once and in a thread, the slow SDKs that this agent's turns need: those of calls
        only when the first request may be on its way.

        Their objects live as long as the process, so these objects are excluded from garbage
        collection.
        """
        provider = self.provider(agent.provider)
        has_tools = (agent.tool_mode or self.settings.tool_mode) != "off"
        needs = provider.kind, provider.builtin, has_tools
        if needs not in self._warm:
            self._warm.add(needs)
            has_tls = self.client.url(provider, "").startswith("https:")
            work = partial(warm, provider.kind, builtin=provider.builtin, has_tls=has_tls)
            self._import(loop, work)
            if has_tools and provider.kind != ACP:
                work = partial(warm_tools, has_servers=self.servers.needs_sdk())
                loop.call_later(_TOOLS_S, self._import, loop, work)

    @staticmethod
    def _import(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
        loop.run_in_executor(None, work).add_done_callback(lambda _: gc.freeze())

    @property
    def least_seen_s(self) -> float:
        """How many seconds a call must be on the screen before an approval counts. Tests set the
        environment variable, because they press keys immediately.
        """
        return float(self.environ.get("PARLEY_LEAST_SEEN_S", LEAST_SEEN_S))

    async def _demo_url(self) -> str:
        if port := self.environ.get("PARLEY_DEMO_PORT"):
            if not (port.isascii() and port.isdecimal()):
                raise ModelError("PARLEY_DEMO_PORT is not a number", reason="no demo server")
            return f"http://127.0.0.1:{port}"
        if self._demo is None:
            from parley.demo import server  # load the HTTP server only for the demo

            self._demo = asyncio.ensure_future(server.start())
        return (await asyncio.shield(self._demo)).url  # the caller may be cancelled first

    def _closings(self) -> list[Coroutine[Any, Any, None]]:
        parts = self.servers, self.workspace, self.agent_processes
        servers = [part.close() for part in parts] if self._closes_servers else []
        return [self.models.close(), *servers]

    async def close(self) -> None:
        """Close connections, and end the servers that no other app has taken over."""
        self.client.accounts.close()
        demo, self._demo = self._demo, None
        closings = [self.client.close(), *self._closings()]
        await asyncio.gather(*closings, return_exceptions=True)
        if demo:
            await (await demo).stop()
        for ledger in (self._ledger, self._trust):
            if ledger:
                ledger.close()


def _sealed(place: str) -> str:
    """Why no question may include a hidden file at a place."""
    from parley.workspace.boundary import sealed  # few questions name a hidden file

    return sealed(place)
