"""The blocks of a Messages reply, assembled from their pieces exactly as received.

They are sent back unchanged if the provider pauses its reply. Knows the pieces, but not the meaning
of the blocks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Block = dict[str, Any]

_TEXTS: Mapping[str, tuple[str, str]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}
"""The fields of a piece and of its block."""


class ReceivedBlocks:
    """Collects a reply's blocks; `before` are the blocks of the reply that this one continues."""

    def __init__(self, before: Sequence[Mapping[str, Any]] = ()) -> None:
        self._before = [dict(block) for block in before]
        self._blocks = dict[int, Block]()
        self._pieces = dict[tuple[int, str], list[str]]()
        self._citations = dict[int, list[Mapping[str, Any]]]()

    def open(self, index: int, block: Mapping[str, Any]) -> None:
        """Begin a block."""
        self._blocks[index] = dict(block)

    def add(self, index: int, delta: Mapping[str, Any]) -> None:
        """Add a piece to a block that has begun; unknown pieces are ignored."""
        match delta:
            case {"type": "input_json_delta", "partial_json": str(piece)}:
                self._pieces.setdefault((index, "input"), []).append(piece)
            case {"type": "citations_delta", "citation": Mapping() as citation}:
                self._citations.setdefault(index, []).append(citation)
            case {"type": str(kind)} if kind in _TEXTS:
                source, field = _TEXTS[kind]
                if isinstance(more := delta.get(source), str):
                    self._pieces.setdefault((index, field), []).append(more)
            case _:
                pass

    def add_text(self, index: int, piece: str) -> None:
        """Add a piece of text without checking its kind, because most pieces are text."""
        self._pieces.setdefault((index, "text"), []).append(piece)

    def all(self) -> tuple[Block, ...]:
        """The blocks, in order. Empty texts are left out, because the provider refuses them."""
        blocks = [*self._before, *map(self._whole, sorted(self._blocks))]
        return tuple(b for b in blocks if b.get("type") != "text" or b.get("text"))

    def _whole(self, index: int) -> Block:
        block = dict(self._blocks[index])
        for field in ("text", "thinking", "signature"):
            if pieces := self._pieces.get((index, field)):
                block[field] = (block.get(field) or "") + "".join(pieces)
        if cited := self._citations.get(index):
            block["citations"] = [*(block.get("citations") or ()), *cited]
        if pieces := self._pieces.get((index, "input")):
            block["input"] = _object("".join(pieces))
        return block


def _object(text: str) -> object:
    """The object that JSON contains; empty if it contains none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
