"""A reply in one piece says what it would have said as a stream, to the same decoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from parley.demo.conversation import Conversation, Reply
from parley.demo.conversation import Usage as Counted
from parley.demo.rules import reply
from parley.demo.wire import anthropic as demo_anthropic
from parley.demo.wire import chat as demo_chat
from parley.demo.wire import responses as demo_responses
from parley.models import anthropic, openai_chat, openai_responses
from parley.models import unstreamed as whole
from parley.models.decoder import Decoder
from parley.models.events import Event, Finished, TextDelta, Usage
from parley.models.sse import SSE, decode_payload

FORMATS: dict[str, tuple[Any, Callable[[Any], Any], type[Decoder]]] = {
    "anthropic": (demo_anthropic, whole.anthropic, anthropic.Decoder),
    "chat": (demo_chat, whole.openai_chat, openai_chat.Decoder),
    "responses": (demo_responses, whole.openai_responses, openai_responses.Decoder),
}
USAGE = Counted(12, 7, 0)
REPLIES = {
    "text": Reply("", "", "Looking up the price of Google.", (), "end", USAGE, "s"),
    "text that was cut": Reply("", "", "Looking up the", (), "length", USAGE, "s"),
    "the status": reply(Conversation("demo", "", "a single, clear, natural sentence about x", ())),
}


def told(events: list[Event]) -> tuple[str, Usage, Finished]:
    """The text, the tokens and the end."""
    (end,) = [event for event in events if isinstance(event, Finished)]
    counts = [event for event in events if isinstance(event, Usage)]
    return "".join(event.text for event in events if isinstance(event, TextDelta)), counts[-1], end


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("said", REPLIES)
def test_a_reply_in_one_piece_says_what_its_stream_says(form: str, said: str) -> None:
    demo, payloads, decoder = FORMATS[form]
    body = {"model": "demo", "messages": [], "input": [], "stream_options": {"include_usage": True}}
    at_once, piecewise = decoder("demo", "demo"), decoder("demo", "demo")
    found = [event for raw in payloads(demo.whole(REPLIES[said], body)) for event in at_once.feed(raw)]
    sse, streamed = SSE(), list[Event]()
    for frame in demo.stream(REPLIES[said], body):
        for payload in sse.feed(frame.encode()):
            streamed += piecewise.feed(decode_payload(payload))
    assert told(found + at_once.end()) == told(streamed + piecewise.end())


def test_a_request_for_one_piece_asks_for_no_stream() -> None:
    body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    assert whole.unstreamed(body) == {"model": "m", "stream": False}
