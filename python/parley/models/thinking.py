"""Which models can think, in which mode and how much.

The provider's list decides; if no list states how the model thinks, the model's name decides. If
the name is unknown, too, Parley assumes that the thinking cannot be controlled. Knows only the
request's fields for thinking.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeAlias

from parley.chat.options import Effort, ThinkingSettings
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.models.context_window import Version, claude_version, context_window, max_output
from parley.models.model_facts import NO_FACTS, ModelFacts, ThinkingType

MIN_BUDGET = 1024
"""The smallest budget that Claude accepts: "Must be ≥1024 and less than `max_tokens`." (anthropic
2.12, types/thinking_config_enabled_param.py, read 2026-11-22)."""
_ANSWER_ROOM = 4096
"""The tokens reserved for the answer, in addition to the budget, if Parley chooses both."""
_CHOSEN_OUTPUT = 16_000
_CHOSEN_OUTPUT_THINKING = 64_000

_GPT = late_pattern(r"(?:^|[/.])gpt-(\d{1,2})(?:\.(\d{1,2}))?(?![\w.])", re.IGNORECASE)
_O_SERIES = late_pattern(r"(?:^|[/.])o[1-9](?![\w.])", re.IGNORECASE)
_RESPONSES_ONLY = late_pattern(
    r"codex|deep-research|(?:^|[/.])(?:o\d|gpt-[\d.]+)-pro\b", re.IGNORECASE
)


def gpt_version(model: str) -> Version | None:
    """(5, 4) for `gpt-5.4-mini`; None for chat variants, which do not reason, and for other
    names."""
    match = _GPT.search(model)
    return (int(match[1]), int(match[2] or 0)) if match and "chat" not in model else None


def is_reasoning(model: str) -> bool:
    """Whether this is one of OpenAI's reasoning models, which take an effort and
    `max_completion_tokens`, but no temperature."""
    return bool(_O_SERIES.search(model)) or (gpt_version(model) or (0, 0)) >= (5, 0)


def takes_temperature(model: str) -> bool:
    """Whether an OpenAI model, or a model of another company, accepts a temperature."""
    return not is_reasoning(model)


def supports_thinking(model: str, facts: ModelFacts = NO_FACTS) -> bool:
    """Whether the model's thinking can be controlled: as listed; else Claude 3.7 and later, and
    OpenAI's reasoning models."""
    is_listed = bool(set(facts.thinking or ()) - {"disabled"} or facts.efforts)
    return is_listed or bool(set(_types(model, facts)) - {"disabled"}) or is_reasoning(model)


def unsupported_thinking(
    model: str, settings: ThinkingSettings, facts: ModelFacts = NO_FACTS
) -> str:
    """The notice that a thinking setting is ignored because the model does not support it, or
    ""."""
    is_set = settings.enabled and (settings.budget_tokens, settings.effort) != (None, None)
    if not is_set or supports_thinking(model, facts):
        return ""
    return f"Parley cannot control the thinking of {model}, so the setting `thinking` is ignored"


def prefers_responses(model: str) -> bool:
    """Whether an OpenAI model needs the Responses API for tools with thinking.

    gpt-5.4 and later refuse function tools in Chat Completions unless the effort is "none"; codex,
    pro and deep-research models are not available there at all.
    """
    # "gpt-5.6 applies a default reasoning effort, so the raw OpenAI API rejects tools even when the
    # request sets no reasoning_effort at all" (github.com/BerriAI/litellm/pull/34569, of
    # 2026-07-24, read 2026-11-22).
    return (gpt_version(model) or (0, 0)) >= (5, 4) or bool(_RESPONSES_ONLY.search(model))


# --- How much to think ----------------------------------------------------------------------------

Depth: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
"""The efforts that Claude supports."""
_LEVELS: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

_DEPTHS: Mapping[Effort, Depth] = {
    "none": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
# The efforts: platform.claude.com/docs/en/build-with-claude/adaptive-thinking, 2026-11-22. Which
# models always think: the table "Thinking" of platform.claude.com/docs/en/models/opus-4-6/overview
# ("Adaptive (always on)").
_ALWAYS = late_pattern(r"opus-5[-.]5|fable|mythos", re.IGNORECASE)
_BETWEEN_TOOLS = late_pattern(r"sonnet-5[-.]5", re.IGNORECASE)


def _types(model: str, facts: ModelFacts) -> tuple[ThinkingType, ...]:
    """The types of thinking that a Claude model accepts: as listed, else by the model's name."""
    # From 4.7 on: "\"thinking.type.enabled\" is not supported for this model. Use
    # \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior." (a
    # refusal, in docs.memberjunction.org/v6.2; 4.6 accepts both, the old one is deprecated:
    # platform.claude.com/docs/en/build-with-claude/adaptive-thinking; both read 2026-11-22)
    version = claude_version(model)
    if facts.thinking is not None:
        return facts.thinking
    if version is None or version < (3, 7):
        return ()
    if version < (4, 6):
        return ("enabled", "disabled")
    if _ALWAYS.search(model):
        return ("adaptive",)
    return ("adaptive", "between_tools" if _BETWEEN_TOOLS.search(model) else "disabled")


def _efforts(model: str, facts: ModelFacts) -> tuple[str, ...]:
    """The efforts that a Claude model accepts: as listed, else by the model's name."""
    if facts.efforts is not None:
        return facts.efforts
    newer = () if claude_version(model) == (4, 6) else ("xhigh",)  # new in 4.7
    return ("low", "medium", "high", *newer, "max")


def _nearest(wish: str, known: Collection[str]) -> str | None:
    """The highest of the known efforts that is not above this one, else the lowest of them."""
    order = [level for level in _LEVELS if level in known]
    below = [level for level in order if _LEVELS.index(level) <= _LEVELS.index(wish)]
    return (below or order[:1])[-1] if order else None


def effort_of(budget: int) -> Depth:
    """The effort nearest to a token budget."""
    return "low" if budget <= 4_000 else "medium" if budget <= 12_000 else "high"


@frozen
class ThinkingFields:
    """A Claude model's thinking in a request: the fields `thinking` and `output_config`, and the
    tokens needed."""

    config: Mapping[str, Any] | None
    effort: str | None
    max_tokens: int


def claude_thinking(
    model: str, settings: ThinkingSettings, max_tokens: int | None, facts: ModelFacts = NO_FACTS
) -> ThinkingFields:
    """The mode that the model supports: adaptive with an effort if possible, else a budget.

    The budget is the setting's value, or a third of the context window, but at least 1024 and less
    than `max_tokens`. If `max_tokens` is not set, Parley chooses a value that leaves room for an
    answer. Models from 5 on think unless thinking is disabled, and some models always think.
    """
    types = _types(model, facts)
    if "adaptive" not in types:
        return _manual(model, settings, max_tokens, facts)
    room = max_tokens or min(max_output(model, facts), _CHOSEN_OUTPUT_THINKING)
    efforts = _efforts(model, facts)
    if not settings.enabled:
        return _off(model, types, efforts, room)
    wish = (
        _DEPTHS[settings.effort] if settings.effort else effort_of(_budget(model, settings, facts))
    )
    display = "summarized" if settings.show else "omitted"
    config = {"type": "adaptive", "display": display}
    return ThinkingFields(config, _nearest(wish, efforts), room)


def _budget(model: str, settings: ThinkingSettings, facts: ModelFacts) -> int:
    window = context_window(model, facts)
    return window // 3 if settings.budget_tokens is None else settings.budget_tokens


def _manual(
    model: str, settings: ThinkingSettings, max_tokens: int | None, facts: ModelFacts
) -> ThinkingFields:
    """The fields for a model that thinks only with a budget, or not at all."""
    most, budget = max_output(model, facts), max(MIN_BUDGET, _budget(model, settings, facts))
    is_on = settings.enabled and "enabled" in _types(model, facts)
    if not is_on or (max_tokens is not None and max_tokens <= MIN_BUDGET):
        return ThinkingFields(None, None, max_tokens or min(most, _CHOSEN_OUTPUT))
    room = max_tokens or min(most, budget + _CHOSEN_OUTPUT)
    is_chosen = max_tokens is None and settings.budget_tokens is None
    budget = min(budget, room - (_ANSWER_ROOM if is_chosen else 1))
    hidden = {} if settings.show else {"display": "omitted"}
    return ThinkingFields({"type": "enabled", "budget_tokens": budget} | hidden, None, room)


def _off(
    model: str, types: Collection[ThinkingType], efforts: Collection[str], room: int
) -> ThinkingFields:
    """The fields that turn thinking off, or as low as possible for a model that always thinks."""
    if (claude_version(model) or (5, 0)) < (5, 0):
        return ThinkingFields(None, None, room)  # it thinks only if it is asked to
    kind = next((kind for kind in ("disabled", "between_tools") if kind in types), None)
    if kind is None:
        return ThinkingFields(None, _nearest("low", efforts), room)
    return ThinkingFields({"type": kind}, None, room)


def openai_effort(
    model: str, settings: ThinkingSettings, facts: ModelFacts = NO_FACTS
) -> str | None:
    """The `reasoning_effort` for a model with listed efforts, or for an OpenAI reasoning model;
    None means the model's default.
    """
    if facts.efforts is not None:
        return _listed_effort(settings, facts.efforts)
    if not is_reasoning(model):
        return None
    if not settings.enabled:
        can_skip = (gpt_version(model) or (0, 0)) >= (5, 1) and not _RESPONSES_ONLY.search(model)
        return "none" if can_skip else None
    if settings.effort:
        return settings.effort
    return None if settings.budget_tokens is None else effort_of(settings.budget_tokens)


def _listed_effort(settings: ThinkingSettings, efforts: Collection[str]) -> str | None:
    if not settings.enabled:
        return "none" if "none" in efforts else None
    budget = settings.budget_tokens
    wish = settings.effort or (None if budget is None else effort_of(budget))
    return _nearest(wish, efforts) if wish else None
