"""Decides which of the tools that a question mentions, as `call NAME {json}`, the demo model calls
now.

The model calls all tools at once, unless the question contains `one after another`; once, unless it
contains `again and again`; and only offered tools, unless it contains `no matter what`, which
imitates a model that makes invalid calls.
"""

import json
import re
from collections.abc import Iterator

from parley.demo.dialogue import DemoCall, Dialogue
from parley.late_patterns import late_pattern

_CALL = late_pattern(
    r"\b(?:use the tool|call the tool|call)\s+`?([\w.-]+)`?(?:\s+with)?[ \t]*", re.IGNORECASE
)
IN_TURN = late_pattern(r"\bone (?:after (?:another|the other)|by one)\b", re.IGNORECASE)
_AGAIN = late_pattern(r"\bagain and again\b", re.IGNORECASE)
_ASTRAY = late_pattern(r"\bno matter what\b", re.IGNORECASE)


def named(question: str) -> tuple[DemoCall, ...]:
    """The calls that a question asks for, in order."""
    return tuple(_calls_in(question))


def due(conversation: Dialogue) -> tuple[DemoCall, ...]:
    """The calls to make now; () if it is time to report the results."""
    question, count = conversation.question, len(conversation.results)
    calls = named(question)
    if _AGAIN.search(question):
        due_calls = calls
    elif IN_TURN.search(question):
        due_calls = calls[count : count + 1]
    else:
        due_calls = () if count else calls
    if _ASTRAY.search(question):
        return due_calls
    return tuple(call for call in due_calls if call.name in conversation.tools)


def _calls_in(question: str) -> Iterator[DemoCall]:
    for match in _CALL.finditer(question):
        rest = question[match.end() :]
        if rest.startswith(("{", "[")):
            yield DemoCall(match[1], _json_prefix(rest))
        elif not rest.strip(" .!?`") or match[0].lower().startswith(("use the", "call the")):
            yield DemoCall(match[1], "{}")


def _json_prefix(text: str) -> str:
    """The JSON value at the start of a text, unchanged; if there is none, the first line."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return text.split("\n", 1)[0].rstrip()
    return text[:end]
