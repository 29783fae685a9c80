"""Known facts about models, by name: which models can think, in which mode and how much.

For a model with an unknown name, Parley assumes that its thinking cannot be controlled. Knows only
the request's fields for thinking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from parley.chat.options import Effort, ThinkingSettings
from parley.models.context_window import Version, claude_version, context_window, max_output

MIN_BUDGET = 1024
"""The smallest budget that Claude accepts: "Must be ≥1024 and less than `max_tokens`." (anthropic
2.12, types/thinking_config_enabled_param.py, read 2026-11-22)."""
_ANSWER_ROOM = 4096
"""The tokens reserved for the answer, in addition to the budget, if Parley chooses both."""
_CHOSEN_OUTPUT = 16_000
_CHOSEN_OUTPUT_THINKING = 64_000

_GPT = re.compile(r"(?:^|[/.])gpt-(\d{1,2})(?:\.(\d{1,2}))?(?![\w.])", re.IGNORECASE)
_O_SERIES = re.compile(r"(?:^|[/.])o[1-9](?![\w.])", re.IGNORECASE)
_RESPONSES_ONLY = re.compile(
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


def supports_thinking(model: str) -> bool:
    """Whether the model's thinking can be controlled: Claude 3.7 and later, and OpenAI's reasoning
    models."""
    return (claude_version(model) or (0, 0)) >= (3, 7) or is_reasoning(model)


def unsupported_thinking(model: str, settings: ThinkingSettings) -> str:
    """The notice that a thinking setting is ignored because the model does not support it, or
    ""."""
    is_set = settings.enabled and (settings.budget_tokens, settings.effort) != (None, None)
    if not is_set or supports_thinking(model):
        return ""
    return f"Parley cannot control the thinking of {model}: the setting thinking is ignored"


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
_ALWAYS = re.compile(r"opus-5[-.]5|fable|mythos", re.IGNORECASE)
_BETWEEN_TOOLS = re.compile(r"sonnet-5[-.]5", re.IGNORECASE)


def effort_of(budget: int) -> Depth:
    """The effort nearest to a token budget."""
    return "low" if budget <= 4_000 else "medium" if budget <= 12_000 else "high"


@dataclass(frozen=True, slots=True)
class ThinkingFields:
    """A Claude model's thinking in a request: the fields `thinking` and `output_config`, and the
    tokens needed."""

    config: Mapping[str, Any] | None
    effort: Depth | None
    max_tokens: int


def claude_thinking(
    model: str, settings: ThinkingSettings, max_tokens: int | None
) -> ThinkingFields:
    """The mode that the model supports: a budget up to 4.5, adaptive with an effort from 4.6 on.

    The budget is the setting's value, or a third of the context window, but at least 1024 and less
    than `max_tokens`. If `max_tokens` is not set, Parley chooses a value that leaves room for an
    answer. Models from 5 on think unless thinking is disabled, and some models always think.
    """
    # From 4.7 on: "\"thinking.type.enabled\" is not supported for this model. Use
    # \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior." (a
    # refusal, in docs.memberjunction.org/v6.2; 4.6 accepts both, the old one is deprecated:
    # platform.claude.com/docs/en/build-with-claude/adaptive-thinking; both read 2026-11-22)
    version = claude_version(model)
    if version is None or version < (3, 7):
        return ThinkingFields(None, None, max_tokens or min(max_output(model), _CHOSEN_OUTPUT))
    if version < (4, 6):
        return _manual(model, settings, max_tokens)
    room = max_tokens or min(max_output(model), _CHOSEN_OUTPUT_THINKING)
    if not settings.enabled:
        return _off(model, version, room)
    level = _DEPTHS[settings.effort] if settings.effort else effort_of(_budget(model, settings))
    if version == (4, 6) and level == "xhigh":
        level = "high"  # new in 4.7
    display = "summarized" if settings.show else "omitted"
    return ThinkingFields({"type": "adaptive", "display": display}, level, room)


def _budget(model: str, settings: ThinkingSettings) -> int:
    return context_window(model) // 3 if settings.budget_tokens is None else settings.budget_tokens


def _manual(model: str, settings: ThinkingSettings, max_tokens: int | None) -> ThinkingFields:
    most, budget = max_output(model), max(MIN_BUDGET, _budget(model, settings))
    if not settings.enabled or (max_tokens is not None and max_tokens <= MIN_BUDGET):
        return ThinkingFields(None, None, max_tokens or min(most, _CHOSEN_OUTPUT))
    room = max_tokens or min(most, budget + _CHOSEN_OUTPUT)
    is_chosen = max_tokens is None and settings.budget_tokens is None
    budget = min(budget, room - (_ANSWER_ROOM if is_chosen else 1))
    hidden = {} if settings.show else {"display": "omitted"}
    return ThinkingFields({"type": "enabled", "budget_tokens": budget} | hidden, None, room)


def _off(model: str, version: Version, room: int) -> ThinkingFields:
    if version < (5, 0):
        return ThinkingFields(None, None, room)
    if _ALWAYS.search(model):
        return ThinkingFields(None, "low", room)
    kind = "between_tools" if _BETWEEN_TOOLS.search(model) else "disabled"
    return ThinkingFields({"type": kind}, None, room)


def openai_effort(model: str, settings: ThinkingSettings) -> str | None:
    """The `reasoning_effort` for an OpenAI reasoning model; None means the model's default."""
    if not is_reasoning(model):
        return None
    if not settings.enabled:
        can_skip = (gpt_version(model) or (0, 0)) >= (5, 1) and not _RESPONSES_ONLY.search(model)
        return "none" if can_skip else None
    if settings.effort:
        return settings.effort
    return None if settings.budget_tokens is None else effort_of(settings.budget_tokens)
