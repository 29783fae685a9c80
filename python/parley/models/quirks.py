"""Quirks: differences between servers that share a format, as names in a provider's entry.

This module documents each quirk and its source; the adapters handle them. Parley never infers a
quirk from a name. A fact learnt from a refusal is not a quirk: `models/refusals.py` recognizes it
and `providers/capabilities.py` remembers it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

# All of openai 3.54 read 2026-11-22, below openai/types/.
Quirk: TypeAlias = Literal[
    # The limit for the reply is sent under its old name: "This value is now deprecated in favor of
    # `max_completion_tokens`, and is not compatible with o-series models"
    # (chat/completion_create_params.py). For reasoning models, the new name is still used.
    "max_tokens",
    # A result repeats its tool's name; OpenAI's `tool` message has no such field
    # (chat/chat_completion_tool_message_param.py).
    "result_names",
    # The server parses the arguments of past calls, and fails if they are not an object.
    "argument_objects",
    # `phase` is unknown: "for models like gpt-5.3-codex and beyond, when sending follow-up
    # requests, preserve and resend phase on all assistant messages — dropping it can degrade
    # performance" (responses/easy_input_message_param.py).
    "no_phases",
    # The server keeps its cache for five minutes only: it does not know `cache_control.ttl`
    # (anthropic 2.12, types/cache_control_ephemeral_param.py).
    "short_cache",
    # Thinking is in the text, between `<think>` and `</think>`.
    "think_tags",
    # A call's signature must be sent back in the same turn; otherwise, "Function call is
    # missing a thought_signature in functionCall parts": "when using Gemini 3 models, you must pass
    # back thought signatures during function calling, otherwise you will get a validation error"
    # (ai.google.dev/gemini-api/docs/thought-signatures, 2026-11-22).
    "thought_signatures",
]

COMPATIBLE: tuple[Quirk, ...] = (
    "max_tokens",
    "result_names",
    "argument_objects",
    "no_phases",
    "short_cache",
    "think_tags",
)
"""The quirks of a server that is only known to be compatible."""
