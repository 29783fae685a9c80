"""A reply's blocks are put together exactly as they were sent, however they were cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from parley.models.received_blocks import ReceivedBlocks

Block = dict[str, Any]

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=9)
CITATIONS = st.lists(
    st.fixed_dictionaries({"type": st.just("web_search_result_location"), "url": WORDS}), max_size=2
)
BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}),
    st.fixed_dictionaries({"type": st.just("text"), "text": WORDS, "citations": CITATIONS}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": WORDS, "signature": WORDS}),
    st.fixed_dictionaries({"type": st.just("redacted_thinking"), "data": WORDS}),
    st.fixed_dictionaries(
        {
            "type": st.just("server_tool_use"),
            "id": WORDS,
            "name": WORDS,
            "input": st.dictionaries(WORDS, WORDS),
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("web_search_tool_result"), "content": st.lists(st.just({}), max_size=2)}
    ),
)
EMPTY = {"text": "", "thinking": "", "signature": "", "citations": [], "input": {}}
KINDS = {"text": "text_delta", "thinking": "thinking_delta", "signature": "signature_delta"}


def deltas(block: Block, draw: st.DataObject) -> Iterator[Block]:
    for field in EMPTY.keys() & block.keys():
        match field:
            case "citations":
                yield from ({"type": "citations_delta", "citation": c} for c in block[field])
            case "input":
                for piece in cut(json.dumps(block[field]), draw):
                    yield {"type": "input_json_delta", "partial_json": piece}
            case _:
                yield from ({"type": KINDS[field], field: p} for p in cut(block[field], draw))


def cut(text: str, draw: st.DataObject) -> list[str]:
    at = draw.draw(st.integers(0, len(text)))
    return [text[:at], text[at:]]


@given(st.lists(BLOCKS, max_size=4), st.lists(BLOCKS, max_size=3), st.data())
def test_blocks_are_as_they_were_sent(
    before: list[Block], blocks: list[Block], data: st.DataObject
) -> None:
    received = ReceivedBlocks(before)
    for index, block in enumerate(blocks):
        received.open(index, block | {key: EMPTY[key] for key in EMPTY.keys() & block.keys()})
        received.add(index, {"type": "sparkle_delta", "sparkle": 1})
        for delta in deltas(block, data):
            received.add(index, delta)
    assert list(received.all()) == [*before, *blocks]


def test_empty_texts_are_left_out_and_unreadable_input_is_empty() -> None:
    received = ReceivedBlocks()
    received.open(0, {"type": "text", "text": ""})
    received.open(1, {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {}})
    received.add(1, {"type": "input_json_delta", "partial_json": '{"query'})
    assert received.all() == (
        {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {}},
    )
