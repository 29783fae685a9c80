"""The beginning of each round, from the model's text and its calls' numbers."""

from __future__ import annotations

from parley.chat.rounds import Notice, resumption, rounds
from parley.chat.transcript import Answer, Broken, Note, Proposal, Segment, Text, Thinking, ToolCall


def proposal(index: int | None) -> Proposal:
    return Proposal(ToolCall(f"call_{index}", "f", "{}", index))


def sizes(*segments: Segment) -> list[int]:
    """The number of segments in each round."""
    return [len(each.segments) for each in rounds(Answer(None, segments))]


def test_text_after_a_call_begins_a_round_and_restarts_the_numbers() -> None:
    assert sizes(proposal(0), proposal(1), Text("b"), proposal(0), proposal(1)) == [2, 3]
    assert sizes(proposal(2), Thinking("p", "m", "hm"), Text("b"), proposal(1)) == [1, 3]


def test_a_number_that_does_not_grow_begins_a_round() -> None:
    assert sizes(Text("a"), proposal(0), proposal(1), proposal(0)) == [3, 1]
    assert sizes(proposal(0), proposal(0)) == [1, 1]
    assert sizes(proposal(0), proposal(None), proposal(2)) == [3]


def test_an_unreadable_call_counts_as_a_call_and_a_note_does_not() -> None:
    assert sizes(Broken("proposal", "❓: {"), Text("b"), proposal(0)) == [1, 2]
    assert sizes(Text("a"), Note("n"), proposal(0), Note("n"), proposal(1)) == [5]


def test_the_note_in_a_resumed_turn_is_in_english() -> None:
    assert resumption(Notice("Stopped", "by the user")) == "[Resumed after: stopped by the user]"
    assert resumption(Notice("Interrupted", "demo broke off")) == "[Resumed after: demo broke off]"
