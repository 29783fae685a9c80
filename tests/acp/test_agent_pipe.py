"""Hostile agents: floods, junk and forged messages change nothing, run nothing and fill nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.acp import agent_pipe, agent_session
from parley.acp.agent_pipe import MOST_A_SECOND, AgentPipe
from parley.acp.agent_session import MOST_PERMISSIONS, UNASKED
from parley.errors import ModelError
from parley.models.events import Finished, Ran, RanResult
from tests.acp.agent_runs import CHAT, AgentRun, calls, running, said
from tests.acp.test_agent_processes import QUESTION, RUN, ask, with_results
from tests.models.test_agent_records import JSON

UNASKED_AND_GONE = f"{UNASKED}\ngone"


class Writer:
    """Takes everything that is sent."""

    def __init__(self) -> None:
        self.sent = b""

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None:
        pass

    def close(self) -> None:
        pass


async def received(data: bytes) -> tuple[list[Any], list[str]]:
    """The messages in these bytes, and the complaints."""
    reader, complaints = asyncio.StreamReader(), list[str]()
    reader.feed_data(data)
    reader.feed_eof()
    writer: Any = Writer()
    pipe = AgentPipe(reader, writer, lambda: False, lambda: None, complaints.append)
    messages = list[Any]()
    while (message := await pipe.receive()) is not None:
        messages.append(message)
    return messages, complaints


GOOD = {"jsonrpc": "2.0", "method": "session/update", "params": {}}


@pytest.mark.parametrize(
    "line",
    [b"npm warn", b"[" * 100_000, b"[]", b"7", b'{"id":"x","result":1}', b'{"method":3}',
     b'{"method":"m","id":{}}', b'{"method":"m","params":7}', b'{"id":1,"error":7}',
     b'{"id":1,"error":{"code":"x"}}', b"\xff\xfe"],
)  # fmt: skip
async def test_a_line_that_is_not_a_message_is_skipped_and_reported(line: bytes) -> None:
    messages, complaints = await received(line + b"\n\n" + json.dumps(GOOD).encode() + b"\n")
    assert messages == [GOOD]
    assert len(complaints) == 1


@given(st.lists(JSON, max_size=5))
def test_only_valid_messages_are_passed_on(values: list[Any]) -> None:
    lines = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    messages, _ = asyncio.run(received(lines))
    assert all(isinstance(message, dict) for message in messages)


async def test_a_line_that_is_too_long_ends_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_pipe, "MESSAGE_BYTES", 1000)
    messages, complaints = await received(b'{"method":"' + b"x" * 2000)
    assert messages == []
    assert "the agent was stopped" in complaints[0]


async def test_no_more_messages_are_read_than_may_be_kept() -> None:
    reader, is_full = asyncio.StreamReader(), True
    reader.feed_data((json.dumps(GOOD) + "\n").encode() * 3)
    writer: Any = Writer()
    pipe = AgentPipe(reader, writer, lambda: is_full, lambda: None, print)
    waiting = asyncio.ensure_future(pipe.receive())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    is_full = False
    pipe.resume()
    assert await waiting == GOOD


async def test_a_flood_waits_until_a_reply_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_session, "MOST_QUEUED", 100_000)
    words = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "x" * 10_000},
    }
    steps = [ask(RUN, then=[{"update": words, "times": 60}]), {"say": "End."}]
    run = AgentRun(tmp_path, {"prompts": [steps]})
    async with running(run) as agents:
        call = calls(await run.reply(agents, QUESTION))[0]
        outcome = await agents.call(CHAT, call.call.id)
        assert "too much" in outcome.text
        session = agents._sessions[CHAT]
        assert session._queued < 200_000
        events = [
            event async for event in session.reply("a", "b", _digest(run))
        ]  # the rest arrives when it is taken
        assert len(said(events)) == 60 * 10_000 + len("End.")


def _digest(run: AgentRun) -> Any:
    from parley.models.acp import ConversationDigest

    return ConversationDigest(run.request(QUESTION).turns())


async def test_too_many_waiting_permissions_are_cancelled(tmp_path: Path) -> None:
    many = [{**RUN, "toolCallId": str(number)} for number in range(MOST_PERMISSIONS + 20)]
    run = AgentRun(tmp_path, {"prompts": [[ask(*many), {"say": "Ok."}]]})
    async with running(run) as agents:
        made = calls(await run.reply(agents, QUESTION))
        assert len(made) == MOST_PERMISSIONS
        agents.dismiss(CHAT, {call.call.id: "" for call in made})
        while len(run.answers()) < len(many):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    outcomes = [answer["outcome"]["outcome"] for answer in run.answers()]
    assert outcomes.count("cancelled") == 20


def permission(session: str, **fields: Any) -> str:
    params = {"sessionId": session, "toolCall": RUN, "options": [], **fields}
    return json.dumps(
        {"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params}
    )


@pytest.mark.parametrize(
    "line",
    [
        permission("another"),
        permission("s", options="all"),
        permission("s", toolCall=[]),
        permission("s", toolCall={"title": "no id"}),
        json.dumps({"id": 0, "result": {"sessionId": "s"}}),  # a response again
        json.dumps({"id": 999, "result": {}}),  # a response to no request
        json.dumps({"method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": "tool_call_update", "toolCallId": "t9", "status": "completed"}}}),
    ],
)  # fmt: skip
async def test_forged_messages_grant_nothing(tmp_path: Path, line: str) -> None:
    run = AgentRun(
        tmp_path,
        {"prompts": [[{"raw": line}, {"say": "Ok."}]], "session/new": {"sessionId": "s"}},
    )
    async with running(run) as agents:
        events = await run.reply(agents, QUESTION)
        assert calls(events) == []
        assert events[-1] == Finished("complete")
    assert all(a["outcome"]["outcome"] == "cancelled" for a in run.answers())


async def test_a_permission_after_the_end_is_cancelled(tmp_path: Path) -> None:
    script = {"prompts": [[{"say": "Ok."}]], "session/new": {"sessionId": "s"}}
    run = AgentRun(tmp_path, script)
    async with running(run) as agents:
        await run.reply(agents, QUESTION)
        session = agents._sessions[CHAT]
        outcome = await session.ask({"toolCall": RUN, "options": []})
        assert outcome == {"outcome": {"outcome": "cancelled"}}


@pytest.mark.parametrize("is_declined", [False, True])
async def test_a_call_that_ran_without_waiting_says_so(tmp_path: Path, is_declined: bool) -> None:
    ran = {"sessionUpdate": "tool_call_update", "toolCallId": "t2", "status": "completed",
           "rawOutput": "gone"}  # fmt: skip
    line = permission("s", options=[{"kind": "allow_once", "optionId": "yes"}])
    steps = [{"raw": line}, {"update": ran}, {"wait": "cancel"}]
    run = AgentRun(tmp_path, {"prompts": [steps], "session/new": {"sessionId": "s"}})
    async with running(run) as agents:
        call = calls(await run.reply(agents, QUESTION))[0]
        session = agents._sessions[CHAT]
        async with asyncio.timeout(5):
            while not session._early:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        if not is_declined:
            assert (await agents.call(CHAT, call.call.id)).text == UNASKED_AND_GONE
            return
        agents.dismiss(CHAT, {call.call.id: "no"})
        text = with_results(f"{QUESTION}\n🤖:[A]\n\nx\n", call)
        stream = agents.stream(run.provider, run.request(text), CHAT, tmp_path)
        began, result = await anext(stream), await anext(stream)
        assert isinstance(began, Ran)
        assert isinstance(result, RanResult)
        assert result.outcome.text == UNASKED_AND_GONE


async def test_a_call_that_ran_without_waiting_at_the_end_of_the_turn_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_session, "TOGETHER_S", 0.3)  # the turn ends before the call is shown
    ran = {"sessionUpdate": "tool_call_update", "toolCallId": "t2", "status": "completed",
           "rawOutput": "gone"}  # fmt: skip
    line = permission("s", options=[{"kind": "allow_once", "optionId": "yes"}])
    steps = [{"raw": line}, {"update": ran}]
    run = AgentRun(tmp_path, {"prompts": [steps], "session/new": {"sessionId": "s"}})
    async with running(run) as agents:
        events = await run.reply(agents, QUESTION)
    assert calls(events) == []
    results = [event for event in events if isinstance(event, RanResult)]
    assert [each.outcome.text for each in results] == [UNASKED_AND_GONE]


async def test_an_agent_that_writes_only_junk_is_an_error(tmp_path: Path) -> None:
    run = AgentRun(
        tmp_path, {"prompts": [[{"raw": "junk", "times": 3 * MOST_A_SECOND}, {"exit": 1}]]}
    )
    async with running(run) as agents:
        with pytest.raises(ModelError, match="ended during its turn"):
            await run.reply(agents, QUESTION)
