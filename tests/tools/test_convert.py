"""MCP's tool definitions as values, and the data for the providers' shapes."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools.catalogue import Tool
from parley.tools.convert import convert_all, definition, from_mcp, object_schema, shape

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH = {"name": "search", "title": "Search", "description": "Searches.", "inputSchema": SCHEMA}
EMPTY = {"type": "object", "properties": {}}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
keywords = st.sampled_from(
    ["type", "properties", "required", "anyOf", "allOf", "$schema", "title", "x"]
)
schemas = st.dictionaries(keywords, json_values | st.lists(st.just(SCHEMA), max_size=2), max_size=5)
definitions = st.fixed_dictionaries(
    {"name": st.text(min_size=1, max_size=80)},
    optional={
        "title": st.text(max_size=5),
        "description": st.text(max_size=5),
        "inputSchema": schemas | json_values,
        "annotations": json_values,
        "outputSchema": json_values,
    },
)


def flat(name: str, tool: Any) -> dict[str, Any]:
    """A shape similar to the formats' shapes."""
    return shape(name, tool, "schema")


def test_a_definition_becomes_a_value() -> None:
    tool = from_mcp(SEARCH, server="web", identity="{}", trusted=True)
    assert tool == Tool("web", "search", "Search", "Searches.", SCHEMA, identity="{}", trusted=True)


def test_a_title_replaces_a_missing_description() -> None:
    assert flat("a", {"name": "a", "title": "An A"})["description"] == "An A"
    assert "description" not in flat("a", {"name": "a"})


@given(definitions)
def test_no_definition_from_a_server_can_break_its_value(definition: dict[str, Any]) -> None:
    tool = from_mcp(definition)
    assert isinstance(tool.title + tool.description, str)
    assert all(isinstance(part, Mapping) for part in (tool.input_schema, tool.annotations))
    assert tool.output_schema is None or isinstance(tool.output_schema, Mapping)


@given(schemas | json_values)
def test_a_schema_is_always_an_object_with_properties_and_repair_is_idempotent(
    schema: object,
) -> None:
    repaired = object_schema(schema)
    assert repaired["type"] == "object"
    assert isinstance(repaired["properties"], dict)
    assert object_schema(repaired) == repaired


@pytest.mark.parametrize(
    ("schema", "repaired"),
    [
        (None, EMPTY),
        (True, EMPTY),
        (False, EMPTY),
        ({}, EMPTY),
        (SCHEMA, SCHEMA),
        ({"type": "object"}, EMPTY),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"type": ["object", "null"], "properties": None}, EMPTY),
        ({"additionalProperties": False}, EMPTY | {"additionalProperties": False}),
        (
            {"properties": {"a": True, "b": False}},
            {"type": "object", "properties": {"a": {}, "b": {"not": {}}}},
        ),
        (
            {
                "anyOf": [
                    {"properties": {"a": {}}, "required": ["a"]},
                    {"properties": {"b": {}}},
                    True,
                ]
            },
            {"type": "object", "properties": {"a": {}, "b": {}}},
        ),
    ],
)
def test_schemas_are_repaired(schema: object, repaired: dict[str, Any]) -> None:
    assert object_schema(schema) == repaired


@pytest.mark.parametrize(
    "given_json", [[SEARCH], {"tools": [SEARCH]}, {"result": {"tools": [SEARCH]}}, SEARCH]
)
def test_definitions_are_accepted_bare_and_in_a_result(given_json: object) -> None:
    assert convert_all(given_json, flat) == [flat("search", SEARCH)]


def test_definitions_get_wire_names_and_a_stable_order() -> None:
    tools = convert_all([{"name": "b.c"}, {"name": "a"}], flat)
    assert [tool["name"] for tool in tools] == ["a", "b_c"]


@pytest.mark.parametrize(
    ("given_json", "message"),
    [
        ([SEARCH, {}], 'tool 2: a tool definition needs a string as "name"'),
        ([SEARCH, 3], "tool 2: expected an object, got int"),
        ("x", "tool 1: expected an object, got str"),
    ],
)
def test_an_invalid_definition_is_named_by_its_place(given_json: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convert_all(given_json, flat)


@pytest.mark.parametrize("wrong", [{}, {"name": 3}, {"name": ""}])
def test_a_definition_without_a_name_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match='a tool needs a string as "name"'):
        definition(wrong, "schema")
