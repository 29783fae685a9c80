"""What a provider's refusal says about the request: whether, and how, it might be taken otherwise.

Providers say so in words only, each in its own. Knows no clients and no files.
"""

from __future__ import annotations

import re

TOO_LONG = "the conversation is larger than the model's context window"
SHORTEN = "shorten the chat, lower max_full_exchanges, or ask in a new chat"

_TOO_LONG = re.compile(
    r"prompt is too long"  # Anthropic
    r"|exceed(s|ed)? (the |its )?(model'?s )?(available |maximum )?context"  # Anthropic, OpenAI, llama.cpp
    r"|maximum context length"  # OpenAI, vLLM
    r"|context_length_exceeded"
    r"|input token count .* exceeds"  # Gemini
    r"|input length .* exceeds? ",  # Ollama
    re.IGNORECASE,
)


def says_too_long(said: str) -> bool:
    """Whether a refusal means that the conversation does not fit into the model's context window."""
    return bool(_TOO_LONG.search(said))
