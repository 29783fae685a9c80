"""A server's form: its fields in every MCP spelling, and the meaning of a typed line."""

from __future__ import annotations

from typing import Any

import pytest

from parley.tools.forms import TEXT_SHOWN, Field, complaint, fields, read

COLOURS = {"enum": ["r", "g"]}
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "first and last"},
        "age": {"type": "integer", "minimum": 0, "default": 30},
        "agreed": {"type": "boolean"},
        "colour": COLOURS,
        "size": {"enum": ["s", "l"], "enumNames": ["small", "large"]},
        "shape": {"oneOf": [{"const": 1, "title": "round"}, {"const": 2}, "odd"]},
        "days": {"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}]}},
        "no schema": "text",
    },
    "required": ["name"],
}


def test_a_form_has_its_fields_in_order_with_their_choices() -> None:
    listed = {field.name: field for field in fields(FORM)}
    assert list(listed) == ["name", "age", "agreed", "colour", "size", "shape", "days"]
    assert [name for name, field in listed.items() if field.required] == ["name"]
    assert {name: field.options for name, field in listed.items() if field.options} == {
        "agreed": ((True, "yes"), (False, "no")),
        "colour": (("r", "r"), ("g", "g")),
        "size": (("s", "small"), ("l", "large")),
        "shape": ((1, "round"), (2, "2")),
        "days": (("mo", "Monday"),),
    }
    assert [name for name, field in listed.items() if field.several] == ["days"]
    assert listed["age"].default == 30
    assert listed["name"].default is None


@pytest.mark.parametrize(
    "schema", [{}, {"properties": ["a"]}, {"properties": None, "required": None}]
)
def test_an_invalid_form_has_no_fields(schema: dict[str, Any]) -> None:
    assert fields(schema) == ()


def test_a_form_with_unreadable_requirements_requires_nothing() -> None:
    assert fields({"properties": {"a": {}}, "required": 7}) == (Field("a", {}),)


def test_names_that_do_not_match_the_values_are_left_out() -> None:
    (field,) = fields({"properties": {"size": {"enum": ["s", "l"], "enumNames": ["small"]}}})
    assert field.options == (("s", "s"), ("l", "l"))


def test_a_field_names_its_server_and_its_question_in_one_bounded_line() -> None:
    field = Field("n", {"title": "Your\nname", "description": "x" * 999}, server="bank")
    assert field.label.startswith("bank: Your name (xxx")
    assert len(field.label) <= len("bank: Your name (…)") + TEXT_SHOWN
    assert Field("n", {}).label == "n"


@pytest.mark.parametrize(
    ("schema", "typed", "value", "is_fit"),
    [
        ({"type": "string"}, "12", "12", True),
        ({"type": "integer"}, "12", 12, True),
        ({"type": "number"}, "1.5", 1.5, True),
        ({"type": "integer"}, "twelve", "twelve", False),
        ({"type": "integer", "minimum": 0}, "-1", -1, False),
        (COLOURS, "blue", "blue", False),
    ],
)
def test_a_typed_line_is_a_valid_value_or_gets_a_complaint(
    schema: dict[str, Any], typed: str, value: object, is_fit: bool
) -> None:
    field = Field("n", schema)
    assert read(field, typed) == value
    assert (complaint(field, value) is None) == is_fit


@pytest.mark.parametrize(
    ("name", "fit", "unfit", "noun"),
    [
        (
            "email",
            ["a@b", "ada.l+x@example.org", "ü@ö.de"],
            ["ada", "@b", "a@", "a b@c", "a@b@c"],
            "an e-mail address",
        ),
        (
            "uri",
            ["https://a.b/c?d#e", "mailto:a@b"],
            ["a.b/c", "//a", "https:", "http://a b", ":x"],
            "an address",
        ),
        (
            "date",
            ["2026-11-23", "2024-02-29"],
            ["23.11.2026", "2026-02-30", "20261123", "2026-11-23T09"],
            "a date,",
        ),
        (
            "date-time",
            ["2026-11-23T09:30:00Z", "2026-11-23t09:30:00.5+01:00"],
            ["2026-11-23", "2026-11-23T09:30:00", "2026-11-23 09:30:00Z", "2026-11-23T25:00:00Z"],
            "a date and time",
        ),
    ],
)
def test_a_text_matches_its_fields_format_or_the_complaint_names_the_format(
    name: str, fit: list[str], unfit: list[str], noun: str
) -> None:
    field = Field("n", {"type": "string", "format": name})
    assert [complaint(field, text) for text in fit] == [None] * len(fit)
    for text in unfit:
        assert (complaint(field, text) or "").startswith(f"expected {noun}")
        assert (complaint(field, text) or "").endswith(f'got "{text}"')


@pytest.mark.parametrize("schema", [{"format": "phone"}, {"format": 7}, {"format": ["email"]}, {}])
def test_an_unknown_format_is_left_to_the_server(schema: dict[str, Any]) -> None:
    assert complaint(Field("n", schema), "anything") is None
