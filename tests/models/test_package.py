"""Events from a package's provider are ordered and checked; requests share nothing with their
source.
"""

from __future__ import annotations

from typing import Any

import pytest

from parley.chat.options import ThinkingSettings
from parley.chat.transcript import ToolCall
from parley.errors import ModelError
from parley.models.events import Call, Event, Finished, TextDelta, ThinkingDelta, ThinkingEnd, Usage
from parley.models.package import EVENT, EventDecoder, provider_request


def read(*events: object) -> list[Event]:
    decoder = EventDecoder("echo", "m")
    return [*decoder.read({EVENT: event} for event in events), *decoder.end()]


def test_events_are_ordered_with_calls_last() -> None:
    call = ToolCall("call_1", "price", '{"of": "X"}')
    usage = Usage(3, 2)
    assert read(
        ThinkingDelta("hm"),
        Call(call),
        TextDelta(""),
        TextDelta("so\n"),
        usage,
        TextDelta("be it"),
        Finished("complete"),
    ) == [
        ThinkingDelta("hm"),
        ThinkingEnd(),
        TextDelta("so\n"),
        usage,
        TextDelta("be it"),
        Call(ToolCall("call_1", "price", '{"of": "X"}', 0)),
        Finished("tool_calls"),
    ]


def test_two_calls_with_one_id_get_two_ids_and_nothing_is_read_after_the_end() -> None:
    call = ToolCall("a", "price", "{}")
    first, second, end = read(Call(call), Call(call), Finished("complete"), TextDelta("more"))
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert first.call.id != second.call.id
    assert end == Finished("tool_calls")


def bad(cls: Any, *fields: Any) -> object:
    """A value with fields of wrong types."""
    return cls(*fields)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("text", "it is of type str"),
        (None, "it is of type NoneType"),
        (bad(TextDelta, 1), "a field of the TextDelta"),
        (bad(ThinkingDelta, b"x"), "a field of the ThinkingDelta"),
        (bad(Call, ("id", "name", "{}")), "a field of the Call"),
        (bad(Call, ToolCall("id", "name", bad(dict))), "a field of the Call"),  # type: ignore[arg-type]
        (bad(Usage, -1), "a field of the Usage"),
        (Usage(10**400), "a field of the Usage"),
        (bad(Usage, True), "a field of the Usage"),
        (bad(Finished, "done"), "a field of the Finished"),
        (bad(Finished, ["complete"]), "a field of the Finished"),
    ],
)
def test_an_object_that_is_not_an_event_is_reported(event: object, words: str) -> None:
    with pytest.raises(ModelError, match=rf"^echo sent an event that cannot be read: .*{words}"):
        read(TextDelta("a"), event)


def test_a_stream_without_an_end_is_cut() -> None:
    with pytest.raises(ModelError, match="the stream ended without Finished"):
        read(TextDelta("a"))


def test_a_request_shares_nothing_with_its_source() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function"}],
        "tool_choice": "none",
        "max_completion_tokens": 7,
        "temperature": 0.5,
    }
    request = provider_request(body, ThinkingSettings(), "http://x", "secret-key")
    request.messages[0]["content"] = "changed"  # type: ignore[index]
    assert body["messages"] == [{"role": "user", "content": "hi"}]
    assert (request.tool_choice, request.max_tokens, request.temperature) == ("none", 7, 0.5)
    assert "secret-key" not in repr(request)
