"""Models' context windows and output limits, and the size of texts in tokens.

The provider's list decides. A name counts only if no list states the model's limits; for unknown
names, these are cautious guesses. Knows nothing about requests.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.models.model_facts import NO_FACTS, ModelFacts

Version: TypeAlias = tuple[int, int]

_CLAUDE = late_pattern(r"claude-(?:[a-z]+-)*(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", re.IGNORECASE)


def claude_version(model: str) -> Version | None:
    """(4, 7) for `claude-opus-4-7`, however the provider writes it; None for a name without a
    Claude version.
    """
    match = _CLAUDE.search(model)
    return (int(match[1]), int(match[2] or 0)) if match else None


# "Context window: 1M tokens · Max output: 128K tokens"
# (platform.claude.com/docs/en/models/opus-4-6/overview, with the current models beside it,
# 2026-11-22); for older ones no source was kept.
_CLAUDE_REACH: tuple[tuple[Version, int, int], ...] = (
    ((4, 6), 1_000_000, 128_000),
    ((4, 5), 200_000, 64_000),
    ((4, 0), 200_000, 32_000),
    ((3, 7), 200_000, 64_000),
    ((3, 5), 200_000, 8_192),
    ((0, 0), 200_000, 4_096),
)
# "Context Length: 1,050,000 tokens"
# (docs.oxen.ai/inference-api/reference/models/gpt-5-4-2026-03-05, 2026-11-22; OpenAI's and Google's
# own pages about their models could not be read that day).
_WINDOWS: tuple[tuple[re.Pattern[str], int], ...] = (
    (late_pattern(r"gpt-(5\.[4-9]|6)"), 1_050_000),
    (late_pattern(r"gpt-5"), 400_000),
    (late_pattern(r"gpt-4\.1"), 1_047_576),
    (late_pattern(r"(^|/)o[1-9]"), 200_000),
    (late_pattern(r"gpt-4o|gpt-4-turbo"), 128_000),
    (late_pattern(r"gemini"), 1_048_576),
)


@frozen
class Limit:
    """The limit that a refusal states: the number of tokens that the provider accepts, and how many
    it counted for the prompt and the reply.
    """

    tokens: int
    prompt: int | None = None
    reply: int | None = None


_ASSUMED_WINDOW = 128_000
ASSUMED_OUTPUT = 8_192


def context_window(model: str, facts: ModelFacts = NO_FACTS) -> int:
    """How many tokens the prompt and the reply can have together; a guess for unknown models."""
    return known_window(model, facts) or _ASSUMED_WINDOW


def known_window(model: str, facts: ModelFacts = NO_FACTS) -> int | None:
    """How many tokens the prompt and the reply can have together; None for unknown models."""
    if facts.window is not None:
        return facts.window
    if (version := claude_version(model)) is not None:
        return next(window for least, window, _ in _CLAUDE_REACH if version >= least)
    return next((window for pattern, window in _WINDOWS if pattern.search(model)), None)


def max_output(model: str, facts: ModelFacts = NO_FACTS) -> int:
    """How many tokens a Claude model's reply can have, including thinking."""
    if facts.max_output is not None:
        return facts.max_output
    version = claude_version(model)
    if version is None:
        return ASSUMED_OUTPUT
    if version == (4, 0) and "sonnet" in model:
        return 64_000
    return next(output for least, _, output in _CLAUDE_REACH if version >= least)


BYTES_PER_TOKEN = 4
"""An approximation for English. In other languages, a letter takes more bytes and more tokens."""
