"""Checks of requests, shared by all formats; each format has its own rules.

A rule reads a body and yields reasons to refuse it. Bodies are first made plain JSON, tuples as
arrays included, so that a rule sees what the server would have received.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Body = Mapping[str, Any]
Block = Mapping[str, Any]
Rule = Callable[[Body], Iterable[str]]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_REASONING = re.compile(r"(?:o\d|gpt-5(?!-chat))")
_GPT5 = re.compile(r"gpt-5\.(\d+)")


def names(text: str) -> frozenset[str]:
    """Field names, separated by spaces."""
    return frozenset(text.split())


def reasons(stages: Sequence[Sequence[Rule]], body: Mapping[str, Any]) -> list[str]:
    """All reasons against `body` from the first stage that has any; later stages rely on earlier
    ones."""
    plain = json.loads(json.dumps(body))
    for stage in stages:
        if failures := [reason for rule in stage for reason in rule(plain)]:
            return failures
    return []


def has_lone_surrogate(body: Body) -> bool:
    """Whether some string cannot be written as UTF-8."""
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def twice(values: Iterable[str]) -> list[str]:
    """Each value at its second occurrence, in order."""
    seen: set[str] = set()
    again = []
    for value in values:
        if value in seen:
            again.append(value)
        seen.add(value)
    return again


def is_openai_reasoning(model: str) -> bool:
    """Whether OpenAI's model has a reasoning effort and no temperature."""
    return _REASONING.match(model) is not None


def wants_responses_for_tools(model: str) -> bool:
    """gpt-5.4 and later: function tools in Chat Completions only with effort "none"."""
    match = _GPT5.match(model)
    return match is not None and int(match[1]) >= 4
