"""Rows for requests: new units are stored, earlier units are referenced."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from parley.policy.facts import Replied
from parley.storage.request_rows import packed, unpacked
from tests.ledgers import open_ledger

UNITS = st.lists(st.sampled_from("abcdef"), max_size=12).map(tuple)


@given(UNITS, UNITS)
def test_unpacked_units_equal_the_originals(
    units: tuple[str, ...], before: tuple[str, ...]
) -> None:
    assert unpacked(packed(units, before), before) == units


def test_earlier_units_become_a_run() -> None:
    assert json.loads(packed("abcdxy", "abcd")) == [[0, 4], "x", "y"]
    assert json.loads(packed("bcdaxabc", "abcd")) == [[1, 4], [0, 1], "x", [0, 3]]


def test_repeated_requests_in_a_long_chat_add_only_new_units() -> None:
    ledger = open_ledger().chat("chat.md")
    chat = [f"q{number:020}" for number in range(2_000)]
    requests = [tuple(chat[:count]) for count in range(1_000, 2_000, 2)]
    for request in requests:
        ledger.hold_request("digest", "{}", request)
        ledger.record(Replied(("t1",)))
    rows = ledger.requests()
    assert [row.units for row in rows] == requests
    assert sum(len(packed(b.units, a.units)) for a, b in pairwise(rows)) < 500 * 70


def test_another_process_may_add_to_the_same_chat() -> None:
    file = open_ledger()
    here, there = file.chat("chat.md"), file.chat("chat.md")
    for ledger, request in ((here, ("a", "b")), (there, ("a", "c")), (here, ("a", "b", "d"))):
        file.last_units.clear()
        ledger.hold_request("digest", "{}", request)
        ledger.record(Replied(()))
    assert [row.units for row in here.requests()] == [("a", "b"), ("a", "c"), ("a", "b", "d")]


def test_a_reply_without_a_request_is_not_kept() -> None:
    ledger = open_ledger().chat("chat.md")
    ledger.record(Replied(("t1",)))
    assert ledger.requests() == []
