"""The question for a rewrite, and the new lines in its answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.grammar import escape
from parley.chat.reader import parse_lines
from parley.errors import ParleyError
from parley.policy.rewrites import answer_state, new_lines, rewrite_question

OLD = ["    one", "", "      two"]
CALL = '❓: `{"id":"c1","name":"files__read","arguments":{}}`'


def chat(*answer: str) -> list[str]:
    return ["💬: change it", "", "🤖: [Demo]", "", *answer]


def lines_from(*answer: str) -> list[str]:
    lines = chat(*answer)
    return new_lines(parse_lines(lines).exchanges[0], lines, OLD)


BLOCKS = st.lists(st.sampled_from(["    a", "      b", "", "    💬: c", "    ~~~"]), min_size=1)


@given(BLOCKS.filter(any))
def test_the_block_is_taken_as_it_is(block: list[str]) -> None:
    escaped = [line for each in block for line in escape(each)]
    assert lines_from("Here:", "", "```python", *escaped, "```", "", "Done.") == block


def test_a_block_without_indentation_gets_that_of_the_old_lines() -> None:
    assert lines_from("```", "💬", "", "  b", "```") == ["    💬", "", "      b"]
    assert lines_from("```", "  a", "```") == ["  a"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (["I will not."], "no code block"),
        (["```", "a", "```", "", "```", "b", "```"], "2 code blocks"),
        (["```", "a", "# ... rest unchanged", "```"], r"leaves out lines \(# ... rest unchanged"),
    ],
)
def test_other_answers_are_refused_with_the_reason(answer: list[str], why: str) -> None:
    with pytest.raises(ParleyError, match=why):
        lines_from(*answer)


def test_only_a_complete_answer_counts() -> None:
    def state(*lines: str) -> str:
        return answer_state(parse_lines(list(lines)).exchanges[0])

    assert state("💬: change it") == "unfinished"
    assert state(*chat("```", "a", "```")) == "complete"
    assert state(*chat("```", "a", "```", "", "🔒: [Stopped: by the user]")) == "unfinished"
    assert state(*chat("I look.", "", CALL)) == "waiting"


def test_the_question_begins_with_the_instruction() -> None:
    first, blank, request = rewrite_question("make it louder").split("\n")
    assert (first, blank) == ("make it louder", "")
    assert "exactly one code block" in request
