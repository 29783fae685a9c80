"""The newest model of a list, and reasons against using a model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.models.model_choice import model_problem, newest_model
from parley.models.model_list import ListedModel, ModelList, list_page
from parley.settings.values import AGENTS
from tests.model_servers import CLAUDES, KINDS

RULES = {agent.name: agent.newest for agent in AGENTS}


def models(kind: str, path: str) -> tuple[ListedModel, ...]:
    listed: Any = KINDS[kind][1](path, {}, None)
    return list_page(listed[1]).models


def test_the_built_in_agents_use_the_newest_model_of_their_families() -> None:
    claudes = list_page({"data": CLAUDES}).models
    # The name says nothing about the line: "do not infer a line from the `id`" (anthropic 2.12).
    assert newest_model(RULES["Claude"], claudes) == "claude-nova-1"
    assert newest_model(RULES["ChatGPT"], models("openai", "/v1/models")) == "gpt-6.2-sol"
    pulled = [ListedModel("old", created=1), ListedModel("new", created=2)]
    assert newest_model(RULES["Ollama"], pulled) == "new"
    assert RULES["Gemini"] == ()  # its name is an alias that the provider moves


@pytest.mark.parametrize(
    ("rules", "names", "newest"),
    [
        (["gpt-*-sol", "gpt-*"], ["gpt-5", "gpt-6-luna"], "gpt-5"),
        (["gpt-*"], ["gpt-9", "gpt-10", "gpt-10-2026-01-01", "gpt-11o", "gpt-x"], "gpt-10"),
        (["claude-sonnet-*"], ["claude-sonnet-4-5-20250929", "claude-sonnet-4"], "claude-sonnet-4"),
        (["claude-sonnet-*"], ["claude-sonnet-5-10", "claude-sonnet-5-9"], "claude-sonnet-5-10"),
        (["sonnet"], ["sonnet"], None),
        (["gpt-*"], ["gpt-"], None),
        ([], ["gpt-5"], None),
    ],
)
def test_the_first_rule_that_matches_decides_and_the_highest_version_is_the_newest(
    rules: list[str], names: list[str], newest: str | None
) -> None:
    assert newest_model(rules, map(ListedModel, names)) == newest


@given(st.permutations([ListedModel(f"m-{n}.{m}") for n in range(3) for m in range(3)]))
def test_the_order_of_the_list_does_not_matter(listed: list[ListedModel]) -> None:
    assert newest_model(["m-*"], listed) == "m-2.2"


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (ListedModel("m"), ""),
        (ListedModel("m-2026-01-01"), ""),
        (ListedModel("other"), "the provider does not list this model"),
        (ListedModel("m", lifecycle="deprecated"), "the provider has deprecated this model"),
        (
            ListedModel("m", lifecycle="deprecated", ends="2026-11-26"),
            "the provider stops serving this model on 2026-11-26",
        ),
        (
            ListedModel("m", lifecycle="deprecated", ends="2026-11-25"),
            "the provider has deprecated this model",
        ),
        (
            ListedModel("m", ends="2026-12-11"),
            "the provider stops serving this model on 2026-12-11",
        ),
        (
            ListedModel("m", ends="2026-11-25"),
            "the provider no longer serves this model since 2026-11-25",
        ),
        (ListedModel("m", lifecycle="retired"), "the provider no longer serves this model"),
    ],
)
def test_a_reason_against_a_model_is_reported_and_the_model_is_not_chosen(
    model: ListedModel, problem: str
) -> None:
    assert model_problem("m", ModelList((model,), 1.0), "2026-11-25") == problem
    is_problem = bool(problem) and model.id == "m"
    assert (newest_model(["*"], [model]) is None) is is_problem


def test_an_unknown_or_incomplete_list_says_nothing_about_missing_models() -> None:
    assert model_problem("m", ModelList(), "2026-11-25") == ""
    assert model_problem("m", ModelList((ListedModel("a"),), 1.0, "cut"), "2026-11-25") == ""
