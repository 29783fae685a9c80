"""Chunks: which event becomes which."""

from __future__ import annotations

from parley import engine
from parley.chat.transcript import Proposal, Result, ToolCall
from parley.chunks import Chunk, Chunks
from parley.models.events import Aside, Finished, TextDelta, ThinkingDelta, ThinkingEnd, Usage
from tests.chats import SEARCH

CALL = Proposal(ToolCall("call_1", "f", "{}"))
ENDED = {"type": "tool_result", "id": "call_1", "name": "f"}


def chunks(*events: engine.TurnEvent) -> list[Chunk]:
    maker = Chunks()
    return [chunk for event in events for chunk in maker.of(event)]


def test_text_thinking_and_news_are_chunks_as_they_come() -> None:
    assert chunks(ThinkingDelta("hm"), ThinkingEnd(), TextDelta("hi"), Aside("news")) == [
        {"type": "thinking", "content": "hm"},
        {"type": "content", "content": "hi"},
        {"type": "hint", "content": "news"},
    ]


def test_a_call_has_its_id_from_its_start_to_its_result() -> None:
    start, end = chunks(engine.CallBegan(CALL, SEARCH), engine.CallEnded(CALL, Result("error", "no")))
    assert start["type"] == "tool_start"
    assert (start["id"], start["name"]) == ("call_1", "f")
    assert end == {**ENDED, "content": "no", "is_error": True, "refused": False}


def test_a_refused_call_is_an_error_and_a_result() -> None:
    assert chunks(engine.CallRefused(CALL, Result("refused", "no"))) == [
        {"type": "error", "error": "no", "id": "call_1"},
        {**ENDED, "content": "no", "is_error": True, "refused": True},
    ]


def test_a_request_has_its_tokens_when_its_reply_is_complete_and_once() -> None:
    last = Usage(5, 7)
    assert chunks(Usage(5, 1), last, Finished("complete"), Finished("complete")) == [
        {"type": "usage", "usage": last}
    ]
