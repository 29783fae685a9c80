"""Tasks as values: servers' descriptions of them, in both forms."""

from __future__ import annotations

from typing import Any

import pytest

from parley.tools.tasks import LONGEST_ID, TaskState, as_result, is_of, state, task_in

OLDER = {
    "taskId": "t",
    "status": "working",
    "statusMessage": "digging",
    "ttl": None,
    "pollInterval": 5000,
}
NEWER = {
    "taskId": "t",
    "status": "working",
    "statusMessage": "digging",
    "ttlMs": 1,
    "pollIntervalMs": 5000,
}


@pytest.mark.parametrize(
    "result", [{"task": OLDER, "_meta": {"a": 1}}, {"resultType": "task", **NEWER}]
)
def test_a_task_in_place_of_a_result_is_found_in_its_wrapper(result: dict[str, Any]) -> None:
    shape = as_result(result)
    assert shape is not None
    assert shape["content"] == []
    assert task_in(shape) == TaskState("t", "working", "digging", 5.0)


@pytest.mark.parametrize(
    "result",
    [
        {"content": [], "task": OLDER},
        {"content": [{"type": "text", "text": "x"}]},
        {"task": "t"},
        {"resultType": "complete", **NEWER},
        {},
    ],
)
def test_any_other_result_stays_a_result(result: dict[str, Any]) -> None:
    assert as_result(result) is None
    assert task_in(result) is None


@pytest.mark.parametrize(
    ("task", "flaw"),
    [
        ({}, "no id"),
        ({"taskId": 3, "status": "working"}, "no id"),
        ({"taskId": "", "status": "working"}, "no id"),
        ({"taskId": "t", "status": None}, "no status"),
        ({"taskId": "t" * (LONGEST_ID + 1), "status": "working"}, "its id is 4 kB long"),
        ({"taskId": "u", "status": "working"}, "another task"),
    ],
)
def test_an_invalid_task_says_why(task: dict[str, Any], flaw: str) -> None:
    with pytest.raises(ValueError, match=flaw):
        state(task, "t")


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [
        *((None, 1), ("9", 1), (True, 1), (0, 0.05), (-1, 0.05), (10**9, 60), (250, 0.25)),
        *((10**400, 60), (-(10**400), 0.05), (float("inf"), 60), (float("nan"), 60)),
    ],
)
def test_a_task_is_polled_as_often_as_its_server_wants_within_limits(
    interval: Any, seconds: float
) -> None:
    assert state(OLDER | {"pollInterval": interval}).pause_s == seconds


def test_odd_fields_of_a_task_are_ignored() -> None:
    odd = {
        "taskId": "t",
        "status": "paused",
        "statusMessage": 3,
        "inputRequests": [],
        "result": 1,
        "error": 2,
    }
    assert state(odd) == TaskState("t", "unknown")
    over = [
        state(OLDER | {"status": status}).is_over for status in ("completed", "failed", "cancelled")
    ]
    assert over == [True] * 3
    assert state(NEWER | {"status": "failed", "error": {"code": 1, "message": "no"}}).error == "no"


def test_a_result_that_names_its_task_belongs_to_no_other() -> None:
    def related(task: object) -> dict[str, Any]:
        return {"_meta": {"io.modelcontextprotocol/related-task": task}}

    results = [
        {},
        {"_meta": None},
        related(None),
        related({"taskId": "t"}),
        related({"taskId": "u"}),
    ]
    assert [is_of(result, "t") for result in results] == [True, True, True, True, False]
