"""A chat that is exported as messages and imported again has the same content."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.chat.grammar import fit
from parley.chat.history import ModelTurn, Turn, UserTurn, history
from parley.chat.reader import parse, split_lines
from parley.chat.rounds import rounds
from parley.chat.transcript import (
    CHOICES,
    YES,
    Exchange,
    Proposal,
    Question,
    Text,
    Transcript,
    without_blank_edges,
)
from parley.chat.writer import render
from parley.conversion import imported_chats, message_line
from parley.models.encode import arguments_object, wire_name
from tests.examples import examples
from tests.strategies import any_text, lines, marked_files, transcripts

FORMATS = ["openai", "anthropic"]
KEYS = st.sampled_from(
    [
        *(
            "role",
            "content",
            "type",
            "text",
            "name",
            "id",
            "input",
            "arguments",
            "function",
            "tool_calls",
        ),
        *(
            "tools",
            "calls",
            "tool_use_id",
            "tool_call_id",
            "is_error",
            "reasoning",
            "thinking",
            "signature",
        ),
        *(
            "data",
            "_meta",
            "tag",
            "system",
            "title",
            "model",
            "adapter",
            "extra_content",
            "refusal",
        ),
    ]
)
ROLES = st.sampled_from(["user", "assistant", "system", "developer", "tool", "function", "llm"])
TEXTS = (
    any_text
    | st.text()
    | ROLES
    | st.sampled_from(["text", "tool_use", "tool_result", "thinking", "c", "\ud800"])
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
RECORDS = st.builds(
    lambda fields, name: {**fields, **name},
    st.dictionaries(KEYS, VALUES, max_size=2),
    st.dictionaries(st.sampled_from(["type", "name", "function"]), VALUES, min_size=1, max_size=2),
)
"""Parts, calls and similar objects, with arbitrary values in their fields."""
FIELDS = st.fixed_dictionaries(
    {"role": ROLES},
    optional={
        "content": st.lists(RECORDS, min_size=1, max_size=3) | VALUES,
        "tool_calls": st.lists(RECORDS, max_size=2) | VALUES,
        "tools": RECORDS,
    },
)
MESSAGES = st.lists(st.builds(lambda rest, fields: {**rest, **fields}, RECORDS, FIELDS), max_size=5)
MUTE = """💬: a

🤖:

❓: `{"index":0,"id":"c","type":"function","function":{"name":"x","arguments":""}}`

🛠️: [x][c]

`Error: `

❓: `{"index":1,"id":"d","type":"function","function":{"name":"x","arguments":"{\\"_raw\\": \\"{}\\"}"}}`

🛠️: [x][d][error]

```
```
"""


def turns(transcript: Transcript) -> list[Turn]:
    """A chat's content, without unfinished parts and without waiting calls at its end."""
    exchanges = finished(transcript.exchanges)
    return list(history(Transcript(exchanges), len(exchanges) - 1, max_full_exchanges=None))


def finished(exchanges: tuple[Exchange, ...]) -> tuple[Exchange, ...]:
    if not exchanges:
        return ()
    *before, last = exchanges
    if not last.answers:
        asks = last.question is not None and bool(last.question.text.strip())
        return exchanges if asks else finished(tuple(before))
    *answers, answer = last.answers
    whole = rounds(answer)
    if whole and any(map(waits, whole[-1].proposals)):
        rest = replace(answer, segments=tuple(s for reply in whole[:-1] for s in reply.segments))
        return finished((*before, replace(last, answers=(*answers, rest))))
    if any(map(is_said, answer.segments)):
        return exchanges
    return finished(
        (*before, replace(last, question=last.question or Question(), answers=tuple(answers)))
    )


def waits(call: Proposal) -> bool:
    return call.result is None and call.choice not in set(CHOICES) - YES


def is_said(segment: object) -> bool:
    match segment:
        case Proposal(ran_by=ran_by):
            return ran_by != "provider"
        case Text(text=text):
            return bool(text.strip())
        case _:
            return False


def outline(transcript: Transcript, option: str) -> list[Any]:
    """The speakers and their words; adjacent texts of one speaker are joined, as on the wire."""
    lines = list[Any]()
    for turn in turns(transcript):
        who = "user" if isinstance(turn, UserTurn) else "model"
        if turn.text and lines and lines[-1][0] == who:
            lines[-1] = (who, f"{lines[-1][1]}\n\n{turn.text}")
        elif turn.text:
            lines.append((who, turn.text))
        if isinstance(turn, ModelTurn):
            lines += (
                ("call", wire_name(o.call.name), arguments_object(o.call.arguments))
                for o in turn.calls
            )
            lines += (result(o.status != "ok", o.content, option) for o in turn.calls)
    return lines


def result(is_error: bool, content: str, option: str) -> Any:
    if option == "openai":
        return "result", f"Error: {content}" if is_error else content
    return "result", is_error, content


@pytest.mark.parametrize("option", FORMATS)
@examples(30)
@given(transcript=transcripts())
@example(transcript=parse(MUTE))
@example(
    transcript=parse(MUTE.split("❓")[0] + MUTE.split("\n")[4].replace("❓:", "❓:[provider]"))
)
def test_an_exported_chat_that_is_imported_has_the_same_content(
    option: str, transcript: Transcript
) -> None:
    line = message_line(transcript, option)
    assert bool(line) == bool(outline(transcript, option))
    if not line:
        return
    (chat,) = imported_chats(line, option)
    again = parse(chat.text)
    assert outline(again, option) == outline(transcript, option)
    assert message_line(again, option) == line
    assert [problem for problem in again.problems if problem.severity == "error"] == []


@given(
    st.sampled_from([None, None, "openai", "anthropic", "codecompanion"]),
    VALUES | MESSAGES | st.builds(lambda root, said: {**root, "messages": said}, RECORDS, MESSAGES),
)
@example(None, [{"role": "user", "content": [{"type": [], "text": "x"}]}])
def test_any_json_is_refused_or_becomes_a_valid_chat_without_more_turns(
    name: str | None, value: Any
) -> None:
    try:
        made = imported_chats(json.dumps(value), name)
    except ValueError:
        return
    (chat,) = made
    transcript = parse(chat.text)
    assert render(transcript) == chat.text
    assert [problem for problem in transcript.problems if problem.severity == "error"] == []
    messages = value["messages"] if isinstance(value, dict) else value
    assert len(transcript.exchanges) <= len(messages) + 1


SAID = st.text(min_size=1).filter(str.strip) | TEXTS.filter(str.strip)
EXTRAS = st.dictionaries(
    st.sampled_from(["_meta", "tag", "title", "model", "adapter"]), VALUES, max_size=2
)
GOOD = st.builds(
    lambda role, content, extras: {**extras, "role": role, "content": content},
    st.sampled_from(["user", "assistant"]),
    SAID
    | st.lists(SAID, min_size=1, max_size=3).map(
        lambda said: [{"type": "text", "text": t} for t in said]
    ),
    EXTRAS,
)
"""Messages in both formats, with further keys of any content."""


@given(
    st.sampled_from([None, "openai", "anthropic"]),
    st.lists(GOOD, min_size=1, max_size=5),
    st.booleans(),
)
def test_messages_with_any_further_keys_become_a_valid_chat_without_more_turns(
    name: str | None, said: list[Any], in_object: bool
) -> None:
    (chat,) = imported_chats(json.dumps({"messages": said} if in_object else said), name)
    transcript = parse(chat.text)
    assert render(transcript) == chat.text
    assert [problem for problem in transcript.problems if problem.severity == "error"] == []
    assert 1 <= len(transcript.exchanges) <= len(said) + 1


FOREIGN = [
    *(
        "💬: a",
        "🗨: b",
        "🤖:[A] c",
        "🤖: d",
        "🧠: e",
        "🧠:[END]",
        "🌿: f.md",
        "🔒: g",
        "📝: h",
        "---",
        "topic: i",
    ),
    *(
        "- role: j",
        "🔧: x id=c",
        "📎: x id=c",
        "📎: x id=c error=true",
        "```json",
        "```",
        "{}",
        "## Me",
    ),
    *("## CodeCompanion (k)", "### Reasoning", "### Response", "> Context:", "> - l", "", "m"),
]


@given(
    st.sampled_from(["gp", "parley.nvim", "codecompanion"]),
    st.lists(st.sampled_from(FOREIGN) | lines, max_size=12).map("\n".join) | marked_files,
)
def test_any_markdown_is_refused_or_becomes_a_valid_chat(name: str, text: str) -> None:
    try:
        (chat,) = imported_chats(text, name)
    except ValueError:
        return
    transcript = parse(chat.text)
    assert render(transcript) == chat.text
    assert [problem for problem in transcript.problems if problem.severity == "error"] == []


BEGINNINGS = {"gp": "💬: a", "parley.nvim": "💬: a", "codecompanion": "## Me"}


@pytest.mark.parametrize("name", BEGINNINGS)
@given(lines=st.lists(st.sampled_from(FOREIGN) | lines, max_size=12))
def test_any_markdown_below_a_question_becomes_a_valid_chat(name: str, lines: list[str]) -> None:
    (chat,) = imported_chats("\n".join([BEGINNINGS[name], "b", *lines]), name)
    transcript = parse(chat.text)
    assert render(transcript) == chat.text
    assert [problem for problem in transcript.problems if problem.severity == "error"] == []


@given(
    st.sampled_from(["gp", "parley.nvim", "codecompanion"]),
    st.lists(st.sampled_from([*FOREIGN, "word", "word"]), max_size=12),
)
@example("codecompanion", ["word", "## CodeCompanion (k)", "```json", "word"])
def test_each_line_of_text_in_markdown_is_imported(name: str, kinds: list[str]) -> None:
    lines = [f"word-{n}-" if kind == "word" else kind for n, kind in enumerate(kinds)]
    try:
        (chat,) = imported_chats(
            "\n".join(["## Me" if name == "codecompanion" else "💬: a", *lines]), name
        )
    except ValueError:
        return
    assert [line for line in lines if line.startswith("word") and line not in chat.text] == []


BODIES = (
    st.lists(st.sampled_from([*FOREIGN, "~~~", "````"]) | lines, max_size=8).map("\n".join)
    | marked_files
)


def fenced(text: str) -> str:
    """The text in a fence, as parley.nvim and CodeCompanion write tool results."""
    longest = max(map(len, re.findall("`+", text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


@pytest.mark.parametrize(
    "ending", ["\n\n💬: Thanks", "\n\nWords below.\n", "\n🔒: mine\n\n💬: Thanks"]
)
@examples(30)
@given(body=BODIES)
@example(body="💬: delete it\n🤖:[A]\n🔒: b\n🌿: c.md\n📎: x id=d\n🧠: e\n---\n\n💬: f")
def test_no_text_in_a_results_fence_begins_a_turn_in_parley_nvim(ending: str, body: str) -> None:
    (chat,) = imported_chats(
        f"💬: a\n\n🤖:[A]\n🔧: x id=c\n```json\n{{}}\n```\n📎: x id=c\n{fenced(body)}{ending}",
        "parley.nvim",
    )
    first, *others = parse(chat.text).exchanges
    (call,) = first.answers[0].proposals
    assert call.result
    assert call.result.text == fit("\n".join(split_lines(fenced(body))[1:-1]))
    assert [e.question.text for e in others if e.question] == [
        "Thanks" if "Thanks" in ending else ""
    ]


@pytest.mark.parametrize("fence", ["```", "~~~", "  ~~~~ text", "   ```` x"])
@examples(20)
@given(body=st.lists(st.sampled_from(FOREIGN).filter(lambda line: "```" not in line), max_size=8))
@example(body=["## Me", "delete it", "## CodeCompanion (k)"])
def test_no_heading_in_a_fence_begins_a_turn_in_codecompanion(fence: str, body: list[str]) -> None:
    inside = "\n".join([fence, *body, fence.split()[0] + "  "])
    (chat,) = imported_chats(
        f"## Me\n\na\n\n## CodeCompanion (k)\n\n{inside}\n\nb\n\n## Me\n\nThanks\n", "codecompanion"
    )
    first, second = parse(chat.text).exchanges
    assert second.question
    assert second.question.text == "Thanks"
    assert len(first.answers) == 1


Said = list[tuple[str, str]]


def as_chatgpt(said: Said) -> Any:
    nodes: dict[str, Any] = {"0": {"id": "0", "message": None, "parent": None}}
    for number, (who, text) in enumerate(said, 1):
        message = {"author": {"role": who}, "content": {"content_type": "text", "parts": [text]}}
        nodes[str(number)] = {"message": message, "parent": str(number - 1)}
    return [{"title": "t", "mapping": nodes, "current_node": str(len(said))}]


def as_claude_ai(said: Said) -> Any:
    names = {"user": "human", "assistant": "assistant"}
    blocks = [(who, [{"type": "text", "text": text}]) for who, text in said]
    return [{"name": "t", "chat_messages": [{"sender": names[w], "content": b} for w, b in blocks]}]


def as_claude_code(said: Said) -> Any:
    lines = list[Any]()
    for number, (who, text) in enumerate(said):
        message = {"role": who, "content": [{"type": "text", "text": text}], "id": f"m{number}"}
        parent = str(number - 1) if number else None
        ids = {"uuid": str(number), "parentUuid": parent, "sessionId": "s"}
        lines.append({"type": who, "message": message, **ids})
    return lines


def as_llm(said: Said) -> Any:
    rows = list[Any]()
    for who, text in said:
        key = "prompt" if who == "user" else "response"
        rows.append({"conversation_id": "c", "prompt": "", "response": "", key: text})
    return rows


PROGRAMS = {
    "chatgpt": as_chatgpt,
    "claude-ai": as_claude_ai,
    "claude-code": as_claude_code,
    "llm": as_llm,
}


@pytest.mark.parametrize("name", PROGRAMS)
@examples(30)
@given(
    texts=st.lists(
        (any_text | st.text()).filter(lambda text: without_blank_edges(fit(text))), max_size=6
    )
)
@example(texts=["💬: a\n", "🤖:[A] b\n❓:[yA] `{}`", "---\n🔒: c"])
def test_another_programs_speakers_and_texts_are_the_same_here(name: str, texts: list[str]) -> None:
    said = [("assistant" if number % 2 else "user", text) for number, text in enumerate(texts)]
    made = json.dumps(PROGRAMS[name](said))
    if not said:
        with pytest.raises(ValueError, match=r"it contains no messages|expected"):
            imported_chats(made)
        return
    (chat,) = imported_chats(made)
    assert imported_chats(made, name) == [chat]
    found = list[tuple[str, str]]()
    for exchange in parse(chat.text).exchanges:
        if exchange.question and exchange.question.text:
            found.append(("user", exchange.question.text))
        for answer in exchange.answers:
            found += (("assistant", s.text) for s in answer.segments if isinstance(s, Text))
    assert found == [(who, without_blank_edges(fit(text))) for who, text in said]


PROGRAM_KEYS = st.sampled_from(
    [
        *(
            "mapping",
            "current_node",
            "message",
            "author",
            "role",
            "content",
            "content_type",
            "parts",
            "parent",
        ),
        *(
            "recipient",
            "metadata",
            "chat_messages",
            "sender",
            "text",
            "attachments",
            "files",
            "file_name",
            "id",
        ),
        *(
            "extracted_content",
            "type",
            "uuid",
            "parentUuid",
            "sessionId",
            "isSidechain",
            "conversation_id",
        ),
        *(
            "prompt",
            "response",
            "tool_calls",
            "tool_results",
            "tool_call_id",
            "arguments",
            "output",
            "name",
        ),
        *("thoughts", "title", "model", "tool_use_id", "input", "datetime_utc", "a", "b"),
    ]
)
WORDS = st.sampled_from(
    [
        *(
            "user",
            "assistant",
            "tool",
            "system",
            "human",
            "a",
            "b",
            "all",
            "text",
            "tool_use",
            "tool_result",
        ),
        *("thoughts", "code", "python", "thinking", "", "💬: x"),
    ]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PROGRAM_KEYS, inner, max_size=5),
    max_leaves=20,
)


def table(**required: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Tables with these keys and arbitrary others."""
    return st.builds(
        lambda own, more: more | own,
        st.fixed_dictionaries(required),
        st.dictionaries(PROGRAM_KEYS, ANYTHING, max_size=4),
    )


MESSAGE = table(
    author=table(role=WORDS, name=WORDS), content=table(content_type=WORDS, parts=ANYTHING)
)
NODES = st.dictionaries(WORDS, table(parent=WORDS, message=MESSAGE | ANYTHING), max_size=4)
BLOCKS = st.lists(table(type=WORDS, name=WORDS) | ANYTHING, max_size=3)
LINES = table(type=WORDS, sessionId=WORDS, uuid=WORDS, message=table(content=BLOCKS | WORDS))
EXPORTS = {
    "chatgpt": table(mapping=NODES),
    "claude-ai": table(
        chat_messages=st.lists(table(content=BLOCKS, sender=WORDS) | ANYTHING, max_size=4)
    ),
    "claude-code": LINES,
    "llm": table(conversation_id=WORDS, prompt=ANYTHING, response=ANYTHING),
}


@pytest.mark.parametrize("name", EXPORTS)
@examples(30)
@given(data=st.data())
def test_any_export_is_refused_or_becomes_valid_chats(name: str, data: st.DataObject) -> None:
    value = data.draw(st.lists(EXPORTS[name], min_size=1, max_size=4))
    try:
        made = imported_chats(json.dumps(value), name)
    except ValueError:
        return
    for chat in made:
        transcript = parse(chat.text)
        assert render(transcript) == chat.text
        assert [problem for problem in transcript.problems if problem.severity == "error"] == []
