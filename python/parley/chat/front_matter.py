"""What the YAML at the top of a chat file asks for: checked data, key by key, and problems for the rest.

It is data only. It can choose and narrow; it can never run code, approve a call, start a server, change a
safety setting, or name a key or a base URL: such keys are unknown here, and reported.
"""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from parley.chat.transcript import Problem, Severity, Transcript

_SHOWN = 60
_SHORT = reprlib.Repr()
_SHORT.maxlevel = 2

_MOST_CHARACTERS = 64_000
_MOST_EVENTS = 2_000
_DEEPEST = 8
"""The YAML library takes seconds for what a hostile file may hold."""
_IMMODEST = "front matter is too large, too deep or has aliases (*name): it is not read"


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _limits(value: Any) -> bool:
    keys = {"per_message", "per_session"}
    return _count(value) or (
        isinstance(value, dict) and set(value) <= keys and all(map(_count, value.values()))
    )


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_THINKING: Mapping[str, Callable[[Any], bool]] = {
    "enabled": _truth,
    "budget_tokens": lambda value: _count(value) and value >= 1024,
    "effort": lambda value: value in _EFFORTS,
    "show": _truth,
}


def _thinking(value: Any) -> bool:
    if not isinstance(value, dict):
        return _truth(value)
    return all(key in _THINKING and _THINKING[key](each) for key, each in value.items())


KEYS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "topic": (_text, "a text"),
    "agent": (_text, "the name of an agent"),
    "provider": (_text, "the name of a provider"),
    "model": (_text, "the name of a model"),
    "system_prompt": (_text, "a text"),
    "system_prompt+": (_text, "a text"),
    "temperature": (_number, "a number ≥ 0"),
    "max_tokens": (_count, "a whole number"),
    "thinking": (
        _thinking,
        "true, false, or a table of enabled, budget_tokens (from 1024), effort (low, medium, …) and show",
    ),
    "tool_mode": (lambda v: v in ("auto", "native", "json", "xml", "off"), "auto, native, json, xml or off"),
    "tools": (_texts, "a list of tool names or globs"),
    "max_tool_calls": (_limits, "a whole number, or per_message and per_session"),
    "max_full_exchanges": (_count, "a whole number"),
    "tags": (_texts, "a list of texts"),
}


_NARROWING = ("tools", "max_tool_calls")
"""Without what these were to say, a chat could do more than its file allows."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The keys that can be used, and what is wrong with the others."""

    keys: Mapping[str, Any]
    problems: tuple[Problem, ...] = ()


def read_front_matter(raw: str | None) -> FrontMatter:
    """Read a transcript's raw front matter; None and "" ask for nothing. Problems count lines of the file."""
    import yaml  # here, since most chats are opened to be read

    if not raw or not raw.strip():
        return FrontMatter({})
    try:
        if not _is_modest(raw):
            return FrontMatter({}, (Problem(1, 0, "error", _IMMODEST),))
        loaded = yaml.safe_load(raw)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = 1 + (mark.line if mark else 0)
        what = getattr(error, "problem", None) or "it cannot be read"
        return FrontMatter({}, (Problem(line, 0, "error", f"front matter is no YAML: {what}"),))
    if isinstance(loaded, dict) and loaded.get("tool_mode") is False:
        loaded["tool_mode"] = "off"  # which YAML 1.1 takes for a truth value
    if not isinstance(loaded, dict):
        return FrontMatter({}, (Problem(1, 0, "error", "front matter: expected keys with values"),))
    checked = {key: _check(raw, key, value) for key, value in loaded.items()}
    fit = {key: value for key, value in loaded.items() if checked[key] is None}
    return FrontMatter(fit, tuple(problem for problem in checked.values() if problem))


def _is_modest(raw: str) -> bool:
    """Whether YAML is no larger and no deeper than anybody writes by hand; looks no further than that.

    An alias is refused: a few lines of them stand for a value of any size.
    """
    import yaml

    if len(raw) > _MOST_CHARACTERS:
        return False
    depth = 0
    for number, event in enumerate(yaml.parse(raw, Loader=yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST or number > _MOST_EVENTS or isinstance(event, yaml.AliasEvent):
            return False
    return True


def _check(raw: str, key: Any, value: Any) -> Problem | None:
    name = " ".join(str(key)[:_SHOWN].split())
    line = 1 + next((n for n, text in enumerate(raw.split("\n")) if text.startswith(name)), 0)
    if key not in KEYS:
        near = difflib.get_close_matches(name, KEYS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return Problem(line, 0, "hint", f"front matter {name}: not a key of a chat file{hint}")
    fits, wanted = KEYS[key]
    if not fits(value):
        got = _SHORT.repr(value)[:_SHOWN]
        severity: Severity = "error" if name in _NARROWING else "warning"
        return Problem(line, 0, severity, f"front matter {name}: expected {wanted}, got {got}")
    return None


def trouble(transcript: Transcript) -> str:
    """Why nothing is to be asked before the front matter is mended; "" where it can be read."""
    problems = read_front_matter(transcript.front_matter).problems
    found = next((p for p in problems if p.severity == "error"), None)
    return f"line {found.line + 1}: {found.message}. Mend it, then ask again" if found else ""


def topic(transcript: Transcript) -> str:
    """What a chat is about, on one line: its topic, else its first question; "" where there is neither."""
    named = read_front_matter(transcript.front_matter).keys.get("topic", "")
    asked = (e.question.text for e in transcript.exchanges if e.question and e.question.text)
    return " ".join((named or next(asked, "")).split())
