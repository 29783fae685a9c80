"""Oddities of servers, by which one format is spoken in several ways: each a name in a provider's entry.

Knows what each means and where that is from; the adapters know what to do. Nobody guesses one from a name.
What is found out from a refusal while Parley runs is no quirk: `models/refusals.py` reads it and
`providers/capabilities.py` remembers it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

# All of openai 3.54 read 2026-11-22, below openai/types/.
Quirk: TypeAlias = Literal[
    # The bound of a reply goes by its old name: "This value is now deprecated in favor of
    # `max_completion_tokens`, and is not compatible with o-series models"
    # (chat/completion_create_params.py). Models that reason get the new name all the same.
    "max_tokens",
    # A result repeats the name of its tool; OpenAI's message of the role `tool` has no such field
    # (chat/chat_completion_tool_message_param.py).
    "result_names",
    # The server parses the arguments of past calls, and fails on what is no object.
    "argument_objects",
    # `phase` is unknown: "for models like gpt-5.3-codex and beyond, when sending follow-up requests, preserve
    # and resend phase on all assistant messages — dropping it can degrade performance"
    # (responses/easy_input_message_param.py).
    "no_phases",
    # Thinking stands in the text, between `<think>` and `</think>`.
    "think_tags",
    # The signature beside a call comes back in the same turn, else "Function call is missing a
    # thought_signature in functionCall parts": "when using Gemini 3 models, you must pass back thought
    # signatures during function calling, otherwise you will get a validation error"
    # (ai.google.dev/gemini-api/docs/thought-signatures, 2026-11-22).
    "thought_signatures",
]

COMPATIBLE: tuple[Quirk, ...] = (
    "max_tokens",
    "result_names",
    "argument_objects",
    "no_phases",
    "think_tags",
)
"""Of a server of which no more is known than that it is compatible."""
