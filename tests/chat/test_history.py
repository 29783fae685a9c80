"""The parts of a file that a model receives: cases in addition to the laws."""

from __future__ import annotations

import pytest

from parley.chat.history import ModelTurn, Turn, UserTurn, history
from parley.chat.reader import parse
from parley.models import anthropic, openai_chat, openai_responses
from parley.models.request import Request


def turns_of(text: str, at: int | None = None, full: int | None = None) -> list[Turn]:
    transcript = parse(text)
    at = len(transcript.exchanges) - 1 if at is None else at
    return list(history(transcript, at, max_full_exchanges=full))


def plainly(turns: list[Turn]) -> list[str]:
    """The turns in short form: `? question`, `! answer`, `@id name status content`."""
    lines = list[str]()
    for turn in turns:
        match turn:
            case UserTurn(text):
                lines.append(f"? {text}")
            case ModelTurn():
                lines += [f"! {turn.text}"] if turn.text else []
                lines += [f"@{each.id} {each.status} {each.content}" for each in turn.calls]
    return lines


def proposal(call_id: str, choice: str = "", index: int | None = None) -> str:
    number = "" if index is None else f'"index":{index},'
    mark = f"[{choice}]" if choice else ""
    keys = f'{number}"id":"{call_id}","type":"function","function":{{"name":"t","arguments":""}}'
    return f"❓:{mark} `{{{keys}}}`\n"


CASES = {
    "an empty file": ("", []),
    "an empty question": ("💬: \n", []),
    "an empty question that is answered": (
        "💬:\n\n🤖:\nHi\n💬: more",
        ["? [No question]", "! Hi", "? more"],
    ),
    "a file that starts with an answer": (
        "🤖:\nHi\n💬: more",
        ["? [No question]", "! Hi", "? more"],
    ),
    "an answer without a word": ("💬: a\n\n🤖:\n\n💬: b", ["? a", "? b"]),
    "an empty question with an empty answer": ("💬:\n🤖:\n💬: b", ["? b"]),
    "a preamble and notes": (
        "# Heading\n\n💬: a\n🔒: no\n🔒:\nb\n\n🤖:\nc\n🔒: [Stopped: user]\n",
        ["? a\n\nb", "! c"],
    ),
    "two answers": ("💬: a\n\n🤖:\nb\n\n🤖:[X]\nc\n", ["? a", "! b", "! c"]),
    "text of nothing but odd spaces": ("💬: \u2003\n\n🤖:\n\u2003\n💬: b", ["? b"]),
    "an undecided call": (
        "💬: a\n🤖:\n" + proposal("c"),
        ["? a", "@c refused The user did not approve this call."],
    ),
    "a declined call": (
        "💬: a\n🤖:\n" + proposal("c", "yN"),
        ["? a", "@c refused The user declined this call."],
    ),
    "a call that should have run": (
        "💬: a\n🤖:\n" + proposal("c", "yO"),
        ["? a", "@c error No result was recorded for this call."],
    ),
    "a broken call": ("💬: a\n🤖:\nb\n❓: {oops\n", ["? a", "! b"]),
    "an orphan": ("💬: a\n🤖:\nb\n🛠️: [t][x]\n`lost`\n", ["? a", "! b"]),
    "a repeated id": (
        "💬: a\n🤖:\n" + proposal("c", "yn", 0) + proposal("c", "yn", 0) + proposal("c_2", "yn", 0),
        [
            "? a",
            *(f"@{call} refused The user declined this call." for call in ("c", "c_2", "c_2_2")),
        ],
    ),
}


@pytest.mark.parametrize("mark", ["error", "refused"])
@pytest.mark.parametrize("body", ["```\n```", "```\n \n```"])
def test_a_failure_without_text_gets_a_placeholder_text(mark: str, body: str) -> None:
    text = f"💬: a\n🤖:\n{proposal('c', 'ya')}\n🛠️: [t][c][{mark}]\n\n{body}\n"
    assert plainly(turns_of(text)) == ["? a", f"@c {mark} This call failed, and nothing says why."]


NOBODY_ASKS = {
    "nothing at all": ("🤖:\n", ["? [No question]"]),
    "nothing but what is not sent": ("🤖:\n🔒: note\n🛠️: [t][c]\n\n`x`\n", ["? [No question]"]),
    "an empty question": ("💬:\n\n🤖:\n", ["? [No question]"]),
    "an answer below an answer": ("💬: a\n\n🤖:\nb\n\n🤖:\n", ["? a", "! b", "? [Please go on]"]),
    "an answer without its question": (
        "🤖:\nb\n\n🤖:\n",
        ["? [No question]", "! b", "? [Please go on]"],
    ),
}


@pytest.mark.parametrize(("text", "turns"), NOBODY_ASKS.values(), ids=NOBODY_ASKS)
def test_a_request_always_ends_with_the_user(text: str, turns: list[str]) -> None:
    request = Request(parse(text), 0, "demo", "m")
    assert plainly(list(request.turns())) == turns
    for adapter, field in (
        (anthropic, "messages"),
        (openai_chat, "messages"),
        (openai_responses, "input"),
    ):
        messages = adapter.request_body(request)[field]
        assert (messages[0]["role"], messages[-1]["role"]) == ("user", "user")


@pytest.mark.parametrize(("text", "turns"), CASES.values(), ids=CASES)
def test_the_sent_turns(text: str, turns: list[str]) -> None:
    assert plainly(turns_of(text)) == turns


def test_later_exchanges_are_not_sent() -> None:
    assert plainly(turns_of("💬: a\n🤖:\nb\n💬: c\n", at=0)) == ["? a", "! b"]


LONG = f"""💬: one
🤖:
first
📝: did one

💬: two
🤖:
{proposal("c", "yn")}
second

💬: three
🤖:
{proposal("d", "yn")}
third
📝: old line
📝: did three

💬: four
"""


@pytest.mark.parametrize(
    ("full", "firsts"),
    [
        (None, ["? one", "! first\n📝: did one", "? two", "? three"]),
        (4, ["? one", "! first\n📝: did one", "? two", "? three"]),
        (3, ["? [Previous messages omitted]", "! 📝: did one", "? two", "? three"]),
        (
            1,
            [
                "? [Previous messages omitted]",
                "! 📝: did one",
                "? two",
                "? [Previous messages omitted]",
            ],
        ),
        (
            0,
            [
                "? [Previous messages omitted]",
                "! 📝: did one",
                "? two",
                "? [Previous messages omitted]",
            ],
        ),
    ],
)
def test_a_summary_replaces_older_exchanges(full: int | None, firsts: list[str]) -> None:
    lines = plainly(turns_of(LONG, full=full))
    kept = [line for line in lines if line.startswith("?") or "one" in line]
    assert kept == [*firsts, "? four"]
    assert ("! 📝: did three" in lines) == (full in (0, 1))
    assert ("@d refused The user declined this call." in lines) != (full in (0, 1))
    assert "@c refused The user declined this call." in lines  # no summary: sent whole


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("💬: a\n🤖:\nb\n" + proposal("c", "yn"), [True]),
        ("💬: a\n🤖:\nb\n" + proposal("c", "yn") + "d\n" + proposal("e", "yn"), [True, True]),
        ("💬: a\n🤖:\nb\n" + proposal("c", "yn") + "🔒: note\n", [True]),
        ("💬: a\n🤖:\nb\n" + proposal("c", "yn") + "d\n", [False, False]),
        ("💬: a\n🤖:\n" + proposal("c", "yn") + "\n🤖:\n", [False]),
        ("💬: a\n🤖:\n" + proposal("c", "yn") + "\n💬: b\n", [False]),
    ],
)
def test_replies_are_open_in_the_last_answer_while_it_ends_in_calls(
    text: str, is_open: list[bool]
) -> None:
    assert [turn.open for turn in turns_of(text) if isinstance(turn, ModelTurn)] == is_open
