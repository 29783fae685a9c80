"""Rare sessions, whose agents leave something out, forget it, change it, or never do it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from parley.acp import agent_session
from parley.acp.agent_processes import AgentProcesses
from parley.acp.agent_session import STILL_RUNNING, AgentSession
from parley.chat.reader import parse
from parley.errors import ModelError
from parley.models.acp import prompt
from parley.models.events import Event, Ran, RanResult
from parley.models.request import Request
from parley.settings.values import ProviderSettings
from parley.tools.agent_calls import NOT_AWAITED
from tests.acp.agent_runs import CHAT, AgentRun, calls, running, said
from tests.acp.test_agent_processes import MODES, QUESTION, RUN, ask, until, with_results
from tests.pictures import png

START = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}


async def test_a_session_that_cannot_be_loaded_is_replaced(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[{"say": "Yes."}]], "initialize": START,
                              "session/load": {"error": {"code": -32000, "message": "no"}}})  # fmt: skip
    async with running(run) as agents:
        await run.reply(agents, QUESTION)
    async with running(run) as agents:
        await run.reply(agents, f"{QUESTION}\n🤖:[A]\n\nYes.\n\n💬: More.\n")
    assert len(run.received("session/new")) == 2
    assert "Yes." in run.received("session/prompt")[1]["prompt"][0]["text"]


async def test_a_stop_while_a_session_is_loaded_does_not_block_the_chat(tmp_path: Path) -> None:
    script = {"prompts": [[{"say": "Yes."}]], "initialize": START}
    run = AgentRun(tmp_path, script)
    async with running(run) as agents:
        await run.reply(agents, QUESTION)
    run = AgentRun(tmp_path, script | {"silent": ["session/load"]})
    async with running(run) as agents:
        text = f"{QUESTION}\n🤖:[A]\n\nYes.\n\n💬: More.\n"
        for asked in (1, 2):
            asking = asyncio.ensure_future(run.reply(agents, text))
            await until(lambda n=asked: len(run.received("session/load")) == n)  # type: ignore[misc]
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking


@pytest.mark.parametrize("response", [{}, {"sessionId": ""}, {"sessionId": 7}])
async def test_a_session_needs_an_id(tmp_path: Path, response: Any) -> None:
    run = AgentRun(tmp_path, {"prompts": [[]], "session/new": response})
    async with running(run) as agents:
        with pytest.raises(ModelError, match=r"without an id|refused session/new"):
            await run.reply(agents, QUESTION)


async def test_two_chats_never_share_a_session(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[{"say": "a"}]], "session/new": {"sessionId": "s"}})
    async with running(run) as agents:
        await run.reply(agents, QUESTION)
        with pytest.raises(ModelError, match="two sessions"):
            async for _ in agents.stream(run.provider, run.request(QUESTION), "other.md", tmp_path):
                pass


async def test_an_option_that_stays_in_its_mode_is_not_asked(tmp_path: Path) -> None:
    option = {"id": "m", "category": "mode", "currentValue": "auto",
              "options": [{"value": "auto"}, {"value": "default"}]}  # fmt: skip
    new = {"sessionId": "s", "configOptions": [option]}
    run = AgentRun(
        tmp_path, {"prompts": [[]], "session/new": new, "session/set_config_option": new}
    )
    async with running(run) as agents:
        with pytest.raises(ModelError, match="did not switch to the mode default"):
            await run.reply(agents, QUESTION)
    assert run.received("session/prompt") == []


def mode(name: str) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "current_mode_update", "currentModeId": name}}


@pytest.mark.parametrize("can_set", [True, False])
async def test_an_agent_that_insists_on_a_mode_is_ended(tmp_path: Path, can_set: bool) -> None:
    option = {"sessionUpdate": "config_option_update", "configOptions": [
        {"id": "m", "category": "mode", "currentValue": "yolo", "options": []}]}  # fmt: skip
    steps: list[Any] = [mode("yolo"), {"update": option}, *[mode("yolo")] * 5, {"wait": "cancel"}]
    start = {"currentModeId": "default", "availableModes": MODES["availableModes"]}
    script: dict[str, Any] = {"prompts": [steps], "session/new": {"sessionId": "s", "modes": start}}
    run = AgentRun(tmp_path, script | ({"session/set_mode": {}} if can_set else {}))
    async with running(run) as agents:
        with pytest.raises(ModelError, match="ended during its turn"):
            await run.reply(agents, QUESTION)


async def test_an_agent_that_ignores_a_cancel_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_session, "CANCEL_S", 0.05)
    run = AgentRun(tmp_path, {"prompts": [[{"say": "a"}, {"sleep": 60}]]})
    async with running(run) as agents:
        for _ in range(2):
            stream = agents.stream(run.provider, run.request(QUESTION), CHAT, tmp_path)
            await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]
        assert len(run.received("initialize")) == 2


async def test_a_silent_agent_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_session, "LONG_S", 0.01)
    monkeypatch.setattr(agent_session, "SILENT_S", 0.05)
    run = AgentRun(tmp_path, {"prompts": [[{"wait": "cancel"}]]})
    async with running(run) as agents:
        with pytest.raises(ModelError, match="sent nothing"):
            await run.reply(agents, QUESTION)


async def test_the_time_in_which_the_user_decides_is_no_silence_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_session, "LONG_S", 0.05)
    monkeypatch.setattr(agent_session, "SILENT_S", 0.5)
    run = AgentRun(tmp_path, {"prompts": [[ask(RUN), {"sleep": 0.2}, {"say": "Ok."}]]})
    async with running(run) as agents:
        call = calls(await run.reply(agents, QUESTION))[0]
        await asyncio.sleep(0.6)
        text = with_results(f"{QUESTION}\n🤖:[A]\n\nx\n", call, status="refused")
        assert said(await run.reply(agents, text)) == "Ok."


async def test_a_long_call_is_shown_however_late_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_session, "LONG_S", 0.05)
    monkeypatch.setattr(agent_session, "SILENT_S", 0.5)
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "in_progress"}
    progress = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "x"}
    steps: list[Any] = [{"sleep": 0.3}, {"update": call}]
    steps += [{"sleep": 0.3}, {"update": progress}] * 3  # it is not silent all the time
    run = AgentRun(tmp_path, {"prompts": [[*steps, {"say": "Ok."}]]})
    seen = list[Event]()
    async with running(run) as agents:
        async for event in agents.stream(run.provider, run.request(QUESTION), CHAT, tmp_path):
            seen.append(event)
    ran = next(n for n, event in enumerate(seen) if isinstance(event, Ran))
    ended = next(n for n, event in enumerate(seen) if isinstance(event, RanResult))
    assert ran < ended
    assert said(seen) == "Ok."


async def test_a_call_in_a_call_does_not_wait_for_the_outer_one(tmp_path: Path) -> None:
    inner = {"ask": {"toolCallId": "inner", "title": "inner", "kind": "read"}}
    run = AgentRun(tmp_path, {"prompts": [[ask(RUN, then=[inner]), {"say": "Ok."}]]})
    async with running(run) as agents:
        outer = calls(await run.reply(agents, QUESTION))[0]
        assert (await agents.call(CHAT, outer.call.id)).text == STILL_RUNNING
        text = with_results(f"{QUESTION}\n🤖:[A]\n\nx\n", outer, words=STILL_RUNNING)
        second = calls(await run.reply(agents, text))[0]
        assert (await agents.call(CHAT, second.call.id)).text == "done"


async def test_cancelling_a_call_cancels_the_prompt(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[ask(RUN, then=[{"wait": "cancel"}])]]})
    async with running(run) as agents:
        call = calls(await run.reply(agents, QUESTION))[0]
        waiting = asyncio.ensure_future(agents.call(CHAT, call.call.id))
        await until(lambda: len(run.answers()) == 1)
        waiting.cancel()
        await until(lambda: len(run.received("session/cancel")) == 1)
        assert (await agents.call(CHAT, call.call.id)).text == NOT_AWAITED


async def test_an_agent_that_ends_its_turn_leaves_no_call_open(tmp_path: Path) -> None:
    ended = {"raw": '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'}
    asking = {"raw": '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":'
                     '{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}}'}  # fmt: skip
    steps = [asking, {"sleep": 0.2}, ended, {"wait": "cancel"}]
    run = AgentRun(tmp_path, {"prompts": [steps], "session/new": {"sessionId": "s"}})
    async with running(run) as agents:
        call = calls(await run.reply(agents, QUESTION))[0]
        await until(lambda: not agents.awaits(CHAT, call.call.id))
        assert (await agents.call(CHAT, call.call.id)).text == NOT_AWAITED
        text = with_results(f"{QUESTION}\n🤖:[A]\n\nx\n", call, status="error", words=NOT_AWAITED)
        assert "ended its turn" in said(await run.reply(agents, text))


async def test_the_agents_commands_are_known(tmp_path: Path) -> None:
    update = {"sessionUpdate": "available_commands_update",
              "availableCommands": [{"name": "review"}, 3, {"name": 4}]}  # fmt: skip
    run = AgentRun(tmp_path, {"prompts": [[{"update": update}, {"say": "Ok."}]]})
    async with running(run) as agents:
        await run.reply(agents, QUESTION)
        session: AgentSession = agents._sessions[CHAT]
        assert [each.word for each in session.options.offer.commands] == ["review"]
        session.update({"sessionUpdate": "available_commands_update"})
        assert not session.options.offer.commands


def test_a_picture_is_sent_to_an_agent_that_takes_pictures() -> None:
    digest = "a" * 64
    path = f"c.assets/{digest}.png"
    transcript = parse(f"💬: Look.\n\n![image]({path})\n")
    request = Request(transcript, 0, "coder", "default", pictures={path: png()})
    kinds = [block["type"] for block in prompt(request, is_new=False)]
    assert kinds == ["text", "image"]
    assert [b["type"] for b in prompt(request, is_new=False, with_pictures=False)] == ["text"] * 2


_HOST = """
import asyncio, os, sys
from pathlib import Path
from parley.acp.agent_process import AgentProcess
from parley.processes.reaper import Reaper
from parley.settings.values import ProviderSettings

async def main():
    provider = ProviderSettings("p", "acp", command=tuple(sys.argv[1:]))
    process = AgentProcess(provider, Path("/"), dict(os.environ), Reaper())
    await process.started()
    print(process._process.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_no_agent_outlives_its_host(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[]]})
    host = subprocess.Popen(
        [sys.executable, "-c", _HOST, *run.provider.command], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout
    agent = int(host.stdout.readline())
    os.kill(host.pid, signal.SIGKILL)
    host.wait()
    host.stdout.close()

    async def gone() -> None:
        await until(lambda: not Path(f"/proc/{agent}/cmdline").exists() or not Path(
            f"/proc/{agent}/cmdline").read_bytes())  # fmt: skip

    asyncio.run(gone())


async def test_an_agent_over_the_packages_own_side_understands_every_message(
    tmp_path: Path,
) -> None:
    agent = Path(__file__).parent / "schema_agent.py"
    run = AgentRun(tmp_path, {"prompts": [[]]})
    provider = ProviderSettings("schema", "acp", command=(sys.executable, str(agent)))

    async def reply(agents: AgentProcesses, text: str) -> list[Event]:
        stream = agents.stream(provider, run.request(text), CHAT, tmp_path)
        return [event async for event in stream]

    async with running(run) as agents:
        first = await reply(agents, QUESTION)
        (call,) = calls(first)
        assert said(first) == "In mode default. "
        assert call.call.name == "edit"
        assert '"oldText":"a"' in call.call.arguments
        assert (await agents.call(CHAT, call.call.id)).status == "ok"
        answered = with_results(
            f"{QUESTION}\n🤖:[A]\n\nIn mode default.\n", call, words="changed /p/a"
        )
        last = said(await reply(agents, answered))
        assert "option_id='2'" in last
    async with running(run) as agents:
        events = await reply(agents, f"{answered}\n{last}\n\n💬: More.\n")
        assert said(events) == "In mode default. "
        agents._sessions[CHAT].cancel()
