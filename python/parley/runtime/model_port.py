"""The model as one turn uses it: within the rate limit, on the record, whatever it knows of tools.

Knows in which order these stand around a request; what each of them does, others know.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator

from parley.clock import PausableClock
from parley.engine import guidance
from parley.engine.ports import closing
from parley.models.events import Aside, Event, RateLimits
from parley.models.fingerprint import fingerprint
from parley.models.refusals import crowding
from parley.models.request import Request
from parley.policy import status
from parley.policy.rate import RateWindow
from parley.policy.summaries import KEEP, unsummed
from parley.providers.client import ProviderClient
from parley.runtime.audit import AuditedObserver, AuditLog, recorded
from parley.runtime.text_tool_caller import TextToolCaller
from parley.settings.values import ProviderSettings
from parley.tools.catalogue import canonical

_FULL = 0.8
"""The part of the window from which on it is offered to sum up what is older."""


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
    ) -> None:
        """`provider` finds the one that a request names; `notices` are what was said of this chat before."""
        self._client = client
        self._provider = provider
        self._observer = observer
        self._clock = clock
        self._audit = audit
        self._rate = rate
        self._text_tools = text_tools
        self._notices = notices

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The events of a reply, in as many requests as that takes; the outermost layer stands last."""

        def send(one: Request) -> AsyncIterator[Event]:
            events = self._client.stream(
                self._provider(one.provider), one, self._observer.status, self._clock
            )
            return self._within_rate(recorded(events, one, self._audit))

        return self._with_notices(self._text_tools.stream(send, request, self._observer.status), request)

    async def _within_rate(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """The same events, once the rate limit allows another request."""
        loop, doing = asyncio.get_running_loop(), self._observer.doing
        with self._clock.standing_still():
            while (seconds := self._rate.wait(loop.time())) > 0:
                self._observer.status(status.rate_limited(seconds))
                await asyncio.sleep(min(seconds, 1.0))
        self._rate.take(loop.time())
        self._observer.status(doing)
        async with closing(events):
            async for event in events:
                yield event

    async def _with_notices(self, events: AsyncIterator[Event], request: Request) -> AsyncIterator[Event]:
        """The same events, and what of a long chat was not sent: once for a chat, unless that is more.

        That is found out while the model is at work, when it is known how much it takes. When all is said,
        the fingerprint of what it took is put on record.
        """
        has_begun, doing = False, self._observer.doing
        async with closing(events):
            async for event in events:
                if not has_begun and not isinstance(event, Aside | RateLimits):
                    has_begun = True
                    if not status.is_of_call(self._observer.doing):
                        self._observer.status(doing)  # what was said of a retry is over
                    for aside in self._news(self._client.settled(request)):
                        yield aside
                yield event
        mark = fingerprint(self._client.settled(request), guidance(request.catalogue))
        self._audit.hold_request(mark.digest, canonical(mark.header), mark.units)

    def _news(self, request: Request) -> Iterator[Aside]:
        """Notices on how long the chat is for its model, none of them but for its numbers as one before."""
        notice, fullness = crowding(request), request.fullness()
        key = re.sub(r"\d+", "", notice) or "full"
        if key in self._notices or not (notice or fullness >= _FULL):
            return
        if unsummed(request.transcript, KEEP):
            share = f"{round(fullness * 100)} %"
            full = f"this chat fills {share} of the window of {request.model}: "
            notice = f"{f'{notice}. ' if notice else full}:ParleyCompact summarizes older exchanges"
        if notice:
            self._notices.add(key)
            yield Aside(notice)
