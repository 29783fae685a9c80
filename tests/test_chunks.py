"""The chunks for each event."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from parley import ChunkType, engine
from parley.chat.transcript import RUNNERS, Proposal, Result, Runner, ToolCall
from parley.chunks import Chunk, Chunks, in_python
from parley.models.events import Aside, Finished, TextDelta, ThinkingDelta, ThinkingEnd, Usage
from tests.chats import SEARCH
from tests.strategies import any_text, proposals, ran, results

CALL = Proposal(ToolCall("call_1", "f", "{}"))
ENDED = {"type": "tool_result", "id": "call_1", "name": "f"}


def chunks(*events: engine.TurnEvent) -> list[Chunk]:
    maker = Chunks()
    return [chunk for event in events for chunk in maker.of(event)]


def test_text_thinking_and_notices_become_chunks_immediately() -> None:
    assert chunks(ThinkingDelta("hm"), ThinkingEnd(), TextDelta("hi"), Aside("news")) == [
        {"type": "thinking", "content": "hm"},
        {"type": "content", "content": "hi"},
        {"type": "hint", "content": "news"},
    ]


def test_a_call_keeps_its_id_from_start_to_result() -> None:
    start, end = chunks(
        engine.CallBegan(CALL, SEARCH), engine.CallEnded(CALL, Result("error", "no"))
    )
    assert start["type"] == "tool_start"
    assert (start["id"], start["name"]) == ("call_1", "f")
    assert end == {**ENDED, "content": "no", "is_error": True, "refused": False}


def test_a_refused_call_is_an_error_and_a_result() -> None:
    assert chunks(engine.CallRefused(CALL, Result("refused", "no"))) == [
        {"type": "error", "error": "no", "id": "call_1"},
        {**ENDED, "content": "no", "is_error": True, "refused": True},
    ]


def test_a_complete_reply_reports_the_tokens_of_its_request_once() -> None:
    last = Usage(5, 7)
    assert chunks(Usage(5, 1), last, Finished("complete"), Finished("complete")) == [
        {
            "type": "usage",
            "usage": {
                "input": 5,
                "output": 7,
                "cache_read": 0,
                "cache_write": 0,
                "thinking": 0,
                "searches": 0,
            },
        }
    ]


@pytest.mark.parametrize("ran_by", RUNNERS)
def test_the_chunks_of_a_call_that_others_ran_name_them(ran_by: Runner) -> None:
    call = Proposal(CALL.call, ran_by=ran_by)
    begun, ended = chunks(
        engine.CallBegan(call, SEARCH), engine.CallEnded(call, Result("ok", "a page"))
    )
    own = chunks(engine.CallBegan(CALL, SEARCH), engine.CallEnded(CALL, Result("ok", "a page")))
    assert [begun, ended] == [chunk | {"ran_by": ran_by} for chunk in own]


EVENTS = st.one_of(
    st.builds(TextDelta, any_text | st.text()),
    st.builds(ThinkingDelta, any_text | st.text()),
    st.builds(Aside, any_text),
    st.builds(Usage, *[st.integers(0, 2**63)] * 5),
    st.just(Finished("complete")),
    st.builds(engine.CallBegan, proposals | ran, st.just(SEARCH)),
    st.builds(engine.CallEnded, proposals, results),
    st.builds(engine.CallRefused, proposals, results),
    st.builds(engine.MissingTools, st.lists(st.text(max_size=9), min_size=1).map(tuple)),
)


@given(st.lists(EVENTS, max_size=8))
def test_each_chunk_can_be_dumped_as_json(events: list[engine.TurnEvent]) -> None:
    for chunk in chunks(*events):
        assert chunk["type"] in get_args(ChunkType)
        assert json.loads(json.dumps(chunk)) == chunk
        if chunk["type"] == "usage":
            assert asdict(Usage(**chunk["usage"])) == chunk["usage"]


OF_FRONT_ENDS = {"nvim", "cli", "demo", "display"}
"""Rooms whose messages the library never passes on."""


def messages() -> Iterator[tuple[str, str]]:
    """The messages in the library's rooms that name an editor command, with their places."""
    root = Path(parley.__file__).parent
    for path in root.rglob("*.py"):
        if path.relative_to(root).parts[0] in OF_FRONT_ENDS or path.stem == "chunks":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if (
                not isinstance(node, ast.Constant)
                or id(node) in docs
                or not isinstance(node.value, str)
            ):
                continue
            if ":Parley" in node.value or "start Neovim" in node.value:
                yield f"{path.stem}:{node.lineno}", node.value


def test_no_message_of_the_library_names_an_editor_command() -> None:
    found = [(place, in_python(text)) for place, text in messages()]
    assert len(found) > 10
    assert [each for each in found if ":Parley" in each[1] or "Neovim" in each[1]] == []
