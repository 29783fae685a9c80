"""A call on its line: legible, exact, and refused where readers could differ."""

from __future__ import annotations

import pytest

from parley.chat.calls import proposal_json, proposal_line, read_call, split_proposal
from parley.chat.edits import written_calls
from parley.chat.transcript import ToolCall

HIDDEN = ["\u200b", "\u202e", "\u2066", "\u00ad", "\u2028", "\u0085", "\ufeff", "\x7f", "\U000e0041"]


@pytest.mark.parametrize("hidden", HIDDEN, ids=ascii)
def test_what_does_not_show_is_written_as_its_code_and_read_back(hidden: str) -> None:
    call = ToolCall(
        "c", f"web{hidden}search", f'{{"q":"a{hidden}b"}}', 0, f'{{"x":"{hidden}"}}' if hidden > " " else ""
    )
    written = proposal_json(call)
    assert hidden not in written
    assert r"\u" in written
    assert read_call(written) == read_call(proposal_json(read_call(written)))
    assert (read_call(written).name, read_call(written).arguments) == (call.name, call.arguments)
    assert hidden not in proposal_line(call, "ya")


@pytest.mark.parametrize("index", ["true", "false", "-1", "1.0", '"0"', "[]"])
def test_an_index_is_a_whole_number(index: str) -> None:
    text = f'{{"index":{index},"id":"c","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}'
    with pytest.raises(ValueError, match='expected a whole number as "index"'):
        read_call(text)


def test_a_choice_stands_in_brackets_and_the_call_between_backticks() -> None:
    line = proposal_line(ToolCall("c", "f", "{}"), "ya")
    mark, text, _ = split_proposal(line.partition(":")[2])
    assert (mark, read_call(text)) == ("ya", ToolCall("c", "f", "{}"))


def test_calls_of_one_reply_are_written_with_ids_unlike_each_other() -> None:
    long = "x" * 128
    made = [ToolCall(call_id, "f", "{}") for call_id in ("a", "a", "a.2", "a", long, long)]
    written = written_calls(made)
    assert [call.index for call in written] == [0, 1, 2, 3, 4, 5]
    assert [call.id for call in written] == ["a", "a.2", "a.2.2", "a.3", long, "x" * 120 + ".2"]
