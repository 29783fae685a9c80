"""The law of effort: the steps of a check grow linearly with a server's or model's data.

Steps are function calls, as the interpreter counts them: measured times would depend on the
machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.policy.plan import Settle
from parley.tools import schema as checks
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.convert import object_schema
from parley.tools.schema import check_arguments, check_call
from tests.chats import answer, asked, chat, step
from tests.examples import examples

MOST_STEPS = 600_000
"""Less than a second. The server must check anything that takes longer."""


def steps(work: Callable[[], object]) -> int:
    """The number of function calls of some work, including C functions."""
    count = 0

    def counting(_frame: object, event: str, _of: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def words(n: int) -> list[str]:
    return [f"w{number}" for number in range(n)]


def tables(n: int) -> list[Any]:
    return [{"w": number, "v": [number]} for number in range(n)]


Case = Callable[[int], tuple[Any, Any]]
"""The arguments and the schema for a size."""
OF_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
EVIL = {"pattern": "^(a+)+$", "$schema": OF_DRAFT_7}


def of(rule: dict[str, Any], value: Any) -> tuple[Any, Any]:
    return {"a": value}, {"type": "object", "properties": {"a": rule}}


def doubling(n: int) -> dict[str, Any]:
    named = {f"d{k}": {"allOf": [{"$ref": f"#/$defs/d{k + 1}"}] * 2} for k in range(n)}
    return {"$ref": "#/$defs/d0", "$defs": {**named, f"d{n}": {"type": "string"}}}


CASES: dict[str, Case] = {
    "uniqueItems": lambda n: of({"uniqueItems": True}, tables(n)),
    "uniqueItems of mixed kinds": lambda n: of(
        {"uniqueItems": True}, [*tables(n), *words(n), None]
    ),
    "uniqueItems at each level": lambda n: of(
        {"uniqueItems": True, "items": {"uniqueItems": True}},
        [[k, *words(20)] for k in range(n // 20)],
    ),
    "enum": lambda n: of({"items": {"enum": words(n)}}, [f"w{n - 1}"] * n),
    "enum of tables": lambda n: of({"items": {"enum": tables(n)}}, tables(n)),
    "const": lambda n: of({"allOf": [{"const": tables(n)}] * 20}, tables(n)),
    "anyOf": lambda n: of({"anyOf": [{"type": "string"}] * n}, tables(n)),
    "anyOf of each item": lambda n: of(
        {"items": {"anyOf": [{"const": w} for w in words(n)]}}, words(n)
    ),
    "oneOf": lambda n: of({"oneOf": [{"minItems": n + 1}] * n}, tables(n)),
    "allOf of all items": lambda n: of({"allOf": [{"items": {}}] * n}, tables(n)),
    "not": lambda n: of({"items": {"not": {"enum": words(n)}}}, ["x"] * n),
    "if": lambda n: of(
        {"items": {"if": {"const": 1}, "then": {"enum": [2]}, "else": {}}}, words(n)
    ),
    "contains": lambda n: of({"allOf": [{"contains": {"const": "x"}}] * n}, words(n)),
    "contains of anything": lambda n: of(
        {"allOf": [{"contains": {}, "minContains": 9**9}] * n}, words(n)
    ),
    "prefixItems": lambda n: of({"prefixItems": [{"type": "string"}] * n}, words(n)),
    "items of draft 7": lambda n: of({"$schema": OF_DRAFT_7, "items": [{}] * n}, words(n)),
    "required": lambda n: of({"items": {"required": words(n)}}, [{}] * n),
    "dependentRequired": lambda n: of(
        {"items": {"dependentRequired": {"w0": words(n)}}}, [dict.fromkeys(words(9))] * (n // 9)
    ),
    "dependentSchemas": lambda n: of(
        {"dependentSchemas": {w: {} for w in words(n)}}, dict.fromkeys(words(n))
    ),
    "properties": lambda n: of(
        {"properties": {w: {"type": "null"} for w in words(n)}}, dict.fromkeys(words(n))
    ),
    "propertyNames": lambda n: of(
        {"allOf": [{"propertyNames": {"maxLength": 9}}] * n}, dict.fromkeys(words(n))
    ),
    "patternProperties": lambda n: of(
        {"patternProperties": {f"^{w}": {} for w in words(n)}}, dict.fromkeys(words(n))
    ),
    "additionalProperties": lambda n: of(
        {"allOf": [{"additionalProperties": {"type": "null"}}] * n}, dict.fromkeys(words(n))
    ),
    "unevaluatedProperties": lambda n: of(
        {"allOf": [{"unevaluatedProperties": False}] * n}, dict.fromkeys(words(n))
    ),
    "unknown parameters": lambda n: (
        dict.fromkeys(words(n)),
        {"properties": {f"v{k}": {} for k in range(n)}, "additionalProperties": False},
    ),
    "unknown parameters that may be there": lambda n: (
        dict.fromkeys(words(n)),
        {"properties": {f"v{k}": {} for k in range(n)}},
    ),
    "long names": lambda n: (
        {"a" * n + "b": 1},
        {"properties": {"a" * n: {}}, "additionalProperties": False},
    ),
    "references that double": lambda n: of(doubling(n), "x"),
    "a reference to itself": lambda n: of({"$ref": "#/properties/a"}, words(n)),
    "items without end": lambda n: of({"items": {"$ref": "#"}}, words(n)),
    "type": lambda n: of({"type": "string"}, tables(n)),
    "minItems": lambda n: of({"allOf": [{"minItems": n + 1}] * n}, tables(n)),
    "a schema of many parts": lambda n: of(
        {"properties": {w: {"enum": tables(3)} for w in words(n)}}, {}
    ),
}


def checked(case: tuple[Any, Any]) -> int:
    arguments, rule = json.dumps(case[0]), case[1]
    checks._validator.cache_clear()
    check_arguments("{}", {"type": "object"})  # imported only once
    return steps(lambda: check_arguments(arguments, rule))


@pytest.mark.parametrize("keyword", CASES)
def test_the_steps_of_a_check_grow_linearly_with_arguments_and_schema(keyword: str) -> None:
    few, more = checked(CASES[keyword](200)), checked(CASES[keyword](400))
    assert more <= max(2.5 * few, 3_000)
    assert checked(CASES[keyword](2_000)) < MOST_STEPS


@pytest.mark.parametrize(
    "keyword", ["pattern", "patternProperties", "propertyNames", "additionalProperties"]
)
@pytest.mark.parametrize(
    "place",
    [
        "properties",
        "items",
        "contains",
        "not",
        "if",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "default",
        "$defs",
    ],
)
def test_no_regular_expression_from_a_server_is_evaluated(keyword: str, place: str) -> None:
    evil: Any = {
        "pattern": EVIL,
        "patternProperties": {"patternProperties": {"^(a+)+$": False}, "$schema": OF_DRAFT_7},
        "propertyNames": {"propertyNames": EVIL, "$schema": OF_DRAFT_7},
        "additionalProperties": {
            "patternProperties": {"^(a+)+$": {}},
            "additionalProperties": False,
            "$schema": OF_DRAFT_7,
        },
    }[keyword]
    value: Any = "a" * 60 + "!"
    rule: Any = {}
    value = value if keyword == "pattern" else {value: 1}
    match place:
        case "properties" | "$defs" | "default":
            rule = {"properties": {place: evil}, "$schema": OF_DRAFT_7}
            rule = {"allOf": [rule, {"$ref": f"#/properties/{place}"}], **rule}
            value = {place: value}
        case "items" | "contains":
            rule, value = {place: evil}, [value]
        case "anyOf" | "oneOf" | "allOf":
            rule = {place: [evil, evil]}
        case "$ref":
            rule = {"$ref": "#/definitions/evil"}
        case _:
            rule = {place: evil}
    schema = {"properties": {"a": rule}, "definitions": {"evil": evil}, "$schema": OF_DRAFT_7}
    check_arguments(json.dumps({"a": value}), schema)  # it would never end


@pytest.mark.parametrize("keyword", CASES)
def test_a_schema_is_prepared_in_steps_linear_in_its_length(keyword: str) -> None:
    sizes = [CASES[keyword](n)[1] for n in (400, 800)]
    few, more = (steps(partial(object_schema, schema)) for schema in sizes)
    assert more <= max(2.5 * few, 3_000)


def test_each_reference_is_read_once_however_often_it_is_used() -> None:
    """A reference has its own spelling for each name, and one that is three times as long."""
    names = [f"{'A' * 300}{k:02}" for k in range(18)]
    spelt = [name.replace("A", "%41") for name in names]
    chain: dict[str, Any] = {
        name: {"$ref": f"#/$defs/{after}"}
        for name, after in zip(names, [*spelt[1:], "end"], strict=True)
    }
    schema = {
        "$defs": {**chain, "end": {"type": "string"}},
        "properties": {f"p{k}": {"$ref": f"#/$defs/{spelt[0]}"} for k in range(400)},
    }
    assert steps(lambda: object_schema(schema)) < 100_000


def test_no_expression_from_a_server_is_compiled() -> None:
    """Compiling takes long, and an expression that Python cannot read would end the check of all
    others.
    """
    unknown = {"properties": {"a": {"type": "string"}, "b": {"pattern": "(?<n>x"}}}
    assert check_arguments('{"a": 1}', unknown) == "Parameter 'a': expected string, got 1 (integer)"
    large = "(?i)" + "[\x00-\uffff]" * 60
    schema = {"properties": {f"a{k}": {"pattern": f"{large}{k}"} for k in range(20)}}
    assert steps(lambda: check_arguments('{"a1": "b"}', schema)) < 100_000


def test_a_long_reference_costs_steps() -> None:
    """Each use reads the whole reference, so a check with thousands of uses is left to the server."""
    length = 3_000
    names = [f"{'%41' * length}{k:02}" for k in range(12)]
    named: dict[str, Any] = {
        f"{'A' * length}{k:02}": {"allOf": [{"$ref": f"#/$defs/{names[k + 1]}"}] * 2}
        for k in range(11)
    }
    named[f"{'A' * length}11"] = {"type": "string"}
    schema = {"properties": {"a": {"$ref": f"#/$defs/{names[0]}"}}, "$defs": named}
    assert steps(lambda: check_arguments('{"a": "b"}', schema)) < MOST_STEPS


def test_nested_branches_are_prepared_in_few_steps() -> None:
    named = {f"d{k}": {"anyOf": [{"$ref": f"#/$defs/d{k + 1}"}] * 50} for k in range(5)}
    assert (
        steps(lambda: object_schema({"$ref": "#/$defs/d0", "$defs": {**named, "d5": {}}})) < 100_000
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 2, -0.0, 1.5, "", "1", "true"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=5,
)


@examples(200)
@given(st.lists(VALUES, max_size=4), VALUES)
def test_equality_is_the_same_as_in_the_library(items: list[Any], value: Any) -> None:
    from jsonschema import Draft202012Validator

    for rule, instance in [
        ({"uniqueItems": True}, items),
        ({"const": value}, items),
        ({"enum": items}, value),
    ]:
        expected = Draft202012Validator(rule).is_valid(instance)
        arguments, schema = of(rule, instance)
        assert (check_arguments(json.dumps(arguments), schema) is None) == expected


def test_a_call_is_checked_once() -> None:
    tool = Tool("demo", "once", input_schema={"required": ["never given"]})
    catalogue, call = Catalogue.of([tool]), asked(1, name="once", arguments="{}")
    check_call.cache_clear()
    for _ in range(5):
        assert isinstance(step(chat(answer(call)), catalogue), Settle)
    assert (check_call.cache_info().misses, check_call.cache_info().hits) == (1, 4)
