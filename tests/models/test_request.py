"""Request bodies: the original example in every format, and the cases in which formats differ."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from parley.chat.options import ThinkingSettings
from parley.chat.reader import parse
from parley.chat.transcript import Exchange, Question, Text, Transcript
from parley.models import anthropic, openai_chat, openai_responses
from parley.models.encode import arguments_object, arguments_text, wire_name
from parley.models.quirks import COMPATIBLE, Quirk
from parley.models.request import Request
from parley.tools.catalogue import Catalogue, Tool
from tests.formats import CLAUDE, GEMINI, OLLAMA, OPENAI, RESPONSES, TOOLS, WireFormat

TRANSCRIPTS = Path(__file__).parent.parent / "transcripts"

GOOGLE = '{"query":"google stock price"}'
MICROSOFT = '{"query":"microsoft stock price"}'
RESULT = [
    '{"matches":[{"google stock GOOGL price is $911 as of today" ... ]}',
    '{"matches":[{"microsoft stock MSFT price is $544 as of today" ... ]}',
]
QUESTION_TEXT = "can you find the latest stock price of google and microsoft?"
REPLY = "Should, I need to search the web."
ANSWER = (
    "Ok, I found the price of GOOGL is $911 and MSFT is $544 as of today. Do you want "
    "something else?"
)


def original(name: str, further: str = "") -> Transcript:
    return parse((TRANSCRIPTS / f"{name}.md").read_text(encoding="utf-8") + further)


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_the_finished_original_is_sent_to_openai() -> None:
    request = OPENAI.ask(original("original_finished", "and apple?\n"), 1, system="")
    assert openai_chat.request_body(request)["messages"] == [
        {"role": "user", "content": QUESTION_TEXT},
        {
            "role": "assistant",
            "content": REPLY,
            "tool_calls": [
                call("call_1", "repo_search", GOOGLE),
                call("call_2", "web_search", MICROSOFT),
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": RESULT[0]},
        {"role": "tool", "tool_call_id": "call_2", "content": RESULT[1]},
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": "and apple?"},
    ]


def test_the_finished_original_is_sent_to_a_compatible_server_with_names() -> None:
    messages = openai_chat.request_body(OLLAMA.ask(original("original_finished"), 0))["messages"]
    tools = [message for message in messages if message["role"] == "tool"]
    assert [tool["name"] for tool in tools] == ["repo_search", "web_search"]


def test_the_finished_original_is_sent_to_anthropic() -> None:
    body = anthropic.request_body(
        CLAUDE.ask(original("original_finished", "and apple?\n"), 1, system="")
    )
    cached = {"cache_control": {"type": "ephemeral"}}
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": QUESTION_TEXT}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": REPLY},
                {
                    "type": "tool_use",
                    "id": "call_1",
                    "name": "repo_search",
                    "input": json.loads(GOOGLE),
                },
                {
                    "type": "tool_use",
                    "id": "call_2",
                    "name": "web_search",
                    "input": json.loads(MICROSOFT),
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": RESULT[0]},
                {"type": "tool_result", "tool_use_id": "call_2", "content": RESULT[1]} | cached,
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
        {"role": "user", "content": [{"type": "text", "text": "and apple?"} | cached]},
    ]


def test_the_finished_original_is_sent_to_responses() -> None:
    request = RESPONSES.ask(original("original_finished", "and apple?\n"), 1, system="")
    one = {"type": "function_call", "call_id": "call_1", "name": "repo_search", "arguments": GOOGLE}
    other = {
        "type": "function_call",
        "call_id": "call_2",
        "name": "web_search",
        "arguments": MICROSOFT,
    }
    assert openai_responses.request_body(request)["input"] == [
        {"role": "user", "content": QUESTION_TEXT},
        {"role": "assistant", "content": REPLY, "phase": "commentary"},
        one,
        other,
        {"type": "function_call_output", "call_id": "call_1", "output": RESULT[0]},
        {"type": "function_call_output", "call_id": "call_2", "output": RESULT[1]},
        {"role": "assistant", "content": ANSWER, "phase": "final_answer"},
        {"role": "user", "content": "and apple?"},
    ]


@pytest.mark.parametrize("wire", [CLAUDE, OPENAI, RESPONSES], ids=str)
def test_the_waiting_original_is_sent_with_placeholders(wire: WireFormat) -> None:
    body = wire.body(wire.ask(original("original_waiting"), 0))
    refused = "The user did not approve this call."
    results = [(each[2], each[3]) for each in wire.said(body) if each[0] == "result"]
    assert results == [(refused, "failed"), (refused, "failed")]
    assert wire.check(body) == []


QUESTION = Transcript((Exchange(Question((Text("Hi"),))),))


def body(adapter: ModuleType, provider: str, model: str, **further: Any) -> dict[str, Any]:
    body: dict[str, Any] = adapter.request_body(Request(QUESTION, 0, provider, model, **further))
    return body


def test_a_chats_first_request_has_only_what_it_needs() -> None:
    assert body(openai_chat, "ollama", "qwen3", quirks=COMPATIBLE) == {
        "model": "qwen3",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("provider", "model", "quirks", "field"),
    [
        ("openai", "gpt-4.1", (), "max_completion_tokens"),
        ("openai", "o3", (), "max_completion_tokens"),
        ("proxy", "gpt-5-mini", COMPATIBLE, "max_completion_tokens"),
        ("ollama", "qwen3", COMPATIBLE, "max_tokens"),
        ("gemini", "gemini-3-pro", COMPATIBLE, "max_tokens"),
    ],
)
def test_max_tokens_has_the_name_that_the_host_knows(
    provider: str, model: str, quirks: tuple[Quirk, ...], field: str
) -> None:
    fields = body(openai_chat, provider, model, quirks=quirks, max_tokens=99)
    assert {key: value for key, value in fields.items() if "tokens" in key} == {field: 99}


def test_temperature_is_sent_only_to_models_that_accept_it() -> None:
    assert body(openai_chat, "openai", "gpt-4.1", temperature=0.2)["temperature"] == 0.2
    assert body(openai_responses, "openai", "gpt-4.1", temperature=0.2)["temperature"] == 0.2
    assert "temperature" not in body(openai_chat, "openai", "gpt-5.2", temperature=0.2)
    assert "temperature" not in body(openai_responses, "openai", "gpt-5.4", temperature=0.2)
    assert "temperature" not in body(
        anthropic, "anthropic", "claude-3-5-haiku-latest", temperature=0.2
    )


def test_newer_models_get_tools_without_effort_and_a_plain_question_with_it() -> None:
    settings = ThinkingSettings(effort="high")
    assert body(openai_chat, "openai", "gpt-5.4", thinking=settings)["reasoning_effort"] == "high"
    with_tools = body(openai_chat, "openai", "gpt-5.4", thinking=settings, catalogue=TOOLS)
    assert with_tools["reasoning_effort"] == "none"
    older = body(openai_chat, "openai", "gpt-5.2", thinking=settings, catalogue=TOOLS)
    assert older["reasoning_effort"] == "high"


def test_responses_are_stateless() -> None:
    sent_body = body(
        openai_responses, "openai", "gpt-5.4", system="Be brief.", max_tokens=5, catalogue=TOOLS
    )
    assert sent_body["store"] is False
    assert sent_body["include"] == ["reasoning.encrypted_content"]
    assert sent_body["instructions"] == "Be brief."
    assert sent_body["max_output_tokens"] == 16
    assert [tool["strict"] for tool in sent_body["tools"]] == [False, False]
    assert "include" not in body(openai_responses, "openai", "gpt-4.1")


def test_at_most_four_parts_are_marked_for_the_cache() -> None:
    sent_body = anthropic.request_body(CLAUDE.ask(original("original_finished", "and apple?\n"), 1))
    assert json.dumps(sent_body).count("ephemeral") == 4
    assert "cache_control" in sent_body["tools"][-1]
    assert "cache_control" in sent_body["system"][0]


@pytest.mark.parametrize(
    ("may_wait", "quirks", "ttl"),
    [(False, (), None), (True, (), "1h"), (True, COMPATIBLE, None)],
)
def test_the_cache_lasts_an_hour_only_if_calls_may_wait_for_the_user(
    may_wait: bool, quirks: tuple[Quirk, ...], ttl: str | None
) -> None:
    request = CLAUDE.ask(original("original_finished", "and apple?\n"), 1)
    sent_body = anthropic.request_body(replace(request, may_wait=may_wait, quirks=quirks))
    blocks = [block for message in sent_body["messages"] for block in message["content"]]
    marks = [
        block["cache_control"]
        for block in (*sent_body["tools"], *sent_body["system"], *blocks)
        if "cache_control" in block
    ]
    assert [mark.get("ttl") for mark in marks] == [ttl] * 4


GEMINI_LOOP = """💬: look

🤖:
❓:[ya] `{"id":"a","type":"function","function":{"name":"web_search","arguments":"{}"}SIGNED}`
🛠️: [web_search][a]
`x`
❓:[ya] `{"id":"b","index":1,"type":"function","function":{"name":"web_search","arguments":"{}"}}`
🛠️: [web_search][b]
`y`
"""
SIGNED = ',"extra_content":{"google":{"thought_signature":"abc="}}'


def _extras(request: Request) -> list[Any]:
    messages = openai_chat.request_body(request)["messages"]
    return [
        each.get("extra_content") for message in messages for each in message.get("tool_calls", [])
    ]


def test_a_thought_signature_is_sent_back_only_to_gemini() -> None:
    signed = parse(GEMINI_LOOP.replace("SIGNED", SIGNED))
    assert _extras(GEMINI.ask(signed, 0)) == [{"google": {"thought_signature": "abc="}}, None]
    assert _extras(OPENAI.ask(signed, 0)) == [None, None]


def test_gemini_learns_of_other_models_calls_only_in_this_turn() -> None:
    foreign = parse(GEMINI_LOOP.replace("SIGNED", ""))
    skip = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert _extras(GEMINI.ask(foreign, 0)) == [skip, None]
    later = replace(foreign, exchanges=(*foreign.exchanges, *QUESTION.exchanges))
    assert _extras(GEMINI.ask(later, 1)) == [None, None]


THOUGHT_TWICE = """💬: look

🤖:
🧠:[anthropic:claude-sonnet-4-5 sig1]
> First.
🧠:[anthropic:claude-sonnet-4-5 redacted data]
Text.
❓:[ya] `{"id":"a","type":"function","function":{"name":"web_search","arguments":""}}`
🛠️: [web_search][a]
`x`
"""


def test_thinking_is_sent_back_in_the_files_order_before_its_calls() -> None:
    request = Request(parse(THOUGHT_TWICE), 0, "anthropic", "claude-sonnet-4-5", catalogue=TOOLS)
    sent_body = anthropic.request_body(request)
    assert sent_body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "First.", "signature": "sig1"},
        {"type": "redacted_thinking", "data": "data"},
        {"type": "text", "text": "Text."},
        {"type": "tool_use", "id": "a", "name": "web_search", "input": {}},
    ]
    assert sent_body["thinking"]["type"] == "enabled"


@pytest.mark.parametrize("further", [{"keep_thinking": False}, {"model": "claude-sonnet-4-0"}])
def test_in_manual_mode_an_open_loop_without_its_thinking_continues_without_thinking(
    further: dict[str, Any],
) -> None:
    request = Request(parse(THOUGHT_TWICE), 0, "anthropic", "claude-sonnet-4-5", catalogue=TOOLS)
    sent_body = anthropic.request_body(replace(request, **further))
    assert "thinking" not in sent_body
    assert [block["type"] for block in sent_body["messages"][1]["content"]] == ["text", "tool_use"]


def test_calls_of_a_now_empty_tool_list_name_their_tools() -> None:
    request = replace(CLAUDE.ask(original("original_finished"), 0), catalogue=Catalogue())
    sent_body = anthropic.request_body(request)
    assert [tool["name"] for tool in sent_body["tools"]] == ["repo_search", "web_search"]
    assert sent_body["tool_choice"] == {"type": "none"}


def test_broken_characters_in_a_tool_list_are_replaced() -> None:
    catalogue = Catalogue.of(
        [Tool("s", "t", description="a\ud800b", input_schema={"x\udfff": "\0"})]
    )
    for adapter in (anthropic, openai_chat, openai_responses):
        json.dumps(body(adapter, "x", "y", catalogue=catalogue), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        (
            '{"b":1,"a":123456789012345678901234567890}',
            {"b": 1, "a": 123456789012345678901234567890},
        ),
        ('{"a":1.0}', {"a": 1.0}),
        ("null", {"_raw": "null"}),
        ("[1]", {"_raw": "[1]"}),
        ('"{}"', {"_raw": '"{}"'}),
        ('{"a":', {"_raw": '{"a":'}),
        ('{"a":1,"a":2}', {"_raw": '{"a":1,"a":2}'}),
        ('{"a":NaN}', {"_raw": '{"a":NaN}'}),
        ('{"a":1e999}', {"_raw": '{"a":1e999}'}),
        ('{"a":"\ud800"}', {"a": "\ufffd"}),
        ("[" * 5000, {"_raw": "[" * 5000}),
    ],
)
def test_arguments_become_an_object(arguments: str, value: dict[str, Any]) -> None:
    assert arguments_object(arguments) == value
    assert json.loads(arguments_text(arguments, exact=False)) == value


def test_arguments_that_are_an_object_are_sent_as_streamed() -> None:
    streamed = '{ "n": 1.0, "big": 123456789012345678901234567890 }'
    assert arguments_text(streamed, exact=True) == arguments_text(streamed, exact=False) == streamed
    assert arguments_text("[", exact=True) == "["
    assert arguments_text("", exact=True) == "{}"


def test_a_name_is_made_valid_for_the_wire() -> None:
    assert wire_name("web_search") == "web_search"
    assert wire_name("größe/x") == "gr__e_x"
    assert len(wire_name("a" * 100)) == 64
    assert wire_name("a" * 100) != wire_name("a" * 101)
