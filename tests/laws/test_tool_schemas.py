"""The law of schemas: every tool, with any schema, is sent in a form that all providers accept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st

from parley.chat.reader import parse
from parley.models.encode import encoded
from parley.models.parameter_names import wire_request
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.convert import object_schema, shape
from tests.examples import examples
from tests.formats import FORMATS

NAMES = st.sampled_from(["a", "b", "type", "properties", "items", "$ref", "a/b", "ä ö", "x" * 70])
REFERENCES = st.sampled_from(
    [
        *("#", "#/$defs/a", "#/$defs/b", "#/definitions/a", "#/properties/a", "#/properties/a%20b"),
        *(
            "#/anyOf/0",
            "#/items/0",
            "#/$defs",
            "#/default",
            "#a",
            "http://example.org/s",
            "",
            "#/items/x",
        ),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.sampled_from(["array", "object", "string", "any", "", "\ud800", "[", "#/$defs/a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=4,
)
PLAIN = [
    *("type", "required", "enum", "const", "default", "examples", "format", "pattern", "title"),
    *("description", "$schema", "$id", "$anchor", "uniqueItems", "minItems", "maxItems", "minimum"),
    *(
        "maximum",
        "exclusiveMinimum",
        "multipleOf",
        "maxLength",
        "minProperties",
        "nullable",
        "$comment",
    ),
    *(
        "dependentRequired",
        "dependencies",
        "$dynamicRef",
        "$recursiveRef",
        "x-own",
        "contentEncoding",
    ),
]
ONE = [
    *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
    *("unevaluatedItems", "additionalItems", "unevaluatedProperties"),
]
MANY = ["allOf", "anyOf", "oneOf", "prefixItems", "items"]
NAMED = ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"]
KINDS = st.sampled_from(
    ["array", "object", "string", ["array", "null"], "integer", ["array"], "any"]
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    part = inner | VALUES
    keywords = [
        *(st.tuples(st.just(key), VALUES) for key in PLAIN),
        *(st.tuples(st.just(key), part) for key in ONE),
        *(st.tuples(st.just(key), st.lists(part, max_size=2)) for key in MANY),
        *(st.tuples(st.just(key), st.dictionaries(NAMES, part, max_size=2)) for key in NAMED),
        st.tuples(st.just("type"), KINDS),
        st.tuples(st.just("$ref"), REFERENCES),
        st.tuples(st.just("required"), st.lists(NAMES, max_size=3)),
    ]
    return st.lists(st.one_of(keywords), max_size=5).map(dict)


SCHEMAS = st.recursive(KINDS.map(lambda kind: {"type": kind}), _schemas, max_leaves=8) | VALUES
DEEP: dict[str, Any] = {"type": "array"}
for _ in range(300):
    DEEP = {"type": "array", "items": DEEP}

CASES: dict[str, Any] = {
    "an array without items": {"properties": {"paths": {"type": "array"}}},
    "one in an array": {"properties": {"a": {"type": "array", "items": {"type": "array"}}}},
    "one in a branch": {"properties": {"a": {"anyOf": [{"type": "array"}, {"type": "null"}]}}},
    "one of several types": {"properties": {"a": {"type": ["array", "null"]}}},
    "one in a definition": {
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"additionalProperties": {"type": "array"}}},
    },
    "a pair in the words of draft 7": {
        "properties": {
            "a": {"type": "array", "items": [{"type": "array"}], "additionalItems": False}
        }
    },
    "a draft that is declared": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
    },
    "a bound of draft 4": {"properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}},
    "a keyword as a parameter": {"properties": {"type": "object", "a": {"type": "string"}}},
    "a word for all types": {
        "properties": {"a": {"type": "any"}, "b": {"type": ["any", "Object"]}}
    },
    "a reference to nothing": {"properties": {"a": {"$ref": "#/$defs/gone"}}},
    "a reference elsewhere": {"properties": {"a": {"$ref": "http://example.org/schema.json"}}},
    "a circle of references": {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "properties": {"a": {"$ref": "#/$defs/a"}},
    },
    "a reference at the top": {
        "$ref": "#/definitions/all",
        "definitions": {"all": {"type": "object", "properties": {"a b": {}}, "required": ["a b"]}},
    },
    "a reference into a branch at the top": {
        "anyOf": [{"properties": {"a": {"type": "array"}}}],
        "properties": {"b": {"$ref": "#/anyOf/0"}},
    },
    "choices at the top": {"type": "object", "enum": [{}], "not": {"required": ["a"]}},
    "what is required and not defined": {"properties": {"a": {}}, "required": ["a", "b", "b", 3]},
    "a number that is none": {
        "properties": {"a": {"default": float("nan"), "maximum": float("inf")}}
    },
    "no bottom": {"properties": {"a": DEEP}},
    "no bottom in a default": {"properties": {"a": {"default": DEEP}}},
    "half of a surrogate pair": {"properties": {"\ud800": {"description": "\ud800"}}},
}


def complaints(schema: Any) -> dict[str, list[str]]:
    """The providers' objections to a request with a tool of this schema."""
    tools = Catalogue.of(
        [Tool("s", "one", input_schema=schema if isinstance(schema, dict) else {})]
    )
    transcript = parse("💬: a question\n🤖:\n")
    found = {}
    for form in FORMATS:
        request = wire_request(form.ask(transcript, 0))
        body = form.adapter.request_body(wire_request(form.ask(transcript, 0, catalogue=tools)))
        sent = json.loads(encoded(body))
        assert len(sent["tools"]) == 1, request
        found[form.name] = form.check(sent)
    return found


@pytest.mark.parametrize("what", CASES)
def test_a_schema_is_sent_without_its_flaw(what: str) -> None:
    assert {name: said for name, said in complaints(CASES[what]).items() if said} == {}


@examples(150)
@given(SCHEMAS)
@example({"$ref": "#"})
def test_providers_accept_a_tool_with_any_schema(schema: Any) -> None:
    sent = object_schema(schema)
    note(repr(sent))
    assert object_schema(sent) == sent
    assert {name: said for name, said in complaints(schema).items() if said} == {}


def test_a_sound_schema_is_sent_unchanged() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 1},
            "b": {"anyOf": [{"type": "string", "pattern": "^a"}, {"const": None}]},
            "c": {"type": "object", "additionalProperties": False},
        },
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}},
    }
    assert shape("x", Tool("s", "x", input_schema=schema), "schema")["schema"] == schema


def test_reworded_constraints_are_not_lost() -> None:
    pair = {"type": "array", "items": [{"type": "string"}], "additionalItems": False}
    sent = object_schema(
        {
            "$ref": "#/definitions/all",
            "definitions": {
                "all": {"properties": {"pair": pair, "count": {}}, "required": ["pair"]}
            },
            "oneOf": [{"$ref": "#/definitions/one"}, {"allOf": [{"properties": {"deep": {}}}]}],
        }
        | {"properties": {"own": {"minimum": 1, "exclusiveMinimum": True}}}
    )
    assert sent["required"] == ["pair"]
    assert sent["properties"] == {
        "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"not": {}}},
        "count": {},
        "deep": {},
        "own": {"exclusiveMinimum": 1},
    }
