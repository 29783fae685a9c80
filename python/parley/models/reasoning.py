"""What a reasoning item of the Responses API needs to be sent again, kept as a thinking block's signature.

Knows the two fields that matter, and that a file may hold a signature which is not one of ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from parley.chat.transcript import Thinking
from parley.models.fields import text


def sealed(item: Mapping[str, Any]) -> str:
    """The signature for a finished item, one line of JSON; "" for an item that cannot be sent again."""
    kept = {key: text(item, key) for key in ("id", "encrypted_content")}
    return json.dumps(kept, separators=(",", ":")) if all(kept.values()) else ""


def unsealed(thinking: Thinking) -> dict[str, Any] | None:
    """The item that a signature stands for, None for a signature that is not one of `sealed`."""
    try:
        kept = json.loads(thinking.signature)
    except (ValueError, RecursionError):
        return None
    match kept:
        case {"id": str(item_id), "encrypted_content": str(content)} if item_id and content:
            summary = [{"type": "summary_text", "text": thinking.text}] if thinking.text else []
            return {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": content}
        case _:
            return None
