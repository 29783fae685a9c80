"""Reads a user's table, from Lua or TOML, into settings, field by field.

What does not fit is reported by its path, and the default stands in: a broken setting never stops anything
from starting. The types of the settings are the schema; knows nothing of where tables come from.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from parley.addresses import flaw
from parley.models.request import ThinkingSettings
from parley.policy.rules import Pattern
from parley.settings.values import PROVIDERS, Agent, CallLimits, Key, Settings
from parley.text import one_line
from parley.tools.catalogue import nearest
from parley.tools.servers import RESERVED

T = TypeVar("T")


def read_settings(table: Any) -> tuple[Settings, tuple[str, ...]]:
    """The settings a table asks for, and what is wrong with it: one line a problem, each naming its path."""
    reader = _Reader()
    settings: Settings = reader.record(Settings, table, "") or Settings()
    numbered = list(enumerate(settings.agents, 1))
    sound = tuple(a for n, a in numbered if reader.is_sound(settings, a, f"agents[{n}]"))
    settings = replace(settings, agents=sound)
    reader.check_patterns(settings)
    reader.check_addresses(settings)
    settings = reader.without_reserved(settings)
    if settings.agent and settings.named_agent(settings.agent) is None:
        reader.wrong("agent", "the name of an agent", settings.agent, [a.name for a in settings.all_agents()])
    return settings, tuple(map(one_line, reader.problems))


_MINIMA = {
    "thinking.budget_tokens": 1024,
    "loop.max_iterations": 1,
    "loop.max_consecutive_errors": 1,
    "safety.rate_limit_per_minute": 1,
}
"""By the end of a path: an agent's thinking is bounded as everybody's is."""

_LARGEST = 2**53
"""Beyond it Lua and JSON's readers round a number."""

_UNSET = object()


class _Short(reprlib.Repr):
    """A value in few words; an integer of TOML may have more digits than Python prints."""

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if abs(x) <= _LARGEST else "a number too large"


_SHORT = _Short()


class _Reader:
    """Reads tables into dataclasses by their type hints, keeping the default where a value does not fit."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def wrong(self, path: str, wanted: str, got: Any, known: Sequence[str] = ()) -> None:
        near = nearest(got, known) if known and isinstance(got, str) else None
        hint = f"; did you mean {near}?" if near else ""
        shown = json.dumps(got, ensure_ascii=False) if isinstance(got, str) else _SHORT.repr(got)
        if "key" in path.rpartition(".")[2] and isinstance(got, str):
            shown = "a text"  # it may be the key itself
        self.problems.append(f"parley: {path}: expected {wanted}, got {shown:.80}{hint}")

    def record(self, cls: type[T], table: Any, path: str) -> Any:
        if table in ([], ()):
            table = {}
        if not isinstance(table, Mapping):
            self.wrong(path or "setup", "a table", table)
            return _UNSET if path else None
        assert is_dataclass(cls)
        hints, names = get_type_hints(cls, include_extras=True), [f.name for f in fields(cls) if f.init]
        chosen = dict[str, Any]()
        for name, raw in table.items():
            where = f"{path}.{name}" if path else str(name)
            if name not in names:
                near = nearest(str(name), names)
                hint = f"; did you mean {near}?" if near else ""
                self.problems.append(f"parley: {where}: there is no such setting{hint}")
            elif (value := self.value(hints[name], raw, where)) is not _UNSET:
                chosen[name] = value
        for each in fields(cls):
            if each.name not in chosen and each.default is MISSING and each.default_factory is MISSING:
                if each.name not in table:
                    self.problems.append(f"parley: {path}.{each.name}: is missing")
                return _UNSET
        return cls(**chosen)

    def value(self, hint: Any, raw: Any, path: str) -> Any:
        if hint in _SHORTHANDS and (read := _SHORTHANDS[hint](raw)) is not None:
            return read
        if is_dataclass(hint) and isinstance(hint, type):
            return self.record(hint, raw, path)
        origin, args = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            inner = [arg for arg in args if arg is not type(None)]
            return None if raw is None else self.value(inner[0], raw, path)
        if origin is Annotated:  # a text of those that a table has
            return self._one_of(args[1](), raw, path)
        if origin is Literal:
            return self._one_of(args, raw, path)
        if origin is tuple:
            return self._list(args[0], raw, path)
        if origin is not None and issubclass(origin, Mapping):
            return self._mapping(args[1], raw, path)
        return self._plain(hint, raw, path)

    def _one_of(self, allowed: Sequence[Any], raw: Any, path: str) -> Any:
        if raw in allowed:
            return raw
        self.wrong(path, " or ".join(f'"{a}"' for a in allowed), raw, [str(a) for a in allowed])
        return _UNSET

    def _list(self, item: Any, raw: Any, path: str) -> Any:
        if isinstance(raw, Mapping) and not raw:
            raw = []
        if not isinstance(raw, list | tuple):
            self.wrong(path, "a list", raw)
            return _UNSET
        read = [self._item(item, each, path, number) for number, each in enumerate(raw, 1)]
        return tuple(value for value in read if value is not _UNSET)

    def _item(self, item: Any, raw: Any, path: str, number: int) -> Any:
        before = len(self.problems)
        value = self.value(item, raw, f"{path}[{number}]")
        is_doubtful = path == "approval.auto" and len(self.problems) > before
        return _UNSET if is_doubtful else value  # with a slip in it, a rule might allow more than was meant

    def _mapping(self, item: Any, raw: Any, path: str) -> Any:
        if raw in ([], ()):
            raw = {}
        if not isinstance(raw, Mapping):
            self.wrong(path, "a table", raw)
            return _UNSET
        if is_dataclass(item):  # what is named by its key knows its name
            raw = {
                key: {**each, "name": str(key)} if isinstance(each, Mapping) else each
                for key, each in raw.items()
            }
        read = {str(key): self.value(item, each, f"{path}.{key}") for key, each in raw.items()}
        return {key: value for key, value in read.items() if value is not _UNSET}

    def _plain(self, hint: Any, raw: Any, path: str) -> Any:
        fits, wanted = _PLAIN[hint]
        if hint is int and isinstance(raw, float) and raw.is_integer():
            raw = int(raw)  # Lua knows one kind of number
        least = next((least for end, least in _MINIMA.items() if f".{path}".endswith(f".{end}")), 0)
        if hint is int and least:
            wanted = f"an integer ≥ {least}"
        if not fits(raw) or (hint is int and raw < least):
            self.wrong(path, wanted, raw)
            return _UNSET
        return float(raw) if hint is float else raw

    def check_patterns(self, settings: Settings) -> None:
        """Report what is no regular expression. It stays where it is: in doubt it forbids."""
        for number, text in enumerate(settings.safety.blocked_tool_patterns, 1):
            if len(text) > 2 and text.startswith("/") and text.endswith("/"):
                self._check_expression(f"safety.blocked_tool_patterns[{number}]", text[1:-1])
        for name, patterns in (("auto", settings.approval.auto), ("deny", settings.approval.deny)):
            for number, pattern in enumerate(patterns, 1):
                for key, text in pattern.args.items():
                    self._check_expression(f"approval.{name}[{number}].args.{key}", text)

    def check_addresses(self, settings: Settings) -> None:
        """Report addresses that are none; they stay, for what stands in for them would be another's."""
        addresses = {f"providers.{n}.base_url": each.base_url for n, each in settings.providers.items()}
        addresses |= {f"mcp.servers.{n}.url": each.url for n, each in settings.mcp.servers.items()}
        for path, url in addresses.items():
            if url is not None and "${" not in url and (why := flaw(url)):
                self.problems.append(f"parley: {path}: {why}")

    def without_reserved(self, settings: Settings) -> Settings:
        """Report a server that takes the name of the built-in one, and leave it out."""
        servers = dict(settings.mcp.servers)
        if servers.pop(RESERVED, None) is None:
            return settings
        self.problems.append(f"parley: mcp.servers.{RESERVED}: this name is reserved for the built-in server")
        return replace(settings, mcp=replace(settings.mcp, servers=servers))

    def _check_expression(self, path: str, text: str) -> None:
        try:
            re.compile(text)
        except re.error as error:
            self.wrong(path, f"a regular expression ({error})", text)

    def is_sound(self, settings: Settings, agent: Agent, path: str) -> bool:
        """Whether there can be such an agent; what is wrong with it is reported."""
        before = len(self.problems)
        known = [*settings.providers, *PROVIDERS]
        if not re.fullmatch(r"[^\]\x00-\x1f]+", agent.name):
            self.wrong(f"{path}.name", "a name of one line without ]", agent.name)
        if agent.provider not in known:
            self.wrong(f"{path}.provider", "the name of a provider", agent.provider, known)
        if not agent.model:
            self.wrong(f"{path}.model", "the name of a model", agent.model)
        return len(self.problems) == before


_PLAIN: dict[Any, tuple[Callable[[Any], bool], str]] = {
    str: (lambda raw: isinstance(raw, str), "a text"),
    Key: (lambda raw: isinstance(raw, str), "a key or false"),
    bool: (lambda raw: isinstance(raw, bool), "true or false"),
    int: (
        lambda raw: isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= _LARGEST,
        "an integer ≥ 0",
    ),
    float: (
        lambda raw: _PLAIN[int][0](raw) or (isinstance(raw, float) and 0 <= raw < math.inf),
        "a number ≥ 0",
    ),
}
_SHORTHANDS: dict[Any, Callable[[Any], Any]] = {
    CallLimits: lambda raw: CallLimits(raw) if _PLAIN[int][0](raw) else None,
    Pattern: lambda raw: Pattern(raw) if isinstance(raw, str) else None,
    ThinkingSettings: lambda raw: ThinkingSettings(enabled=raw) if isinstance(raw, bool) else None,
    Key: lambda raw: "" if raw is False else None,
}
"""Short spellings: a number as `max_tool_calls`, a glob as a pattern, true or false as thinking, no key."""
