"""The problems reported for questions with missing references: their lines, and how long they last."""

from __future__ import annotations

import pytest

from parley.chat.reader import parse
from parley.chat.references import ReferenceText
from parley.policy.missing_references import lacks, problems

FENCE = "```\nsee @@b@@\n```\n"


def rows(text: str, *names: str) -> list[int]:
    """The lines with problems in a question that lacks these references."""
    transcript = parse(text)
    question = transcript.exchanges[-1].question
    assert question
    said = lacks(question, [ReferenceText(name, "gone", "missing") for name in names])
    return [problem.line for problem in problems(transcript, said)]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("💬: see @@b@@\n", 0),
        ("above\n\n💬:\n\nlook\nsee @@b@@\n", 5),
        (f"💬: look\n{FENCE}see @@b@@\n", 4),
        ("💬: one\n\n📝: note\n\n💬: two\n\nsee @@a@@ @@b@@\n", 6),
    ],
)
def test_a_problem_is_on_its_references_line(text: str, row: int) -> None:
    assert rows(text, "b") == [row]


def test_a_problem_without_its_own_line_is_on_the_questions_line() -> None:
    assert rows("above\n\n💬: see\n@@a@@\n", "elsewhere") == [2]


def test_an_asked_or_changed_question_has_no_problems() -> None:
    transcript = parse("💬: see @@b@@\n")
    question = transcript.exchanges[0].question
    assert question
    said = lacks(question, [ReferenceText("b", "gone", "missing")])
    assert list(problems(transcript, said))
    assert list(problems(parse("💬: see @@b@@\n\n🤖:[Demo]\n"), said)) == []
    assert list(problems(parse("💬: see @@b@@ now\n"), said)) == []


def test_warnings_about_calls_are_not_problems_of_questions() -> None:
    transcript = parse("💬: see @@b@@\n")
    assert list(problems(transcript, [("@@b@@", "{}", "started 1")])) == []
