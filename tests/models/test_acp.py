"""The prompt for an agent, and the events of its updates."""

from __future__ import annotations

from typing import Any

import pytest

from parley.chat.call_lines import proposal_line
from parley.chat.reader import parse
from parley.chat.result_bodies import result_lines
from parley.chat.transcript import Result, ToolCall
from parley.errors import ModelError
from parley.models.acp import (
    ConversationDigest,
    Decoder,
    conversation_digest,
    prompt,
    request_body,
    unstreamed,
)
from parley.models.agent_records import RanByAgent
from parley.models.events import (
    AgentPlan,
    Call,
    Event,
    Finished,
    Price,
    Ran,
    RanResult,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    Usage,
)
from parley.models.request import Request
from parley.tables import LARGEST
from parley.tools.results import Outcome
from tests.spoiled import spoiled


def request(text: str, **fields: Any) -> Request:
    transcript = parse(text)
    return Request(transcript, len(transcript.exchanges) - 1, "coder", "default", **fields)


def words(text: str, **fields: Any) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": content, **fields}}


def events(*payloads: dict[str, Any]) -> list[Event]:
    return list(Decoder("coder", "default").read(payloads))


CHAT = "💬: One?\n\n🤖:[A]\n\nFirst.\n\n💬: Two?\n"


def test_a_known_session_receives_only_the_question() -> None:
    assert prompt(request(CHAT), is_new=False) == [{"type": "text", "text": "Two?"}]


def test_a_new_session_receives_the_transcript_in_a_fence_that_it_cannot_close() -> None:
    chat = CHAT.replace("First.", "````\nFirst.\n````")
    system, before, question = prompt(request(chat, system="Be brief."), is_new=True)
    assert system["text"] == "Be brief."
    assert "`````\nUser:\nOne?\n\nAssistant:\n````\nFirst.\n````\n`````" in before["text"]
    assert question["text"] == "Two?"


def test_an_answer_that_broke_off_is_continued() -> None:
    call = '❓:[ya] `{"id":"t.1","name":"edit","arguments":{"title":"x"}}`'
    chat = f"💬: One?\n\n🤖:[A]\n\nFirst.\n\n{call}\n"
    blocks = prompt(request(chat), is_new=True)
    assert "First." in blocks[0]["text"]
    assert blocks[-1]["text"].endswith("Continue the last answer from its end. Do not repeat it.")


def test_another_message_of_the_agent_is_another_paragraph() -> None:
    said = events(words("a", messageId="1"), words("b", messageId="1"), words("c", messageId="2"))
    assert "".join(e.text for e in said if isinstance(e, TextDelta)) == "ab\n\nc"


CALL = ToolCall("own.1", "read", '{"title":"x"}')


def test_a_turn_with_everything() -> None:
    thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}
    plan = {"sessionUpdate": "plan", "entries": [{"content": "a", "status": "pending"}, 3]}
    outcome = Outcome("ok", "found")
    assert events(
        {"update": thought},
        words("Text"),
        {"update": plan},
        {"update": {"sessionUpdate": "usage_update", "used": 7}},
        {"update": {"sessionUpdate": "unheard_of"}},
        {"ran": RanByAgent(CALL, outcome)},
        {"stop": {"stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 2}}},
    ) == [
        ThinkingDelta("hm"),
        ThinkingEnd(),
        TextDelta("Text"),
        AgentPlan("- [ ] a"),
        Usage(input=7),
        Ran(CALL, "agent"),
        RanResult("own.1", outcome),
        TextDelta("\n\n*(The agent ended its turn without further text.)*"),
        Usage(1, 2),
        Finished("complete"),
    ]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [("max_tokens", "length"), ("refusal", "refusal"), ("max_turn_requests", "pause"),
     ("cancelled", "pause"), ("end_turn", "complete"), (None, "complete")],
)  # fmt: skip
def test_why_a_turn_ends(stop: str | None, reason: str) -> None:
    end = events(words("a"), {"stop": {"stopReason": stop}})[-1]
    assert isinstance(end, Finished)
    assert end.reason == reason


@pytest.mark.parametrize(
    ("content", "text"),
    [({"type": "resource_link", "uri": "file:///a"}, "<file:///a>"),
     ({"type": "resource", "resource": {"text": "inside"}}, "inside"),
     ({"type": "image", "data": "…"}, "[image]"), (7, "")],
)  # fmt: skip
def test_content_that_is_no_text_is_named(content: Any, text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    said = events({"update": update}, {"calls": [CALL]})
    assert "".join(e.text for e in said if isinstance(e, TextDelta)) == text


def test_a_request_is_shown_as_the_prompt_of_a_new_session() -> None:
    assert request_body(request(CHAT)) == {"prompt": prompt(request(CHAT), is_new=True)}
    assert list(unstreamed({"stopReason": "end_turn"})) == [{"stop": {"stopReason": "end_turn"}}]


def test_a_turn_that_is_cancelled_because_of_a_no_is_complete() -> None:
    end = {"stop": {"stopReason": "cancelled"}, "declined": True}
    assert events(words("a"), end)[-1] == Finished("complete")


def test_calls_end_a_reply() -> None:
    said = events(words("a"), {"calls": [CALL]}, words("ignored"))
    assert said == [TextDelta("a"), Call(CALL), Finished("tool_calls")]


def test_a_stream_that_only_stops_is_an_error() -> None:
    decoder = Decoder("coder", "default")
    list(decoder.read([words("a")]))
    with pytest.raises(ModelError):
        decoder.end()


UPDATES: tuple[dict[str, Any], ...] = (
    words("a", messageId="m")["update"],
    {"sessionUpdate": "agent_message_chunk",
     "content": {"type": "resource", "resource": {"uri": "u", "text": "t"}}},
    {"sessionUpdate": "agent_thought_chunk", "content": {"type": "resource_link", "uri": "u"}},
    {"sessionUpdate": "plan", "entries": [{"content": "a", "status": "completed"}]},
    {"sessionUpdate": "usage_update", "used": 5, "size": 10},
)  # fmt: skip
STOP = {"stopReason": "end_turn", "usage": {
    "inputTokens": 1, "outputTokens": 2, "cachedReadTokens": 3, "thoughtTokens": 4}}  # fmt: skip


def test_no_update_is_an_error() -> None:
    """A price can be computed from all counts, too."""
    payloads = [{"update": update} for each in UPDATES for update in spoiled(each)]
    payloads += [{"stop": stop} for stop in spoiled(STOP)]
    for payload in payloads:
        for event in events(payload):
            if isinstance(event, Usage):
                assert 0 <= Price(1.0, 1.0, 1.0).cost(event) < LARGEST


def test_the_digest_of_a_reply_is_the_digest_of_the_chat_with_it() -> None:
    before = request(CHAT).turns()
    digest = ConversationDigest(before)
    for event in events(words("Sec"), words("ond.\n\nEnd "), {"ran": RanByAgent(CALL, Outcome("ok", "r"))},
                        words("After."), {"stop": {}}):  # fmt: skip
        digest.feed(event)
    line = proposal_line(CALL, "agent")
    body = "\n".join(result_lines("read", "own.1", Result("ok", "r")))
    after = f"{CHAT}\n🤖:[A]\n\nSecond.\n\nEnd\n\n{line}\n\n{body}\n\nAfter.\n\n💬: Three?\n"
    turns = request(after).turns()
    assert conversation_digest(turns[:-1]) == digest.text()
    edited = request(after.replace("Second", "Sekond")).turns()
    assert conversation_digest(edited[:-1]) != digest.text()
