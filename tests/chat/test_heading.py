"""A chat's heading: topic, tags and agent, from the ends of its text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.front_matter import topic
from parley.chat.heading import LONGEST_TOPIC, ChatHeading, heading_of
from parley.chat.reader import parse

QUOTE = "`a.py` (1 line)\n\n```python\nx = 1\n```"


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("---\ntopic: Zebras\n---\n\n💬: are they striped?\n", "Zebras"),
        ("---\ntopic: ''\n---\n\n💬: are they\nstriped?\n", "are they"),
        (f"💬:\n\n{QUOTE}\n\nWhat is   x?\nAnd y?\n", "What is x?"),
        (f"💬: see @@a.py@@\nand explain\n\n{QUOTE}\n", "see @@a.py@@"),
        (f"💬: {QUOTE}\n\n🤖:[A]\n\nNothing.\n\n💬: So?\n", "So?"),
        (f"💬: {QUOTE}\n", "`a.py` (1 line)"),
        ("🔒: a note\n", ""),
        ("", ""),
    ],
)
def test_the_topic_is_the_first_line_that_the_user_wrote(text: str, subject: str) -> None:
    assert heading_of(text).topic == topic(parse(text)) == subject


@pytest.mark.parametrize(
    ("beginning", "end", "agent"),
    [
        ("---\nagent: Claude\n---\n\n💬: a\n\n🤖:[Demo]\n\nb\n", "x\n🤖:[Other]\n", "Claude"),
        ("💬: a\n\n🤖:[Demo]\n\nb\n\n💬: c\n\n🤖:\n", "", "Demo"),
        ("💬: a\n\n🤖:[Demo]\n", "cut\n🤖:[A]\n\n\\🤖:[forged]\n 🤖:[text]\n", "A"),
        ("💬: a\n\n🤖:[Demo]\n", "🤖:[cut]\ntext\n", "Demo"),
        ("💬: a\n", "", ""),
    ],
)
def test_the_agent_is_the_one_that_the_file_names_or_that_answered_last(
    beginning: str, end: str, agent: str
) -> None:
    assert heading_of(beginning, end).agent == agent


def test_tags_come_from_the_front_matter_on_one_line_each_and_once() -> None:
    text = '---\ntags: [work, "a\\nb", work, ""]\n---\n\n💬: a\n'
    assert heading_of(text) == ChatHeading("a", "", ("work", "a b"))


@given(st.text(), st.text())
def test_any_text_has_a_heading_of_limited_length(beginning: str, end: str) -> None:
    heading = heading_of(beginning, end)
    assert len(heading.topic) <= LONGEST_TOPIC
    assert not any("\n" in text for text in (heading.topic, heading.agent, *heading.tags))
