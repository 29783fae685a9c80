"""A fork has its chat's content up to the chosen exchange, and names its source."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.fork import fork_for, fork_lines
from parley.chat.front_matter import read_front_matter
from parley.chat.reader import parse, split_lines
from parley.chat.rounds import is_unfinished
from parley.chat.transcript import Exchange, Question, Transcript
from parley.chat.writer import render
from tests.examples import examples
from tests.strategies import transcripts

CALL = '❓:[ya] `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`'


def fork(text: str, at: int) -> str:
    lines = split_lines(text)
    return "\n".join(fork_lines(lines, parse(text).exchanges[at], "from.md"))


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ("Yes.", "\n\n💬: "),
        ("Yes.\n\n🔒: mine", "\n\n💬: "),
        ("Ye\n\n🔒: [Stopped: by the user]", ""),
        (CALL, ""),
        (f"{CALL}\n\n🛠️: [f][c]\n\n`1`", ""),
        (f"{CALL}\n\n🛠️: [f][c]\n\n`1`\n\nOne.", "\n\n💬: "),
        ("❓: `{`", ""),
    ],
)
def test_a_complete_answer_is_followed_by_room_for_a_question(answer: str, end: str) -> None:
    above = f"💬: a\n\n🤖:[Demo]\n\n{answer}"
    assert (
        fork(f"{above}\n\n\n💬: b\n\n🤖:\n\nc\n", 0)
        == f"---\nforked_from: from.md\n---\n\n{above}{end}"
    )


def test_a_fork_may_end_with_an_unanswered_question() -> None:
    assert (
        fork("💬: a\n\n💬: b\n\n\n💬: c", 1) == "---\nforked_from: from.md\n---\n\n💬: a\n\n💬: b"
    )
    assert fork("💬: a\n\n🤖:\n", 0) == "---\nforked_from: from.md\n---\n\n💬: a\n\n🤖:"


def test_front_matter_stays_and_names_the_source_chat() -> None:
    head = "---\n# mine\ntopic: x\nforked_from: older.md\ntools: [a]\n---\n"
    assert fork(f"{head}💬: a", 0) == f"{head.replace('older', 'from')}💬: a"


def test_unreadable_front_matter_is_left_to_the_user() -> None:
    with pytest.raises(ValueError, match=r"cannot be read\. Fix it first"):
        fork("---\ntopic: [\n---\n💬: a", 0)


@pytest.mark.parametrize(
    ("head", "answer", "new_head", "rest"),
    [
        ("", "", "forked_from: from.md\nagent: B", ""),
        ("", "\n\n🤖:[A]\n\nold\n\n🔒: mine", "forked_from: from.md\nagent: B", "\n\n🤖:[B]"),
        ("agent: A", "", "agent: B\nforked_from: from.md", ""),
        ("agent: A\nmodel: x", "", "agent: A\nmodel: x\nforked_from: from.md", ""),
    ],
)
def test_a_fork_for_an_agent_ends_with_its_question(
    head: str, answer: str, new_head: str, rest: str
) -> None:
    top = f"---\n{head}\n---\n\n" if head else ""
    lines = split_lines(f"{top}💬: a{answer}\n\n💬: b\n")
    exchange = parse("\n".join([*lines, ""])).exchanges[0]
    copy = "\n".join(fork_for(lines, exchange, "from.md", "B"))
    assert copy == f"---\n{new_head}\n---\n\n💬: a{rest}"


@pytest.mark.exhaustive
@examples(60)
@given(
    transcripts(),
    st.sampled_from([None, "", "topic: x", "# mine\ntopic: x\nagent: Demo\n"]),
    st.data(),
)
def test_a_fork_has_the_chats_content(
    chat: Transcript, head: str | None, data: st.DataObject
) -> None:
    chat = replace(chat, front_matter=head, exchanges=chat.exchanges or (Exchange(Question()),))
    keys = read_front_matter(head)
    lines = split_lines(render(chat))
    chat = parse(render(chat))
    at = data.draw(st.integers(0, len(chat.exchanges) - 1))
    copy = parse("\n".join(fork_lines(lines, chat.exchanges[at], "odd: [name.md")))
    assert copy.exchanges[: at + 1] == chat.exchanges[: at + 1]
    (*_, last) = chat.exchanges[: at + 1]
    is_open = not (last.answers and last.answers[-1].segments) or is_unfinished(last.answers[-1])
    assert copy.exchanges[at + 1 :] == (() if is_open else (Exchange(Question(())),))
    assert read_front_matter(copy.front_matter).keys == {
        **keys.keys,
        "forked_from": "odd: [name.md",
    }
    assert replace(copy, exchanges=(), front_matter=None, problems=()) == replace(
        chat, exchanges=(), front_matter=None, problems=()
    )
