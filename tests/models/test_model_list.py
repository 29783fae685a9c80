"""Lists of models from any JSON, and names that mean the same model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.models.model_facts import NO_FACTS, ModelFacts
from parley.models.model_list import (
    MOST_MODELS,
    ListedModel,
    ModelList,
    complete_list,
    is_model_name,
    is_same_model,
    list_page,
    with_details,
)
from tests.examples import examples
from tests.model_servers import CLAUDES, KINDS, ollama

WORDS = st.sampled_from(
    [
        *("data", "models", "id", "name", "created", "pricing", "prompt", "capabilities", "line"),
        *("thinking", "types", "effort", "supported", "architecture", "input_modalities", "meta"),
        *("retires_at", "lifecycle", "context_length", "top_provider", "has_more", "last_id"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)


@examples(300)
@given(VALUES)
def test_any_json_is_a_page_of_sound_models_or_an_error(raw: Any) -> None:
    try:
        page = list_page(raw)
    except ValueError:
        return
    for model in page.models:
        assert is_model_name(model.id)
        assert model.created >= 0
        assert (model.facts.window or 1) > 0
        assert with_details(model, raw) is None or is_model_name(model.id)


def test_anthropics_list_states_how_a_model_thinks_and_what_it_sees() -> None:
    (_, nova, *_, old) = list_page({"data": CLAUDES}).models
    assert nova.facts == ModelFacts(
        2_000_000,
        256_000,
        None,
        ("adaptive",),
        ("low", "high"),
        sees_pictures=True,
        reads_pdfs=False,
        searches=True,
    )
    assert (nova.line, nova.created, nova.ends) == ("sonnet", 1_801_440_000, "")
    assert (old.lifecycle, old.ends) == ("deprecated", "2027-03-01")


def test_ollama_states_the_window_that_it_uses_and_the_efforts() -> None:
    model = ListedModel("qwen4:8b", created=3)
    shown: Any = ollama("/api/show", {}, {"model": "qwen4:8b"})
    facts = ModelFacts(16_384, None, None, None, ("none", "low", "high"), True, None)
    assert with_details(model, shown[1]) == ListedModel("qwen4:8b", facts, 3)
    assert with_details(model, {}) == model
    assert with_details(model, {"capabilities": ["embedding"]}) is None


def test_openrouter_states_what_a_model_sees() -> None:
    listed: Any = KINDS["openrouter"][1]("/api/v1/models", {}, None)
    qwen, auto = list_page(listed[1]).models
    assert (qwen.facts.sees_pictures, qwen.facts.reads_pdfs) == (True, False)
    assert (auto.facts.sees_pictures, auto.facts.price) == (None, None)


def test_a_list_has_each_model_once_and_at_most_the_limit() -> None:
    names = [f"m{number:05}" for number in range(MOST_MODELS + 1)]
    listed = complete_list((ListedModel(name) for name in [*reversed(names), *names]), 1.0)
    assert [model.id for model in listed.models] == names[:-1]
    assert "more than 5000 models" in listed.problem
    assert complete_list([ListedModel("a")] * 9, 1.0) == ModelList((ListedModel("a"),), 1.0)


@pytest.mark.parametrize(
    ("requested", "other", "is_same"),
    [
        ("gpt-6-sol", "gpt-6-sol-2026-10-01", True),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", True),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet-20250219", True),
        ("anthropic/claude-sonnet-5.5", "anthropic/claude-5.5-sonnet-20260901", True),
        ("openai/gpt-5.6", "gpt-5.6", True),
        ("llama3.1", "llama3.1:latest", True),
        ("gemini-2.5-pro", "models/gemini-2.5-pro-001", True),
        ("gemini-pro-latest", "gemini-3.1-pro-preview", False),
        ("gpt-5.6", "gpt-6.5", False),
        ("gpt-6-sol", "gpt-6.1-sol", False),
        ("llama3.1", "llama3.1:8b", False),
        ("openrouter/auto", "qwen/qwen4-max", False),
    ],
)
def test_a_date_and_a_makers_name_do_not_make_another_model(
    requested: str, other: str, is_same: bool
) -> None:
    assert is_same_model(requested, other) is is_same
    listed = ModelList((ListedModel("x", created=9), ListedModel(other)), 1.0)
    assert (listed.find(requested) is not None) is is_same
    assert NO_FACTS.window is None
