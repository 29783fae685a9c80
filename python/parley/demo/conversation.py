"""The demo model's view of a request, independent of the wire format: a conversation in, a reply
out.

These are only values. `reading` makes conversations from request bodies, `rules` makes replies, the
`wire_*` modules put replies into frames.
"""

import re
from dataclasses import dataclass
from typing import Literal

TEXT_ONLY = "demo-text"
"""The model name that refuses tools and pictures, like a small local model."""

Thinking = Literal["off", "asked", "on"]
"""Never; only when the question asks for it; always."""

Stop = Literal["end", "calls", "length"]

_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call answered since the question: raw argument text, result text, types of its pictures."""

    name: str
    arguments: str
    text: str
    failed: bool
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation as seen by the rules. `seed` differs between histories and makes ids unique.

    `syntax` says how to write calls into the text; "" uses the format's own calls. `pictures` has
    the types of the question's pictures.
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


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `arguments` is the text to stream, usually but not always JSON."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply; `output` includes `thinking`."""

    prompt: int
    output: int
    thinking: int


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of the model: thinking, then hidden thinking, then text, then calls."""

    thinking: str
    hidden: str
    text: str
    calls: tuple[Call, ...]
    stop: Stop
    usage: Usage
    seed: str


def tokens(text: str) -> int:
    """A rough count of one token for every four characters: enough to show and to limit."""
    return (len(text) + 3) // 4


def claude_version(model: str) -> tuple[int, int] | None:
    """(4, 7) for `claude-opus-4-7`; None for any name without a Claude version. Dates are not
    versions."""
    match = _VERSION.search(model)
    return (int(match[1]), int(match[2] or 0)) if match else None
