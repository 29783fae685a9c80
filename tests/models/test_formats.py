"""Each format in the table: its tools' shapes, and an unstreamed reply compared with a stream."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from parley.chat.reader import parse
from parley.demo.dialogue import DemoUsage as Counted
from parley.demo.dialogue import Dialogue, Reply
from parley.demo.replies import reply
from parley.demo.wire import anthropic as demo_anthropic
from parley.demo.wire import openai_chat as demo_chat
from parley.demo.wire import openai_responses as demo_responses
from parley.models.events import Event, Finished, TextDelta, Usage
from parley.models.formats import FORMATS, apis, kinds, of_kind, options, searching_format
from parley.models.request import Request
from parley.models.sse import SSE, decode_payload
from parley.tools.convert import from_mcp
from tests.tools.test_convert import SCHEMA, SEARCH, definitions

DEMOS: dict[str, Any] = {
    "anthropic": demo_anthropic,
    "chat": demo_chat,
    "responses": demo_responses,
}
USAGE = Counted(12, 7, 0)
REPLIES = {
    "text": Reply("", "", "Looking up the price of Google.", (), "end", USAGE, "s"),
    "text that was cut": Reply("", "", "Looking up the", (), "length", USAGE, "s"),
    "the status": reply(Dialogue("demo", "", "a single, clear, natural sentence about x", ())),
}
names = pytest.mark.parametrize("name", FORMATS)


def outcome(events: list[Event]) -> tuple[str, Usage, Finished]:
    """The text, the tokens and the end."""
    (end,) = [event for event in events if isinstance(event, Finished)]
    counts = [event for event in events if isinstance(event, Usage)]
    return "".join(event.text for event in events if isinstance(event, TextDelta)), counts[-1], end


@names
@pytest.mark.parametrize("kind", REPLIES)
def test_an_unstreamed_reply_equals_its_stream(name: str, kind: str) -> None:
    wire_format, demo = FORMATS[name], DEMOS[name]
    body = {"model": "demo", "messages": [], "input": [], "stream_options": {"include_usage": True}}
    at_once, piecewise = (wire_format.decoder("demo", "demo", ()) for _ in range(2))
    payloads = wire_format.unstreamed(demo.whole(REPLIES[kind], body))
    events = [event for payload in payloads for event in at_once.feed(payload)]
    sse, streamed = SSE(), list[Event]()
    for frame in demo.stream(REPLIES[kind], body):
        for payload in sse.feed(frame.encode()):
            streamed += piecewise.feed(decode_payload(payload))
    assert outcome(events + at_once.end()) == outcome(streamed + piecewise.end())


@names
def test_a_request_for_one_piece_asks_for_no_stream(name: str) -> None:
    request = Request(parse("💬: hi\n"), 0, "p", "m")
    streamed, unstreamed = FORMATS[name].body(request), FORMATS[name].unstreamed_body(request)
    streamed.pop("stream_options", None)
    assert unstreamed == streamed | {"stream": False}


SHAPES: dict[str, dict[str, Any]] = {
    "chat": {
        "type": "function",
        "function": {"name": "search", "description": "Searches.", "parameters": SCHEMA},
    },
    "responses": {
        "type": "function",
        "name": "search",
        "description": "Searches.",
        "parameters": SCHEMA,
    },
    "anthropic": {"name": "search", "description": "Searches.", "input_schema": SCHEMA},
}


@names
def test_a_tool_has_the_shape_of_its_format(name: str) -> None:
    assert FORMATS[name].tool("search", SEARCH) == SHAPES[name]


@names
def test_a_value_and_its_definition_have_one_shape(name: str) -> None:
    tool = from_mcp(SEARCH, server="web", identity="{}", trusted=True)
    assert FORMATS[name].tool("x", tool) == FORMATS[name].tool("x", SEARCH)


@given(definitions)
def test_a_providers_tool_converts_back_to_the_same_definition(definition: dict[str, Any]) -> None:
    name = definition["name"]
    for wire_format in FORMATS.values():
        back = wire_format.definition(wire_format.tool(name, definition))
        assert back["name"] == name
        assert all(
            back == each.definition(each.tool(name, definition)) for each in FORMATS.values()
        )
        assert wire_format.tool(name, back) == wire_format.tool(name, definition)


@pytest.mark.parametrize(
    ("kind", "api", "is_official", "name"),
    [
        ("openai", "auto", True, "responses"),
        ("openai", "auto", False, None),
        ("openai", "chat", True, None),
        ("openai", "responses", False, "responses"),
        ("anthropic", "auto", True, "anthropic"),
        ("anthropic", "auto", False, "anthropic"),
        ("package", "auto", False, None),
    ],
)
def test_only_some_formats_can_search_the_web(
    kind: str, api: str, is_official: bool, name: str | None
) -> None:
    form = searching_format(kind, api, is_official=is_official)
    assert (form and form.name) == name


@pytest.mark.parametrize("wrong", [{}, {"name": 3}, {"type": "web_search"}, {"function": None}])
@names
def test_an_object_that_is_not_a_formats_tool_is_refused(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="tool"):
        FORMATS[name].definition(wrong)


def test_the_table_lists_the_names_for_settings_and_shell() -> None:
    assert kinds() == ("openai", "anthropic", "package", "acp")
    assert apis() == ("auto", "chat", "responses")
    assert options() == ("openai", "openai-responses", "anthropic")


def test_the_formats_of_a_kind_have_one_sdk_and_name_each_other() -> None:
    for name, wire_format in FORMATS.items():
        assert {each.sdk for each in of_kind(wire_format.kind)} == {wire_format.sdk}
        assert wire_format.name == name
        assert wire_format.other is None or FORMATS[wire_format.other].kind == wire_format.kind
