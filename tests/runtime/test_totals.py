"""Totals over a chat's records."""

from __future__ import annotations

from typing import Any

import pytest

from parley.runtime.totals import Record, ToolTotals, Totals, totals, totals_table


def call(outcome: str, tool: str = "mock/web_search", seconds: float = 0.5) -> Record:
    return (
        0.0,
        "call",
        {"call": "call_1", "tool": tool, "outcome": outcome, "rule": "key", "seconds": seconds},
    )


def request(outcome: str = "tool_calls", purpose: str = "", **tokens: int) -> Record:
    facts: dict[str, Any] = {
        "provider": "demo",
        "outcome": outcome,
        "seconds": 1.0,
        "tokens": tokens,
    }
    return 0.0, "request", facts | ({"for": purpose} if purpose else {})


REFUSED: Record = (
    0.0,
    "refused",
    {"call": "call_2", "tool": "mock/web_search", "because": "over a limit"},
)
DECLINED: Record = (
    0.0,
    "declined",
    {"call": "call_2", "tool": "mock/web_search", "because": "yn by key"},
)
DECIDED: Record = (0.0, "decided", {"call": "call_1", "tool": "mock/web_search", "choice": "ya"})


def test_requests_and_tokens_of_a_chat_add_up_with_a_separate_count_for_the_status() -> None:
    records = [
        request(input=100, output=10, cache_read=0),
        request("cut", "status", input=20, output=3),
        request("complete", input=150, output=20, cache_read=90),
    ]
    assert totals(records) == Totals(3, 1, 3.0, {"input": 270, "output": 33, "cache_read": 90})


TRIES: dict[str, tuple[list[Record], ToolTotals]] = {
    "one that worked": ([DECIDED, call("ok")], ToolTotals(1, 1, 0, 0, 0.5)),
    "two that worked": ([call("ok"), call("ok")], ToolTotals(2, 2, 0, 0, 1.0)),
    "one that failed": ([call("error")], ToolTotals(1, 0, 1, 0, 0.5)),
    "worked at the second try": ([call("error"), call("ok")], ToolTotals(2, 0, 1, 0, 1.0)),
    "and then at the first": ([call("error"), call("ok"), call("ok")], ToolTotals(3, 1, 1, 0, 1.5)),
    "tried again after a refusal": ([REFUSED, call("ok")], ToolTotals(1, 0, 0, 1, 0.5)),
    "declined is no try": ([DECLINED, call("ok")], ToolTotals(1, 1, 0, 1, 0.5)),
    "given up, then asked anew": (
        [call("error"), request("complete"), call("ok")],
        ToolTotals(2, 1, 1, 0, 1.0),
    ),
    "still the same answer": (
        [call("error"), request("complete", "status"), request("tool_calls"), call("ok")],
        ToolTotals(2, 0, 1, 0, 1.0),
    ),
}


@pytest.mark.parametrize("why", TRIES)
def test_calls_that_worked_at_the_first_try_are_counted(why: str) -> None:
    records, expected = TRIES[why]
    assert totals(records).tools == {"mock/web_search": expected}


def test_each_tool_has_its_own_totals() -> None:
    found = totals([call("error"), call("ok", "mock/fail", 2.0)])
    assert found.tools == {
        "mock/web_search": ToolTotals(1, 0, 1, 0, 0.5),
        "mock/fail": ToolTotals(1, 1, 0, 0, 2.0),
    }


def test_totals_are_a_table_for_people_and_for_programs() -> None:
    records = [
        request(input=1200, output=34),
        call("ok", seconds=0.1),
        call("error", "mock/fail"),
        REFUSED,
    ]
    found = totals([*records, request("complete", "status", input=10, output=2)])
    assert totals_table(found) == [
        "Requests: 2 (1 for the status), 2.0 s. Tokens: 1210 input, 36 output.",
        "",
        "| tool            | calls | first try | errors | refused | seconds |",
        "| --------------- | ----- | --------- | ------ | ------- | ------- |",
        "| mock/web_search |     1 |         1 |      0 |       1 |     0.1 |",
        "| mock/fail       |     1 |         0 |      1 |       0 |     0.5 |",
    ]
    assert found.table() == {
        "requests": 2,
        "for_status": 1,
        "seconds": 2.0,
        "tokens": {"input": 1210, "output": 36},
        "tools": {
            "mock/web_search": {
                "calls": 1,
                "first_try": 1,
                "errors": 0,
                "refused": 1,
                "seconds": 0.1,
            },
            "mock/fail": {"calls": 1, "first_try": 0, "errors": 1, "refused": 0, "seconds": 0.5},
        },
    }


def test_costs_of_requests_with_a_known_price_add_up() -> None:
    at, kind, facts = request(input=10, output=2)
    found = totals(
        [(at, kind, {**facts, "cost": 0.125}), request(input=1), (at, kind, {**facts, "cost": 0.5})]
    )
    assert totals_table(found) == ["Requests: 3, 3.0 s. Tokens: 21 input, 4 output. Cost: 0.6250."]
    assert found.table()["cost"] == 0.625
    assert "cost" not in totals([request(input=1)]).table()


def test_searches_are_no_tokens() -> None:
    found = totals([request(input=1, searches=2), request(input=1, searches=1)])
    assert totals_table(found) == ["Requests: 2, 2.0 s. Tokens: 2 input. Web searches: 3."]
    assert (found.table()["tokens"], found.table()["searches"]) == ({"input": 2}, 3)


def test_no_records_have_empty_totals() -> None:
    assert totals_table(totals([])) == ["Requests: 0, 0.0 s. Tokens: none."]
