"""The built-in tool that finds tools by words, if there are too many to send all schemas. Pure.

Knows the tool, how tools rank for a query, and the result's text, which records the tools that were
found for the rest of the chat. Other modules know when to offer the tool and how many tools fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from parley.late_patterns import late_pattern
from parley.text import one_line
from parley.tools.catalogue import Catalogue, Tool, own_identity

FIND_TOOLS = Tool(
    "parley",
    "find_tools",
    title="Find tools",
    description=(
        "Finds tools by words. Their descriptions and parameters are there from the "
        "next message on."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "description": "What the tool is to do, in a few words, or the names of tools.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    annotations={"readOnlyHint": True, "openWorldHint": False},
    identity=own_identity(),
    unasked="it reads only definitions of the tools offered here",
)

Offer: TypeAlias = tuple[str, Tool]
"""A tool, with its wire name."""

MOST = 10
"""The maximum number of tools that one query finds."""
_NAMED = 1000
_NAME, _TEXT = 4, 1
"""The weights of a word in a tool's name and in its description."""
_LEAST = 3
"""The minimum length of a word that may match part of another word."""
_COMMON = frozenset(
    [
        *("a", "an", "the", "some", "this", "that", "it", "is", "and", "or"),
        *("as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with", "tool", "tools"),
    ]
)
"""Words that do not describe the wanted tool."""
_TEXT_LENGTH = 120
"""The maximum number of characters from a description in the result."""

_HEAD = "These tools can be called now, and are described from here on:"
_LINE = late_pattern(r"^- ([A-Za-z0-9_-]{1,64})(?::|$)", re.MULTILINE)


def ranking(query: str, tools: Sequence[Offer]) -> list[Offer]:
    """The tools that match a query, best first, independent of the tools' order.

    A word counts more in a name than in a description, and more if it occurs in fewer tools.
    """
    names = set(re.split(r"[^A-Za-z0-9_-]+", query))
    scores = {wire: _NAMED if wire in names else 0 for wire, _ in tools}
    words = {
        wire: (_words(f"{t.server} {t.name} {t.title}"), _words(t.description)) for wire, t in tools
    }
    for word in _words(query) - _COMMON:
        hits = {wire: hit for wire, texts in words.items() if (hit := _hit(word, *texts))}
        rarity = (len(tools) // len(hits)).bit_length() if hits else 0
        for wire, hit in hits.items():
            scores[wire] += hit * rarity
    best = max(scores.values(), default=0)
    fitting = [offer for offer in tools if scores[offer[0]] and scores[offer[0]] * 3 >= best]
    return sorted(fitting, key=lambda offer: (-scores[offer[0]], offer[0]))[:MOST]


def report(query: str, tools: Sequence[Offer], count: int) -> str:
    """The result of a query that found these tools, out of `count`."""
    if not tools:
        return f"No tool of {count} fits {query!r}. Try other words, or the name of a tool."
    return "\n".join([_HEAD, *(_line(wire, tool) for wire, tool in tools)])


def names_in(body: str) -> list[str]:
    """The names of the tools that a result reports as found."""
    return _LINE.findall(body)


def available(catalogue: Catalogue) -> str:
    """The names of the tools that a model received in full, and the number of the other tools."""
    names = ", ".join(wire for wire, _ in catalogue.in_full)
    more = len(catalogue.names_only)
    return f"{names}, and {more} that {catalogue.wire(FIND_TOOLS)} finds" if more else names


def _line(wire: str, tool: Tool) -> str:
    text = one_line(tool.description or tool.title, _TEXT_LENGTH)
    return f"- {wire}: {text}" if text else f"- {wire}"


def _words(text: str) -> frozenset[str]:
    """The words in a text, including the parts of `camelCase` and `snake_case`."""
    return frozenset(
        re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).casefold())
    )


def _hit(word: str, name: frozenset[str], text: frozenset[str]) -> int:
    return max(_NAME * _likeness(word, name), _TEXT * _likeness(word, text))


def _likeness(word: str, words: frozenset[str]) -> int:
    """2 if the word is among the words; 1 if it is part of one of them or begins with one of them;
    else 0.
    """
    if word in words:
        return 2
    if len(word) < _LEAST and word.isascii():
        return 0
    return int(
        any(word in other or (len(other) >= _LEAST and word.startswith(other)) for other in words)
    )
