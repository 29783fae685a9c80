"""A turn's model port: rate limit, records, text tools. Knows only their order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator

from parley.clock import PausableClock
from parley.engine import guidance
from parley.iterators import closing
from parley.models.events import Aside, Event, RateLimits
from parley.models.fingerprint import fingerprint
from parley.models.refusals import crowding
from parley.models.request import Request
from parley.policy import status_texts
from parley.policy.rate import RateWindow
from parley.policy.summaries import KEEP, unsummed
from parley.providers.client import ProviderClient
from parley.runtime.audit import AuditedObserver, AuditLog, recorded
from parley.runtime.paused_replies import continued
from parley.runtime.reply_retries import ReplyRetries
from parley.runtime.text_tool_caller import TextToolCaller
from parley.settings.values import ProviderSettings
from parley.tools.catalogue import canonical

_FULL = 0.8
"""If a request fills this part of the window, Parley offers to summarize older exchanges."""


class ModelPort:
    """Implements the engine's port for the model."""

    def __init__(
        self,
        client: ProviderClient,
        provider: Callable[[str], ProviderSettings],
        observer: AuditedObserver,
        clock: PausableClock,
        audit: AuditLog,
        rate: RateWindow,
        text_tools: TextToolCaller,
        notices: set[str],
        retries: ReplyRetries,
        agent: Callable[[ProviderSettings, Request, Callable[[bool], None]], AsyncIterator[Event]],
    ) -> None:
        """`provider` finds a request's provider; `notices` contains the notices that this chat has
        shown so far. `agent` streams a reply of an agent of another program, and reports its start.
        """
        self._agent = agent
        self._client = client
        self._provider = provider
        self._observer = observer
        self._clock = clock
        self._audit = audit
        self._rate = rate
        self._text_tools = text_tools
        self._notices = notices
        self._retries = retries

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """A reply's events, from as many requests as it takes. The outermost layer is called
        last.
        """
        provider = self._provider(request.provider)
        if provider.is_agent:
            doing = self._observer.doing

            def note_start(is_starting: bool) -> None:
                text = status_texts.starting(provider.name) if is_starting else doing
                self._observer.status(text)

            events = self._agent(provider, request, note_start)
            return self._with_record(recorded(events, request, self._audit), request)

        def send(one: Request) -> AsyncIterator[Event]:
            events = self._client.stream(
                self._provider(one.provider), one, self._observer.status, self._clock
            )
            return self._within_rate(recorded(events, one, self._audit))

        def whole(one: Request) -> AsyncIterator[Event]:
            return continued(send, one)

        def ask() -> AsyncIterator[Event]:
            return self._text_tools.stream(whole, request, self._observer.status)

        return self._with_notices(self._retries.stream(ask, self._observer.status), request)

    async def _within_rate(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Wait until the rate limit allows another request, then yield the events."""
        loop, doing = asyncio.get_running_loop(), self._observer.doing
        with self._clock.paused():
            while (seconds := self._rate.wait(loop.time())) > 0:
                self._observer.status(status_texts.rate_limited(seconds))
                await asyncio.sleep(min(seconds, 1.0))
        self._rate.take(loop.time())
        self._observer.status(doing)
        async with closing(events):
            async for event in events:
                yield event

    async def _with_notices(
        self, events: AsyncIterator[Event], request: Request
    ) -> AsyncIterator[Event]:
        """Yield the events, and a notice about the parts of a long chat that were not sent. The
        notice is shown once, and again if more parts are left out.

        It is shown while the model is working, because the model's window is not known earlier. At
        the end, record the fingerprint of the accepted request.
        """
        has_begun, doing = False, self._observer.doing
        async with closing(events):
            async for event in events:
                if has_begun or isinstance(event, Aside | RateLimits):
                    yield event
                    continue
                has_begun = True
                if not status_texts.is_of_call(self._observer.doing):
                    self._observer.status(doing)  # the status of a retry is over
                yield event  # at once, because measuring a long chat takes a while
                for aside in self._news(self._client.settled(request)):
                    yield aside
        self._hold(request)

    async def _with_record(
        self, events: AsyncIterator[Event], request: Request
    ) -> AsyncIterator[Event]:
        """Yield the events; at the end, record the fingerprint of the request."""
        async with closing(events):
            async for event in events:
                yield event
        self._hold(request)

    def _hold(self, request: Request) -> None:
        mark = fingerprint(self._client.settled(request), guidance(request.catalogue))
        self._audit.hold_request(mark.digest, canonical(mark.header), mark.units)

    def _news(self, request: Request) -> Iterator[Aside]:
        """A notice that the chat is long for its model, unless the same notice was given before."""
        notice, fullness = crowding(request), request.fullness()
        key = re.sub(r"\d+", "", notice) or "full"
        if key in self._notices or not (notice or fullness >= _FULL):
            return
        if unsummed(request.transcript, KEEP):
            share = f"{round(fullness * 100)}%"
            full = f"this chat fills {share} of {request.model}'s context window: "
            notice = f"{f'{notice}. ' if notice else full}:ParleyCompact summarizes older exchanges"
        if notice:
            self._notices.add(key)
            yield Aside(notice)
