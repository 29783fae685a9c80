"""Which models think, in which mode, how much, and how far they reach: known facts about models, by name.

A model whose name says nothing here counts as one that cannot be told to think. Knows no request but the
fields that are about thinking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from parley.models.ask import ThinkingSettings

Version: TypeAlias = tuple[int, int]

MIN_BUDGET = 1024
_ANSWER_ROOM = 4096
"""What is left for the answer beside a budget where Parley chooses both."""

_CLAUDE = re.compile(r"claude-(?:[a-z]+-)*(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", re.IGNORECASE)
_GPT = re.compile(r"(?:^|[/.])gpt-(\d{1,2})(?:\.(\d{1,2}))?(?![\w.])", re.IGNORECASE)
_O_SERIES = re.compile(r"(?:^|[/.])o[1-9](?![\w.])", re.IGNORECASE)
_RESPONSES_ONLY = re.compile(r"codex|deep-research|(?:^|[/.])(?:o\d|gpt-[\d.]+)-pro\b", re.IGNORECASE)


def claude_version(model: str) -> Version | None:
    """(4, 7) for `claude-opus-4-7` in any provider's spelling; None for what is no numbered Claude."""
    found = _CLAUDE.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else None


def gpt_version(model: str) -> Version | None:
    """(5, 4) for `gpt-5.4-mini`; None for chat variants, which do not reason, and for all else."""
    found = _GPT.search(model)
    return (int(found[1]), int(found[2] or 0)) if found and "chat" not in model else None


def is_reasoning(model: str) -> bool:
    """Whether this is one of OpenAI's reasoning models: effort, `max_completion_tokens`, no temperature."""
    return bool(_O_SERIES.search(model)) or (gpt_version(model) or (0, 0)) >= (5, 0)


def supports_thinking(model: str) -> bool:
    """Whether the model can be told to think: Claude 3.7 and later, and OpenAI's reasoning models."""
    return (claude_version(model) or (0, 0)) >= (3, 7) or is_reasoning(model)


def prefers_responses(model: str) -> bool:
    """Whether an OpenAI model must be asked through the Responses API to have tools and thinking.

    gpt-5.4 and later refuse function tools in Chat Completions unless the effort is "none"; codex, pro and
    deep-research models are not served there at all.
    """
    return (gpt_version(model) or (0, 0)) >= (5, 4) or bool(_RESPONSES_ONLY.search(model))


# --- How far a model reaches ------------------------------------------------------------------------------

_CLAUDE_REACH: tuple[tuple[Version, int, int], ...] = (
    ((4, 6), 1_000_000, 128_000),
    ((4, 5), 200_000, 64_000),
    ((4, 0), 200_000, 32_000),
    ((3, 7), 200_000, 64_000),
    ((3, 5), 200_000, 8_192),
    ((0, 0), 200_000, 4_096),
)
_WINDOWS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"gpt-(5\.[4-9]|6)"), 1_050_000),
    (re.compile(r"gpt-5"), 400_000),
    (re.compile(r"gpt-4\.1"), 1_047_576),
    (re.compile(r"(^|/)o[1-9]"), 200_000),
    (re.compile(r"gpt-4o|gpt-4-turbo"), 128_000),
    (re.compile(r"gemini"), 1_048_576),
)
_ASSUMED_WINDOW = 128_000
_ASSUMED_OUTPUT = 8_192
_CHOSEN_OUTPUT = 16_000
_CHOSEN_OUTPUT_THINKING = 64_000


def context_window(model: str) -> int:
    """The tokens that prompt and reply may have together; a cautious guess for models not known here."""
    if (version := claude_version(model)) is not None:
        return next(window for least, window, _ in _CLAUDE_REACH if version >= least)
    return next((window for pattern, window in _WINDOWS if pattern.search(model)), _ASSUMED_WINDOW)


def max_output(model: str) -> int:
    """The tokens that a reply of this Claude may have, thinking included."""
    version = claude_version(model)
    if version is None:
        return _ASSUMED_OUTPUT
    if version == (4, 0) and "sonnet" in model:
        return 64_000
    return next(output for least, _, output in _CLAUDE_REACH if version >= least)


# --- How much to think ------------------------------------------------------------------------------------

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]

_EFFORTS: Mapping[str, Effort] = {
    "none": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_OPENAI_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_ALWAYS = re.compile(r"opus-5[-.]5|fable|mythos", re.IGNORECASE)
_BETWEEN_TOOLS = re.compile(r"sonnet-5[-.]5", re.IGNORECASE)


def effort_of(budget: int) -> Effort:
    """The effort that comes nearest to a budget of tokens."""
    return "low" if budget <= 4_000 else "medium" if budget <= 12_000 else "high"


@dataclass(frozen=True, slots=True)
class Thinking:
    """How a Claude is told to think: the fields `thinking` and `output_config`, and the room it needs."""

    config: Mapping[str, Any] | None
    effort: Effort | None
    max_tokens: int


def claude_thinking(model: str, wanted: ThinkingSettings, max_tokens: int | None) -> Thinking:
    """The mode that the model knows: a budget up to 4.5, adaptive with an effort from 4.6 on.

    The budget is what was set, else a third of the context window, within 1024 and one less than
    `max_tokens`; where that is not set it is chosen so that an answer fits in, too. Models from 5 on think
    unless they are told not to, and some cannot be told.
    """
    version = claude_version(model)
    if version is None or version < (3, 7):
        return Thinking(None, None, max_tokens or min(max_output(model), _CHOSEN_OUTPUT))
    if version < (4, 6):
        return _manual(model, wanted, max_tokens)
    room = max_tokens or min(max_output(model), _CHOSEN_OUTPUT_THINKING)
    if not wanted.enabled:
        return _off(model, version, room)
    level = _EFFORTS.get(wanted.effort or "") or effort_of(_budget(model, wanted))
    if version == (4, 6) and level == "xhigh":
        level = "high"  # came with 4.7
    display = "summarized" if wanted.show else "omitted"
    return Thinking({"type": "adaptive", "display": display}, level, room)


def _budget(model: str, wanted: ThinkingSettings) -> int:
    return context_window(model) // 3 if wanted.budget_tokens is None else wanted.budget_tokens


def _manual(model: str, wanted: ThinkingSettings, max_tokens: int | None) -> Thinking:
    most, budget = max_output(model), max(MIN_BUDGET, _budget(model, wanted))
    if not wanted.enabled or (max_tokens is not None and max_tokens <= MIN_BUDGET):
        return Thinking(None, None, max_tokens or min(most, _CHOSEN_OUTPUT))
    room = max_tokens or min(most, budget + _CHOSEN_OUTPUT)
    is_chosen = max_tokens is None and wanted.budget_tokens is None
    budget = min(budget, room - (_ANSWER_ROOM if is_chosen else 1))
    return Thinking({"type": "enabled", "budget_tokens": budget}, None, room)


def _off(model: str, version: Version, room: int) -> Thinking:
    if version < (5, 0):
        return Thinking(None, None, room)
    if _ALWAYS.search(model):
        return Thinking(None, "low", room)
    kind = "between_tools" if _BETWEEN_TOOLS.search(model) else "disabled"
    return Thinking({"type": kind}, None, room)


def openai_effort(model: str, wanted: ThinkingSettings) -> str | None:
    """The `reasoning_effort` of an OpenAI reasoning model; None leaves it to the model's default."""
    if not is_reasoning(model):
        return None
    if not wanted.enabled:
        can_skip = (gpt_version(model) or (0, 0)) >= (5, 1) and not _RESPONSES_ONLY.search(model)
        return "none" if can_skip else None
    if wanted.effort in _OPENAI_EFFORTS:
        return wanted.effort
    return None if wanted.budget_tokens is None else effort_of(wanted.budget_tokens)
