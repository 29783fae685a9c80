"""Parameters that a provider would refuse are renamed in requests; calls have the server's own
names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.reader import parse
from parley.models.events import Call
from parley.models.formats import FORMATS
from parley.models.request import Request
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.names import PARAMETER
from parley.tools.wire_parameters import wire_parameters
from tests.defaults import text_tools
from tests.examples import examples
from tests.formats import CLAUDE, OPENAI, RESPONSES, WireFormat

MODES = [None, "json", "xml"]
FORMS = {"anthropic": CLAUDE, "chat": OPENAI, "responses": RESPONSES}
NAMES = st.sets(
    st.text(st.characters(codec="utf-8"), max_size=6) | st.just("y" * 70), min_size=1, max_size=4
)


def catalogue(*names: str) -> Catalogue:
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return Catalogue.of(
        [Tool("s", "odd", input_schema=schema), Tool("s", "plain", input_schema=schema)]
    )


def request(form: WireFormat, mode: Any, *names: str, text: str = "\U0001f4ac: hello") -> Request:
    asked = form.ask(parse(text), 0, text_tools=text_tools(mode) if mode else None)
    return replace(asked, catalogue=catalogue(*names))


def reply(name: str, arguments: Mapping[str, Any], mode: Any) -> dict[str, Any]:
    """An unstreamed reply with one call."""
    text = json.dumps(arguments)
    match mode:
        case "json":
            prose = json.dumps({"tool": "odd", "params": arguments})
        case "xml":
            values = "".join(
                f"<param:{key}>{value}</param:{key}>" for key, value in arguments.items()
            )
            prose = f"<tool:odd>{values}</tool:odd>"
        case _:
            prose = ""
    match name:
        case "anthropic":
            blocks: list[Any] = [{"type": "tool_use", "id": "a", "name": "odd", "input": arguments}]
            said = [{"type": "text", "text": prose}] if prose else blocks
            return {"content": said, "stop_reason": "end_turn"}
        case "chat":
            call = {"id": "a", "type": "function", "function": {"name": "odd", "arguments": text}}
            message = {"content": prose} if prose else {"tool_calls": [call]}
            return {"choices": [{"message": message, "finish_reason": "stop"}]}
        case _:
            item = {"type": "function_call", "call_id": "a", "name": "odd", "arguments": text}
            return {
                "output": [{"type": "message", "content": [{"text": prose}]} if prose else item]
            }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FORMS)
@examples(8)
@given(names=NAMES)
def test_a_call_returns_with_the_servers_names(name: str, mode: Any, names: set[str]) -> None:
    asked = request(FORMS[name], mode, *names)
    wires = wire_parameters(asked.catalogue.tools[0][1])
    arguments = {wires.get(own, own): "x" for own in sorted(names)}
    reader = FORMATS[name].reader(asked)
    events = [
        event
        for raw in FORMATS[name].unstreamed(reply(name, arguments, mode))
        for event in reader.feed(raw)
    ]
    if not reader.is_over:
        events += reader.end()
    calls = [event.call for event in events if isinstance(event, Call)]
    assert [json.loads(call.arguments) for call in calls] == [dict.fromkeys(sorted(names), "x")]


def chat(arguments: str) -> str:
    call = json.dumps(
        {"id": "a", "type": "function", "function": {"name": "odd", "arguments": arguments}}
    )
    return (
        f"\U0001f4ac: hello\n\n\U0001f916:\n\n❓:[ya] `{call}`\n\n\U0001f6e0\ufe0f: "
        "[odd][a]\n\n`well`\n"
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FORMS)
def test_tools_and_past_calls_are_sent_with_names_that_the_provider_accepts(
    name: str, mode: Any
) -> None:
    odd, long = "file name", "z" * 70
    arguments = json.dumps({odd: "kept name", long: "1"})
    asked = request(FORMS[name], mode, odd, long, text=chat(arguments))
    body = FORMATS[name].body(asked)
    assert FORMS[name].check(json.loads(json.dumps(body))) == []
    text = json.dumps(body, ensure_ascii=False)
    assert "kept name" in text
    wires = wire_parameters(asked.catalogue.tools[0][1])
    # two tools, a call
    assert all(PARAMETER.fullmatch(wire) and text.count(wire) >= 3 for wire in wires.values())
    assert long not in text.replace(f'"title": "{long}"', "").replace(
        f'\\"title\\":\\"{long}\\"', ""
    )
    assert asked.transcript == parse(chat(arguments))


@pytest.mark.parametrize("name", FORMS)
def test_the_same_file_makes_the_same_request_again(name: str) -> None:
    asked = request(FORMS[name], None, "a b", text=chat('{"a b": 1.0}') + "\n\U0001f4ac: and?")
    asked = replace(asked, at=1)
    first, second = (json.dumps(FORMATS[name].body(asked)) for _ in range(2))
    assert first == second
    assert "a_b" in first
