"""A turn's tool port: shows the tools' progress, or a model's description of their work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from parley.chat.attachments import link
from parley.chat.transcript import Result
from parley.clock import PausableClock
from parley.engine import CallProgress, MissingTools, Narrow, ServerWait
from parley.mcp.server_session import Progress
from parley.mcp.servers import Servers
from parley.models.events import Aside
from parley.models.request import Request
from parley.policy import status_texts
from parley.policy.approval import CallKey
from parley.policy.permissions import is_command, is_of_workspace
from parley.policy.rate import RateWindow
from parley.policy.turn_limits import invalid_arguments
from parley.providers.client import ProviderClient
from parley.runtime.audit import AuditedObserver, AuditLog
from parley.runtime.turn_attachments import TurnAttachments
from parley.settings.values import ProviderSettings, Status
from parley.text import fence, one_line
from parley.tools.agent_calls import is_of_agent
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.results import Outcome
from parley.tools.schema import decode_arguments
from parley.tools.server_settings import WORKSPACE
from parley.tools.tasks import TaskHandle

AgentCall: TypeAlias = Callable[[CallKey, Progress], Awaitable[Outcome]]

_MOMENT_S = 0.3
"""In seconds; the status does not show calls and waits that are shorter than this."""
_ELSEWHERE = (
    "the workspace has moved to another folder during this turn, so the turn continues without its "
    "tools"
)
_PROGRESS_SHOWN = 200
_PROGRESS_S = 0.5
"""The seconds between progress reports on the screen; a server may send a thousand reports a
second.
"""


class ToolsPort:
    """Implements the engine's port for tools."""

    def __init__(
        self,
        servers: Servers,
        client: ProviderClient,
        provider: Callable[[str], ProviderSettings],
        observer: AuditedObserver,
        clock: PausableClock,
        audit: AuditLog,
        rate: RateWindow,
        settings: Status,
        attachments: TurnAttachments,
        agent_call: AgentCall,
    ) -> None:
        """`client` asks the request's `provider` to describe a call.

        `attachments` saves the parts of results that are not text. `agent_call` allows a call that
        an agent of another program runs, or carries out a call that the agent requests.
        """
        self._agent_call = agent_call
        self._servers = servers
        self._client = client
        self._provider = provider
        self._observer = observer
        self._clock = clock
        self._audit = audit
        self._rate = rate
        self._settings = settings
        self._attachments = attachments
        self._has_begun = False
        self._wait: asyncio.Future[None] | None = None
        self._shows_wait = False
        self._passed = set[str]()
        """The servers that this turn no longer waits for."""
        self._workspace = ""
        """The identity of the workspace that this turn works in; "" before the first request."""
        self._has_told_folder = False
        self._missing = set[str]()
        """The servers that were reported as missing in this turn."""

    async def catalogue(self, narrow: Narrow, calls: Sequence[str]) -> Catalogue:
        """The tools of all servers. Retries failed servers at the beginning of the turn.

        If a turn begins with calls whose tools are all known, it does not wait for other servers.
        If a server's tools are missing, each turn reports that they are missing, but the reason is
        reported only once.
        """
        known = narrow(self._servers.offered())
        if any(is_of_agent(tool) for _, tool in known.tools):
            return await self._agents_catalogue(known, narrow)
        is_choice = bool(calls) and not self._has_begun and all(map(known.get, calls))
        await self._servers.begin(again=not (self._has_begun or is_choice))
        self._has_begun = True
        if is_choice:
            self._passed.update(known.missing)
        awaited = narrow(Catalogue(missing=self._servers.awaited())).missing
        if awaited := tuple(name for name in awaited if name not in self._passed):
            await self._wait_for(awaited)
        offered = self._servers.offered()
        missing = narrow(offered).missing
        news = self._servers.news(missing)
        for text in (*news.values(), *self._audit.news()):
            self._observer.on_event(Aside(text))
        if again := tuple(name for name in missing if name not in self._missing | news.keys()):
            self._observer.on_event(MissingTools(again))
        self._missing.update(missing)
        return self._in_one_folder(offered)

    async def _agents_catalogue(self, known: Catalogue, narrow: Narrow) -> Catalogue:
        """The tools of an agent of another program, which needs no server but the workspace."""
        own = tuple(name for name in known.missing if name not in self._passed)
        if own:
            await self._servers.begin(again=not self._has_begun, only=own)
            await self._wait_for(own)
        self._has_begun = True
        return self._in_one_folder(narrow(self._servers.offered()))

    def _in_one_folder(self, offered: Catalogue) -> Catalogue:
        """The tools, but the workspace is missing if the user has changed to another project since
        this turn's first request: the turn would continue in files that it was not about.
        """
        own = [tool for _, tool in offered.tools if is_of_workspace(tool)]
        self._workspace = self._workspace or (own[0].identity if own else "")
        elsewhere = [tool for tool in own if tool.identity != self._workspace]
        if not elsewhere:
            return offered
        if not self._has_told_folder:
            self._has_told_folder = True
            self._observer.on_event(Aside(_ELSEWHERE))
        missing = tuple(sorted({*offered.missing, WORKSPACE}))
        return replace(offered.without(elsewhere), missing=missing)

    def go_without(self) -> None:
        """Stop waiting for servers in this turn."""
        if self._wait is not None:
            self._wait.cancel()

    async def _wait_for(self, names: tuple[str, ...]) -> None:
        """Wait for servers, with the turn's clock paused."""
        wait = self._wait = asyncio.ensure_future(self._settle(names))
        try:
            with self._clock.paused():
                await asyncio.wait({wait})
        finally:
            wait.cancel()
            self._wait = None
            self._passed.update(names)
            if self._shows_wait:
                self._shows_wait = False
                self._observer.on_event(ServerWait(()))
        if not wait.cancelled():
            wait.result()

    async def _settle(self, names: tuple[str, ...]) -> None:
        """Wait until all servers have started or failed; if that takes longer than a moment, show
        the wait."""
        while names:
            settled = await self._servers.settled(names, None if self._shows_wait else _MOMENT_S)
            names = tuple(name for name in names if name not in settled)
            self._shows_wait = self._shows_wait or not settled
            if self._shows_wait and names:
                self._observer.on_event(ServerWait(names))

    async def call(self, tool: Tool, key: CallKey, request: Request, task: TaskHandle) -> Result:
        """Run a call, or collect its result, while a model may describe the call."""
        arguments = key.arguments
        task.origin = {"chat": self._audit.chat, "call": key.id, "base": key.base}
        try:
            decoded = decode_arguments(arguments)
        except ValueError as error:
            return Result("error", invalid_arguments(str(error)))
        progress = self._progress_of(tool, arguments)
        if is_of_agent(tool) or self._provider(request.provider).is_agent:
            return await self._attachments.result_of(await self._agent_call(key, progress))
        words = asyncio.ensure_future(self._describe(tool, arguments, request))
        try:
            outcome = await self._servers.call(
                tool, decoded, task, progress=progress, clock=self._clock
            )
        finally:
            words.cancel()
        result = await self._attachments.result_of(outcome)
        if outcome.aside is None:
            return result
        return replace(result, note=_note(tool, await self._attachments.result_of(outcome.aside)))

    async def resources(self, server: str) -> Sequence[str]:
        """The URIs of a server's current resources; none if the server cannot list them."""
        lists = await self._servers.resources([server])
        return [resource.uri for each in lists.values() for resource in each.resources]

    def _progress_of(self, tool: Tool, arguments: str) -> Progress:
        """The function that shows a call's progress, at readable intervals."""
        next_time = 0.0

        def show(progress: float | None, total: float | None, message: str | None) -> None:
            nonlocal next_time
            now = asyncio.get_running_loop().time()
            if now < next_time:
                return
            next_time = now + _PROGRESS_S
            text = one_line(message, _PROGRESS_SHOWN) if message else ""
            if progress is None or is_command(tool):  # a command reports its last line
                if text:
                    self._observer.on_event(CallProgress(tool, arguments, text))
                    self._observer.status(text)
                return
            part = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            self._observer.on_event(
                CallProgress(tool, arguments, f"{text}, {part}" if text else part)
            )
            self._observer.status(f"{text} ({part})" if text else f"Progress: {part}")

        return show

    async def _describe(self, tool: Tool, arguments: str, call_request: Request) -> None:
        """Show a model's sentence about a running call if it arrives in time; no work waits for the
        sentence.

        Request the sentence only for long calls, and only from a remote provider, because a local
        model would have to interrupt its work.
        """
        await asyncio.sleep(_MOMENT_S)
        if not (self._settings.llm and self._provider(call_request.provider).official):
            return
        from parley.runtime.short_reply import short_reply, short_request
        from parley.runtime.totals import FOR_STATUS

        prompt = status_texts.sentence_prompt(tool.name, arguments)
        provider = self._provider(call_request.provider)
        request = short_request(
            call_request, provider, prompt, self._settings.model, status_texts.SENTENCE_TOKENS
        )
        reply = await short_reply(
            self._client,
            provider,
            request,
            rate=self._rate,
            audit=self._audit,
            purpose=FOR_STATUS,
            limit_s=status_texts.SENTENCE_SECONDS,
        )
        if text := status_texts.sentence(reply):
            self._observer.status(text)


def _note(tool: Tool, aside: Result) -> str:
    """The text of a note that contains the parts of a result that are only for the user."""
    head = f"for you only, from {one_line(f'{tool.server}/{tool.name}')}; not sent to the model:"
    ticks = fence(aside.body)
    body = f"{ticks}\n{aside.body}\n{ticks}" if aside.body else ""
    return "\n\n".join(filter(None, [head, *map(link, aside.attachments), body]))
