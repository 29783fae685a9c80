"""What goes out in another way than the file says it."""

from __future__ import annotations

import pytest

from parley.chat.history import history
from parley.chat.reader import parse
from parley.chat.transcript import Answer, Exchange, Proposal, Question, Result, Text, ToolCall, Transcript
from parley.chat.writer import render
from parley.models.encode import SHORT_ID, STRICT_ID, wire_ids

IDS = ["a.b", "a:b", "a_b", "a-b", "x" * 100, "x" * 101, "x" * 63 + ".", "x" * 63 + ":"]


def ids_of(*call_ids: str, fits: str = "strict") -> list[str]:
    """The ids on the wire of calls in one chat."""
    proposals = [
        Proposal(ToolCall(each, "f", "{}", n), "ya", Result("ok", "x")) for n, each in enumerate(call_ids)
    ]
    exchange = Exchange(Question((Text("q"),)), (Answer(None, (*proposals, Text("done"))),))
    turns = history(parse(render(Transcript((exchange,)))), 0, max_full_exchanges=None)
    return list(wire_ids(turns, STRICT_ID if fits == "strict" else SHORT_ID).values())


@pytest.mark.parametrize("fits", ["strict", "short"])
def test_ids_that_do_not_fit_are_told_apart(fits: str) -> None:
    ids = ids_of(*IDS, fits=fits)
    assert len(set(ids)) == len(IDS)
    pattern = STRICT_ID if fits == "strict" else SHORT_ID
    assert all(pattern.fullmatch(each) for each in ids)


def test_an_id_that_is_really_called_like_a_stand_in_is_told_apart_from_it() -> None:
    (stand_in,) = ids_of("a.b")
    assert len(set(ids_of("a.b", stand_in))) == 2
    assert len(set(ids_of(stand_in, "a.b"))) == 2


def test_an_id_that_fits_stays_whatever_stands_before_it() -> None:
    assert ids_of("a.b", "a:b", "a_b")[2] == "a_b"
