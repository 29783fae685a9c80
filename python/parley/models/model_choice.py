"""Which model of a list an agent uses, and reasons against using a model: pure rules for the list.

Built-in agents do not name a model that may disappear: a rule chooses the newest model of a family.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from parley.models.model_list import ListedModel, ModelList

_VERSION = r"(\d{1,3}(?:[.-]\d{1,3})*)"
"""Numbers that are too short for a year: a version with a date is not newer than the same version
without a date."""

Rank: TypeAlias = tuple[tuple[int, ...], float]


def newest_model(rules: Sequence[str], models: Iterable[ListedModel]) -> str | None:
    """The name of the newest model that matches the first rule with a match; None if no model
    matches any rule.

    A rule without `*` is the name of a model family, such as `opus`; its newest model was created
    last. In any other rule, the `*` stands for a version such as `5-5` or `6.1`, and the highest
    version is the newest. The rule `*` matches every model. Deprecated models, and models with an
    announced end date, match no rule.
    """
    active = [model for model in models if model.lifecycle == "active" and not model.ends]
    for rule in rules:
        ranks = {model.id: rank for model in active if (rank := _rank(rule, model)) is not None}
        if ranks:
            return max(ranks, key=lambda name: (ranks[name], name))
    return None


def _rank(rule: str, model: ListedModel) -> Rank | None:
    if rule == "*" or (model.line and model.line == rule):
        return (), model.created
    before, star, after = rule.partition("*")
    match = re.fullmatch(f"{re.escape(before)}{_VERSION}{re.escape(after)}", model.id)
    if not (star and match):
        return None
    return tuple(map(int, re.findall(r"\d+", match[1]))), model.created


def model_problem(model: str, listed: ModelList, today: str) -> str:
    """The reason against using a model, according to its provider's list; "" if there is none.

    `today` is a day as YYYY-MM-DD.
    """
    entry = listed.find(model)
    if entry is None:
        return (
            "" if listed.problem or not listed.models else "the provider does not list this model"
        )
    is_over = bool(entry.ends) and entry.ends <= today
    # "A past date on a `deprecated` model means retirement is overdue, not that it has occurred"
    # (anthropic 2.12, types/model_info.py, 2026-11-24).
    if entry.lifecycle == "retired" or (is_over and entry.lifecycle == "active"):
        since = f" since {entry.ends}" if entry.ends else ""
        return f"the provider no longer serves this model{since}"
    if entry.ends and not is_over:
        return f"the provider stops serving this model on {entry.ends}"
    return "the provider has deprecated this model" if entry.lifecycle == "deprecated" else ""
