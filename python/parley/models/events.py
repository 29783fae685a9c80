"""Events in a model's reply, which decoders create from any provider's stream.

A reply is text, thinking and the calls that others ran, in order of arrival, then its own calls,
then `Finished`. `Usage`, `Withdrawn`, `RateLimits`, `Answered`, `Aside` and `AgentPlan` may come at
any time. Knows nothing about streams or providers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from parley.chat.transcript import Runner, ToolCall
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.tools.results import Outcome

Reason: TypeAlias = Literal[
    "complete", "tool_calls", "length", "refusal", "content_filter", "context", "pause"
]


@frozen
class TextDelta:
    """The next piece of the reply's text; never empty."""

    text: str


@frozen
class ThinkingDelta:
    """The next piece of the current thinking block; never empty."""

    text: str


@frozen
class ThinkingEnd:
    """The end of one thinking block; blocks never overlap.

    A redacted block consists only of this event, with the provider's encrypted content as
    `signature`. A block whose text the provider hides also consists only of this event.
    """

    signature: str = ""
    redacted: bool = False


@frozen
class Call:
    """A complete tool call. Calls come when the reply is complete, after all of its text."""

    call: ToolCall


@frozen
class Ran:
    """A call that the provider, or an agent by its own rules, has begun to run itself."""

    call: ToolCall
    ran_by: Runner


@frozen
class RanResult:
    """The outcome of such a call; it may come in the reply after the one with its call.

    For a provider's call, the outcome's `whole` is the part that only that provider understands.
    """

    id: str
    outcome: Outcome


@frozen
class Cited:
    """A source of the text that came last; the address and the title are the provider's."""

    url: str
    title: str


@frozen
class Usage:
    """The tokens used by the request so far; each report replaces the previous report.

    `input` is the whole prompt, including tokens read from or written to a cache; `output` includes
    `thinking`. `searches` counts the web searches that the provider charges for.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    thinking: int = 0
    searches: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Add the counts."""
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.thinking + other.thinking,
            self.searches + other.searches,
        )


@frozen
class Price:
    """The price of a million tokens of each kind, and of a thousand `searches`; if `cached` is None,
    cached tokens cost as much as other input."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    searches: float = 0.0

    def cost(self, usage: Usage) -> float:
        """The cost of these tokens and searches."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input - usage.cache_read
        tokens = fresh * self.input + usage.cache_read * cached + usage.output * self.output
        return tokens / 1_000_000 + usage.searches * self.searches / 1_000


@frozen
class Finished:
    """The end of the reply and the reason; `detail` is the provider's explanation, if it adds
    anything."""

    reason: Reason
    detail: str = ""


@frozen
class Paused(Finished):
    """The provider paused its reply. To continue, it needs the content so far as it was sent; a
    turn never sees this event, because the runtime asks for the rest."""

    content: tuple[Mapping[str, Any], ...] = ()


@frozen
class Withdrawn:
    """Withdraws the reply so far, because it failed and another reply will replace it."""


@frozen
class RateLimits:
    """The limits from the provider's headers: the names without the provider's prefix, the values
    as sent.
    """

    headers: tuple[tuple[str, str], ...]


@frozen
class Answered:
    """The model that wrote the reply, according to the provider, if its name is not the requested
    one.
    """

    model: str


@frozen
class Aside:
    """A message for the user about the request; not part of the reply."""

    text: str


@frozen
class AgentPlan:
    """An agent's plan as a Markdown list; each plan replaces the previous one."""

    text: str


ReplyEvent: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ThinkingEnd
    | Call
    | Usage
    | Finished
    | Withdrawn
    | RateLimits
    | Answered
    | Aside
)
"""The events that observers of a turn receive as they are."""
Event: TypeAlias = ReplyEvent | Ran | RanResult | Cited | AgentPlan


def joined(events: Iterable[Event]) -> Iterator[Event]:
    """Join adjacent pieces; after a failure, the pieces that arrived are still yielded."""
    kind: type[TextDelta | ThinkingDelta] = TextDelta
    pieces = list[str]()
    try:
        for event in events:
            if pieces and type(event) is not kind:
                yield kind("".join(pieces))
                pieces = []
            if isinstance(event, TextDelta | ThinkingDelta):
                kind = type(event)
                pieces.append(event.text)
            else:
                yield event
    except ParleyError:
        if pieces:
            yield kind("".join(pieces))
        raise
    if pieces:
        yield kind("".join(pieces))
