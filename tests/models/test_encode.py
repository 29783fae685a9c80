"""The parts of requests that differ from the file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from parley.chat.history import history
from parley.chat.reader import parse, parse_lines
from parley.chat.reread import LineChange, reread
from parley.chat.transcript import (
    Answer,
    Exchange,
    Proposal,
    Question,
    Result,
    Text,
    ToolCall,
    Transcript,
)
from parley.chat.writer import render
from parley.models.encode import SHORT_ID, STRICT_ID, wire_ids
from parley.models.formats import FORMATS
from tests.defaults import CHAT_SETTINGS

REQUEST = CHAT_SETTINGS.request

IDS = ["a.b", "a:b", "a_b", "a-b", "x" * 100, "x" * 101, "x" * 63 + ".", "x" * 63 + ":"]


def ids_of(*call_ids: str, fits: str = "strict") -> list[str]:
    """The ids on the wire for one chat's calls."""
    proposals = [
        Proposal(ToolCall(each, "f", "{}", n), "ya", Result("ok", "x"))
        for n, each in enumerate(call_ids)
    ]
    exchange = Exchange(Question((Text("q"),)), (Answer(None, (*proposals, Text("done"))),))
    turns = history(parse(render(Transcript((exchange,)))), 0, max_full_exchanges=None)
    return list(wire_ids(turns, STRICT_ID if fits == "strict" else SHORT_ID).values())


@pytest.mark.parametrize("fits", ["strict", "short"])
def test_invalid_ids_stay_distinct(fits: str) -> None:
    ids = ids_of(*IDS, fits=fits)
    assert len(set(ids)) == len(IDS)
    pattern = STRICT_ID if fits == "strict" else SHORT_ID
    assert all(pattern.fullmatch(each) for each in ids)


def test_an_id_equal_to_a_replacement_stays_distinct() -> None:
    (stand_in,) = ids_of("a.b")
    assert len(set(ids_of("a.b", stand_in))) == 2
    assert len(set(ids_of(stand_in, "a.b"))) == 2


def test_a_valid_id_stays_regardless_of_the_text_before_it() -> None:
    assert ids_of("a.b", "a:b", "a_b")[2] == "a_b"


@pytest.mark.parametrize("name", FORMATS)
def test_only_new_parts_are_rendered(name: str) -> None:
    lines = [
        line
        for n in range(3)
        for line in (f"\U0001f4ac: ask {n}", "", "\U0001f916:", "", f"say {n}", "")
    ]
    lines += ["\U0001f4ac: ask 3"]
    longer = [*lines, "", "\U0001f916:", "", "say 3", "", "\U0001f4ac: ask 4"]
    before = parse_lines(lines)
    after = reread(before, LineChange(len(lines), len(lines), 6), longer)
    one, other = (
        [
            id(piece)
            for piece in _pieces(FORMATS[name].body(replace(REQUEST, transcript=each, at=at)))
        ]
        for each, at in ((before, 3), (after, 4))
    )
    assert (len(one), len(other)) == (7, 9)
    assert other[:4] == one[:4]  # the user's last two messages are marked for Anthropic, and so new


def _pieces(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts created from turns: messages, or each message's first block."""
    messages = body.get("messages") or body["input"]
    return [
        m["content"][0] if isinstance(m["content"], list) else m
        for m in messages
        if m["role"] != "system"
    ]
