"""Requests that describe tools in words, and replies read from their text, with any provider's
format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley.chat.transcript import (
    Answer,
    Exchange,
    Proposal,
    Question,
    Result,
    Text,
    ToolCall,
    Transcript,
)
from parley.models import anthropic, openai_chat
from parley.models.attempts import PATIENCE, USUAL_TEMPERATURE, Preview, TryFailed
from parley.models.events import (
    Call,
    Event,
    Finished,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    Usage,
    Withdrawn,
)
from parley.models.request import Request, TextTools
from parley.models.text_tools.adapter import text_decoder, text_request
from parley.models.text_tools.prompt import corrections, tool_prompt
from parley.models.text_tools.template import builtin_templates, load_templates, template_for
from parley.settings.values import TEXT_TOOLS_MAX_TOKENS
from tests.defaults import attempts_with, text_tools
from tests.text_calls_corpus import TOOLS

CHAT = Transcript(
    (
        Exchange(
            Question((Text("the price of google?"),)),
            (
                Answer(
                    "Demo",
                    (
                        Text("I look."),
                        Proposal(
                            ToolCall("call_1", "web_search", '{"query":"google"}', 0),
                            "ya",
                            Result("ok", '{"price":911}'),
                        ),
                        Proposal(
                            ToolCall("call_2", "read_file", '{"path":"x"}', 1),
                            "yn",
                            Result("refused", "no\n```js"),
                        ),
                    ),
                ),
            ),
        ),
    )
)


def ask(text_tools: TextTools, **further: Any) -> Request:
    return Request(
        CHAT, 0, "ollama", "tiny", "Be brief.", catalogue=TOOLS, text_tools=text_tools, **further
    )


JSON, XML, AUTO = text_tools("json"), text_tools("xml"), text_tools("auto")


def messages(request: Request) -> list[tuple[str, str]]:
    body = openai_chat.request_body(text_request(request))
    assert not {"tools", "tool_choice"} & set(body)
    return [(message["role"], message["content"]) for message in body["messages"]]


CALLS = """\
I look.

{"tool": "web_search", "params": {"query":"google"}}
{"tool": "read_file", "params": {"path":"x"}}"""
RESULTS = """\
Tool results:

1. web_search
```
{"price":911}
```

2. read_file failed
````
Error: no
```js
````"""


def test_in_json_the_calls_of_the_history_are_objects_and_the_results_a_message() -> None:
    (_, system), *turns = messages(ask(JSON))
    assert system.startswith("Be brief.\n\n# Calling tools")
    assert turns == [("user", "the price of google?"), ("assistant", CALLS), ("user", RESULTS)]


def test_in_xml_each_past_call_has_its_own_reply() -> None:
    _, *turns = messages(ask(XML))
    assert turns == [
        ("user", "the price of google?"),
        (
            "assistant",
            "I look.\n\n<tool:web_search>\n<param:query>google</param:query>\n</tool:web_search>",
        ),
        ("user", 'Tool results:\n\n1. web_search\n```\n{"price":911}\n```'),
        ("assistant", "<tool:read_file>\n<param:path>x</param:path>\n</tool:read_file>"),
        ("user", "Tool results:\n\n1. read_file failed\n````\nError: no\n```js\n````"),
    ]
    assert len(messages(ask(replace(XML, filter="unlimited")))) == 4


def test_auto_uses_the_providers_own_tools() -> None:
    request = ask(AUTO)
    assert text_request(request) is request
    assert len(openai_chat.request_body(request)["tools"]) == 3


def test_with_tools_off_nothing_is_offered_but_the_history_is_explained() -> None:
    (_, system), *_ = messages(ask(JSON, tools_on=False))
    assert (
        system
        == "Be brief.\n\nNo tool can be called any more. Answer in plain words with what you have."
    )


def test_without_tools_and_calls_the_text_does_not_mention_them() -> None:
    request = replace(
        ask(JSON), transcript=Transcript((Exchange(Question((Text("hi"),))),)), tools_on=False
    )
    assert messages(request) == [("system", "Be brief."), ("user", "hi")]


def test_errors_from_earlier_tries_are_at_the_end() -> None:
    request = ask(replace(JSON, errors=("Invalid JSON", "Missing required parameter 'path'")))
    assert messages(request)[-1][1].endswith(
        "\n\nIMPORTANT: Previous attempts failed with these errors:\n"
        "Attempt 1: Invalid JSON\n"
        "Attempt 2: Missing required parameter 'path'\n"
        "\n"
        "Please correct these issues in your response. Ensure:\n"
        "1. Tool calls use valid JSON format\n"
        "2. Parameter names match the schema exactly\n"
        "3. Required parameters are not missing"
    )
    assert "1. Tool calls use the XML format exactly\n" in corrections(replace(XML, errors=("x",)))


@pytest.mark.parametrize(
    ("limit", "bound"), [(None, TEXT_TOOLS_MAX_TOKENS), (99, 99), (9000, TEXT_TOOLS_MAX_TOKENS)]
)
def test_tokens_are_limited(limit: int | None, bound: int) -> None:
    assert text_request(ask(JSON, max_tokens=limit)).max_tokens == bound


# --- Replies --------------------------------------------------------------------------------------


def chunk(content: str = "", **further: Any) -> Mapping[str, Any]:
    return {"choices": [{"delta": {"content": content}} | further]}


def events_of(
    text_tools: TextTools, *pieces: str, finish: str = "stop", **further: Any
) -> list[Event]:
    request = ask(text_tools, **further)
    decoder = text_decoder(openai_chat.Decoder("ollama", "tiny"), request)
    events = [event for piece in pieces for event in decoder.feed(chunk(piece))]
    events += decoder.feed({"usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    return events + decoder.feed(chunk(finish_reason=finish)) + decoder.end()


def call(index: int, name: str, arguments: str) -> Call:
    return Call(ToolCall(f"call_p{index + 1}", name, arguments, index))


def test_calls_in_json_come_after_the_text_like_a_providers_own() -> None:
    assert events_of(
        JSON, 'I look. {"tool": "web_search", "pa', 'rams": {"query": "x"}}\nand {"tool": "edit"}'
    ) == [
        TextDelta("I look. "),
        TextDelta("\nand "),
        Usage(3, 2),
        call(0, "web_search", '{"query": "x"}'),
        call(1, "edit", "{}"),
        Finished("tool_calls"),
    ]


def test_a_plain_answer_is_not_a_failure() -> None:
    assert events_of(JSON, "42.") == [TextDelta("42."), Usage(3, 2), Finished("complete")]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            '{"tool": "web_search", "params": {"q',
            'Invalid JSON format - expected {"tool": "name", "params": {...}}',
        ),
        ('{"tool": "read_file", "params": {}}', "Missing required parameter 'path'"),
        (
            '{"tool": "read_file", "params": {"path": 1}}',
            "Parameter 'path': expected string, got 1 (integer)",
        ),
    ],
)
def test_a_reply_that_tries_and_fails_is_a_failed_try(text: str, error: str) -> None:
    with pytest.raises(TryFailed) as failed:
        events_of(JSON, "So: ", text)
    assert str(failed.value) == error
    assert failed.value.text == f"So: {text}"


def test_the_text_of_a_reply_cut_at_its_length_stays() -> None:
    assert events_of(JSON, 'So: {"tool": "web_search", "pa', finish="length") == [
        TextDelta("So: "),
        Usage(3, 2),
        Finished("length"),
    ]


def test_in_xml_an_invalid_call_is_answered_in_the_file() -> None:
    events = events_of(XML, "<tool:read_file></tool:read_file>")
    assert events[-2:] == [call(0, "read_file", "{}"), Finished("tool_calls")]


def test_in_xml_a_broken_block_is_a_failed_try() -> None:
    with pytest.raises(TryFailed, match="stands outside of a tool"):
        events_of(XML, "<param:path>x</param:path>")


def test_in_xml_thoughts_are_thinking() -> None:
    events = events_of(XML, "So. <thinking>hm</thinking> Yes.")
    assert events[:4] == [TextDelta("So. "), ThinkingDelta("hm"), ThinkingEnd(), TextDelta("Yes.")]


def test_in_xml_the_reply_ends_successfully_at_the_limit() -> None:
    decoder = text_decoder(anthropic.Decoder("anthropic", "claude"), ask(XML))
    one = "<tool:web_search><param:query>x</param:query></tool:web_search>"
    events = decoder.feed({"type": "message_start", "message": {"usage": {"input_tokens": 7}}})
    decoder.feed(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    )
    for piece in ("Look: ", one, f"\n{one}", "never read"):
        delta = {"type": "text_delta", "text": piece}
        events += decoder.feed({"type": "content_block_delta", "index": 0, "delta": delta})
    assert events == [
        Usage(7),
        TextDelta("Look: "),
        call(0, "web_search", '{"query": "x"}'),
        Finished("tool_calls"),
    ]
    assert decoder.wants_no_more


def test_without_offered_tools_the_text_stays_unchanged() -> None:
    assert events_of(JSON, '{"tool": "edit"}', tools_on=False)[0] == TextDelta('{"tool": "edit"}')
    assert events_of(AUTO, '{"tool": "edit"}')[0] == TextDelta('{"tool": "edit"}')


# --- Tries ----------------------------------------------------------------------------------------


def test_each_try_has_a_lower_temperature_and_waits_longer() -> None:
    attempts, temperatures, delays = attempts_with(), list[float | None](), list[float]()
    for number in range(4):
        temperatures.append(attempts.temperature(0.25))
        attempts = attempts.after(f"error {number}")
        delays.append(attempts.delay_s(0.5))
    assert temperatures == [0.25, 0.15, 0.05, 0.0]
    assert delays == [1.0, 2.0, 4.0, 8.0]
    assert (attempts.delay_s(0), attempts.delay_s(1)) == (6.0, 10.0)
    assert attempts.is_exhausted
    assert not attempts_with(errors=("a", "b", "c")).is_exhausted
    assert attempts_with(max_retries=0, errors=("a",)).is_exhausted


def test_an_unset_temperature_is_first_left_to_the_model() -> None:
    assert attempts_with().temperature(None) is None
    assert attempts_with(errors=("a",)).temperature(None) == round(USUAL_TEMPERATURE - 0.1, 3)


def preview_of(*turns: Event, patience: int | None = PATIENCE, fails: bool = False) -> list[Event]:
    """The shown events of a try with these events."""
    showing = Preview(patience)
    events = [preview_of for event in turns for preview_of in showing.feed(event)]
    return [*events, *showing.failed()] if fails else events


LONG = TextDelta("a" * (PATIENCE + 1))
LOOK = call(0, "web_search", "{}")
END = Finished("complete")


def test_no_part_of_a_short_failed_try_is_shown() -> None:
    assert preview_of(TextDelta("bad"), fails=True) == []
    assert preview_of(TextDelta("good"), LOOK, END) == [TextDelta("good"), LOOK, END]


def test_a_long_answer_is_shown_while_it_arrives() -> None:
    assert preview_of(TextDelta("a"), LONG) == [TextDelta("a"), LONG]


def test_the_shown_part_of_a_long_failed_try_is_withdrawn() -> None:
    assert preview_of(LONG, TextDelta("b"), fails=True) == [LONG, TextDelta("b"), Withdrawn()]


def test_without_patience_nothing_is_ever_withdrawn() -> None:
    assert preview_of(LONG, LONG, fails=True, patience=None) == []
    assert preview_of(LONG, END, patience=None) == [LONG, END]


# --- Templates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("llama3.1:8b", "llama3.1"),
        ("meta-llama/Llama-3.1-70B-Instruct", "llama3.1"),
        ("mistral:7b", "mistral"),
        ("qwen2.5-coder:32b", "qwen2.5-coder"),
        ("qwen2.5", "default"),
        ("", "default"),
    ],
)
def test_a_model_has_its_familys_template(model: str, name: str) -> None:
    assert template_for(model, builtin_templates()).name == name


@pytest.mark.parametrize("template", builtin_templates(), ids=lambda template: template.name)
def test_every_template_shows_tools_syntax_and_example(template: Any) -> None:
    prompt = tool_prompt(text_tools("json", template), TOOLS)
    assert '{"tool": "name", "params": {...}}' in prompt
    assert all(name in prompt for name in TOOLS.names())
    assert "$" not in prompt
    assert "<tool:name>" in tool_prompt(text_tools("xml", template), TOOLS)


def test_code_templates_show_tools_as_functions() -> None:
    prompt = tool_prompt(
        text_tools("json", template_for("qwen2.5-coder", builtin_templates())), TOOLS
    )
    assert "def web_search(query: str, limit: int = ...):\n    # To web_search." in prompt


def test_the_prompt_is_the_same_for_the_same_tools() -> None:
    template = builtin_templates()[-1]
    lines = tool_prompt(text_tools("json", template), TOOLS).split("\n")
    assert json.loads(lines[6]) == {
        "name": "web_search",
        "description": "To web_search.",
        "parameters": TOOLS.tools[2][1].input_schema,
    }
    assert '{"tool": "edit", "params": {"paths": []}}' in lines


def test_a_user_can_add_templates(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('models = ["mine*"]\nnative = false\njson = "Use $tools"\n')
    (tmp_path / "wrong.toml").write_text("stile = 1\n")
    templates, problems = load_templates(str(tmp_path))
    mine = template_for("Mine:1b", templates)
    assert (mine.name, mine.native, mine.json) == ("mine", False, "Use $tools")
    assert mine.xml == builtin_templates()[-1].xml
    assert len(problems) == 1
    assert "wrong.toml: stile: templates have no such field" in problems[0]
    assert load_templates(str(tmp_path / "none.toml"))[0] == builtin_templates()
