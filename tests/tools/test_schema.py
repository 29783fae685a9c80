"""Arguments are checked against schemas, with messages for a model; a check never fails."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from parley.tools.schema import check_arguments, decode_arguments

FILE = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "mode": {"enum": ["r", "w"]},
        "lines": {"type": "array", "items": {"type": "integer"}},
        "options": {"type": "object", "properties": {"deep": {"type": ["boolean", "null"]}}},
        "size": {"type": "number", "maximum": 10},
    },
    "required": ["path"],
}
CLOSED = FILE | {"additionalProperties": False}

DEFAULTS = {
    "type": "object",
    "properties": {
        "type": {"enum": ["png", "jpeg"], "default": "png"},
        "path": {"type": "string"},
        "options": {
            "default": {},
            "properties": {"deep": {}, "wide": {"default": False}, "odd": True},
            "required": ["wide", "deep"],
        },
    },
    "required": ["type", "path", "options"],
}
"""Required parameters with a default, as some SDKs' servers define them."""

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize("arguments", ["", "  \n", "{}"])
def test_no_arguments_are_the_empty_object(arguments: str) -> None:
    assert decode_arguments(arguments) == {}


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), json_values))
def test_any_json_object_is_decoded_unchanged(value: dict[str, Any]) -> None:
    assert decode_arguments(json.dumps(value, ensure_ascii=False)) == value


@given(
    st.text() | json_values.map(json.dumps), st.dictionaries(st.text(), json_values) | st.just(FILE)
)
def test_checking_never_raises(arguments: str, schema: object) -> None:
    complaint = check_arguments(arguments, schema)
    assert complaint is None or complaint


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ('{"a": }', "Invalid JSON: Expecting value at line 1, column 7"),
        ('{"a": 1} x', "Invalid JSON: Extra data at line 1, column 10"),
        ("null", "Invalid arguments: expected a JSON object, got null"),
        ("[1]", "Invalid arguments: expected a JSON object, got array"),
        ('"{}"', "Invalid arguments: expected a JSON object, got string"),
        ('{"a": NaN}', "Invalid JSON: NaN is not a JSON value"),
        ('{"a": [-Infinity]}', "Invalid JSON: -Infinity is not a JSON value"),
        ('{"a": 1e999}', "Invalid arguments: the number 1e999 is too large"),
        ('{"a": 1, "a": 2}', 'Invalid arguments: the key "a" is given twice'),
        ('{"x": [{"a": 1, "a": 1}]}', 'Invalid arguments: the key "a" is given twice'),
        (r'{"a": "\ud800"}', "Invalid JSON: a string holds half of a surrogate pair"),
        ('{"a":' * 101 + "1" + "}" * 101, "Invalid JSON: nested more than 100 levels deep"),
        ('{"a":' + "[" * 100_000, "Invalid JSON: nested more than 100 levels deep"),
    ],
)
def test_ambiguous_or_broken_arguments_are_refused(arguments: str, complaint: str) -> None:
    assert check_arguments(arguments, True) == complaint
    with pytest.raises(ValueError, match="Invalid"):
        decode_arguments(arguments)


def test_a_number_with_endless_digits_is_refused() -> None:
    complaint = check_arguments('{"a": ' + "9" * 5000 + "}", {})
    assert complaint is not None
    assert complaint.endswith("is too large")
    assert len(complaint) < 200


@pytest.mark.parametrize(
    ("arguments", "schema", "complaint"),
    [
        ({"path": "a", "mode": "r", "lines": [1], "options": {"deep": None}}, CLOSED, None),
        ({"path": "a", "more": 1}, FILE, None),
        ({}, FILE, "Missing required parameter 'path'"),
        ({}, DEFAULTS, "Missing required parameter 'path'"),
        ({"path": "a", "options": {}}, DEFAULTS, "Missing required parameter 'options.deep'"),
        ({"path": "a", "options": {"deep": 1}}, DEFAULTS, None),
        ({"path": 3}, FILE, "Parameter 'path': expected string, got 3 (integer)"),
        (
            {"path": "a", "mode": "x"},
            FILE,
            'Parameter \'mode\': expected one of ["r", "w"], got "x"',
        ),
        (
            {"path": "a", "lines": [1, "2"]},
            FILE,
            "Parameter 'lines[1]': expected integer, got \"2\" (string)",
        ),
        (
            {"path": "a", "options": {"deep": 1}},
            FILE,
            "Parameter 'options.deep': expected boolean or null, got 1 (integer)",
        ),
        ({"path": "a", "size": 11}, FILE, "Parameter 'size': 11 is greater than the maximum of 10"),
        ({"path": "a", "moed": "r"}, CLOSED, "Unknown parameter 'moed', did you mean 'mode'?"),
        ({"path": "a", "optons": {}}, FILE, "Unknown parameter 'optons', did you mean 'options'?"),
        ({"path": "a", "optons": {}, "options": {}}, FILE, None),
        (
            {"path": "a", "zzz": "r"},
            CLOSED,
            "Unknown parameter 'zzz'; known are path, mode, lines, options, size",
        ),
        ({"a": 1}, {"properties": {}, "additionalProperties": False}, "Unknown parameter 'a'"),
        (
            {"pth": "a"},
            CLOSED,
            "Missing required parameter 'path'; Unknown parameter 'pth', did you mean 'path'?",
        ),
        ({"a": 1}, {"not": {}}, "Arguments: {'a': 1} should not be valid under {}"),
        (
            {"a": "x"},
            {"$ref": "#/$defs/a", "$defs": {"a": {"required": ["b"]}}},
            "Missing required parameter 'b'",
        ),
        (
            {"a": {"b": "x"}},
            {
                "properties": {
                    "a": {"anyOf": [{"properties": {"b": {"type": "integer"}}}, {"type": "null"}]}
                }
            },
            "Parameter 'a.b': expected integer, got \"x\" (string)",
        ),
    ],
)
def test_a_violation_names_parameter_and_reason(
    arguments: dict[str, Any], schema: dict[str, Any], complaint: str | None
) -> None:
    assert check_arguments(json.dumps(arguments), schema) == complaint


def test_the_draft_that_a_schema_names_is_used() -> None:
    pair = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"pair": pair}}
    assert check_arguments('{"pair": ["a", 1]}', schema) is None
    assert check_arguments('{"pair": ["a", "b"]}', schema) is not None


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        {"type": 3},
        {"type": "objekt"},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"type": "nope"}}},
        {"properties": []},
        {"required": "a"},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},
        {"$schema": 3},
        {"$schema": "no such"},
        {"properties": {"a": {"multipleOf": 0}}},
    ],
)
def test_a_servers_broken_schema_counts_as_absent(schema: object) -> None:
    assert check_arguments('{"a": "x"}', schema) is None


DOUBLING = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)} | {
    "d60": {}
}
NEVER = {"a": "a" * 40 + "!"}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "^(a+)+$"}}},
        {"patternProperties": {"^(a+)+$": False}},
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False},
        {"$ref": "#/$defs/d0", "$defs": DOUBLING},
        {"anyOf": [{"$ref": "#/$defs/d0"}, {"type": "object"}], "$defs": DOUBLING},
    ],
)
@pytest.mark.timeout(30)
def test_an_endless_schema_is_left_to_its_server(schema: dict[str, Any]) -> None:
    for arguments in (NEVER, {NEVER["a"]: 1}):
        assert check_arguments(json.dumps(arguments), schema) is None


def test_each_call_has_its_own_steps() -> None:
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}
    for _ in range(5):
        assert check_arguments(json.dumps({"a": [1] * 4_000}), schema) is None
        assert check_arguments(json.dumps({"a": [1] * 4_000 + ["x"]}), schema) is not None


def test_a_schema_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = list[object]()
    check = Draft202012Validator.check_schema

    def counting(schema: Any, **options: Any) -> None:
        checked.append(schema)
        check(schema, **options)

    monkeypatch.setattr(Draft202012Validator, "check_schema", counting)
    for title in ("one schema", "another"):
        for number in range(100):
            check_arguments(json.dumps({"path": number}), FILE | {"title": title})
    assert len(checked) == 2


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "rule", [{"enum": list(range(2_000))}, {"required": [f"p{n}" for n in range(2_000)]}]
)
def test_too_many_comparisons_are_left_to_the_server(rule: dict[str, Any]) -> None:
    whole = {f"p{n}": 0 for n in range(2_000)}
    value = 1_999 if "enum" in rule else whole
    few = json.dumps({"a": [value, {}]})
    many = json.dumps({"a": [value] * (2_000 if "enum" in rule else 600) + [{}]})
    schema = {"type": "object", "properties": {"a": {"items": rule}}}
    assert check_arguments(few, schema)
    assert check_arguments(many, schema) is None


def test_a_remote_reference_is_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    assert check_arguments("{}", {"$ref": "http://127.0.0.1:9/schema.json"}) is None
    assert (
        check_arguments('{"a": 1}', {"properties": {"a": {"$ref": "https://example.org/s"}}})
        is None
    )


def test_a_complaint_stays_short_for_any_value() -> None:
    complaint = check_arguments(json.dumps({"path": {"x": "y" * 10_000}}), FILE)
    assert complaint is not None
    assert len(complaint) < 200
