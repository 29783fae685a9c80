"""A server's request to the model, and the reply to it, as values."""

from __future__ import annotations

from collections.abc import Sequence

from parley.frozen import frozen

MOST_TOKENS = 4096


@frozen
class SamplingRequest:
    """A server's request to the model; (role, text) messages alternate, from user to user."""

    messages: Sequence[tuple[str, str]]
    system: str = ""
    max_tokens: int = MOST_TOKENS
    temperature: float | None = None


@frozen
class SamplingReply:
    """The model's reply; `cut` if the reply reached its token limit."""

    text: str
    model: str
    cut: bool
