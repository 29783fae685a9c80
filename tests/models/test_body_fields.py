"""The user's parameters never replace a field of Parley's, and only a named field is left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.models.body_fields import (
    OWN_FIELDS,
    REFUSABLE,
    refused_field,
    with_parameters,
    without_fields,
    without_parameters,
)

names = st.sampled_from(["model", "temperature", "top_k", "reasoning", "thinking", "tools", "a"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["x", "high"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "effort", "b"]), inner, max_size=3)
    ),
    max_leaves=5,
)
bodies = st.dictionaries(names, values, max_size=5)


def keeps(whole: Any, own: Any) -> bool:
    """Whether all of Parley's fields have their values."""
    if isinstance(own, dict) and isinstance(whole, dict):
        return all(name in whole and keeps(whole[name], own[name]) for name in own)
    return bool(whole == own)


@given(bodies, bodies)
def test_parleys_fields_take_precedence_and_each_parameter_is_sent_or_ignored(
    body: dict[str, Any], parameters: dict[str, Any]
) -> None:
    whole, ignored = with_parameters(body, parameters)
    assert keeps(whole, body)
    assert whole.keys() - body.keys() == parameters.keys() - body.keys() - OWN_FIELDS
    for name, value in parameters.items():
        is_ignored = any(path.split(".")[0] == name for path in ignored)
        assert is_ignored or keeps(whole.get(name, value), value)
    assert with_parameters(body, dict(reversed(parameters.items()))) == (whole, ignored)


def test_tables_are_merged_but_variants_are_not() -> None:
    own = {"reasoning": {"effort": "high"}, "thinking": {"type": "disabled"}}
    more = {
        "reasoning": {"context": "auto", "effort": "low"},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }
    assert with_parameters(own, more) == (
        {"reasoning": {"effort": "high", "context": "auto"}, "thinking": {"type": "disabled"}},
        ("reasoning.effort", "thinking"),
    )


def test_another_name_of_the_limit_does_not_raise_it() -> None:
    body = {"max_tokens": 9}
    assert with_parameters(body, {"max_completion_tokens": 99}) == (
        body,
        ("max_completion_tokens",),
    )
    assert with_parameters({}, {"max_tokens": 9}) == (body, ())


BODY: dict[str, Any] = {
    "model": "m",
    "messages": [],
    "temperature": 0.5,
    "max_tokens": 9,
    "reasoning": {"effort": "high", "summary": "auto"},
    "thinking": {"type": "adaptive"},
    "top_k": 40,
    "user": "me",
    "stop": ["END"],
    "provider_options": {"fast": True},
    "parallel_tool_calls": False,
}
OWN = {"top_k": 40, "user": "me", "stop": ["END"], "provider_options": {"fast": True}}
OWN |= {"parallel_tool_calls": False}
REFUSALS = {
    "Unsupported parameter: 'temperature' is not supported with this model.": "temperature",
    "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) "
    "value is supported.": "temperature",
    "temperature: Extra inputs are not permitted": "temperature",
    "faulty broke off the reply: temperature: Extra inputs are not permitted": "temperature",
    "`temperature` is deprecated for this model.": "temperature",
    "temperature: must be less than or equal to 0.3": "temperature=0.5",
    "temperature is not supported by this model": "temperature",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.": "max_tokens",
    "max_tokens is too large: 9. This model supports at most 4 completion tokens": None,
    "Your organization must be verified to generate reasoning summaries. Invalid parameter: "
    "'reasoning.summary'": "reasoning.summary",
    "Unsupported value: 'reasoning.effort' does not support 'high'. Supported values are: "
    "'low'": 'reasoning.effort="high"',
    '"thinking.type.adaptive" is not supported for this model.': "thinking",
    "messages.1.content.0: `thinking` blocks cannot be modified, which is not supported": None,
    "Invalid `signature` in `thinking` block: not allowed": None,
    'Unknown name "top_k": Cannot find field.': "parameters.top_k",
    "top_k: Input should be less than or equal to 20": "parameters.top_k=40",
    "{'loc': ['body', 'top_k'], 'msg': 'Extra inputs are not permitted'}": "parameters.top_k",
    "Unrecognized request argument supplied: user": "parameters.user",
    "the user is not allowed to use this model": None,
    "messages: the role 'user' is expected": None,
    "'stop' is not supported with this model": "parameters.stop",
    "we stop here: this model is not supported": None,
    "Unknown parameter: 'provider_options.fast'.": "parameters.provider_options",
    "`temperature` and `top_k` cannot both be specified for this model": "parameters.top_k",
    "parallel_tool_calls is not supported": "parameters.parallel_tool_calls",
    "'tools' is not supported": None,
    "Internal error": None,
    "": None,
}


@pytest.mark.parametrize("words", REFUSALS)
def test_a_refusal_names_the_field(words: str) -> None:
    assert refused_field(BODY, OWN, words) == REFUSALS[words]


@given(st.sets(st.sampled_from([field for field in REFUSALS.values() if field])))
def test_only_refused_fields_are_left_out(refused: set[str]) -> None:
    fields = frozenset(refused)
    kept = without_fields({name: BODY[name] for name in BODY if name not in OWN}, fields)
    lost = {"temperature"} if any(f.startswith("temperature") for f in fields) else set()
    lost |= {"thinking"} & fields
    if {"reasoning.summary", 'reasoning.effort="high"'} <= fields:
        lost |= {"reasoning"}
    assert BODY.keys() - OWN.keys() - kept.keys() == lost | ({"max_tokens"} & fields)
    assert kept.get("max_completion_tokens") == (9 if "max_tokens" in fields else None)
    own = {name.removeprefix("parameters.").partition("=")[0] for name in fields}
    assert without_parameters(OWN, fields).keys() == OWN.keys() - own


def test_another_value_is_not_refused() -> None:
    assert without_fields({"temperature": 0.3}, frozenset({"temperature=0.5"}))
    assert without_parameters({"top_k": 20}, frozenset({"parameters.top_k=40"}))


def test_no_field_with_the_conversation_can_be_left_out() -> None:
    assert not {name.partition(".")[0] for name in REFUSABLE} & OWN_FIELDS
