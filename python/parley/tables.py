"""Reads users' tables (settings, front matter, templates, server files) into dataclasses.

The fields' types are the schema; a field's `Rule` adds what its type cannot express. If a value
does not match its type, the default replaces the value, and its path is reported as a flaw. Knows
neither files nor the meaning of a table.
"""

from __future__ import annotations

import json
import math
import reprlib
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from parley.frozen import frozen

LARGEST = 2**53
"""Lua and JSON readers round larger numbers, and Python does not print very large ones."""
NO_VALUE: Final = object()
"""Replaces a value that does not match its type."""

_MOST_SHOWN = 80
_DEEPEST = 16
"""The maximum number of levels in a JSON value."""
_WORD_SHOWN = 128  # a name may have any length, and comparisons take proportional time


@frozen
class Rule:
    """Facts about a field that its type does not express.

    `name`: the field's name in tables, if it differs. `noun`: its description in messages. `least`:
    a number's minimum. `is_short`: a value that is not a table stands for a table with only this
    field. `is_secret`: the value is never shown. `is_strict`: an item with any flaw is left out.
    `is_internal`: Parley sets the field, and tables cannot set it.
    """

    name: str = ""
    noun: str = ""
    least: int = 0
    is_short: bool = False
    is_secret: bool = False
    is_strict: bool = False
    is_internal: bool = False


_NO_RULE = Rule()


def rule(
    name: str = "",
    *,
    noun: str = "",
    least: int = 0,
    is_short: bool = False,
    is_secret: bool = False,
    is_strict: bool = False,
    is_internal: bool = False,
) -> dict[str, Rule]:
    """A `Rule` as a field's metadata."""
    return {"rule": Rule(name, noun, least, is_short, is_secret, is_strict, is_internal)}


@frozen
class Flaw:
    """A flaw in a table, and its path, such as `loop.max_iterations` or `agents[1].name`."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


@frozen
class Kind:
    """A type of plain values: its nouns, and a function that converts a raw value (or NO_VALUE)."""

    nouns: tuple[str, ...]
    read: Callable[[Any], Any]


def _whole_number(raw: Any) -> Any:
    if isinstance(raw, float) and raw.is_integer():
        raw = int(raw)  # Lua has only one kind of number
    fits = isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= LARGEST
    return raw if fits else NO_VALUE


def _number(raw: Any) -> Any:
    is_float = isinstance(raw, float) and 0 <= raw < math.inf
    return float(raw) if is_float or _whole_number(raw) is not NO_VALUE else NO_VALUE


def _of_type(kind: type) -> Callable[[Any], Any]:
    return lambda raw: raw if isinstance(raw, kind) else NO_VALUE


def _json_value(raw: Any, levels: int = _DEEPEST) -> Any:
    """The value if JSON can represent it; TOML also has dates, and a program any object."""
    match raw:
        case None | bool() | str():
            return raw
        case int():
            return raw if abs(raw) <= LARGEST else NO_VALUE
        case float():
            return raw if math.isfinite(raw) else NO_VALUE
        case Mapping() if levels:
            table = {str(key): _json_value(value, levels - 1) for key, value in raw.items()}
            return NO_VALUE if NO_VALUE in table.values() else table
        case list() | tuple() if levels:
            values = [_json_value(value, levels - 1) for value in raw]
            return NO_VALUE if NO_VALUE in values else values
        case _:
            return NO_VALUE


_KINDS: Mapping[Any, Kind] = {
    str: Kind(("a text",), _of_type(str)),
    bool: Kind(("true", "false"), _of_type(bool)),
    int: Kind(("an integer ≥ {least}",), _whole_number),
    float: Kind(("a number ≥ {least}",), _number),
    Any: Kind(("a JSON value",), _json_value),
}


class TableReader:
    """Reads tables into dataclasses by their type hints, and collects the flaws.

    `unknown` is the message for a name that is not a field; None allows such names. `kinds` are
    further types of plain values. An overlay yields tables with only the given values, without
    defaults, to override parts of another value. Because it may narrow that value, it accepts
    neither null nor a list as an empty table.
    """

    def __init__(
        self,
        unknown: str | None,
        kinds: Mapping[Any, Kind] | None = None,
        *,
        is_overlay: bool = False,
    ) -> None:
        self.flaws: list[Flaw] = []
        self._unknown = unknown
        self._kinds = {**_KINDS, **(kinds or {})}
        self._is_overlay = is_overlay

    def flaw(self, path: str, text: str) -> Any:
        """Record a flaw, and return NO_VALUE."""
        self.flaws.append(Flaw(path, text))
        return NO_VALUE

    def record(self, cls: type, raw: Any, path: str = "") -> Any:
        """The dataclass for a table; NO_VALUE if it cannot be created."""
        values = self.values(cls, raw, path)
        if values is NO_VALUE or self._is_overlay:
            return values
        missing = [
            name
            for name, field in _fields(cls).items()
            if field.name not in values and _needs(field)
        ]
        for name in missing:
            if name not in raw:
                self.flaw(_below(path, name), "is missing")
        return NO_VALUE if missing else cls(**values)

    def values(self, cls: type, raw: Any, path: str = "") -> Any:
        """The table's valid values, by the dataclass's fields; NO_VALUE if `raw` is not a table."""
        known, hints = _fields(cls), get_type_hints(cls, include_extras=True)
        if raw in ([], ()) and not self._is_overlay:
            raw = {}  # Lua's empty table
        if not isinstance(raw, Mapping):
            return self._short(known, hints, raw, path)
        values = dict[str, Any]()
        for name, entry in raw.items():
            where, field = _below(path, str(name)), known.get(name)
            if field is not None:
                values[field.name] = self._value(hints[field.name], entry, where, _rule(field))
            elif self._unknown is not None:
                self.flaw(where, self._unknown + did_you_mean(str(name), known))
        return {name: value for name, value in values.items() if value is not NO_VALUE}

    def _short(
        self, known: Mapping[str, Field[Any]], hints: Mapping[str, Any], raw: Any, path: str
    ) -> Any:
        """The values of a table that is written in its short form."""
        field = next((field for field in known.values() if _rule(field).is_short), None)
        if field is None:
            return self.flaw(path, expected("a table", raw))
        hint = _without_none(hints[field.name])
        value = self._read(hint, raw)
        if value is NO_VALUE or _is_below(value, _rule(field)):
            nouns = (*self._nouns(hint, _rule(field)), f"a table of {listed(known)}")
            return self.flaw(path, expected(any_of(*nouns), raw))
        return {field.name: value}

    def _value(self, hint: Any, raw: Any, path: str, own: Rule) -> Any:
        if get_origin(hint) in (Union, types.UnionType):
            if raw is None and not self._is_overlay:
                return None
            hint = _without_none(hint)
        origin, args = get_origin(hint), get_args(hint)
        if is_dataclass(hint) and isinstance(hint, type):
            return self.record(hint, raw, path)
        if origin is tuple:
            return self._list(args[0], raw, path, own)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._mapping(args[1], raw, path, own)
        return self._plain(hint, raw, path, own)

    def _list(self, item: Any, raw: Any, path: str, own: Rule) -> Any:
        if raw == {} and not self._is_overlay:
            raw = ()
        if not isinstance(raw, list | tuple):
            return self.flaw(path, expected(own.noun or f"a list{_of(item)}", raw, own.is_secret))
        values = [
            self._item(item, entry, f"{path}[{number}]", own) for number, entry in enumerate(raw, 1)
        ]
        return tuple(value for value in values if value is not NO_VALUE)

    def _item(self, item: Any, raw: Any, path: str, own: Rule) -> Any:
        before = len(self.flaws)
        value = self._value(item, raw, path, Rule(is_secret=own.is_secret))
        return NO_VALUE if own.is_strict and len(self.flaws) > before else value

    def _mapping(self, item: Any, raw: Any, path: str, own: Rule) -> Any:
        if raw in ([], ()) and not self._is_overlay:
            raw = {}
        if not isinstance(raw, Mapping):
            return self.flaw(
                path,
                expected(
                    own.noun or f"a table{_of(item) if item is str else ''}", raw, own.is_secret
                ),
            )
        if is_dataclass(item):  # the key is the value's name
            raw = {
                key: {**dict(entry), "name": str(key)}
                if isinstance(entry, Mapping) or entry == []
                else entry
                for key, entry in raw.items()
            }
        inner = Rule(is_secret=own.is_secret)
        values = {
            str(key): self._value(item, entry, _below(path, str(key)), inner)
            for key, entry in raw.items()
        }
        return {key: value for key, value in values.items() if value is not NO_VALUE}

    def _plain(self, hint: Any, raw: Any, path: str, own: Rule) -> Any:
        value = self._read(hint, raw)
        if value is NO_VALUE or (hint is not Any and _is_below(value, own)):
            nouns = (own.noun,) if own.noun else self._nouns(hint, own)
            known = [entry for entry in _choices(hint) if isinstance(entry, str)]
            return self.flaw(path, expected(any_of(*nouns), raw, own.is_secret, known))
        return value

    def _read(self, hint: Any, raw: Any) -> Any:
        """The value, or NO_VALUE if it does not match the type."""
        if known := _choices(hint):  # 1 equals true, but is not true
            same = (entry for entry in known if type(entry) is type(raw) and entry == raw)
            return next(same, NO_VALUE)
        return self._kinds[hint].read(raw)

    def _nouns(self, hint: Any, own: Rule) -> tuple[str, ...]:
        if choices := _choices(hint):
            return tuple(map(brief, choices))
        return tuple(noun.format(least=own.least) for noun in self._kinds[hint].nouns)


def names(cls: type) -> tuple[str, ...]:
    """The names of a dataclass's fields in tables."""
    return tuple(_fields(cls))


def expected(noun: str, raw: Any, is_secret: bool = False, known: Iterable[str] = ()) -> str:
    """A message with the expected and the actual value, and the most similar `known` name."""
    if is_secret:
        return f"expected {noun}, got {_kind_of(raw)}"
    return (
        f"expected {noun}, got "
        f"{brief(raw)}{did_you_mean(raw, known) if isinstance(raw, str) else ''}"
    )


def brief(value: Any) -> str:
    """A value on one short line."""
    is_json = isinstance(value, str | bool) or value is None  # users do not know Python's notation
    text = json.dumps(value, ensure_ascii=False) if is_json else _SHORT.repr(value)
    return text[:_MOST_SHOWN]


def _kind_of(value: Any) -> str:
    """The kind of a value, without its content."""
    match value:
        case str():
            return "a text"
        case bool() | None:
            return json.dumps(value)
        case int() | float():
            return "a number"
        case Mapping():
            return "a table"
        case list() | tuple():
            return "a list"
        case _:
            return "something else"


class _Short(reprlib.Repr):
    """Short representations; a TOML integer may have more digits than Python prints."""

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if abs(x) <= LARGEST else "a number too large"


_SHORT = _Short()


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message, which suggests the `known` word that is most similar to `word`; "" if
    there is none.
    """
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The `known` word that is most similar to `word`, ignoring case; None if no word reaches
    `likeness` (0 … 1).
    """
    import difflib  # needed only for error messages

    spellings = {other.lower(): other for other in known}
    matches = difflib.get_close_matches(word[:_WORD_SHOWN].lower(), spellings, n=1, cutoff=likeness)
    return spellings[matches[0]] if matches else None


def any_of(*nouns: str) -> str:
    """Alternatives as text: `a, b or c`."""
    *others, last = nouns
    return f"{', '.join(others)} or {last}" if others else last


def listed(nouns: Iterable[str]) -> str:
    """A list as text: `a, b and c`."""
    *others, last = nouns
    return f"{', '.join(others)} and {last}" if others else last


def _fields(cls: Any) -> dict[str, Field[Any]]:
    read = (field for field in fields(cls) if field.init and not _rule(field).is_internal)
    return {_rule(field).name or field.name: field for field in read}


def _rule(field: Field[Any]) -> Rule:
    own: Rule = field.metadata.get("rule", _NO_RULE)
    return own


def _is_below(value: Any, own: Rule) -> bool:
    return isinstance(value, int | float) and value < own.least


def _needs(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _of(item: Any) -> str:
    if is_dataclass(item):
        is_short = any(_rule(field).is_short for field in fields(item))
        return " of texts or tables" if is_short else " of tables"
    return " of texts" if item is str else ""


def _choices(hint: Any) -> tuple[str | bool, ...]:
    """The values that a type allows; empty if the type is not a choice of values."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) is Annotated:  # its metadata is a function that returns the choices
        return tuple(get_args(hint)[1]())
    return ()


def _without_none(hint: Any) -> Any:
    inner: Sequence[Any] = [arg for arg in get_args(hint) if arg is not types.NoneType]
    return inner[0] if len(inner) < len(get_args(hint)) else hint
