"""Each repair of a server's schema, one by one; `tests/laws/test_tool_schemas.py` has the law."""

from __future__ import annotations

import math
from typing import Any

import pytest

from parley.tools.wire_schemas import MOST_LEVELS, Schema, referred, sound

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "repaired"),
    [
        (None, {}),
        (True, {}),
        (False, {"not": {}}),
        ({"not": False}, {"not": {"not": {}}}),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "$id": "x", "title": "T"},
            {"title": "T"},
        ),
        ({"type": "text"}, {}),
        ({"type": ["string", "text", "string", 1]}, {"type": ["string"]}),
        ({"type": []}, {}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": ["null", "array"]}, {"type": ["null", "array"], "items": {}}),
        ({"items": [TEXT]}, {"prefixItems": [TEXT], "items": {}}),
        (
            {"items": [TEXT], "additionalItems": False},
            {"prefixItems": [TEXT], "items": {"not": {}}},
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"minimum": "1", "minLength": -1, "maxItems": True, "multipleOf": 0}, {}),
        ({"minimum": 0.5, "minLength": 0, "maxItems": 2, "multipleOf": 0.1}, None),
        ({"uniqueItems": 1, "pattern": 1, "enum": [], "examples": {}}, {}),
        ({"uniqueItems": True, "pattern": "a", "enum": [1], "examples": []}, None),
        ({"anyOf": []}, {}),
        ({"anyOf": [TEXT, 1]}, {"anyOf": [TEXT, {}]}),
        ({"properties": [TEXT]}, {}),
        ({"required": "a"}, {}),
        ({"required": ["a", 1, "a"]}, {"required": ["a"], "properties": {"a": {}}}),
        ({"dependentRequired": {"a": ["b", 1], "c": "d"}}, {"dependentRequired": {"a": ["b"]}}),
        ({"dependentRequired": []}, {}),
        ({"dependencies": {"a": ["b", 1], "c": TEXT}}, {"dependencies": {"a": ["b"], "c": TEXT}}),
        ({"dependencies": []}, {}),
        ({"default": math.nan, "const": [math.inf, 1]}, {"default": None, "const": [None, 1]}),
        ({"x-own": {"a": 1}}, None),
    ],
)
def test_a_schema_is_repaired(schema: object, repaired: Schema | None) -> None:
    expected = schema if repaired is None else repaired
    assert sound(schema) == expected


def test_a_false_schema_stays_only_where_every_provider_accepts_it() -> None:
    assert sound({"properties": {"a": False}}) == {"properties": {"a": {"not": {}}}}
    assert sound({"additionalProperties": False}) == {"additionalProperties": False}


def depth(value: Any) -> int:
    """How many schemas a schema has below each other."""
    return 1 + depth(value["not"]) if "not" in value else 1


def test_a_schema_that_is_too_deep_is_cut() -> None:
    schema: Schema = {"title": "the end"}
    for _ in range(2 * MOST_LEVELS):
        schema = {"not": schema}
    assert depth(sound(schema)) == MOST_LEVELS + 1


@pytest.mark.parametrize(
    ("reference", "stays"),
    [
        ("#", True),
        ("#/$defs/a", True),
        ("#/$defs/b%20c", True),
        ("#/$defs/d~1e~0f", True),
        ("#/anyOf/1", True),
        ("#/anyOf/2", False),
        ("#/anyOf/x", False),
        ("#/$defs", False),
        ("#/$defs/none", False),
        ("#/$defs/circle", False),
        ("#a", False),
        ("https://example.org/schema", False),
    ],
)
def test_a_reference_stays_if_it_leads_to_a_schema(reference: str, stays: bool) -> None:
    schema = {
        "$defs": {"a": TEXT, "b c": TEXT, "d/e~f": TEXT, "circle": {"$ref": "#/$defs/circle"}},
        "anyOf": [TEXT, TEXT],
        "properties": {"it": {"$ref": reference, "title": "T"}},
    }
    repaired = sound(schema)["properties"]["it"]
    assert repaired == ({"$ref": reference, "title": "T"} if stays else {"title": "T"})


def test_a_reference_is_merged_with_its_target() -> None:
    root = {
        "$defs": {
            "near": {"$ref": "#/$defs/far", "properties": {"b": {}}, "required": ["b"]},
            "far": {"properties": {"a": TEXT, "b": TEXT}, "required": ["a"], "title": "far"},
        }
    }
    assert referred({"$ref": "#/$defs/near", "title": "here"}, root) == {
        "properties": {"a": TEXT, "b": {}},
        "required": ["a", "b"],
        "title": "here",
    }


@pytest.mark.parametrize("reference", ["#/$defs/none", "#/$defs/circle", "#/$defs/list"])
def test_a_reference_that_leads_nowhere_leaves_the_rest(reference: str) -> None:
    root = {"$defs": {"circle": {"$ref": "#/$defs/circle"}, "list": [1]}}
    assert referred({"$ref": reference, "title": "T"}, root) == {"title": "T"}


def test_a_long_chain_of_references_ends() -> None:
    root = {str(n): {"$ref": f"#/{n + 1}", f"x{n}": n} for n in range(100)}
    assert len(referred({"$ref": "#/0"}, root)) < 30
