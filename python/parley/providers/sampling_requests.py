"""Obtains model replies for servers that may request them, within the rate limit: texts in, a text
out.

Knows the user's agent. The settings decide whether a server may request replies, and another module
handles the MCP requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from parley.chat.grammar import fit
from parley.chat.options import ThinkingSettings
from parley.chat.transcript import Answer, Exchange, Question, Text, Transcript
from parley.errors import ServerError
from parley.iterators import closing
from parley.models.events import Finished, TextDelta
from parley.models.request import Request
from parley.policy.rate import RateWindow
from parley.providers.client import ProviderClient
from parley.settings.resolve import parameters
from parley.settings.values import Agent, ProviderSettings
from parley.tools.sampling import MOST_TOKENS, SamplingReply, SamplingRequest


class Sampler:
    """Exists once per process; `agent` returns the agent to use and its provider."""

    def __init__(
        self,
        client: ProviderClient,
        rate: RateWindow,
        agent: Callable[[], tuple[Agent, ProviderSettings]],
    ) -> None:
        self._client = client
        self._rate = rate
        self._agent = agent

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        """Get a reply. Raises ServerError for an invalid request, and ModelError if the provider
        fails."""
        agent, provider = self._agent()
        transcript = conversation(request.messages)
        model_request = Request(
            transcript=transcript,
            at=len(transcript.exchanges) - 1,
            provider=provider.name,
            model=agent.model,
            system=fit(request.system),
            max_tokens=max(1, min(request.max_tokens, MOST_TOKENS)),
            temperature=request.temperature,
            thinking=ThinkingSettings(enabled=False),
            tools_on=False,
            quirks=provider.quirks,
            parameters=parameters(provider, agent),
        )
        now = asyncio.get_running_loop().time
        while (seconds := self._rate.wait(now())) > 0:  # noqa: ASYNC110 - it is known when there is room
            await asyncio.sleep(seconds)
        self._rate.take(now())
        pieces, cut = list[str](), False
        async with closing(self._client.stream(provider, model_request, lambda _: None)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    pieces.append(event.text)
                elif isinstance(event, Finished):
                    cut = event.reason != "complete"
        return SamplingReply("".join(pieces), agent.model, cut)


def conversation(messages: Sequence[tuple[str, str]]) -> Transcript:
    """The messages as a chat that ends with a question. Raises ServerError if the last message is
    not a question."""
    exchanges = list[Exchange]()
    for role, text in messages:
        parts = tuple(Text(content) for content in (fit(text).strip(),) if content)
        if role == "user":
            exchanges.append(Exchange(Question(parts)))
        elif exchanges:
            last = exchanges.pop()
            exchanges.append(Exchange(last.question, (*last.answers, Answer(None, parts))))
    if not exchanges or exchanges[-1].answers or exchanges[-1].question == Question():
        raise ServerError("the request must end with a user message")
    return Transcript(tuple(exchanges))
