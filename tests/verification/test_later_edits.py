"""A chat from the real engine, compared with its recorded requests: unchanged, and after every kind
of edit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Attachment, Result, ToolCall
from parley.engine import EndKind
from parley.engine.ports import NoAttachments
from parley.errors import ModelError
from parley.models.events import (
    Finished,
    Ran,
    RanResult,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
)
from parley.models.fingerprint import header, rebuilt
from parley.models.request import Request
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.results import Outcome
from parley.verification.later_edits import (
    RequestRecord,
    Verification,
    settings_changes,
    verify_chat,
)
from tests.fakes import LoggedTools, RecordingModel, ScriptStep, Turns, calls, says

PICTURE = f"![a, 1 B](chat.assets/{'0' * 64}.png)"
OTHER_PICTURE = PICTURE.replace("0" * 64, "1" * 64)
WEATHER, TIME = (
    ToolCall("c1", "weather", '{"city": "Oslo"}'),
    ToolCall("c2", "clock", '{"zone": "CET"}'),
)
THOUGHT: list[ScriptStep] = [ThinkingDelta("hm"), ThinkingEnd("signature")]
REPLIES: tuple[list[ScriptStep], ...] = (
    [*THOUGHT, *calls(WEATHER, TIME, text="Let me see.")],
    says("It rains at noon.\n\n📝: rain at noon"),
    says("A cat."),
    says("You are welcome."),
)
QUESTIONS = ("How is the weather?", f"What is this?\n\n{PICTURE}", "Thank you.")
FRONT = "---\nsystem_prompt: Be kind.\ntopic: Weather\n---\n\n"


async def conversation() -> Turns:
    tools = LoggedTools(
        Catalogue.of([Tool("mock", "weather"), Tool("mock", "clock")]),
        {"weather": Result("ok", "rain"), "clock": Result("ok", "12:00")},
    )
    model = RecordingModel(*REPLIES)
    turns = Turns(f"{FRONT}💬: {QUESTIONS[0]}\n", model, tools)
    model.ledger = turns.ledger
    assert (await turns.run()).kind == "waiting"
    await turns.press("yA", "c1")
    await turns.press("ya", "c2")
    assert (await turns.run()).kind == "complete"
    for question in QUESTIONS[1:]:
        turns.ask(question)
        assert (await turns.run()).kind == "complete"
    return turns


def checked(turns: Turns, text: str) -> Verification:
    records = [
        RequestRecord(row.at, json.loads(row.header), row.units, row.reply)
        for row in turns.ledger.requests()
    ]
    return verify_chat(parse(text), records)


def outcome(turns: Turns, text: str) -> list[tuple[int, str, int]]:
    """The exchange, the words and the number of requests for each edit."""
    return [(edit.exchange, edit.text, edit.requests) for edit in checked(turns, text).edits]


def swapped(text: str) -> str:
    """The text with the second and third exchange swapped."""
    start, second, third = text.index("💬: How"), text.index("💬: What"), text.index("💬: Thank")
    end = text.rindex("💬:")
    assert start < second
    return text[:second] + text[third:end] + text[second:third] + text[end:]


def without(text: str, start: str, end: str) -> str:
    """The text without the part between two marks; the second mark stays."""
    at = text.index(start)
    return text[:at] + text[text.index(end, at + 1) :]


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


EDITS: dict[str, tuple[Callable[[str], str], list[tuple[int, str, int]]]] = {
    "question": (replaced("the weather?", "the sea?"), [(1, "the question was reworded", 4)]),
    "answer": (replaced("It rains", "It snows"), [(1, "the answer was edited", 3)]),
    "last answer": (replaced("You are", "You were"), [(3, "the answer was edited", 1)]),
    "summary": (replaced("📝: rain", "📝: sun"), [(1, "the summary of the answer was edited", 3)]),
    "no summary": (
        replaced("📝: rain at noon\n", ""),
        [(1, "the summary of the answer was removed", 3)],
    ),
    "thinking": (replaced("> hm", "> oh"), [(1, "the thinking was edited", 2)]),
    "arguments": (
        replaced("Oslo", "Rome"),
        [(1, "the arguments of call weather were edited", 4)],
    ),
    "call": (
        replaced('"name":"clock"', '"name":"watch"'),
        [(1, "the name or id of call watch was edited", 4)],
    ),
    "result": (replaced("`12:00`", "`13:00`"), [(1, "the result of call clock was edited", 3)]),
    "no result": (
        lambda text: without(text, "🛠️: [clock]", "It rains"),
        [(1, "the result of call clock was removed", 3)],
    ),
    "no call": (
        lambda text: text[: text.rindex("❓:")] + text[text.index("It rains") :],
        [(1, "a call and its result were removed", 4)],
    ),
    "no exchange": (
        lambda text: without(text, "💬: What", "💬: Thank"),
        [(2, "an exchange was removed here", 1)],
    ),
    "no last exchange": (
        lambda text: without(text, "💬: Thank", "💬: \n"),
        [(3, "an exchange was removed here", 1)],
    ),
    "no last answer": (
        lambda text: without(text, "🤖:[Demo]\n\nYou are", "💬: \n"),
        [(3, "a reply to this question was removed", 1)],
    ),
    "a new exchange": (
        replaced("💬: What", "💬: 1 + 1?\n\n🤖:[Demo]\n\n3\n\n💬: What"),
        [(2, "the exchange was added", 2)],
    ),
    "an order": (swapped, [(2, "the exchange was moved", 1), (3, "the exchange was moved", 1)]),
    "system prompt": (
        replaced("Be kind", "Be rude"),
        [(0, "the front matter key system_prompt was changed", 4)],
    ),
    "model": (
        replaced("topic:", "model: other\ntopic:"),
        [(0, "the front matter key model was added", 4)],
    ),
    "agent": (
        replaced("[Demo]\n\nA cat", "[Claude]\n\nA cat"),
        [(2, "the answer came from Demo", 1)],
    ),
    "attachment": (
        replaced(PICTURE, OTHER_PICTURE),
        [(2, "an attachment was replaced", 2)],
    ),
    "no attachment": (
        replaced(f"{PICTURE}\n", ""),
        [(2, "an attachment was removed from the question", 2)],
    ),
}

NO_EDITS: dict[str, Callable[[str], str]] = {
    "nothing": lambda text: text,
    "a note": replaced("A cat.\n", "A cat.\n\n🔒: is it?\n"),
    "blank lines": replaced("\n\nA cat.", "\n\n\n\nA cat.  "),
    "a topic": replaced("topic: Weather", "topic: Cats\ntags: [a]"),
    "a mark": replaced("❓:[yA]", "❓:[ya]"),
    "a question": replaced("💬: \n", "💬: And now?\n"),
    "a new summary": replaced("A cat.\n", "A cat.\n\n📝: it is a cat\n"),
    "a heading": replaced("💬: How", "# Mine\n\n💬: How"),
}


@pytest.mark.parametrize("name", EDITS)
async def test_an_edit_is_reported_with_its_exchange_and_the_affected_requests(name: str) -> None:
    turns = await conversation()
    change, edits = EDITS[name]
    assert outcome(turns, change(turns.text)) == edits


@pytest.mark.parametrize("name", NO_EDITS)
async def test_changes_that_no_model_sees_are_not_edits(name: str) -> None:
    turns = await conversation()
    result = checked(turns, NO_EDITS[name](turns.text))
    assert result == Verification((), 4, 4, ())


LINES = {
    "question": "💬: How",
    "answer": "It snows",
    "summary": "📝: sun",
    "thinking": "🧠:",
    "arguments": "Rome",
    "result": "🛠️: [clock]",
    "no result": "c2",
    "no call": "c1",
    "no exchange": "💬: Thank",
    "attachment": OTHER_PICTURE,
    "agent": "🤖:[Claude]",
}


@pytest.mark.parametrize("name", LINES)
async def test_an_edit_has_the_line_of_the_edited_part(name: str) -> None:
    turns = await conversation()
    text = EDITS[name][0](turns.text)
    (edit,) = checked(turns, text).edits
    mark = {
        "arguments": "Rome",
        "attachment": OTHER_PICTURE,
        "no exchange": "💬: Thank",
        "summary": "📝: sun",
    }
    line = next(
        n for n, each in enumerate(text.split("\n"), 1) if mark.get(name, LINES[name]) in each
    )
    assert edit.line == line, text.split("\n")[edit.line - 1]


async def test_a_chat_without_its_answers_differs_from_a_new_file_of_the_same_name() -> None:
    turns = await conversation()
    alone = turns.text[: turns.text.index("🤖:")]
    assert outcome(turns, alone) == [(1, "a reply to this question was removed", 1)]
    assert checked(turns, "💬: something else\n") == Verification((), 0, 0, ())


async def test_two_edits_are_reported_each_with_its_own_count() -> None:
    turns = await conversation()
    text = turns.text.replace("Oslo", "Rome").replace("A cat.", "A dog.")
    assert outcome(turns, text) == [
        (1, "the arguments of call weather were edited", 4),
        (2, "the answer was edited", 2),
    ]


FIND, NEXT = ToolCall("s1", "find", '{"q":"a"}'), ToolCall("s2", "find", '{"q":"b"}')


class Kept(NoAttachments):
    """Keeps the parts that only a provider understands."""

    async def result_of(self, outcome: Outcome) -> Result:
        path = f"chat.assets/{outcome.whole}.txt"
        return Result(outcome.status, outcome.text, (Attachment("4 kB", path),))


def found(call_id: str, digit: int = 1) -> RanResult:
    return RanResult(call_id, Outcome("ok", "a page", whole=str(digit) * 64))


async def searched(*replies: list[ScriptStep], ends: Sequence[EndKind]) -> Turns:
    """A chat whose replies contain searches of the provider, with a second question."""
    model = RecordingModel(*replies, says("You are welcome."))
    tools = LoggedTools(Catalogue.of([Tool("mock", "weather")]), {"weather": Result("ok", "rain")})
    turns = Turns("💬: What is new?\n", model, tools)
    turns.ports = replace(turns.ports, attachments=Kept())
    model.ledger = turns.ledger
    for end in ends:
        assert (await turns.run()).kind == end
        if end == "waiting":
            await turns.press("ya", "c1")
    turns.ask("Thank you.")
    assert (await turns.run()).kind == "complete"
    return turns


SEARCH: list[ScriptStep] = [TextDelta("I look."), Ran(FIND, "provider"), found("s1")]
SEARCHES: dict[str, tuple[list[list[ScriptStep]], list[EndKind]]] = {
    "in one reply": ([[*SEARCH, *says("Nothing.")]], ["complete"]),
    "before a call, with a late result": (
        [
            [*SEARCH, Ran(NEXT, "provider"), *calls(WEATHER)],
            [found("s2", 2), *says("Nothing.")],
        ],
        ["waiting", "complete"],
    ),
    "broken off": (
        [[*SEARCH, TextDelta("No"), ModelError("no route", reason="no route")], says("Nothing.")],
        ["interrupted", "complete"],
    ),
    "of an agent": (
        [[TextDelta("I look."), Ran(FIND, "agent"), found("s1"), *says("Nothing.")]],
        ["complete"],
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
async def test_a_chat_with_calls_that_others_ran_is_as_its_models_saw_it(name: str) -> None:
    replies, ends = SEARCHES[name]
    turns = await searched(*replies, ends=ends)
    count = 1 + sum(end != "interrupted" for end in ends)
    assert checked(turns, turns.text) == Verification((), count, count, ())
    edits = [
        ("Thank you.", "Thanks!", (2, "the question was reworded", 1)),
        ("Nothing.", "A lot.", (1, "the answer was edited", 2)),
        ('"name":"find"', '"name":"seek"', (1, "the name or id of call seek was edited", count)),
        ('\\"a\\"', '\\"x\\"', (1, "the arguments of call find were edited", count)),
        ("1" * 64, "3" * 64, (1, "the result of call find was edited", count - 1)),
    ]
    for old, new, edit in edits:
        assert edit[:2] in [each[:2] for each in outcome(turns, replaced(old, new)(turns.text))]
    line = next(n for n, text in enumerate(turns.text.split("\n"), 1) if "[find][s1]" in text)
    (one,) = checked(turns, turns.text.replace("1" * 64, "3" * 64)).edits
    assert one.line == line


async def test_a_regenerated_answer_belongs_to_the_later_request() -> None:
    turns = await conversation()
    turns.edit(lambda text: text.replace("Thank you.", "Thanks!").replace("You are welcome.\n", ""))
    turns.model.replies.append(says("You are welcome."))
    turns.document.anchor = 10**6
    turns.edit(lambda text: text.removesuffix("💬: \n"))
    assert (await turns.run()).kind == "complete"
    assert checked(turns, turns.text) == Verification((), 4, 4, ())


async def test_a_reply_without_a_request_is_unknown_unless_a_later_request_contains_it() -> None:
    turns = await conversation()
    text = turns.text.replace("💬: \n", "💬: And?\n\n🤖:[Demo]\n\nForged.\n\n💬: \n")
    result = checked(turns, text)
    assert (result.edits, result.same, result.requests) == ((), 4, 4)
    assert result.unknown == ((4, text.split("\n").index("Forged.") + 1),)
    records = [
        RequestRecord(row.at, json.loads(row.header), row.units, row.reply)
        for row in turns.ledger.requests()
    ]
    assert verify_chat(parse(turns.text), records[3:]) == Verification((), 1, 1, ())


async def test_a_reply_that_ended_early_needs_no_record() -> None:
    turns = await conversation()
    turns.model.replies.append([TextDelta("I am cut"), Finished("length")])
    turns.ask("Go on.")
    assert (await turns.run()).kind == "interrupted"
    assert checked(turns, turns.text) == Verification((), 4, 4, ())


async def test_changed_settings_are_not_edits() -> None:
    turns = await conversation()
    then = json.loads(turns.ledger.requests()[-1].header)
    now = {
        **then,
        "system": "x",
        "tools": {"weather": "y", "new": "z"},
        "parameters": "p",
        "full": 2,
        "model": "m",
    }
    assert settings_changes(then, then, has_tools=True) == []
    assert settings_changes(then, now, has_tools=True) == [
        "the model of Demo was claude-sonnet-5-5 and is now m",
        "the system prompt has changed",
        "temperature, max_tokens, thinking, tool_mode or parameters have changed",
        "max_full_exchanges was None and is now 2",
        "the tool clock was removed",
        "the tool new was added",
        "the definition of the tool weather has changed",
    ]
    missing = {**then, "tools": {}, "missing": ["mock"]}
    assert settings_changes(then, missing, has_tools=True) == ["the tools of mock are now missing"]
    del then["servers"]  # like records made before they were kept
    assert settings_changes(then, missing, has_tools=True) == ["the tools of mock are now missing"]
    for key in ("system_prompt", "model"):  # front matter changes are reported as edits
        other = {**then, "front": {**then["front"], key: "x"}, "system": "x", "model": "m"}
        name = {"system_prompt": "the model of", "model": "the system"}[key]
        assert [each[: len(name)] for each in settings_changes(then, other, has_tools=False)] == [
            name
        ]


async def test_requests_for_equal_replies_are_rebuilt_once_for_each() -> None:
    model = RecordingModel(*[says("ok")] * 20)
    turns = Turns("💬: 0\n", model, LoggedTools(Catalogue()))
    model.ledger = turns.ledger
    for number in range(1, 21):
        assert (await turns.run()).kind == "complete"
        turns.ask(str(number))
    count, before = 0, sys.getprofile()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is rebuilt.__code__

    sys.setprofile(profile)
    try:
        edits = outcome(turns, turns.text.replace("💬: 0", "💬: zero"))
    finally:
        sys.setprofile(before)
    assert edits == [(1, "the question was reworded", 20)]
    assert count == 20


def test_tools_of_missing_servers_are_not_reported_as_gone() -> None:
    read, other = Tool("x", "read"), Tool("y", "read", "of y")
    tools = [read, other, Tool("x", "write"), Tool("y", "list"), Tool("y", "find")]
    then = header(request_with(Catalogue.of(tools)), "")
    now = header(request_with(Catalogue.of([other, Tool("y", "find")], ["x"])), "")
    assert settings_changes(then, now, has_tools=True) == [
        "the tools of x are now missing",
        "the tool list was removed",
        "the tool y__read is now named read",
    ]


def request_with(catalogue: Catalogue) -> Request:
    transcript = parse("💬: a\n\n🤖:[A]\n\nb\n")
    return Request(transcript, 0, "demo", "m", catalogue=catalogue)
