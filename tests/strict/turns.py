"""An Anthropic request's messages as the API sees them: blocks in turns, with turns of one role
merged.

Positions name the sent message and block, so that a refusal points to the same place as a real one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Body = Mapping[str, Any]
Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BlockAt:
    """A block with its place, such as `messages.1.content.0`."""

    message: int
    place: str
    block: Block

    @property
    def kind(self) -> str:
        return str(self.block["type"])


@dataclass(frozen=True, slots=True)
class Turn:
    """One role's words before the other speaks; `message` is the index of its last message."""

    message: int
    role: str
    blocks: tuple[BlockAt, ...]

    def of(self, *kinds: str) -> tuple[BlockAt, ...]:
        return tuple(placed for placed in self.blocks if placed.kind in kinds)

    @property
    def call_ids(self) -> list[str]:
        return [str(placed.block["id"]) for placed in self.of("tool_use")]


def placed_blocks(body: Body) -> Iterator[BlockAt]:
    """Every block of every message; string content is one text block."""
    for index, message in enumerate(body["messages"]):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for at, block in enumerate(blocks):
            yield BlockAt(index, f"messages.{index}.content.{at}", block)


def turns(body: Body) -> list[Turn]:
    """Messages with neighbours of one role merged, as the API does before other checks."""
    blocks = list(placed_blocks(body))
    merged = []
    for role, group in groupby(enumerate(body["messages"]), key=lambda pair: pair[1]["role"]):
        indices = [index for index, _ in group]
        merged.append(Turn(indices[-1], role, tuple(p for p in blocks if p.message in indices)))
    return merged


def open_loop(body: Body) -> list[Turn]:
    """The turns after the user's last content that is not a tool result."""
    merged = turns(body)
    questions = [
        at
        for at, turn in enumerate(merged)
        if turn.role == "user" and _says_more_than_results(turn)
    ]
    return merged[questions[-1] + 1 :] if questions else merged


def _says_more_than_results(turn: Turn) -> bool:
    return any(placed.kind != "tool_result" for placed in turn.blocks)
