"""Small additional requests for a few optional words: a status or a title."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from parley.chat.transcript import Exchange, Question, Text, Transcript
from parley.errors import ParleyError
from parley.iterators import closing
from parley.models.events import TextDelta
from parley.models.model_facts import NO_FACTS
from parley.models.request import Request
from parley.policy.rate import RateWindow
from parley.providers.client import ProviderClient
from parley.runtime.audit import AuditLog, recorded
from parley.settings.values import ProviderSettings

_ENOUGH_LEFT = 0.2
"""The part of the rate limit that must be unused for a small request."""


def short_request(
    request: Request, provider: ProviderSettings, prompt: str, model: str | None, tokens: int
) -> Request:
    """A request to the same provider that contains only the prompt.

    For another model, only the provider's parameters apply, because the agent's are for its model.
    """
    return Request(
        Transcript((Exchange(Question((Text(prompt),))),)),
        0,
        request.provider,
        model or request.model,
        max_tokens=tokens,
        thinking=replace(request.thinking, enabled=False),
        tools_on=False,
        quirks=request.quirks,
        parameters=request.parameters if not model else provider.parameters,
        facts=NO_FACTS if model else request.facts,
    )


async def short_reply(
    client: ProviderClient,
    provider: ProviderSettings,
    request: Request,
    *,
    rate: RateWindow,
    audit: AuditLog,
    purpose: str,
    limit_s: float,
) -> str:
    """The reply's text; "" if it does not arrive in time, or few requests are left this minute."""
    now = asyncio.get_running_loop().time()
    if rate.left(now) < _ENOUGH_LEFT:
        return ""
    rate.take(now)
    pieces = list[str]()
    try:
        async with asyncio.timeout(limit_s):
            async with closing(
                recorded(client.once(provider, request), request, audit, purpose)
            ) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        pieces.append(event.text)
    except (ParleyError, TimeoutError):
        return ""
    return "".join(pieces)
