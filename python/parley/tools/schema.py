"""Whether the arguments a model wrote fit the tool's schema, in words that help the model to correct them.

Works on the raw text, as it stands in the file: what is shown is what runs, so anything that two readers
could read differently (a key twice, NaN) is refused. Never fetches a remote `$ref`; a server's broken
schema is no schema.

A schema comes from a server, and is at work before anybody is asked, so it gets a bounded number of steps:
arguments that take more are left for the server to check, and so is what `_UNBOUNDED` names.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from parley.tables import nearest

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

MAX_DEPTH = 100  # deeper than any schema, shallower than any recursion limit on the way
_ERRORS_SHOWN = 3
_VALUE_SHOWN = 80
_SLIP = 0.85  # a letter or two of a name; `more` beside `mode` may be meant
_DIGITS = 1000  # Python itself reads no more than some thousands
_REASON_SHOWN = 200
_STEPS = 10_000
"""Keywords of a schema that are looked at for one call; subschemas that refer to others can be endless."""
_STEP = 100
"""Values in a keyword, such as `enum`, that one step is enough for: each is held against each of a call's."""
_UNBOUNDED = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems")
"""Keywords that a server checks itself: a regular expression can take for ever over a short text."""

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
    """The arguments a model streamed, as a dict; blank text means none.

    Raises ValueError, with a message for the model, for anything but one unambiguous JSON object.
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
        raise ValueError(f"Invalid JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise ValueError(f"Invalid JSON: nested more than {MAX_DEPTH} levels deep") from error
    if not isinstance(value, dict):
        raise ValueError(f"Invalid arguments: expected a JSON object, got {_kind(value)}")
    _check_plain(value)
    return value


def check_arguments(arguments: str, schema: object) -> str | None:
    """The flaw of `arguments` for a tool with this input schema, or None: it may be called."""
    try:
        value = decode_arguments(arguments)
    except ValueError as error:
        return str(error)
    if not isinstance(schema, Mapping):
        return None
    return _violation(value, schema) or _misspelt(value, schema)


# RFC 8259 (December 2017), section 4: "When the names within an object are not unique, the
# behavior of software that receives such an object is unpredictable."; section 6: "Numeric values that cannot
# be represented in the grammar below (such as Infinity and NaN) are not permitted."
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
    """Refuses what a server could not be sent as it is shown: bottomless nesting, broken characters."""
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
    """A schema wants more than is checked here."""


_LEFT: ContextVar[Iterator[int]] = ContextVar("steps left")


def _violation(value: dict[str, Any], schema: Mapping[str, Any]) -> str | None:
    from jsonschema.exceptions import SchemaError, best_match  # some 100 ms, and not before the first call
    from referencing.exceptions import Unresolvable

    try:
        validator = _validator(json.dumps(schema))
        _LEFT.set(iter(range(_STEPS)))
        errors = islice(validator.iter_errors(value), _ERRORS_SHOWN) if validator else ()
        deepest = (best_match([error]) for error in errors)
        reasons = dict.fromkeys(_reason(error) for error in deepest if error is not None)
    except (
        _UncheckedError,
        SchemaError,
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
    """A validator of the schema's own draft, else 2020-12; references resolve inside it or not at all.

    None where the schema is broken.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    plain = json.loads(schema)
    kind = validator_for(plain, default=Draft202012Validator)
    try:
        kind.check_schema(plain)
    except SchemaError:
        return None
    return _bounded(kind)(plain, registry=EMPTY_REGISTRY)  # the default registry would ask the network


@cache
def _bounded(kind: "type[Validator]") -> "type[Validator]":
    """A draft whose validators take only so many steps, and skip what has no bound."""
    from jsonschema.validators import extend

    checks: dict[str, Any] = {name: _counted(check) for name, check in kind.VALIDATORS.items()}
    checks |= dict.fromkeys(_UNBOUNDED, _unchecked)
    if required := checks.get("required"):
        checks["required"] = lambda validator, rule, instance, schema: required(
            validator, _without_default(rule, schema), instance, schema
        )
    more = checks["additionalProperties"]
    checks["additionalProperties"] = lambda validator, rule, instance, schema: (
        () if "patternProperties" in schema else more(validator, rule, instance, schema)
    )
    bounded: type[Validator] = extend(kind, checks)  # type: ignore[no-untyped-call]
    return bounded


def _without_default(names: Iterable[str], schema: object) -> list[str]:
    """The required parameters that have no default.

    Schemas made of types with defaults name those as required, too: their servers fill them in
    (`browser_take_screenshot` of @playwright/mcp, November 2026).
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    known = properties if isinstance(properties, Mapping) else {}
    return [name for name in names if "default" not in (known.get(name) or ())]


def _counted(check: Callable[..., Iterable[Any] | None]) -> Callable[..., Iterable[Any]]:
    def counting(validator: Any, rule: Any, *values: Any) -> Iterable[Any]:
        steps = 1 + (len(rule) // _STEP if isinstance(rule, list | dict) else 0)
        if len(list(islice(_LEFT.get(), steps))) < steps:
            raise _UncheckedError
        return check(validator, rule, *values) or ()

    return counting


def _unchecked(*_: Any) -> Iterable[Any]:
    return ()


def _reason(error: "ValidationError") -> str:
    where = _path(error.absolute_path)
    value: Any = error.instance
    rule: Any = error.validator_value
    match error.validator:
        case "required":
            missing = [name for name in _without_default(rule, error.schema) if name not in value]
            return "; ".join(f"Missing required parameter '{_joined(where, name)}'" for name in missing[:3])
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
    """An unknown parameter that is nearly one left out.

    A schema that does not forbid more parameters lets it pass, and servers then drop it without a word.
    """
    if "additionalProperties" in schema or "patternProperties" in schema:
        return None
    known = _properties(schema)
    absent = [name for name in known if name not in value]
    for name in value:
        if name not in known and nearest(name, absent, _SLIP):
            return _unknown(name, name, absent)
    return None


def _unknown(where: str, name: str, known: list[str]) -> str:
    near = nearest(name, known)
    hint = f", did you mean '{near}'?" if near else f"; known are {', '.join(known)}" if known else ""
    return f"Unknown parameter '{_clip(where, _VALUE_SHOWN)}'{_clip(hint, _REASON_SHOWN)}"


def _properties(schema: object) -> list[str]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return list(properties) if isinstance(properties, Mapping) else []


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
