"""Checks a model's arguments against the tool's schema, in words that help the model correct them.

Works on the raw text in the file: the text shown is the text that runs, so Parley refuses text that
two readers could read differently (a repeated key, NaN). Never fetches a remote `$ref`; a server's
broken schema counts as no schema.

A schema comes from a server and is used before the user decides, so a check has a limited number of
steps. The server must check arguments that take more steps, and the keywords in `_UNBOUNDED`.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from parley.tables import nearest
from parley.tools.catalogue import Tool

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

MAX_DEPTH = 100  # deeper than any real schema, but below every recursion limit
_ERRORS_SHOWN = 3
_VALUE_SHOWN = 80
_SLIP = 0.85  # a letter or two in a name; `more` next to `mode` may be intended
_DIGITS = 1000  # Python itself reads only some thousands
_REASON_SHOWN = 200
_STEPS = 10_000
"""How many schema keywords are checked for one call; references can make their number endless."""
_STEP = 100
"""How many names in a keyword, or characters in a value, cost one step."""
_MOST_PARTS = 2_000
"""The maximum number of tables in a schema; well-known servers' schemas have some hundreds."""
_MOST_NEAR = 10
"""How many unknown parameters are compared with the known parameters, for "did you mean"."""
_MOST_KNOWN = 200
_UNBOUNDED = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems")
"""Keywords that only the server checks: a regular expression can run forever on a short text."""

_KINDS: Mapping[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def decode_arguments(arguments: str) -> dict[str, Any]:
    """The arguments that a model streamed, as a dict; blank text means none.

    Raises ValueError, with a message for the model, unless they are one unambiguous JSON object.
    """
    if not arguments.strip():
        return {}
    try:
        value = json.loads(
            arguments,
            object_pairs_hook=_unique,
            parse_constant=_constant,
            parse_float=_finite,
            parse_int=_countable,
        )
    except json.JSONDecodeError as error:
        raise ValueError(
            f"Invalid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise ValueError(f"Invalid JSON: nested more than {MAX_DEPTH} levels deep") from error
    if not isinstance(value, dict):
        raise ValueError(f"Invalid arguments: expected a JSON object, got {_kind(value)}")
    _check_plain(value)
    return value


@lru_cache(maxsize=8192)
def check_call(arguments: str, tool: Tool) -> str | None:
    """The flaw in a call's arguments for this tool, or None; computed once for each call."""
    return check_arguments(arguments, tool.input_schema)


def check_arguments(arguments: str, schema: object) -> str | None:
    """The flaw in `arguments` under this input schema; None if the tool may be called."""
    try:
        value = decode_arguments(arguments)
    except ValueError as error:
        return str(error)
    if not isinstance(schema, Mapping):
        return None
    return _violation(value, json.dumps(schema)) or _misspelt(value, schema)


# RFC 8259 (December 2017), section 4: "When the names within an object are not unique, the behavior
# of software that receives such an object is unpredictable."; section 6: "Numeric values that
# cannot be represented in the grammar below (such as Infinity and NaN) are not permitted."
def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            raise ValueError(f"Invalid arguments: the key {_as_json(key)} is given twice")
        value[key] = item
    return value


def _constant(text: str) -> float:
    raise ValueError(f"Invalid JSON: {text} is not a JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"Invalid arguments: the number {_clip(text, _VALUE_SHOWN)} is too large")
    return number


def _countable(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"Invalid arguments: the number {_clip(text, _VALUE_SHOWN)} is too large")
    return int(text)


def _check_plain(value: object) -> None:
    """Refuse values that cannot be sent as shown: endless nesting or broken characters."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for holder in level for inner in _inside(holder)]
        if not level:
            break
    else:
        raise ValueError(f"Invalid JSON: nested more than {MAX_DEPTH} levels deep")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("Invalid JSON: a string holds half of a surrogate pair") from error


def _inside(value: object) -> Iterator[object]:
    match value:
        case dict():
            yield from value.values()
        case list():
            yield from value


class _UncheckedError(Exception):
    """A schema requires more steps than this check allows."""


class _Work:
    """The number of steps left for one call, and the prepared values of the schema."""

    def __init__(self) -> None:
        self._left = _STEPS
        self._options: dict[int, frozenset[str]] = {}

    def take(self, steps: int) -> None:
        """Use up some steps. Raises _UncheckedError if too few steps are left."""
        self._left -= steps
        if self._left < 0:
            raise _UncheckedError

    def options(self, values: list[Any]) -> frozenset[str]:
        """The values of an `enum`, as a set for look-ups."""
        if id(values) not in self._options:
            self._options[id(values)] = frozenset(map(_canonical, values))
        return self._options[id(values)]


_WORK: ContextVar[_Work] = ContextVar("work of a check")


def _violation(value: dict[str, Any], schema: str) -> str | None:
    from jsonschema.exceptions import (
        SchemaError,
        UnknownType,
        best_match,
    )  # 100 ms, at the first call
    from referencing.exceptions import Unresolvable

    try:
        validator = _validator(schema)
        _WORK.set(_Work())
        errors = islice(validator.iter_errors(value), _ERRORS_SHOWN) if validator else ()
        deepest = (best_match([error]) for error in errors)
        reasons = dict.fromkeys(_reason(error) for error in deepest if error is not None)
    except (
        _UncheckedError,
        SchemaError,
        UnknownType,
        Unresolvable,
        re.error,
        RecursionError,
        ArithmeticError,
        LookupError,
        AttributeError,
        TypeError,
        ValueError,
    ):
        return None
    return "; ".join(reasons) or None


@lru_cache(maxsize=256)
def _validator(schema: str) -> "Validator | None":
    """A validator for the schema's own draft, else 2020-12; references resolve only inside it.

    None if the schema is broken or has too many parts.
    """
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    plain = json.loads(schema)
    kind = validator_for(plain, default=Draft202012Validator)
    parts = islice(_tables(plain), _MOST_PARTS + 1)
    if len(list(parts)) > _MOST_PARTS:
        return None
    try:
        # Without formats, because checking a pattern would compile it.
        kind.check_schema(_sketch(plain), format_checker=FormatChecker(()))  # type: ignore[call-arg]
    except SchemaError:
        return None
    # The default registry would use the network.
    return _bounded(kind)(_of_one_draft(plain), registry=EMPTY_REGISTRY)


def _tables(value: object) -> Iterator[object]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
        waiting.extend(_inside(each))


def _sketch(schema: Any) -> Any:
    """The schema with one value from each list of values; it is valid if and only if the schema is.

    Meta-schemas require unique values, so they compare each value with all other values.
    """
    match schema:
        case dict():
            return {
                key: _typical(value)
                if key in _LISTS and isinstance(value, list)
                else _sketch(value)
                for key, value in schema.items()
                if key not in _VALUES
            }
        case list():
            return list(map(_sketch, schema))
        case _:
            return schema


_LISTS = ("enum", "required", "type")
_VALUES = ("const", "default", "examples")


def _typical(values: list[Any]) -> list[Any]:
    return [value for value in values if not isinstance(value, str)][:1] or values[:1]


def _of_one_draft(schema: Any) -> Any:
    """The schema without its parts' drafts, whose own checks, without a limit, would be used."""
    match schema:
        case dict():
            return {
                key: _of_one_draft(value)
                for key, value in schema.items()
                if not (key == "$schema" and _names_draft(value))
            }
        case list():
            return list(map(_of_one_draft, schema))
        case _:
            return schema


def _names_draft(value: object) -> bool:
    from jsonschema.validators import validator_for

    none: Any = None
    return isinstance(value, str) and validator_for({"$schema": value}, default=none) is not none


@cache
def _bounded(kind: "type[Validator]") -> "type[Validator]":
    """A draft whose validators take a limited number of steps and skip `_UNBOUNDED` keywords."""
    from jsonschema.validators import extend

    checks: dict[str, Any] = dict(kind.VALIDATORS)
    checks |= {name: check for name, check in _LINEAR.items() if name in checks}
    if required := checks.get("required"):
        checks["required"] = lambda validator, rule, instance, schema: required(
            validator, _without_default(rule, schema), instance, schema
        )
    more = checks["additionalProperties"]
    checks["additionalProperties"] = lambda validator, rule, instance, schema: (
        () if "patternProperties" in schema else more(validator, rule, instance, schema)
    )
    checks = {name: _counted(name, check) for name, check in checks.items()}
    checks |= dict.fromkeys(_UNBOUNDED, _unchecked)
    bounded: type[Validator] = extend(kind, checks)  # type: ignore[no-untyped-call]
    return bounded


def _enum(_validator: Any, options: Any, instance: Any, _schema: Any) -> Iterable[Any]:
    from jsonschema.exceptions import ValidationError

    if _key_of(instance) not in _WORK.get().options(options):
        yield ValidationError("it is not one of the allowed values")


def _const(_validator: Any, value: Any, instance: Any, _schema: Any) -> Iterable[Any]:
    from jsonschema.exceptions import ValidationError

    if _key_of(instance) != _key_of(value):
        yield ValidationError(f"expected {_as_json(value)}, got {_as_json(instance)}")


def _unique_items(_validator: Any, rule: Any, instance: Any, _schema: Any) -> Iterable[Any]:
    from jsonschema.exceptions import ValidationError

    if not rule or not isinstance(instance, list):
        return
    keys = set[str]()
    for item in instance:
        key = _key_of(item)
        if key in keys:
            yield ValidationError(f"{_as_json(item)} occurs twice, but the items must be unique")
            return
        keys.add(key)


_LINEAR: Mapping[str, Callable[..., Iterable[Any]]] = {
    "enum": _enum,
    "const": _const,
    "uniqueItems": _unique_items,
}
"""Replacements for `jsonschema`'s checks, which compare all pairs of values, or whole values."""


def _key_of(value: object) -> str:
    """A value's canonical text; its length costs steps."""
    key = _canonical(value)
    _WORK.get().take(len(key) // _STEP)
    return key


def _canonical(value: object) -> str:
    """A text that is the same for values that JSON Schema treats as equal: 1.0 equals 1, true does
    not.
    """
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _whole(each) for key, each in value.items()}
        case list():
            return list(map(_whole, value))
        case _:
            return value


def _without_default(names: Iterable[str], schema: object) -> list[str]:
    """The required parameters without a default.

    Schemas generated from types also require parameters with a default, but their servers fill
    these in (`browser_take_screenshot` in @playwright/mcp, November 2026).
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    known = properties if isinstance(properties, Mapping) else {}
    return [name for name in names if "default" not in (known.get(name) or ())]


_OF_PARTS = frozenset(("items", "prefixItems", "contains", "propertyNames", "additionalItems"))
"""Keywords that visit each part of a value even if their schemas are empty."""
_REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))
_OF_TABLES = frozenset(("dependentRequired", "dependencies"))


def _counted(name: str, check: Callable[..., Iterable[Any] | None]) -> Callable[..., Iterable[Any]]:
    def counting(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterable[Any]:
        work = _WORK.get()
        work.take(1 + _extent(name, rule, instance))
        if name in _REFERENCES:  # each look-up reads the whole reference
            work.take(2 * len(str(rule)) // _STEP)
        for error in check(validator, rule, instance, schema) or ():
            if not error.relative_schema_path:  # created here; may contain the whole value
                work.take(1 + _size(instance) // _STEP)
            yield error

    return counting


def _extent(name: str, rule: Any, instance: Any) -> int:
    """The steps that a keyword takes, without its subschemas' steps."""
    own = len(rule) if isinstance(rule, list | dict) else 0
    if name in _OF_TABLES and isinstance(rule, dict):
        own += sum(len(names) for names in rule.values() if isinstance(names, list))
    parts = len(instance) if isinstance(instance, list | dict) else 0
    is_of_each = name in _OF_PARTS or (name == "additionalProperties" and isinstance(rule, dict))
    return own // _STEP + (parts if is_of_each else parts // _STEP)


def _size(value: object) -> int:
    """A value's approximate length as JSON."""
    return len(value) if isinstance(value, str) else len(json.dumps(value))


def _unchecked(*_: Any) -> Iterable[Any]:
    return ()


def _reason(error: "ValidationError") -> str:
    where = _path(error.absolute_path)
    value: Any = error.instance
    rule: Any = error.validator_value
    match error.validator:
        case "required":
            missing = [name for name in _without_default(rule, error.schema) if name not in value]
            return "; ".join(
                f"Missing required parameter '{_joined(where, name)}'" for name in missing[:3]
            )
        case "additionalProperties" if rule is False:
            known = _properties(error.schema)
            extra = [name for name in value if name not in known]
            return "; ".join(_unknown(_joined(where, name), name, known) for name in extra[:3])
        case "type":
            kinds = rule if isinstance(rule, str) else " or ".join(map(str, rule))
            return f"{_at(where)}: expected {kinds}, got {_as_json(value)} ({_kind(value)})"
        case "enum":
            return f"{_at(where)}: expected one of {_as_json(rule)}, got {_as_json(value)}"
        case _:
            return f"{_at(where)}: {_clip(error.message, _REASON_SHOWN)}"


def _misspelt(value: dict[str, Any], schema: Mapping[str, Any]) -> str | None:
    """The flaw of an unknown parameter whose name resembles a missing parameter's name.

    A schema that does not forbid more parameters accepts such a parameter, and the server then
    silently drops it.
    """
    if "additionalProperties" in schema or "patternProperties" in schema:
        return None
    known = _properties(schema)
    absent = [name for name in known if name not in value]
    unknown = (name for name in value if name not in known)
    for name in islice(unknown, _MOST_NEAR):
        if _nearest(name, absent, _SLIP):
            return _unknown(name, name, absent)
    return None


def _unknown(where: str, name: str, known: Collection[str]) -> str:
    near = _nearest(name, known)
    hint = (
        f", did you mean '{near}'?" if near else f"; known are {', '.join(known)}" if known else ""
    )
    return f"Unknown parameter '{_clip(where, _VALUE_SHOWN)}'{_clip(hint, _REASON_SHOWN)}"


def _nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is probably meant, if a limited search finds it."""
    if len(name) > _VALUE_SHOWN:
        return None
    short = (other for other in known if len(other) <= _VALUE_SHOWN)
    return nearest(name, islice(short, _MOST_KNOWN), likeness)


def _properties(schema: object) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _path(steps: Iterable[str | int]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _joined(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _at(where: str) -> str:
    return f"Parameter '{_clip(where, _VALUE_SHOWN)}'" if where else "Arguments"


def _as_json(value: object) -> str:
    return _clip(json.dumps(value, ensure_ascii=False, default=str), _VALUE_SHOWN)


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _kind(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)
