"""A chat as a line of messages, as in the providers' training files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.conversion.exports.message_json import message_line, message_problems
from tests.test_transcripts import corpus

CHAT = """---
system_prompt: Be brief.
system_prompt+: Be kind.
---

preamble

💬: What is it?
🔒: my own note

🤖:[Claude]

🧠:[anthropic:m sig]
> I should look.

I look.

❓:[ya] `{"index":0,"id":"c","function":{"name":"web search","arguments":"{\\"n\\": 1.0}"}}`

🛠️: [web_search][c] [1.2 MB](x.assets/DIGEST.txt)

`the head`

❓:[yn] `{"index":1,"id":"d","function":{"name":"rm","arguments":"not JSON"}}`

It is 3.
""".replace("DIGEST", "0" * 64)


def line(chat: str, option: str) -> Any:
    return json.loads(message_line(parse(chat), option))


def test_a_chat_becomes_chat_completions_messages() -> None:
    calls = [
        {
            "id": "c",
            "type": "function",
            "function": {"name": "web_search", "arguments": '{"n": 1.0}'},
        },
        {"id": "d", "type": "function", "function": {"name": "rm", "arguments": "not JSON"}},
    ]
    assert line(CHAT, "openai") == {
        "messages": [
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            {"role": "user", "content": "What is it?"},
            {"role": "assistant", "content": "I look.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c", "content": "the head"},
            {"role": "tool", "tool_call_id": "d", "content": "Error: The user declined this call."},
            {"role": "assistant", "content": "It is 3."},
        ]
    }


def test_a_chat_becomes_messages_api_messages() -> None:
    said = [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c", "name": "web_search", "input": {"n": 1.0}},
        {"type": "tool_use", "id": "d", "name": "rm", "input": {"_raw": "not JSON"}},
    ]
    declined = "The user declined this call."
    results = [
        {"type": "tool_result", "tool_use_id": "c", "content": "the head"},
        {"type": "tool_result", "tool_use_id": "d", "content": declined, "is_error": True},
    ]
    assert line(CHAT, "anthropic") == {
        "system": "Be brief.\n\nBe kind.",
        "messages": [
            {"role": "user", "content": "What is it?"},
            {"role": "assistant", "content": said},
            {"role": "user", "content": results},
            {"role": "assistant", "content": "It is 3."},
        ],
    }


WAITING = """💬: What is it?

🤖:

Two.

❓:[ya] `{"index":0,"id":"c","function":{"name":"a","arguments":"{}"}}`

🛠️: [a][c]

`one`

❓:MARK `{"index":1,"id":"d","function":{"name":"b","arguments":"{}"}}`
"""


@pytest.mark.parametrize("option", ["openai", "anthropic"])
@pytest.mark.parametrize("mark", ["", "[ya]"])
def test_a_round_with_waiting_calls_is_left_out_with_a_note(option: str, mark: str) -> None:
    waiting = "the last calls have no results yet, so the reply that made them is left out"
    chat = WAITING.replace("MARK", mark)
    asked = line("💬: What is it?\n", option)
    assert line(chat, option) == line(chat + "\n💬: \n", option) == asked
    assert list(message_problems(parse(chat))) == [
        waiting,
        *message_problems(parse("💬: What is it?\n")),
    ]
    before = "💬: a\n\n🤖:\n\nI look.\n\n" + CHAT[CHAT.index("❓:[ya]") : CHAT.index("It is 3.")]
    waits = chat[chat.index("Two.") :]
    assert line(before + waits, option) == line(before, option)
    assert waiting in message_problems(parse(before + waits))
    assert waiting not in message_problems(parse(before))  # a declined call is decided
    assert waiting not in message_problems(parse(chat + "\n💬: what now?\n"))


@pytest.mark.parametrize("option", ["openai", "anthropic"])
def test_an_empty_question_and_a_begun_answer_are_not_messages(option: str) -> None:
    asked = line("💬: a\n\n🤖:\n\nb\n", option)
    assert line("💬: a\n\n🤖:\n\nb\n\n🤖:[X]\n\n💬: \n\n🤖:\n", option) == asked
    assert line("💬: a\n\n🤖:\n\nb\n\n💬: \n\n🔒: note\n", option) == asked
    assert (
        message_line(parse("# heading\n"), option)
        == message_line(parse("💬: \n\n🤖:\n"), option)
        == ""
    )


def test_a_long_chat_is_complete() -> None:
    chat = "".join(
        f"💬: {number} {'x' * 40_000}\n\n🤖:\n\nb\n\n📝: short\n\n" for number in range(60)
    )
    assert len(line(chat, "anthropic")["messages"]) == 120
    assert len(message_line(parse(chat), "openai")) > 60 * 40_000


def test_content_that_a_line_cannot_hold_is_named() -> None:
    picture = f"![image/png 2 B](x.assets/{'0' * 64}.png)"
    assert list(message_problems(parse(CHAT))) == [
        "only the beginning of long results is included, as in the file"
    ]
    assert list(message_problems(parse(f"💬:\n\n{picture}\n\nwhat?\n"))) == [
        "pictures are replaced with text",
        "it ends with a question, but training data must end with an answer",
    ]
    assert (
        line(f"💬:\n\n{picture}\n", "openai")["messages"][0]["content"] == "[image image/png, 2 B]"
    )
    assert list(message_problems(parse("💬: a\n\n🤖:\n\nb\n\n💬: \n"))) == []


ASKS = 'and\n\n❓: `{"index":0,"id":"c","function":{"name":"a","arguments":"{}"}}`\n\n'


@pytest.mark.parametrize(
    "more", ["💬:\n\n" * 2_000, "🤖:[X]\n\n" * 2_000, ASKS * 1_200], ids=["💬:", "🤖:", "❓:"]
)
def test_many_unfinished_parts_are_left_out(more: str) -> None:
    chat = parse(f"💬: a\n\n🤖:\n\n{more}")
    assert message_line(chat, "openai") == '{"messages": [{"role": "user", "content": "a"}]}'
    assert (
        list(message_problems(chat))[-1]
        == "it ends with a question, but training data must end with an answer"
    )


def test_an_agents_calls_are_calls_and_a_providers_calls_are_left_out_with_a_note() -> None:
    worked = json.loads(message_line(corpus("agent_calls"), "openai"))["messages"]
    assert [message["role"] for message in worked] == [
        *("user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user")
    ]
    searched = corpus("provider_search")
    assert [m["role"] for m in json.loads(message_line(searched, "anthropic"))["messages"]] == [
        *("user", "assistant", "user")
    ]
    left_out = "calls that a provider ran are left out"
    ends = "it ends with a question, but training data must end with an answer"
    assert list(message_problems(searched)) == [left_out, ends]
    only = parse(CALL_OF_A_PROVIDER)
    assert json.loads(message_line(only, "openai"))["messages"] == [
        {"role": "user", "content": "q"}
    ]
    assert list(message_problems(only)) == [left_out, ends]


CALL_OF_A_PROVIDER = (
    '💬: q\n\n🤖:[A]\n\n❓:[provider] `{"id":"s","function":{"name":"f","arguments":"{}"}}`\n'
)
