"""Refusals of providers: whether, and how, a request that was refused might be taken otherwise.

Providers say so in words only, each in its own. Knows no clients and no files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from parley.models.formats import FORMATS
from parley.models.request import Request

TOO_LONG = "the conversation is larger than the model's context window"
SHORTEN = "shorten the chat, lower max_full_exchanges, or ask in a new chat"

# As providers word it, read 2026-11-22: "input length and `max_tokens` exceed context limit: 178959 + 64000"
# (Anthropic, github.com/docker/docker-agent/issues/569), "This model's maximum context length is 16384
# tokens" (vLLM, github.com/vllm-project/vllm/issues/20409). For the others no source was kept.
_TOO_LONG = re.compile(
    r"prompt is too long"  # Anthropic
    r"|exceed(s|ed)? (the |its )?(model'?s )?(available |maximum )?context"  # Anthropic, OpenAI, llama.cpp
    r"|maximum context length"  # OpenAI, vLLM
    r"|context_length_exceeded"
    r"|input token count .* exceeds"  # Gemini
    r"|input length .* exceeds? ",  # Ollama
    re.IGNORECASE,
)


def says_too_long(words: str) -> bool:
    """Whether a refusal means that the conversation does not fit into the model's context window."""
    return bool(_TOO_LONG.search(words))


@dataclass(frozen=True, slots=True)
class Amendment:
    """A request as it may be taken after it was refused; `aside` is what the user is to know of it."""

    request: Request
    aside: str = ""


def amended(request: Request, api: str, status: int | None, words: str) -> Amendment | None:
    """How to ask again what was refused with these words; None where that is not known.

    `api` is the format it was asked in, "" where the user chose it. Each way is gone once only, or leads to
    ever smaller requests.
    """
    if status == 400 and request.keep_thinking and _ABOUT_THOUGHTS.search(words):
        return Amendment(replace(request, keep_thinking=False))
    if status in (400, 413) and says_too_long(words) and (narrow := request.narrowed()):
        return Amendment(narrow, crowding(narrow))
    if request.api is None and (other := _other_api(request.model, api, status, words)):
        words = f"{request.model} is asked through {FORMATS[other].title}, as {request.provider} wants it"
        return Amendment(replace(request, api=other), words)
    return None


def crowding(request: Request) -> str:
    """The notice that fewer exchanges than wanted are sent whole; "" where all are."""
    full = request.crowded()
    if full is None:
        return ""
    exchanges = "exchange" if full == 1 else f"{full} exchanges"
    return f"this chat is too long for {request.model}: before the last {exchanges}, only 📝: lines are sent"


# "Invalid `signature` in `thinking` block. The block is bound to a different conversation"
# (platform.claude.com/docs/en/build-with-claude/preserved-thinking, November 2026); "Item 'rs_*' of type
# reasoning was provided without its required following item" (OpenAI, github.com/coder/mux/pull/59,
# 2026-11-22).
_ABOUT_THOUGHTS = re.compile(
    r"signature"  # Anthropic and Gemini
    r"|redacted_thinking"
    r"|encrypted[ _]content"  # OpenAI
    r"|of type .?reasoning.? was provided without",
    re.IGNORECASE,
)


def _other_api(model: str, api: str, status: int | None, words: str) -> str | None:
    """The format that a refusal points to."""
    refused = FORMATS.get(api)
    if refused is None or status not in (400, 404):
        return None
    return refused.other if refused.is_for_other(model, status, words) else None
