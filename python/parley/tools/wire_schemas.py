"""Turns servers' schemas into schemas that providers accept, valid at every depth.

If a provider refuses one schema, the whole request fails. So any JSON becomes a draft 2020-12
schema with the same meaning, as far as possible; invalid parts are dropped. Parley still checks
calls against the server's own schema. Knows neither tool names nor requests.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias
from urllib.parse import unquote

Schema: TypeAlias = dict[str, Any]

MOST_LEVELS = 60
"""At this depth, which no model understands, a schema that accepts everything replaces the rest."""

_MOST_STEPS = 20
"""The maximum length of a chain of references, which may be circular."""

_OF_SCHEMA = frozenset(
    [
        *("items", "contains", "not", "if", "then", "else", "propertyNames", "contentSchema"),
        *("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems"),
    ]
)
_OF_SCHEMAS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_OF_NAMED = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)
_OR_BOOLEAN = frozenset(
    ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems")
)
"""Keywords for which every provider accepts true and false."""
_KINDS = ("array", "boolean", "integer", "null", "number", "object", "string")
# "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12": a
# schema with draft 7 in its `$schema` was refused like this
# (github.com/anthropics/claude-code/issues/586, 2026-11-24). The other keywords change a schema's
# address, so its references would lead elsewhere.
_LEFT_OUT = frozenset(
    [
        *("$schema", "$vocabulary", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"),
        *("$dynamicRef", "$recursiveRef"),
    ]
)


def sound(schema: object) -> Schema:
    """Any schema in a form that each provider accepts; its references lead to sound schemas."""
    repaired = _schema(schema, MOST_LEVELS)
    assert isinstance(repaired, dict)
    for each in _dangling(repaired):
        del each["$ref"]
    return repaired


def referred(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema merged with the schema to which it refers."""
    merged, seen = dict(schema), set[str]()
    while isinstance(reference := merged.pop("$ref", None), str) and reference not in seen:
        if len(seen) == _MOST_STEPS:
            break
        seen.add(reference)
        target = _target(reference, root)
        merged = _both(target, merged) if isinstance(target, Mapping) else merged
    return merged


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> Schema:
    """The schema that requires both schemas; the keywords of `other` have precedence."""
    merged = {**one, **other}
    if isinstance(one.get("properties"), Mapping) and isinstance(other.get("properties"), Mapping):
        merged["properties"] = {**one["properties"], **other["properties"]}
    if isinstance(one.get("required"), list) and isinstance(other.get("required"), list):
        merged["required"] = [*one["required"], *other["required"]]
    return merged


def _schema(schema: object, levels: int, *, or_boolean: bool = False) -> Schema | bool:
    if isinstance(schema, bool) and or_boolean:
        return schema
    if schema is False:
        # `true` is `{}` and `false` is `{"not": {}}` (JSON Schema 2020-12,
        # json-schema.org/draft/2020-12/ json-schema-core#section-4.3.2, read 2026-11-22).
        return {"not": {}}
    if not isinstance(schema, Mapping) or not levels:
        return {}
    present = _of_draft_2020(schema)
    parts = {key: _keyword(key, value, levels - 1) for key, value in present.items()}
    repaired = {key: value for key, value in parts.items() if value is not _NOTHING}
    return _complete(repaired)


_NOTHING = object()
"""Marks an omitted keyword."""


def _keyword(key: str, value: Any, levels: int) -> Any:
    if key in _LEFT_OUT:
        return _NOTHING
    if key in _OF_SCHEMA:
        return _schema(value, levels, or_boolean=key in _OR_BOOLEAN)
    if key in _OF_SCHEMAS:
        is_list = isinstance(value, list) and value
        return [_schema(each, levels) for each in value] if is_list else _NOTHING
    if key in _OF_NAMED:
        is_table = isinstance(value, Mapping)
        return (
            {name: _schema(each, levels) for name, each in value.items()} if is_table else _NOTHING
        )
    if key == "dependencies":
        return _dependencies(value, levels)
    return _plain_keyword(key, value)


def _dependencies(value: Any, levels: int) -> Any:
    if not isinstance(value, Mapping):
        return _NOTHING
    return {
        name: _names(each) if isinstance(each, list) else _schema(each, levels)
        for name, each in value.items()
    }


def _plain_keyword(key: str, value: Any) -> Any:
    plain = _finite(value, MOST_LEVELS)
    if key == "type":
        return _kind(plain)
    if key == "required":
        return _names(plain) if isinstance(plain, list) else _NOTHING
    if key == "dependentRequired":
        is_table = isinstance(plain, Mapping)
        return (
            {k: _names(v) for k, v in plain.items() if isinstance(v, list)}
            if is_table
            else _NOTHING
        )
    is_sound = _SOUND.get(key)
    return plain if is_sound is None or is_sound(plain) else _NOTHING


def _names(value: list[Any]) -> list[str]:
    return list(dict.fromkeys(name for name in value if isinstance(name, str)))


def _kind(value: Any) -> Any:
    if isinstance(value, list):
        kinds = [kind for kind in dict.fromkeys(filter(_is_text, value)) if kind in _KINDS]
        return kinds or _NOTHING
    return value if value in _KINDS else _NOTHING


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_some_list(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


_SOUND: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"), _is_number),
    **dict.fromkeys(
        ("maxLength", "minLength", "maxItems", "minItems", "maxContains", "minContains"), _is_count
    ),
    **dict.fromkeys(("maxProperties", "minProperties"), _is_count),
    "multipleOf": _is_positive,
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_truth),
    **dict.fromkeys(("title", "description", "format", "pattern", "$ref", "$comment"), _is_text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _is_text),
    "enum": _is_some_list,
    "examples": _is_list,
}


def _finite(value: Any, levels: int) -> Any:
    """A value that JSON can represent: without NaN, infinity and endless depth."""
    if not levels:
        return None
    match value:
        case float() if not math.isfinite(value):
            return None
        case Mapping():
            return {key: _finite(each, levels - 1) for key, each in value.items()}
        case list() | tuple():
            return [_finite(each, levels - 1) for each in value]
        case _:
            return value


def _of_draft_2020(schema: Mapping[str, Any]) -> Schema:
    """A schema with older drafts' keywords replaced: tuples of items, and exclusive bounds."""
    said = {str(key): value for key, value in schema.items()}
    if isinstance(said.get("items"), list):
        said.setdefault("prefixItems", said["items"])
        said["items"] = said.pop("additionalItems", {})
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if said.get(exclusive) is True and _is_number(said.get(bound)):
            said[exclusive] = said.pop(bound)
    return said


def _complete(schema: Schema) -> Schema:
    """The schema with the keywords that providers require."""
    kind = schema.get("type")
    # "Invalid schema for function 'create_canvas': In context=('properties', 'blocks'), array
    # schema missing items." (OpenAI, github.com/gumloop/guMCP/pull/136); of a list of types: "In
    # context=('properties', 'arguments', 'items', 'type', '0')"
    # (github.com/tidewave-ai/tidewave_phoenix/pull/224); read 2026-11-24.
    if "items" not in schema and (kind == "array" or (isinstance(kind, list) and "array" in kind)):
        schema["items"] = {}
    # "function_declarations[1].parameters.required[0]: property is not defined" (Gemini,
    # github.com/iBUHub/AIStudioToAPI/issues/154, of 2026-05-05, read 2026-11-24). "'required'
    # present but 'properties' is missing" (Groq, github.com/usestrix/strix/issues/1204).
    if "required" in schema:
        schema["properties"] = schema.get("properties", {})
        for name in schema["required"]:
            schema["properties"].setdefault(name, {})
    return schema


def _dangling(root: Schema) -> list[Schema]:
    """The subschemas whose references lead to no schema, or only to references."""
    schemas = _subschemas(root)
    places = {id(each) for each in schemas}
    find = cache(lambda reference: _target(reference, root))
    return [each for each in schemas if "$ref" in each and not _leads(each, find, places)]


def _leads(schema: Schema, find: Callable[[str], Any], places: set[int]) -> bool:
    """Whether a reference leads, in a few steps, to a schema in one of these places."""
    for _ in range(_MOST_STEPS):
        if "$ref" not in schema:
            return True
        schema = find(schema["$ref"])
        if id(schema) not in places:
            return False
    return False


def _subschemas(root: Schema) -> list[Schema]:
    found, waiting = list[Schema](), list[Any]([root])
    while waiting:
        each = waiting.pop()
        if not isinstance(each, dict):
            continue
        found.append(each)
        for key, value in each.items():
            if key in _OF_SCHEMA:
                waiting.append(value)
            elif key in _OF_SCHEMAS:
                waiting += value
            elif key in _OF_NAMED or key == "dependencies":
                waiting += value.values()
    return found


def _target(reference: str, root: Any) -> Any:
    """The target of a reference in the same schema; None if there is none."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    at = root
    for part in reference[2:].split("/"):
        step = unquote(part).replace("~1", "/").replace("~0", "~")
        match at:
            case Mapping() if step in at:
                at = at[step]
            case list() if step.isdecimal() and step.isascii() and int(step[:9]) < len(at):
                at = at[int(step[:9])]
            case _:
                return None
    return at
