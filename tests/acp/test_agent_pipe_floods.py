"""Hostile agents over a real pipe: nothing hangs or fills the memory, and nothing runs without a yes.

`test_agent_pipe.py` has junk and forged messages.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from parley.acp import agent_pipe
from parley.acp.agent_pipe import MOST_OPEN, AgentPipe
from parley.errors import ModelError
from parley.models.events import Finished
from tests.acp.agent_runs import CHAT, AgentRun, calls, running, said
from tests.acp.test_agent_pipe import GOOD, Writer, permission
from tests.acp.test_agent_processes import EDIT, QUESTION, RUN, ask, until, with_results

ROOT = Path(__file__).resolve().parents[2]
NEW = {"sessionId": "s"}
CANCELLED = {"outcome": {"outcome": "cancelled"}}


def update(text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "agent_message_chunk", "content": content}


def line(method: str, number: int | None = None, **params: Any) -> str:
    more = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more})


async def test_only_some_messages_are_read_in_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_pipe, "MOST_A_SECOND", 50)
    reader, count = asyncio.StreamReader(), 0
    reader.feed_data((json.dumps(GOOD) + "\n").encode() * 1000)
    writer: Any = Writer()
    pipe = AgentPipe(reader, writer, lambda: False, lambda: None, print)
    try:
        async with asyncio.timeout(0.3):
            while await pipe.receive():
                count += 1
    except TimeoutError:
        pass
    assert count <= 100  # the limits of two seconds


async def test_two_permissions_with_one_id_need_a_yes_each(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[ask(RUN, RUN), {"say": "Ok."}]], "session/new": NEW})
    async with running(run) as agents:
        first, second = calls(await run.reply(agents, QUESTION))
        assert first.call.id != second.call.id
        agents.dismiss(CHAT, {second.call.id: ""})
        await agents.call(CHAT, first.call.id)
    outcomes = [answer["outcome"]["optionId"] for answer in run.answers()]
    assert sorted(outcomes) == ["no", "yes"]


async def test_an_id_that_returns_with_another_call_needs_another_yes(tmp_path: Path) -> None:
    other = {**EDIT, "toolCallId": RUN["toolCallId"]}
    run = AgentRun(tmp_path, {"prompts": [[ask(RUN), ask(other), {"say": "Ok."}]]})
    async with running(run) as agents:
        first = calls(await run.reply(agents, QUESTION))[0]
        await agents.call(CHAT, first.call.id)
        text = with_results(f"{QUESTION}\n🤖:[A]\n\nx\n", first)
        second = calls(await run.reply(agents, text))[0]
        assert second.call.name == "edit"
        assert len(run.answers()) == 1
        agents.dismiss(CHAT, {second.call.id: ""})
        await until(lambda: len(run.answers()) == 2)
    assert [each["outcome"]["optionId"] for each in run.answers()] == ["yes", "no"]


async def test_a_permission_after_the_end_of_the_turn_is_cancelled(tmp_path: Path) -> None:
    ended = {"raw": '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'}
    steps = [ended, {"sleep": 0.2}, {"raw": permission("s")}, {"wait": "cancel"}]
    run = AgentRun(tmp_path, {"prompts": [steps], "session/new": NEW})
    async with running(run) as agents:
        assert (await run.reply(agents, QUESTION))[-1] == Finished("complete")
        await until(lambda: CANCELLED in run.answers())
    assert "selected" not in run.log.read_text()


async def test_sessions_that_parley_did_not_begin_are_ignored(tmp_path: Path) -> None:
    foreign = [{"raw": line("session/update", sessionId=f"x{n}", update=update("no"))}
               for n in range(500)]  # fmt: skip
    asks = [{"raw": permission(f"x{number}")} for number in range(50)]
    run = AgentRun(tmp_path, {"prompts": [[*foreign, *asks, {"say": "Ok."}]], "session/new": NEW})
    async with running(run) as agents:
        events = await run.reply(agents, QUESTION)
        assert (said(events), calls(events)) == ("Ok.", [])
        process = next(iter(agents._processes.values()))
        assert list(process.sessions) == ["s"]
        await until(lambda: len(run.answers()) == 50)
    assert all(answer == CANCELLED for answer in run.answers())


async def test_requests_of_unknown_methods_are_refused(tmp_path: Path) -> None:
    methods = ("session/new", "initialize", "terminal/create", "elicitation/create", "x" * 5000)
    asks = [{"raw": line(method, number)} for number, method in enumerate(methods * 50)]
    run = AgentRun(tmp_path, {"prompts": [[*asks, {"say": "Ok."}]]})
    async with running(run) as agents:
        assert said(await run.reply(agents, QUESTION)) == "Ok."
        await until(lambda: len(run.answers()) == len(asks))
    assert {answer["code"] for answer in run.answers()} == {-32601}


async def test_an_agent_that_asks_but_never_reads_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_pipe, "_SEND_S", 0.3)
    monkeypatch.setattr(agent_pipe, "MOST_A_SECOND", 100_000)
    flood = {"raw": line("x" * 50, 7), "times": 20_000}
    run = AgentRun(tmp_path, {"prompts": [[flood, {"wait": "cancel"}]]})
    async with running(run) as agents:
        with pytest.raises(ModelError, match="ended during its turn"):
            await run.reply(agents, QUESTION)


async def test_no_more_requests_are_read_than_may_be_open() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data((line("m", 1) + "\n").encode() * (MOST_OPEN + 50))
    writer: Any = Writer()
    pipe = AgentPipe(reader, writer, lambda: False, lambda: None, print)
    for _ in range(MOST_OPEN):
        assert await pipe.receive()
    waiting = asyncio.ensure_future(pipe.receive())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await pipe.send({"id": 1, "result": None})
    assert await waiting


_HOST = """
import asyncio, resource, sys
from pathlib import Path
from tests.acp.agent_runs import CHAT, AgentRun, calls, running
from tests.acp.test_agent_processes import QUESTION, RUN
from tests.acp.test_agent_pipe_floods import FLOODS, NEW, permission

def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

async def main(folder):
    made = []
    for number, steps in enumerate([[{"say": "Ok."}], *FLOODS]):
        (folder / str(number)).mkdir()
        prompt = [*steps, {"raw": permission("s", options=[])}, *steps, {"wait": "cancel"}]
        run = AgentRun(folder / str(number), {"prompts": [prompt], "session/new": NEW})
        async with running(run) as agents:
            (call,) = calls(await run.reply(agents, QUESTION))
            await asyncio.sleep(0.5)  # the flood continues, and nothing takes it
            assert run.answers() == []
        made.append(peak_mb())
    print(*made)

asyncio.run(main(Path(sys.argv[1])))
"""
FLOODS: list[list[dict[str, Any]]] = [
    [{"update": {**update("x" * 20_000), "extra": ["y"] * 1000}, "times": 250}],
    [{"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t", "rawOutput": "x" * 8_000_000},
      "times": 5}],
    [{"update": {"sessionUpdate": "tool_call", "toolCallId": f"{n}", "title": "t" * 10_000,
                 "rawInput": "x" * 1_500_000}} for n in range(30)],
    [{"stderr": "x" * 100_000, "times": 200}],
    [{"raw": "[" * 100_000, "times": 100}],
]  # fmt: skip
MOST_MB = 250


def test_no_flood_fills_the_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOST, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, *floods = map(float, done.stdout.split())
    assert max(floods) - first < MOST_MB, done.stdout
