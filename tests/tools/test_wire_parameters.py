"""Parameters on the wire: Parley replaces refused names and changes nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools.catalogue import Tool
from parley.tools.names import PARAMETER
from parley.tools.wire_parameters import renamed, wire_parameters, wire_tool

NAMES = st.sampled_from(
    ["a", "file name", "file_name", "größe", "filter[x]", "x" * 70, "", '"', "\\", "日本"]
) | st.text(max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def tool(**schema: Any) -> Tool:
    return Tool("s", "t", input_schema={"type": "object", **schema})


def inverse(names: Any) -> dict[str, str]:
    return {wire: own for own, wire in names.items()}


@given(st.dictionaries(NAMES, VALUES, max_size=6), st.sampled_from([None, 1]), st.booleans())
def test_arguments_survive_the_way_to_the_wire_and_back(
    arguments: dict[str, Any], indent: int | None, is_ascii: bool
) -> None:
    names = wire_parameters(tool(properties={name: {} for name in arguments}))
    text = json.dumps(arguments, indent=indent, ensure_ascii=is_ascii)
    there = renamed(text, names)
    assert list(json.loads(there).values()) == list(arguments.values())
    assert all(PARAMETER.fullmatch(name) for name in json.loads(there))
    assert json.loads(renamed(there, inverse(names))) == arguments


def test_only_names_of_the_tools_own_parameters_change() -> None:
    text = (
        '{ "file name" : 1.0,"other":{"file name":[{"file name":"file '
        'name"}]},\\n"n":12345678901234567890}'
    )
    text = text.replace("\\n", "\n")
    assert renamed(text, {"file name": "file_name"}) == text.replace(
        '"file name" :', '"file_name" :'
    )
    assert renamed('{"file\\u0020name": "file name"}', {"file name": "f"}) == '{"f": "file name"}'
    assert renamed('{"f": 1}', {"f": "file name"}) == '{"file name": 1}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"file_name"',
        '{"file_name": 1, "file_name": 2}',
        '{"file_name": 1, "file name": 2}',
    ],
)
def test_text_without_an_object_or_with_a_repeated_key_stays(text: str) -> None:
    assert renamed(text, {"file_name": "file name"}) == text


def test_a_tool_with_valid_parameters_stays_the_same_object() -> None:
    fit = tool(properties={"a": {"properties": {"b c": {}}}, "d.e-f_g": True})
    assert wire_tool(fit) is fit
    assert wire_tool(tool()).input_schema == {"type": "object"}


def test_a_renamed_schema_means_the_same() -> None:
    schema = {
        "properties": {
            "file name": {"type": "string", "description": "Which."},
            "mode": {"$ref": "#/properties/file%20name"},
            "a/b": {
                "title": "Ab",
                "items": {"properties": {"next": {"$ref": "#/properties/a~1b/items"}}},
            },
            "deep": {"properties": {"file name": {"required": ["x"], "properties": {"x": {}}}}},
            "any thing": True,
        },
        "required": ["file name", "mode"],
        "dependentRequired": {"a/b": ["file name", "mode"]},
        "dependencies": {"mode": ["a/b"], "a/b": {"required": ["file name"]}},
        "if": {"properties": {"file name": {"const": "file name"}}},
        "then": {"anyOf": [{"required": ["a/b"]}, {"not": {"required": ["file name"]}}]},
        "$defs": {"file name": {"properties": {"file name": {}}}},
    }
    named = {"file_name": {"title": "file name"}}
    assert wire_tool(tool(**schema)).input_schema == {
        "type": "object",
        "properties": {
            "file_name": {"title": "file name", "type": "string", "description": "Which."},
            "mode": {"$ref": "#/properties/file_name"},
            "a_b": {
                "title": "Ab",
                "items": {"properties": {"next": {"$ref": "#/properties/a_b/items"}}},
            },
            "deep": {"properties": {"file name": {"required": ["x"], "properties": {"x": {}}}}},
            "any_thing": {"title": "any thing"},
        },
        "required": ["file_name", "mode"],
        "dependentRequired": {"a_b": ["file_name", "mode"]},
        "dependencies": {"mode": ["a_b"], "a_b": {"required": ["file_name"], "properties": named}},
        "if": {"properties": {"file_name": {"title": "file name", "const": "file name"}}},
        "then": {
            "anyOf": [
                {"required": ["a_b"], "properties": {"a_b": {"title": "a/b"}}},
                {"not": {"required": ["file_name"], "properties": named}},
            ]
        },
        "$defs": {"file name": {"properties": {"file name": {}}}},
    }


def test_names_in_the_branches_of_a_schema_count_as_providers_see_them() -> None:
    names = wire_parameters(tool(anyOf=[{"properties": {"a b": {}}}, {"properties": {"c d": {}}}]))
    assert names == {"a b": "a_b", "c d": "c_d"}


@pytest.mark.parametrize(
    "schema", [{"properties": []}, {"properties": {"a b": {}}, "required": [1, {}]}, {"anyOf": 3}]
)
def test_a_servers_broken_schema_breaks_nothing(schema: dict[str, Any]) -> None:
    assert isinstance(wire_tool(tool(**schema)).input_schema, dict)
