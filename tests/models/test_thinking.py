"""Known facts about thinking models: which models think, in which mode, and how much."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.options import ThinkingSettings
from parley.models.context_window import claude_version, context_window, max_output
from parley.models.think_tags import Kind, ThinkTags
from parley.models.thinking import (
    claude_thinking,
    is_reasoning,
    openai_effort,
    prefers_responses,
    supports_thinking,
)


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-3-7-sonnet-20250219", (3, 7)),
        ("claude-3.7", (3, 7)),
        ("claude-opus-4-1", (4, 1)),
        ("claude-opus-4-20250514", (4, 0)),
        ("claude-opus-4@20250514", (4, 0)),
        ("claude-4-opus-20250514", (4, 0)),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", (4, 5)),
        ("anthropic/claude-opus-4.6", (4, 6)),
        ("Claude-Sonnet-5-5", (5, 5)),
        ("claude-sonnet-5", (5, 0)),
        ("claude-3-5-sonnet-20241022", (3, 5)),
        ("claude-3-opus-20240229", (3, 0)),
        ("claude-instant-1.2", (1, 2)),
        ("claude-mythos-preview", None),
        ("gpt-5.4", None),
        ("gemini-2.5-pro", None),
    ],
)
def test_a_claudes_version_is_read_in_every_spelling(
    model: str, version: tuple[int, int] | None
) -> None:
    assert claude_version(model) == version
    assert supports_thinking(model) == (model == "gpt-5.4" or (version or (0, 0)) >= (3, 7))


@pytest.mark.parametrize(
    ("model", "reasons", "responses"),
    [
        ("gpt-4.1", False, False),
        ("gpt-4o", False, False),
        ("gpt-5", True, False),
        ("gpt-5-mini-2025-08-07", True, False),
        ("gpt-5.2", True, False),
        ("gpt-5.4-nano", True, True),
        ("gpt-5.5-2026-04-23", True, True),
        ("gpt-6.1-sol", True, True),
        ("gpt-5-chat-latest", False, False),
        ("gpt-5.3-chat-latest", False, False),
        ("gpt-5.1-codex", True, True),
        ("gpt-5.2-pro", True, True),
        ("o3", True, False),
        ("o4-mini-2025-04-16", True, False),
        ("o3-pro", True, True),
        ("openai/gpt-5.4", True, True),
        ("gpt-oss-20b", False, False),
        ("olmo-2", False, False),
        ("gpt-50-turbo-imaginary", True, True),
    ],
)
def test_openais_reasoning_models_are_known(model: str, reasons: bool, responses: bool) -> None:
    assert is_reasoning(model) == reasons
    assert prefers_responses(model) == responses


HIDDEN = {"type": "enabled", "display": "omitted"}
SUMMARIZED = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("model", "settings", "max_tokens", "config", "effort", "room"),
    [
        ("claude-sonnet-4-5", {}, None, 59_904, None, 64_000),
        ("claude-opus-4-1", {}, None, 27_904, None, 32_000),
        ("claude-sonnet-4-5", {}, 8_000, 7_999, None, 8_000),
        ("claude-sonnet-4-5", {"budget_tokens": 2_000}, None, 2_000, None, 18_000),
        ("claude-sonnet-4-5", {"budget_tokens": 10}, None, 1_024, None, 17_024),
        ("claude-sonnet-4-5", {"budget_tokens": 99_000}, None, 63_999, None, 64_000),
        ("claude-sonnet-4-5", {}, 1_024, None, None, 1_024),
        ("claude-sonnet-4-5", {"enabled": False}, None, None, None, 16_000),
        (
            "claude-sonnet-4-5",
            {"show": False},
            8_000,
            HIDDEN | {"budget_tokens": 7_999},
            None,
            8_000,
        ),
        ("claude-opus-4-6", {}, None, SUMMARIZED, "high", 64_000),
        ("claude-opus-4-6", {"effort": "xhigh"}, None, SUMMARIZED, "high", 64_000),
        ("claude-opus-4-7", {"effort": "xhigh"}, None, SUMMARIZED, "xhigh", 64_000),
        ("claude-sonnet-5-5", {"budget_tokens": 4_000}, None, SUMMARIZED, "low", 64_000),
        ("claude-sonnet-5-5", {"budget_tokens": 12_000}, 9_000, SUMMARIZED, "medium", 9_000),
        (
            "claude-sonnet-5-5",
            {"show": False},
            None,
            SUMMARIZED | {"display": "omitted"},
            "high",
            64_000,
        ),
        ("claude-opus-4-8", {"enabled": False}, None, None, None, 64_000),
        ("claude-opus-5", {"enabled": False}, None, {"type": "disabled"}, None, 64_000),
        ("claude-sonnet-5-5", {"enabled": False}, None, {"type": "between_tools"}, None, 64_000),
        ("claude-opus-5-5", {"enabled": False}, None, None, "low", 64_000),
        ("claude-3-5-haiku-latest", {}, None, None, None, 8_192),
        ("some-other-model", {}, None, None, None, 8_192),
        ("some-other-model", {}, 50, None, None, 50),
    ],
)
def test_a_claude_is_told_to_think_in_the_mode_it_knows(
    model: str,
    settings: dict[str, Any],
    max_tokens: int | None,
    config: Any,
    effort: str | None,
    room: int,
) -> None:
    if isinstance(config, int):
        config = {"type": "enabled", "budget_tokens": config}
    thinking = claude_thinking(model, ThinkingSettings(**settings), max_tokens)
    assert (thinking.config, thinking.effort, thinking.max_tokens) == (config, effort, room)


@pytest.mark.parametrize(
    ("model", "settings", "effort"),
    [
        ("gpt-5.2", {}, None),
        ("gpt-5.2", {"effort": "minimal"}, "minimal"),
        ("gpt-5.2", {"budget_tokens": 9_000}, "medium"),
        ("gpt-5.2", {"enabled": False}, "none"),
        ("gpt-5", {"enabled": False}, None),
        ("gpt-5.1-codex", {"enabled": False}, None),
        ("gpt-4.1", {"effort": "high"}, None),
    ],
)
def test_effort_goes_to_openai_models_that_reason(
    model: str, settings: dict[str, Any], effort: str | None
) -> None:
    assert openai_effort(model, ThinkingSettings(**settings)) == effort


def test_models_limits_are_known_or_guessed() -> None:
    assert (context_window("claude-sonnet-4-5"), max_output("claude-sonnet-4-5")) == (
        200_000,
        64_000,
    )
    assert (context_window("claude-opus-5-5"), max_output("claude-opus-5-5")) == (
        1_000_000,
        128_000,
    )
    assert max_output("claude-sonnet-4-20250514") == 64_000
    assert context_window("gpt-5.2") == 400_000
    assert context_window("a-local-model") == 128_000


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("plain", [("text", "plain")]),
        ("<think>a b</think>c", [("thinking", "a b"), ("end", ""), ("text", "c")]),
        ("\n<thinking>\n a\n</thinking>\n\nc ", [("thinking", "a"), ("end", ""), ("text", "c ")]),
        ("<think></think>c", [("end", ""), ("text", "c")]),
        ("<think>a < b </thin k> </think>", [("thinking", "a < b </thin k>"), ("end", "")]),
        ("<think>a</thi", [("thinking", "a</thi"), ("end", "")]),
        ("x <think>y</think>", [("text", "x <think>y</think>")]),
        ("<think", [("text", "<think")]),
        ("  ", [("text", "  ")]),
        ("", []),
    ],
)
def test_think_tags_are_removed_from_the_start_for_any_cuts(
    text: str, parts: list[tuple[Kind, str]]
) -> None:
    assert _tagged([text]) == parts
    assert _tagged(list(text)) == parts
    for cut in range(len(text)):
        assert _tagged([text[:cut], text[cut:]]) == parts


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<", "/", "think", ">", " ", "\n", "a"]), max_size=9
    )
)
def test_any_text_is_split_in_the_same_way_for_any_cuts(pieces: list[str]) -> None:
    assert _tagged(pieces) == _tagged(["".join(pieces)]) == _tagged(list("".join(pieces)))


def _tagged(pieces: list[str]) -> list[tuple[Kind, str]]:
    tags, parts = ThinkTags(), list[tuple[Kind, str]]()
    for kind, piece in [pair for text in pieces for pair in tags.feed(text)] + tags.end():
        if parts and parts[-1][0] == kind != "end":
            parts[-1] = (kind, parts[-1][1] + piece)
        else:
            parts.append((kind, piece))
    return parts
