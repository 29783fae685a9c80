"""Other programs' chats as Parley chats: the corpus `corpus/NAME`, and invalid files.

`NAME.chats` contains the chats and then their losses. A new case needs no code: `PARLEY_EXPECT=1`
in the environment rewrites these files, to be read and committed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Proposal, Text
from parley.chat.writer import render
from parley.conversion.imports.import_formats import IMPORT_FORMATS, imported_chats

CASES = sorted(p for p in (Path(__file__).parent / "corpus").iterdir() if p.suffix != ".chats")
NESTED = '{"messages": [{"role": "user", "content": ' + "[" * 100_000
CALL = '💬: a\n\n🤖:\n\n❓: `{"id":"c","function":{"name":"x","arguments":"{}"}}`\n'
WRONG = {
    "": "it is not JSON, and no line begins with",
    "a letter\n\nDear you": "it is not JSON, and no line begins with",
    "{": "invalid JSON: ",
    "[[link]](a) and more": "invalid JSON: ",
    NESTED: "nested too deeply",
    NESTED + "]" * 100_000 + "}]}": "nested too deeply",
    "{}": "expected an array of messages",
    "[]": "expected an array of messages",
    "[1]": "expected an array of messages",
    '{"messages": []}': "it contains no messages",
    '{"messages": 1}': "expected an array of messages",
    '{"messages": [1]}': "message 1: expected an object",
    '[{"role": 1}]': "message 1: expected an object",
    '[{"role": "user", "content": "a"}, {"role": "narrator"}]': 'message 2: expected "role" to be one of',
    '[{"role": "user", "content": 1}]': "message 1: expected a string or a list of parts",
    '[{"role": "user", "content": [1]}]': "message 1: expected objects",
    '[{"role": "assistant", "tool_calls": 1}]': "message 1: expected a list",
    '[{"role": "assistant", "tool_calls": [{"function": {"name": 1}}]}]': (
        "message 1: expected a call of the form"
    ),
    '[{"role": "assistant", "content": [{"type": "tool_use"}]}]': 'message 1: expected a "name"',
    '[{"role": "user", "role": "system"}]': "a key appears twice",
    '[{"role": "user", "content": NaN}]': "NaN is not JSON",
    '{"messages": []}\n{"messages": [}': "line 2 is not valid JSON",
    '{"messages": []}\n{"other": 1}': 'expected only objects with "messages"',
    (
        '{"messages": [{"role": "user", "content": "a"}]}\n{"messages": [{"role": "x"}]}'
    ): "chat 2: message 1: ",
    '[{"mapping": {}}]': "it contains no messages",
    '[{"chat_messages": []}]': "it contains no messages",
    '[{"conversation_id": "c", "prompt": "", "response": null}]': "it contains no messages",
    CALL: "already a Parley chat",
    "💬: a\n\\🤖: b\n": "already a Parley chat",
}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_another_programs_chat_becomes_a_valid_chat(path: Path) -> None:
    made = imported_chats(path.read_text(encoding="utf-8"))
    shown = "\n".join([chat.text + "".join(f"- {loss}\n" for loss in chat.losses) for chat in made])
    expected = path.with_suffix(path.suffix + ".chats")
    if os.environ.get("PARLEY_EXPECT"):
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text(encoding="utf-8")
    for chat in made:
        transcript = parse(chat.text)
        assert [problem for problem in transcript.problems if problem.severity == "error"] == []
        assert render(transcript) == chat.text


def test_the_corpus_covers_each_format() -> None:
    assert {path.name.partition("_")[0].partition(".")[0] for path in CASES} == {
        name.partition(".")[0] for name in IMPORT_FORMATS
    }


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:40])
def test_unreadable_content_is_reported_with_its_place(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        imported_chats(text)
    assert WRONG[text] in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_named_format_is_used() -> None:
    (chat,) = imported_chats("💬: a\n\n🤖:\n\n❓: `{}`\n\n🔧: x id=y\n", "gp")
    assert "\n\\❓: `{}`\n\n🔧: x id=y\n" in chat.text
    with pytest.raises(
        ValueError, match='message 1: expected "role" to be one of system, user, assistant'
    ):
        imported_chats('[{"role": "developer", "content": "a"}]', "anthropic")
    with pytest.raises(ValueError, match="invalid JSON"):
        imported_chats("💬: a\n", "openai")
    with pytest.raises(ValueError, match=r"^this is not a ChatGPT export, conversations.json$"):
        imported_chats('{"messages": []}', "chatgpt")


def test_json_with_a_byte_order_mark_is_read_as_it_is_recognized() -> None:
    line = '{"messages": [{"role": "user", "content": "a"}]}'
    for text in (f"\ufeff{line}", f"\ufeff{line}\n\ufeff{line}\n", f"\ufeff \n{line}\n{line}"):
        assert {chat.text for chat in imported_chats(text)} == {"💬: a\n"}


def test_content_next_to_results_in_a_tools_message_is_read() -> None:
    beside = [
        {"type": "tool_result", "tool_use_id": "c", "content": "b"},
        {"type": "text", "text": "beside"},
        {"type": "chart"},
    ]
    asked = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "x"}}]}
    (chat,) = imported_chats(json.dumps([asked, {"role": "tool", "content": beside}]), "openai")
    first, second = parse(chat.text).exchanges
    (call,) = first.answers[0].proposals
    assert (call.result and call.result.body, second.question and second.question.text) == (
        "b",
        "beside\n\n[chart]",
    )
    assert chat.losses == ("parts of type chart, which were replaced with text",)


def test_text_on_both_sides_of_a_call_stays_separate_and_comes_before_its_result() -> None:
    said = [
        {"type": "text", "text": "before"},
        {"type": "tool_use", "id": "c", "name": "x", "input": {}},
        {"type": "text", "text": "after"},
    ]
    answered = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r"}],
    }
    (chat,) = imported_chats(
        json.dumps([{"role": "assistant", "content": said}, answered]), "anthropic"
    )
    words, call = parse(chat.text).exchanges[0].answers[0].segments
    assert isinstance(words, Text)
    assert words.text == "before\n\nafter"
    assert isinstance(call, Proposal)
    assert call.result
    assert call.result.body == "r"


def test_text_with_markers_nul_or_half_a_character_stays_text() -> None:
    text = "💬: a\n\0\n🔒: b\n---\n\\❓:[yA] `{}`\r\n\ud800"
    said = [{"role": role, "content": text} for role in ("user", "assistant", "user")]
    calls = [{"id": "\ud800\0", "function": {"name": text, "arguments": text}}]
    asked = {"role": "assistant", "tool_calls": calls}
    answered = {"role": "tool", "tool_call_id": "\ud800\0", "content": text}
    (chat,) = imported_chats(
        json.dumps([{"role": "system", "content": text}, *said, asked, answered])
    )
    first, second = parse(chat.text).exchanges
    words = text.replace("\0", "␀").replace("\ud800", "\ufffd")
    assert [part.text for part in (first.question.parts if first.question else ())] == [words]
    assert [getattr(segment, "text", None) for segment in first.answers[0].segments] == [words]
    (call,) = second.answers[0].proposals
    assert (call.call.name, call.call.arguments, call.result and call.result.body) == (
        words,
        words,
        words,
    )


def test_importing_megabytes_takes_linear_time() -> None:
    calls = [{"id": f"c{n}", "function": {"name": "x", "arguments": "{}"}} for n in range(5_000)]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": "y"} for n in range(5_000)]
    odd = [{"role": "assistant", "content": [{"type": f"t{n}"}]} for n in range(1000)]
    (chat,) = imported_chats(
        json.dumps([{"role": "assistant", "tool_calls": calls}, *results, *odd])
    )
    assert chat.text.count("🛠️:") == 5_000
    assert len(chat.losses) <= 20
    fences = "".join("```a\n🧠: b\n🔧: c id=d\n" for _ in range(5_000))
    assert len(imported_chats(f"💬: a\n\n🤖:\n\n{fences}", "parley.nvim")[0].text) > 100_000
