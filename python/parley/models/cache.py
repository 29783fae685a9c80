"""Which parts of an Anthropic request the provider keeps in its cache: what stays the same till the next.

At most four marks are allowed. They go on the last tool, the system prompt and the last two turns of the
user: the last to write what is new, the one before it to read what the request before wrote.
"""

from __future__ import annotations

from typing import Any

_MARK = {"cache_control": {"type": "ephemeral"}}
_TURNS = 2


def mark(body: dict[str, Any]) -> None:
    """Put the marks into a request body whose contents are lists of blocks."""
    turns = [message["content"] for message in body["messages"] if message["role"] == "user"]
    for blocks in [body.get("tools"), body.get("system"), *turns[-_TURNS:]]:
        if blocks:
            blocks[-1] |= _MARK
