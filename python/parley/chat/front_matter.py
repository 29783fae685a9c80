"""Reads a chat file's YAML: checks each key, and reports a problem for each invalid key.

Front matter is only data. The front matter can select and restrict; it can never run code, approve
a call, start a server, change a safety setting, or set an API key or a base URL. Keys for these are
unknown here, and are reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

from parley.chat.options import CallLimits, ThinkingSettings, ToolMode
from parley.chat.references import own_words
from parley.chat.transcript import Problem, Severity, Transcript
from parley.frozen import frozen
from parley.tables import LARGEST, Flaw, TableReader, names, rule

_MOST_SHOWN = 60
_MOST_CHARACTERS = 64_000
_MOST_EVENTS = 2_000
_DEEPEST = 8
"""A hostile file could keep the YAML library busy for seconds."""
_IMMODEST = (
    "front matter is too large or too deeply nested, or has aliases (*name), so it was not read"
)


@frozen
class _Keys:
    """The keys allowed in a chat file's front matter."""

    topic: str
    agent: str = field(metadata=rule(noun="the name of an agent"))
    provider: str = field(metadata=rule(noun="the name of a provider"))
    model: str = field(metadata=rule(noun="the name of a model"))
    mode: str = field(metadata=rule(noun="the name of an agent's mode"))
    system_prompt: str
    system_prompt_more: str = field(metadata=rule("system_prompt+"))
    temperature: float
    max_tokens: int
    thinking: ThinkingSettings
    tool_mode: ToolMode
    web_search: bool
    tools: tuple[str, ...] = field(metadata=rule(noun="a list of tool names or globs"))
    max_tool_calls: CallLimits
    instructions: tuple[str, ...] = field(metadata=rule(noun="a list of file names"))
    max_full_exchanges: int
    tags: tuple[str, ...]
    forked_from: str


KEYS = names(_Keys)
_NARROWING = ("tools", "max_tool_calls", "instructions")
"""If these keys were ignored, a chat could do or send more than its file allows."""


@frozen
class FrontMatter:
    """The valid keys with their values, and the problems of the other keys.

    `thinking` and `max_tool_calls` are always tables, even if they were written in a short form.
    """

    keys: Mapping[str, Any]
    problems: tuple[Problem, ...] = ()


def read_front_matter(raw: str | None) -> FrontMatter:
    """Read a transcript's raw front matter, which may be None or "". Problems have file lines."""
    return _read(raw) if raw and len(raw) > _MOST_CHARACTERS else _known(raw)


def _read(raw: str | None) -> FrontMatter:
    table = read_yaml(raw)
    if table.problem:
        return FrontMatter({}, (table.problem,))
    loaded = {
        key: "off" if key == "tool_mode" and value is False else value  # YAML 1.1 reads a boolean
        for key, value in table.values.items()
    }
    values, problems = dict[str, Any](), list[Problem]()
    for key, value in loaded.items():
        reader = TableReader("unknown key", is_overlay=True)
        fit = reader.values(_Keys, {key: value})
        problems += (_problem(table.lines[key], key, flaw) for flaw in reader.flaws)
        values |= {} if reader.flaws else {key: next(iter(fit.values()))}
    return FrontMatter(values, tuple(problems))


_known = lru_cache(maxsize=16)(_read)
"""A turn asks for it at each step, and YAML is slow. Nothing is kept that is too long to be read."""


@frozen
class YamlTable:
    """The keys of a YAML text with their values and file lines, or the problem of the whole text."""

    values: Mapping[Any, Any] = field(default_factory=dict)
    lines: Mapping[Any, int] = field(default_factory=dict)
    problem: Problem | None = None


def read_yaml(raw: str | None) -> YamlTable:
    """Read a file's raw front matter, which may be None or "", within bounds. Does not check the
    keys.
    """
    if not raw or not raw.strip():
        return YamlTable()
    import yaml  # here because most chats have no front matter, or are only opened for reading

    try:
        if not _is_modest(raw):
            return YamlTable(problem=Problem(1, 0, "error", _IMMODEST))
        loaded, lines = _load(raw)
    except yaml.YAMLError as error:
        return YamlTable(problem=_no_yaml(raw, error))
    if loaded is None:
        return YamlTable()
    if not isinstance(loaded, dict):
        return YamlTable(problem=Problem(1, 0, "error", "front matter: expected keys with values"))
    return YamlTable(loaded, lines)


def _load(raw: str) -> tuple[Any, Mapping[Any, int]]:
    """The value of a YAML text, and, if it is a table, the file line of each key."""
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe loader; turns a constructor's errors into YAML errors with the value's position.

        For an invalid value, PyYAML 6.0 raises KeyError (`!!bool maybe`), IndexError (`!!int ''`),
        AttributeError (`!!timestamp foo`) or OverflowError (`1:1:…:1.5`).
        """

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
            try:
                value = super().construct_object(node, deep)
            except (ValueError, LookupError, AttributeError, ArithmeticError, TypeError) as error:
                kind = node.tag.rpartition(":")[2]
                raise yaml.MarkedYAMLError(
                    None, None, f"invalid {kind}", node.start_mark
                ) from error
            if isinstance(value, int) and abs(value) > LARGEST:
                raise yaml.MarkedYAMLError(None, None, "this number is too large", node.start_mark)
            return value

    loader = Loader(raw)
    node = loader.get_single_node()
    if node is None:
        return None, {}
    loaded = loader.construct_document(node)
    keys = node.value if isinstance(node, yaml.MappingNode) else []
    return loaded, {
        loader.construct_object(key): 1 + line_of(raw, key.start_mark.index) for key, _ in keys
    }


def line_of(raw: str, index: int) -> int:
    """A character's line in the file. YAML's marks differ: For the YAML library, U+0085 and U+2028
    also end lines.
    """
    return raw.count("\n", 0, index)


def _no_yaml(raw: str, error: Any) -> Problem:
    """The problem for an error from the YAML library, with the error's line if known."""
    mark, place = getattr(error, "problem_mark", None), getattr(error, "position", None)
    line = 1 + line_of(raw, mark.index if mark else place or 0)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    return Problem(line, 0, "error", f"front matter is not valid YAML: {' '.join(what.split())}")


def _is_modest(raw: str) -> bool:
    """Whether YAML is as small and shallow as handwritten YAML; stops as soon as it is not.

    Aliases are not allowed, because a few lines of aliases can expand to a value of any size.
    """
    import yaml

    if len(raw) > _MOST_CHARACTERS:
        return False
    depth = 0
    for number, event in enumerate(yaml.parse(raw, Loader=yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
            event, yaml.CollectionEndEvent
        )
        if depth > _DEEPEST or number > _MOST_EVENTS or isinstance(event, yaml.AliasEvent):
            return False
    return True


def _problem(line: int, key: Any, flaw: Flaw) -> Problem:
    severity: Severity = "error" if key in _NARROWING else "warning" if key in KEYS else "hint"
    where = " ".join(flaw.path[:_MOST_SHOWN].split())
    return Problem(line, 0, severity, f"front matter {where}: {flaw.text}")


def trouble(transcript: Transcript) -> str:
    """Why the front matter must be fixed before the next question; "" if it is readable."""
    problems = read_front_matter(transcript.front_matter).problems
    error = next((p for p in problems if p.severity == "error"), None)
    return f"line {error.line + 1}: {error.message}. Fix it, then ask again" if error else ""


def topic(transcript: Transcript) -> str:
    """A chat's subject on one line: its topic, or else the first line that the user wrote, or else
    the first line of its first question, or else "".
    """
    named = read_front_matter(transcript.front_matter).keys.get("topic", "")
    return " ".join(named.split()) or first_words(transcript) or first_line(transcript)


def first_words(transcript: Transcript) -> str:
    """The first line that the user wrote in a question, without the text that references and
    quotes have added; "" if there is none.
    """
    questions = (own_words(each.question) for each in transcript.exchanges if each.question)
    return _line(next(filter(None, questions), ""))


def first_line(transcript: Transcript) -> str:
    """The first line of the first question with text, which may be included; "" if there is none."""
    questions = (each.question.text for each in transcript.exchanges if each.question)
    return _line(next(filter(None, questions), ""))


def _line(text: str) -> str:
    """The first line that is not blank, with single spaces."""
    return next((" ".join(line.split()) for line in text.split("\n") if line.strip()), "")
