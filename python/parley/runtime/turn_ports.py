"""Model and tools as one turn uses them: within the rate limit, on the record, with words on what they do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

from parley.chat.transcript import Exchange, Question, Result, Text, Transcript
from parley.clock import Clock
from parley.engine.ports import closing
from parley.errors import ParleyError
from parley.mcp.servers import Servers
from parley.models.events import Aside, Event, TextDelta
from parley.models.refusals import crowding
from parley.models.request import Request
from parley.policy import status
from parley.policy.limits import invalid_arguments
from parley.policy.rate import RateWindow
from parley.providers.client import ProviderClient
from parley.runtime.audit import AuditLog, RecordedWorld, recorded
from parley.runtime.text_tool_caller import TextToolCaller
from parley.runtime.totals import FOR_STATUS
from parley.settings.values import Provider, Settings
from parley.text import one_line
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.schema import decode_arguments

_ENOUGH_LEFT = 0.2
"""The part of the rate window that has to be free for a request that only words a status."""

_MOMENT_S = 0.3
"""What takes no longer is not shown."""
_PROGRESS_SHOWN = 200
_PROGRESS_S = 0.5
"""A server may tell its progress a thousand times a second; the screen shows it this often."""


class TurnPorts:
    """Implements the engine's ports for model and tools."""

    def __init__(
        self,
        wire: ProviderClient,
        hub: Servers,
        provider: Callable[[str], Provider],
        world: RecordedWorld,
        clock: Clock,
        notes: AuditLog,
        rate: RateWindow,
        settings: Settings,
        prompting: TextToolCaller,
    ) -> None:
        self._wire = wire
        self._hub = hub
        self._provider = provider
        self._world = world
        self._clock = clock
        self._notes = notes
        self._rate = rate
        self._status = settings.status
        self._prompting = prompting
        self._next_progress = 0.0
        self._has_told_crowding = False

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """What the model says, in as many requests as that takes."""
        async with closing(self._prompting.stream(self._send, request, self._world.status)) as events:
            async for event in events:
                for told in self._crowding(request):
                    yield told
                yield event

    def _crowding(self, request: Request) -> Iterator[Aside]:
        """Once a turn, what of a long chat was not sent whole; found out while the model is at work."""
        has_told, self._has_told_crowding = self._has_told_crowding, True
        if not has_told and (told := crowding(request)):
            yield Aside(told)

    async def _send(self, request: Request) -> AsyncIterator[Event]:
        """The reply to one request, once the rate limit allows it."""
        await self._wait_for_rate()
        events = self._wire.stream(self._provider(request.provider), request, self._world.status, self._clock)
        async with closing(recorded(events, request, self._notes)) as said:
            async for event in said:
                yield event

    async def _wait_for_rate(self) -> None:
        loop, doing = asyncio.get_running_loop(), self._world.doing
        with self._clock.standing_still():
            while (seconds := self._rate.wait(loop.time())) > 0:
                self._world.status(status.rate_limited(seconds))
                await asyncio.sleep(min(seconds, 1.0))
        self._rate.take(loop.time())
        self._world.status(doing)

    async def catalogue(self) -> Catalogue:
        """The tools of all servers; of those that have none, and of a lost ledger, the user is told once."""
        catalogue = await self._hub.catalogue()
        for each in (*self._hub.news(), *self._notes.news()):
            self._world.on_event(Aside(each))
        return catalogue

    async def call(self, tool: Tool, arguments: str, request: Request) -> Result:
        """Run one call; beside it, a model may find the words for what it does."""
        try:
            decoded = decode_arguments(arguments)
        except ValueError as error:
            return Result("error", invalid_arguments(str(error)))
        words = asyncio.ensure_future(self._describe(tool, arguments, request))
        try:
            outcome = await self._hub.call(tool, decoded, progress=self._show_progress, clock=self._clock)
        finally:
            words.cancel()
        return Result(outcome.status, outcome.text)

    def _show_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Show how far a tool is, if what was shown last had time to be read."""
        now = asyncio.get_running_loop().time()
        if now < self._next_progress:
            return
        self._next_progress = now + _PROGRESS_S
        part = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        said = one_line(message, _PROGRESS_SHOWN) if message else ""
        self._world.status(f"{said} ({part})" if said else f"Progress: {part}")

    async def _describe(self, tool: Tool, arguments: str, asked: Request) -> None:
        """Show a sentence for a running call, if one comes in time; nothing waits for it.

        Nobody is asked for what is over before it can be read, and only a provider's own host: a local model
        would have to stop for it.
        """
        await asyncio.sleep(_MOMENT_S)
        loop = asyncio.get_running_loop()
        if not (self._status.llm and asked.official and self._rate.left(loop.time()) >= _ENOUGH_LEFT):
            return
        self._rate.take(loop.time())
        request = _sentence_request(asked, status.sentence_prompt(tool.name, arguments), self._status.model)
        said = list[str]()
        try:
            async with asyncio.timeout(status.SENTENCE_SECONDS):
                events = self._wire.once(self._provider(request.provider), request)
                async for event in recorded(events, request, self._notes, FOR_STATUS):
                    if isinstance(event, TextDelta):
                        said.append(event.text)
        except (ParleyError, TimeoutError):
            return
        if text := status.sentence("".join(said)):
            self._world.status(text)


def _sentence_request(asked: Request, prompt: str, model: str | None) -> Request:
    """A request of its own, with nothing of the chat but the call."""
    return Request(
        Transcript((Exchange(Question((Text(prompt),))),)),
        0,
        asked.provider,
        model or asked.model,
        max_tokens=status.SENTENCE_TOKENS,
        thinking=replace(asked.thinking, enabled=False),
        tools_on=False,
        official=asked.official,
    )
