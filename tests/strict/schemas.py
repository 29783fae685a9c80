"""Rules about tool schemas at every depth, shared by both makers.

Walks schemas by the specification's list of subschemas, and checks them with its meta-schema.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

META = Draft202012Validator(Draft202012Validator.META_SCHEMA)
_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")


def is_of_2020(schema: Mapping[str, Any]) -> bool:
    """Whether it is a schema of draft 2020-12 and names no other draft."""
    declared = schema.get("$schema")
    if isinstance(declared, str) and "2020-12" not in declared:
        return False
    return _is_valid(json.dumps(schema))


@lru_cache(maxsize=1_000)
def _is_valid(schema: str) -> bool:
    """Whether the meta-schema allows a schema; requests repeat their tools, and each takes
    milliseconds.
    """
    return META.is_valid(json.loads(schema))


def top_level(schema: Mapping[str, Any]) -> list[str]:
    """The keywords that no maker accepts at the top of a tool's schema."""
    return [keyword for keyword in _AT_THE_TOP if keyword in schema]


def arrays_without_items(schema: Mapping[str, Any]) -> int:
    """The number of array subschemas that have no schema for their items."""
    kinds = ((each.get("type"), each.get("items")) for each in _subschemas(schema))
    return sum(_is_array(kind) and not isinstance(items, Mapping) for kind, items in kinds)


def _is_array(kind: object) -> bool:
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def undefined(schema: Mapping[str, Any]) -> list[str]:
    """The names that some subschema requires but does not define."""
    return [
        str(name)
        for each in _subschemas(schema)
        for name in each.get("required", ())
        if name not in each.get("properties", {})
    ]


def dangling(schema: Mapping[str, Any]) -> list[str]:
    """The references that lead to no part of this schema, or only back to a reference."""
    return [
        str(each["$ref"])
        for each in _subschemas(schema)
        if "$ref" in each and not _leads(each, schema)
    ]


def _leads(start: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    seen, at = list[str](), start
    while isinstance(at, Mapping) and "$ref" in at:
        reference = at["$ref"]
        if not isinstance(reference, str) or reference in seen or not reference.startswith("#"):
            return False
        seen.append(reference)
        at = _target(reference, root)
    return isinstance(at, Mapping | bool)


def _target(reference: str, root: Any) -> Any:
    resource = DRAFT202012.create_resource(root)
    try:
        return Registry().with_resource("", resource).resolver("").lookup(reference).contents
    except (Unresolvable, ValueError, TypeError, LookupError, AttributeError):
        return None


def _subschemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            yield each
            waiting += DRAFT202012.subresources_of(each)
