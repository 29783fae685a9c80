"""The records of an agent's calls."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from hypothesis import strategies as st

from parley.models.agent_records import (
    MOST_CALLS,
    MOST_OF_A_CALL,
    AgentRecords,
    AskedCallEnded,
    RanByAgent,
    size_of,
)
from parley.tools.agent_calls import diffs_of, paths_of
from tests.spoiled import spoiled


def records() -> AgentRecords:
    numbers = count(1)
    return AgentRecords(lambda: f"own.{next(numbers)}", 1000)


def update(call_id: object = "t", **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}


def test_a_call_is_certain_when_it_has_ended() -> None:
    kept = records()
    assert kept.take(update(title="Look", kind="read", locations=[{"path": "/a"}, 1])) is None
    blocks = [{"type": "content", "content": {"type": "text", "text": "found"}},
              {"type": "diff", "path": "/b", "newText": "b"}]  # fmt: skip
    ran = kept.take(update(status="completed", content=blocks))
    assert isinstance(ran, RanByAgent)
    assert (ran.call.id, ran.call.name, ran.outcome.status) == ("own.1", "read", "ok")
    assert ran.outcome.text == "found\nchanged /b"


def printed(*pieces: str, code: int | None = None) -> dict[str, Any]:
    """The fields of an update about an agent's own terminal."""
    data = "".join(pieces)
    ended = {} if code is None else {"terminal_exit": {"exit_code": code, "terminal_id": "x"}}
    return {"_meta": {"terminal_output_delta": {"data": data, "terminal_id": "x"}, **ended}}


def test_the_output_of_an_agents_own_terminal_is_its_calls_result() -> None:
    for code, status, text in (
        (0, "completed", "hi\nho\n"),
        (3, "failed", "hi\nho\n[exit code 3]"),
    ):
        kept = records()
        kept.take(update(kind="execute", content=[{"type": "terminal", "terminalId": "x"}]))
        assert kept.ask(update())
        assert kept.take(update(**printed("hi\n"))) is None
        ended = kept.take(update(status=status, **printed("ho\n", code=code)))
        assert isinstance(ended, AskedCallEnded)
        assert ended.outcome.text == text


def test_the_output_of_an_agents_own_terminal_is_limited() -> None:
    kept = records()
    kept.take(update(content=[{"type": "terminal", "terminalId": "x"}]))
    for _ in range(40):
        kept.take(update(**printed("x" * 100_000)))
    for _ in range(3000):
        kept.take(update(**printed("x")))
    (record,) = kept._records.values()
    assert sum(map(len, record.printed)) < MOST_OF_A_CALL + 200_000
    assert len(record.printed) <= 1000


def test_a_permission_makes_its_call_even_if_no_update_came_before() -> None:
    kept = records()
    call = kept.ask({"toolCallId": "t", "title": "Run", "kind": "execute"})
    assert call
    assert json.loads(call.arguments) == {"title": "Run"}
    ended = kept.take(update(status="failed", rawOutput="no"))
    assert isinstance(ended, AskedCallEnded)
    assert (ended.ids, ended.outcome.status, ended.outcome.text) == (("own.1",), "error", "no")


def test_an_id_that_repeats_is_another_call() -> None:
    kept = records()
    first, second = kept.ask(update()), kept.ask(update())
    assert first
    assert second
    assert first.id != second.id
    ended = kept.take(update(status="completed"))
    assert isinstance(ended, AskedCallEnded)
    assert ended.ids == ("own.1", "own.2")
    assert kept.take({**update(title="New"), "sessionUpdate": "tool_call"}) is None
    again = kept.take(update(status="completed"))
    assert isinstance(again, RanByAgent)
    assert json.loads(again.call.arguments)["title"] == "New"


def test_a_call_that_cannot_be_shown_as_a_whole_is_not_asked_about() -> None:
    kept = records()
    assert kept.ask(update(rawInput={"text": "x" * MOST_OF_A_CALL})) is None
    assert kept.ask(update(7)) is None
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert kept.ask(update("deep", rawInput=deep)) is None


def test_memory_is_limited() -> None:
    kept = records()
    for number in range(MOST_CALLS + 10):
        kept.take(update(str(number)))
    for number in range(30):
        kept.take(update(f"large{number}", rawInput="x" * (MOST_OF_A_CALL - 1000)))
    assert len(kept._records) <= MOST_CALLS
    assert sum(record.size for record in kept._records.values()) < 40_000_000


def test_a_call_that_the_chat_has_is_never_forgotten() -> None:
    kept = records()
    raw = {"text": "x" * (MOST_OF_A_CALL - 1000)}
    asked = kept.ask(update("asked"))
    kept.take(update("shown", status="in_progress", rawInput=raw))
    (shown,) = (*kept.begun(), *kept.begun())
    for number in range(MOST_CALLS + 10):
        kept.take(update(str(number)))
    assert sum(record.size for record in kept._records.values()) < MOST_OF_A_CALL
    ended = [kept.take(update(name, status="completed")) for name in ("asked", "shown")]
    assert asked
    assert isinstance(ended[0], AskedCallEnded)
    assert isinstance(ended[1], RanByAgent)
    assert ended[0].ids == (asked.id,)
    assert (ended[1].call.id, ended[1].is_known) == (shown.call.id, True)


def test_a_call_that_runs_is_reported_once_and_ends_under_the_same_id() -> None:
    kept = records()
    kept.take(update(status="in_progress", title="Test"))
    assert list(kept.begun()) == []  # the agent may still ask
    (begun,) = kept.begun()
    assert list(kept.begun()) == []
    ended = kept.take(update(status="completed"))
    assert isinstance(ended, RanByAgent)
    assert (ended.call, ended.is_known) == (begun.call, True)
    kept.take(update("other", status="in_progress"))
    (begun,) = (*kept.begun(), *kept.begun())
    assert kept.ask(update("other"))
    asked = kept.take(update("other", status="completed"))
    assert isinstance(asked, AskedCallEnded)
    assert asked.begun == begun.call


def test_calls_without_an_outcome_end_with_the_prompt() -> None:
    kept = records()
    kept.take(update("ran", status="in_progress"))
    kept.ask(update("asked"))
    (left,) = kept.unfinished()
    assert left.outcome.status == "error"
    assert list(kept.unfinished()) == []
    kept.take(update("shown", status="in_progress"))
    (shown,) = (*kept.begun(), *kept.begun())
    kept.ask(update("shown"))
    (left,) = kept.unfinished()
    assert (left.call, left.is_known) == (shown.call, True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
DIFF = {"type": "diff", "path": "/x", "oldText": "a", "newText": "b"}
BEGUN = {
    "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "kind": "edit", "status": "pending",
    "rawInput": {"path": "/x", "more": [1]}, "locations": [{"path": "/x", "line": 1}],
    "content": [DIFF, {"type": "content", "content": {"type": "text", "text": "x"}}],
}  # fmt: skip
ENDED = {
    "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
    "rawOutput": {"a": 1},
    "content": [{"type": "content", "content": {"type": "image", "data": "aaaa", "mimeType": "image/png"}},
                {"type": "content", "content": {"type": "resource_link", "uri": "u", "name": "n"}}],
}  # fmt: skip


def test_no_update_is_an_error() -> None:
    for one in (BEGUN, ENDED):
        for odd in filter(lambda each: isinstance(each, dict), spoiled(one)):
            kept = records()
            for each in (BEGUN, odd, ENDED):
                kept.take(each)
            if call := kept.ask(odd):
                paths_of(call.name, json.loads(call.arguments))
                diffs_of(call.arguments)
            list(kept.begun())
            list(kept.begun())
            list(kept.unfinished())


def test_a_call_with_an_id_of_any_length_takes_no_room() -> None:
    kept = records()
    assert kept.ask(update("c" * 1001)) is None
    assert kept.take(update("c" * 1001, status="completed")) is None


def test_an_update_that_is_too_deep_to_measure_is_too_large() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert size_of({"sessionUpdate": "plan", "entries": deep}) > MOST_OF_A_CALL
