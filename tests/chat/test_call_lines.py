"""A call on its line: legible, exact, and refused if readers could differ."""

from __future__ import annotations

import json

import pytest

from parley.chat.call_lines import (
    proposal_json,
    proposal_line,
    read_call,
    split_proposal,
    strict_json,
)
from parley.chat.edits import written_calls
from parley.chat.transcript import ToolCall

HIDDEN = [
    "\u200b",
    "\u202e",
    "\u2066",
    "\u00ad",
    "\u2028",
    "\u0085",
    "\ufeff",
    "\x7f",
    "\U000e0041",
]


@pytest.mark.parametrize("hidden", HIDDEN, ids=ascii)
def test_hidden_characters_are_written_as_codes_and_read_back(hidden: str) -> None:
    call = ToolCall(
        "c",
        f"web{hidden}search",
        f'{{"q":"a{hidden}b"}}',
        0,
        f'{{"x":"{hidden}"}}' if hidden > " " else "",
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
    with pytest.raises(ValueError, match='expected a whole number for "index"'):
        read_call(text)


def test_a_choice_is_in_brackets_and_the_call_in_backticks() -> None:
    line = proposal_line(ToolCall("c", "f", "{}"), "ya")
    mark, text, _ = split_proposal(line.partition(":")[2])
    assert (mark, read_call(text)) == ("ya", ToolCall("c", "f", "{}"))


def test_the_calls_of_one_reply_are_written_with_distinct_ids() -> None:
    long = "x" * 128
    made = [ToolCall(call_id, "f", "{}") for call_id in ("a", "a", "a.2", "a", long, long)]
    written = written_calls(made)
    assert [call.index for call in written] == [0, 1, 2, 3, 4, 5]
    assert [call.id for call in written] == ["a", "a.2", "a.2.2", "a.3", long, "x" * 120 + ".2"]


FUNCTION = {"name": "f", "arguments": "{}"}
FLAWS = {
    "[]": "expected a JSON object",
    '{"type":"other"}': 'expected "type":"function"',
    '{"id":"c"}': 'expected "function":',
    '{"function":[]}': 'expected "function":',
    '{"function":{"name":"","arguments":"{}"}}': 'expected a string for "name"',
    '{"function":{"name":1,"arguments":"{}"}}': 'expected a string for "name"',
    '{"function":{"name":"f","arguments":{}}}': 'expected a string for "arguments"',
    json.dumps({"function": FUNCTION}): 'expected an "id"',
    json.dumps({"function": FUNCTION, "id": "a b"}): 'expected an "id"',
    '{"id":"c","id":"c"}': "a key appears twice",
    '{"index":NaN}': "NaN is not JSON",
    '{"index":1e999}': "a number is too large",
    "[" * 200 + "]" * 200: "nested too deeply",
    "[" * 100_000: "nested too deeply",
}


@pytest.mark.parametrize(("text", "flaw"), FLAWS.items(), ids=lambda text: text[:40])
def test_a_call_that_readers_could_read_differently_is_refused(text: str, flaw: str) -> None:
    with pytest.raises(ValueError, match=flaw) as error:
        read_call(text)
    assert "\n" not in str(error.value)


def test_unknown_keys_of_a_call_are_kept() -> None:
    call = read_call(json.dumps({"id": "c", "function": {**FUNCTION, "strict": True}, "more": [1]}))
    assert strict_json(call.extra) == {"function": {"strict": True}, "more": [1]}
    assert read_call(proposal_json(call)) == call
