"""Cases in which one line decides how a file is read."""

from __future__ import annotations

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Proposal, Result, Text

CALL = '❓: `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`'


@pytest.mark.parametrize("marker", ["💬: q", "🤖:", "🔒: note", CALL])
def test_front_matter_ends_above_the_first_marker_or_does_not_exist(marker: str) -> None:
    read = parse(f"---\ntopic: t\n{marker}\n---\n")
    assert read.front_matter is None
    assert parse(f"---\ntopic: t\n---\n{marker}\n").front_matter == "topic: t"


def test_a_rule_below_a_question_does_not_end_front_matter() -> None:
    (exchange,) = parse("---\n\n💬: q\n\n---\n\nmore\n").exchanges
    assert exchange.question is not None
    assert exchange.question.text == "q\n\n---\n\nmore"


def test_a_result_below_a_calls_notes_belongs_to_that_call() -> None:
    text = f"💬: q\n\n🤖:\n\n{CALL}\n\n{CALL}\n\n🔒: a\n\n🔒: b\n\n🛠️: [f][c]\n\n`done`\n"
    first, second = parse(text).exchanges[0].answers[0].proposals
    assert first.result is None
    assert second.result is not None
    assert second.result.body == "done"


def test_a_result_between_two_texts_leaves_them_one_text() -> None:
    """A provider's call may have its result below a text, for example after an edit by hand."""
    call = CALL.replace("❓:", "❓:[provider]")
    read = parse(f"💬: q\n\n🤖:\n\n{call}\n\none\n\n🛠️: [f][c]\n\n`done`\n\nother\n")
    proposal, text = read.exchanges[0].answers[0].segments
    assert isinstance(proposal, Proposal)
    assert proposal.result == Result("ok", "done")
    assert text == Text("one\n\nother")
