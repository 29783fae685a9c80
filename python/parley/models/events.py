"""Events of a model's reply, whoever it is: what decoders make of a stream.

A reply is text and thinking in the order of arrival, then its calls, then `Finished`; `Usage` may come at
any time, and so may the other three. Knows nothing of streams and providers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from parley.chat.transcript import ToolCall
from parley.errors import ParleyError

Reason: TypeAlias = Literal[
    "complete", "tool_calls", "length", "refusal", "content_filter", "context", "pause"
]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the reply's text; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """The next piece of the current thinking block; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingEnd:
    """The end of one thinking block; blocks come one after another.

    A redacted block is this event alone, with the provider's encrypted content as `signature`;
    a block whose provider shows no text is this event alone, too.
    """

    signature: str = ""
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A complete tool call. Calls come when the reply is complete, after all of its text."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of the request so far, replacing what was said before.

    `input` is all of the prompt, what was read from or written to a cache included; `output` includes
    `thinking`.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    thinking: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Of both together."""
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.thinking + other.thinking,
        )


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens of each kind; without one of its own, what is cached costs as input."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None

    def cost(self, usage: Usage) -> float:
        """The cost of these tokens."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input - usage.cache_read
        return (fresh * self.input + usage.cache_read * cached + usage.output * self.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply is over, and why; `detail` is the provider's own word where it says more."""

    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """All that the reply said so far is taken back: it failed, and another one comes in its place."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Limits by the provider's headers: names without the provider's prefix, values as sent."""

    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Aside:
    """Something the user is to know about the request; no part of the reply."""

    text: str


Event: TypeAlias = (
    TextDelta | ThinkingDelta | ThinkingEnd | Call | Usage | Finished | Withdrawn | RateLimits | Aside
)


def joined(events: Iterable[Event]) -> Iterator[Event]:
    """The same with pieces that stand side by side made one; what comes before a failure still does."""
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
