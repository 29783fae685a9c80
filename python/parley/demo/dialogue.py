"""The demo model's input and output, independent of the wire format: a conversation and a reply.

Contains only values. `reading` creates conversations from request bodies, `replies` drafts replies,
and the modules in `wire` turn replies into frames.
"""

from typing import Literal

from parley.frozen import frozen
from parley.late_patterns import late_pattern

TEXT_ONLY = "demo-text"
"""The name of a model that refuses tools and pictures, like a small local model."""

Thinking = Literal["off", "asked", "on"]
"""When the model thinks: never, only if the question asks for it, or always."""

Stop = Literal["end", "calls", "length"]

_VERSION = late_pattern(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


@frozen
class CallResult:
    """A call that has received its result since the question: raw arguments, result text, types of
    pictures.
    """

    name: str
    arguments: str
    text: str
    failed: bool
    pictures: tuple[str, ...] = ()


@frozen
class Dialogue:
    """The conversation that the demo model sees. `seed` depends on the history, and makes ids
    unique.

    `syntax` is the syntax for calls in the text; "" means the format's own calls. `pictures` are
    the types of the question's pictures. If it `searches`, the model may search the web itself.
    """

    model: str
    system: str
    question: str
    tools: tuple[str, ...]
    results: tuple[CallResult, ...] = ()
    pictures: tuple[str, ...] = ()
    parallel: bool = True
    thinking: Thinking = "off"
    limit: int | None = None
    prompt_tokens: int = 0
    seed: str = "0"
    syntax: Literal["", "json", "xml"] = ""
    searches: bool = False


@frozen
class DemoCall:
    """A tool call; `arguments` is the text to stream, which is usually but not always JSON."""

    name: str
    arguments: str


@frozen
class DemoUsage:
    """The tokens of one request; `output` includes `thinking`."""

    prompt: int
    output: int
    thinking: int


@frozen
class Reply:
    """One of the model's replies: thinking, then hidden thinking, then a web search for
    `query`, then text, then calls."""

    thinking: str
    hidden: str
    text: str
    calls: tuple[DemoCall, ...]
    stop: Stop
    usage: DemoUsage
    seed: str
    query: str = ""


def tokens(text: str) -> int:
    """A rough count, one token for every four characters; good enough for display and limits."""
    return (len(text) + 3) // 4


def claude_version(model: str) -> tuple[int, int] | None:
    """(4, 7) for `claude-opus-4-7`; None for a name without a Claude version. Dates are not
    versions."""
    match = _VERSION.search(model)
    return (int(match[1]), int(match[2] or 0)) if match else None
