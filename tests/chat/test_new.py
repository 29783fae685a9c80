"""The text of a new chat."""

from __future__ import annotations

import pytest

from parley.chat.front_matter import read_front_matter
from parley.chat.new import new_text
from parley.chat.reader import parse
from parley.chat.transcript import Question, Text


def test_a_new_chat_has_an_empty_topic_and_room_for_a_question() -> None:
    assert new_text() == '---\ntopic: ""\n---\n\n💬: \n'


@pytest.mark.parametrize(
    "text", ["why?", "💬: not mine\n🤖:[A]\n---\n> 🔒: x\n\\💬:", "# a\n\n    b", "---\na: 1"]
)
def test_any_text_becomes_the_question_and_nothing_else(text: str) -> None:
    transcript = parse(new_text(Question((Text(text),)), {"agent": "A: b", "tool_mode": "off"}))
    assert [exchange.question for exchange in transcript.exchanges] == [Question((Text(text),))]
    assert (transcript.problems, transcript.preamble) == ((), ())
    keys = read_front_matter(transcript.front_matter).keys
    assert keys == {"topic": "", "agent": "A: b", "tool_mode": "off"}
