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
_LARGEST = 2**53
"""Beyond it JSON's readers round a number; a number without bound cannot even be printed."""
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
        loaded, lines = _load(raw)
    except yaml.YAMLError as error:
        return FrontMatter({}, (_no_yaml(raw, error),))
    if loaded is None:
        return FrontMatter({})
    if not isinstance(loaded, dict):
        return FrontMatter({}, (Problem(1, 0, "error", "front matter: expected keys with values"),))
    if loaded.get("tool_mode") is False:
        loaded["tool_mode"] = "off"  # which YAML 1.1 takes for a truth value
    checked = {key: _check(lines[key], key, value) for key, value in loaded.items()}
    fit = {key: value for key, value in loaded.items() if checked[key] is None}
    return FrontMatter(fit, tuple(problem for problem in checked.values() if problem))


def _load(raw: str) -> tuple[Any, Mapping[Any, int]]:
    """The value of a YAML text, and where it is a table, the line of the file on which each key stands."""
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe loader; what a value's own constructor raises is said of the value, with its place.

        PyYAML 6.0 raises KeyError (`!!bool maybe`), IndexError (`!!int ''`), AttributeError
        (`!!timestamp foo`) and OverflowError (`1:1:…:1.5`) where it means that a text is no such value.
        """

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
            try:
                value = super().construct_object(node, deep)
            except (ValueError, LookupError, AttributeError, ArithmeticError, TypeError) as error:
                kind = node.tag.rpartition(":")[2]
                raise yaml.MarkedYAMLError(None, None, f"this is no {kind}", node.start_mark) from error
            if isinstance(value, int) and abs(value) > _LARGEST:
                raise yaml.MarkedYAMLError(None, None, "this number is too large", node.start_mark)
            return value

    loader = Loader(raw)
    node = loader.get_single_node()
    if node is None:
        return None, {}
    loaded = loader.construct_document(node)
    keys = node.value if isinstance(node, yaml.MappingNode) else []
    return loaded, {loader.construct_object(key): 1 + line_of(raw, key.start_mark.index) for key, _ in keys}


def line_of(raw: str, index: int) -> int:
    """The line of a character, as a file has lines; YAML's own marks end lines at U+0085 and U+2028, too."""
    return raw.count("\n", 0, index)


def _no_yaml(raw: str, error: Any) -> Problem:
    """The problem that an error of the YAML library tells, with its line where it knows one."""
    mark, place = getattr(error, "problem_mark", None), getattr(error, "position", None)
    line = 1 + line_of(raw, mark.index if mark else place or 0)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    return Problem(line, 0, "error", f"front matter is no YAML: {' '.join(what.split())}")


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


def _check(line: int, key: Any, value: Any) -> Problem | None:
    name = " ".join(str(key)[:_SHOWN].split())
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
