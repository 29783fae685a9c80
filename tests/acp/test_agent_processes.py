"""AgentProcesses over real processes: prompts, sessions, permissions, and their ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley.acp.agent_processes import UNSAVED_CHATS
from parley.acp.agent_session import NOT_ONCE
from parley.acp.permission_request import CANCELLED
from parley.chat import call_lines
from parley.chat.result_bodies import result_lines
from parley.chat.transcript import Result, Status
from parley.errors import ModelError
from parley.models.events import AgentPlan, Aside, Finished, Ran, RanResult, ThinkingDelta
from parley.tools.agent_calls import NOT_AWAITED
from tests.acp.agent_runs import CHAT, AgentRun, calls, running, said

QUESTION = "💬: Do it.\n"
EDIT = {
    "toolCallId": "t1",
    "title": "Edit a.txt",
    "kind": "edit",
    "rawInput": {"file": "a.txt"},
    "content": [{"type": "diff", "path": "/p/a.txt", "oldText": "a", "newText": "b"}],
}
RUN = {"toolCallId": "t2", "title": "ls", "kind": "execute"}


def with_results(text: str, *made: Any, status: Status = "ok", words: str = "done") -> str:
    """The chat as it is after these calls have these results."""
    for call in made:
        line = call_lines.remark(call_lines.proposal_line(call.call), 2, "ya")
        body = result_lines(call.call.name, call.call.id, Result(status, words))
        text += "\n".join(["", line, "", *body, ""])
    return text


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def ask(*calls: Any, **rest: Any) -> dict[str, Any]:
    return {"ask": list(calls), **rest}


async def test_a_prompt_is_the_question_and_its_updates_become_the_reply(tmp_path: Path) -> None:
    update = {"sessionUpdate": "tool_call", "toolCallId": "r", "title": "look", "kind": "read"}
    steps = [
        {"think": "hm"},
        {"say": "First."},
        {"update": {**update, "status": "pending"}},
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "r", "status": "completed",
                    "rawOutput": "found"}},
        {"update": {"sessionUpdate": "plan", "entries": [{"content": "one", "status": "completed"}]}},
        {"say": "Last."},
    ]  # fmt: skip
    run = AgentRun(tmp_path, {"prompts": [steps]})
    async with running(run) as agents:
        events = await run.reply(agents, QUESTION)
    assert events[0] == ThinkingDelta("hm")
    ran = next(e for e in events if isinstance(e, Ran))
    assert json.loads(ran.call.arguments) == {"title": "look"}
    assert (ran.call.name, ran.ran_by) == ("read", "agent")
    result = next(e for e in events if isinstance(e, RanResult))
    assert (result.id, result.outcome.text) == (ran.call.id, "found")
    assert AgentPlan("- [x] one") in events
    assert said(events) == "First.\n\nLast."
    assert events[-1] == Finished("complete")
    assert run.received("session/prompt")[0]["prompt"] == [{"type": "text", "text": "Do it."}]
    new = run.received("session/new")[0]
    assert new == {"cwd": str(tmp_path), "mcpServers": []}
    assert run.received("initialize")[0]["clientCapabilities"]["fs"]["writeTextFile"] is False


async def test_a_permission_ends_the_reply_and_its_outcome_continues_the_prompt(
    tmp_path: Path,
) -> None:
    run = AgentRun(tmp_path, {"prompts": [[{"say": "Soon."}, ask(EDIT, RUN), {"say": "Done."}]]})
    async with running(run) as agents:
        first = await run.reply(agents, QUESTION)
        edit, command = calls(first)
        assert first[-1] == Finished("tool_calls")
        assert json.loads(edit.call.arguments) == {
            "title": "Edit a.txt",
            "rawInput": {"file": "a.txt"},
            "diffs": [{"path": "/p/a.txt", "oldText": "a", "newText": "b"}],
        }
        assert (edit.call.name, command.call.name) == ("edit", "execute")
        assert agents.awaits(CHAT, edit.call.id)
        assert run.answers() == []
        agents.dismiss(CHAT, {command.call.id: ""})
        outcome = await agents.call(CHAT, edit.call.id)
        assert (outcome.status, outcome.text) == ("ok", "done")
        text = with_results(f"{QUESTION}\n🤖:[A]\n\nSoon.\n", edit, command)
        second = await run.reply(agents, text)
        assert said(second) == "Done."
        assert await agents.call(CHAT, edit.call.id) != outcome
    answers = [answer["outcome"] for answer in run.answers()]
    assert {each["optionId"] for each in answers} == {"yes", "no"}
    assert len(run.received("session/prompt")) == 1


async def test_unchanged_text_continues_the_session_and_edited_text_begins_another(
    tmp_path: Path,
) -> None:
    run = AgentRun(tmp_path, {"prompts": [[{"say": "One.\n\nTwo."}]]})
    answered = f"{QUESTION}\n🤖:[A]\n\nOne.\n\nTwo.\n\n💬: And then?\n"
    async with running(run) as agents:
        await run.reply(agents, QUESTION)
        assert not any(isinstance(e, Aside) for e in await run.reply(agents, answered))
        assert run.received("session/prompt")[1]["prompt"][0]["text"] == "And then?"
        edited = answered.replace("One", "Once")
        assert any(isinstance(e, Aside) for e in await run.reply(agents, edited))
        blocks = run.received("session/prompt")[2]["prompt"]
        assert "Once." in blocks[0]["text"]
        assert blocks[1]["text"] == "And then?"
    assert len(run.received("session/new")) == 2


async def test_a_chat_without_a_file_is_not_continued_by_another_process(tmp_path: Path) -> None:
    start = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
    run = AgentRun(tmp_path, {"prompts": [[{"say": "Yes."}]], "initialize": start})
    text = f"{QUESTION}\n🤖:[A]\n\nYes.\n\n💬: More.\n"
    for each in (QUESTION, text):
        async with running(run) as agents:
            stream = agents.stream(run.provider, run.request(each), f"{UNSAVED_CHATS}1/1", tmp_path)
            assert said([event async for event in stream]) == "Yes."
    assert run.received("session/load") == []


async def test_a_wish_for_a_web_search_is_answered_once(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[{"say": "Yes."}]]})
    text = "---\nweb_search: true\n---\n\n💬: Do it.\n"
    async with running(run) as agents:
        events = await run.reply(agents, text)
        events += await run.reply(agents, f"{text}\n🤖:[A]\n\nYes.\n\n💬: More.\n")
        events += await run.reply(agents, QUESTION, web_search=True)
    news = [event.text for event in events if isinstance(event, Aside)]
    assert [each for each in news if "web" in each] == [
        "scripted itself decides whether to search the web, so web_search has no effect"
    ]


@pytest.mark.parametrize("way", ["session/load", "session/resume"])
async def test_another_process_resumes_the_session_of_unchanged_text(
    tmp_path: Path, way: str
) -> None:
    capabilities: dict[str, Any] = (
        {"loadSession": True} if way == "session/load" else {"sessionCapabilities": {"resume": {}}}
    )
    start = {"protocolVersion": 1, "agentCapabilities": capabilities}
    run = AgentRun(tmp_path, {"prompts": [[{"say": "Yes."}]], "initialize": start, way: {}})
    async with running(run) as agents:
        await run.reply(agents, QUESTION)
    async with running(run) as agents:
        events = await run.reply(agents, f"{QUESTION}\n🤖:[A]\n\nYes.\n\n💬: More.\n")
    assert said(events) == "Yes."  # without what the agent replayed
    assert len(run.received("session/new")) == 1
    assert len(run.received(way)) == 1
    assert run.received("session/prompt")[1]["prompt"][0]["text"] == "More."


async def test_stopping_cancels_the_prompt_and_every_permission(tmp_path: Path) -> None:
    run = AgentRun(
        tmp_path, {"prompts": [[{"say": "Wait."}, {"wait": "cancel"}], [{"say": "Ok."}]]}
    )
    async with running(run) as agents:
        stream = agents.stream(run.provider, run.request(QUESTION), CHAT, tmp_path)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]
        stopped = f"{QUESTION}\n🤖:[A]\n\nWait.\n\n🔒: [Stopped: by you]\n\n💬: Go on.\n"
        assert said(await run.reply(agents, stopped)) == "Ok."
    assert len(run.received("session/cancel")) == 1
    assert len(run.received("session/new")) == 1
    assert run.received("session/prompt")[1]["prompt"][0]["text"] == "Go on."


async def test_a_new_question_withdraws_the_permission_that_waits(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[ask(RUN)], [{"say": "Ok."}]]})
    async with running(run) as agents:
        call = calls(await run.reply(agents, QUESTION))[0]
        assert said(await run.reply(agents, "💬: Something else.\n")) == "Ok."
        assert (await agents.call(CHAT, call.call.id)).text == NOT_AWAITED
    assert run.answers() == [{"outcome": {"outcome": "cancelled"}}]


async def test_a_call_without_an_allow_once_option_never_runs(tmp_path: Path) -> None:
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_always"}]
    run = AgentRun(tmp_path, {"prompts": [[ask(RUN, options=options), {"say": "Ok."}]]})
    async with running(run) as agents:
        call = calls(await run.reply(agents, QUESTION))[0]
        assert (await agents.call(CHAT, call.call.id)).text == NOT_ONCE
    assert run.answers() == [CANCELLED]


@pytest.mark.parametrize("kind", ["allow_once", "reject_once"])
async def test_an_option_whose_id_may_also_mean_another_is_never_chosen(
    tmp_path: Path, kind: str
) -> None:
    options = [{"optionId": "x", "name": "x", "kind": each} for each in (kind, "allow_always")]
    run = AgentRun(tmp_path, {"prompts": [[ask(RUN, options=options), {"say": "Ok."}]]})
    async with running(run) as agents:
        call = calls(await run.reply(agents, QUESTION))[0]
        if kind == "allow_once":
            assert (await agents.call(CHAT, call.call.id)).text == NOT_ONCE
        else:
            agents.dismiss(CHAT, {call.call.id: ""})
            await until(lambda: bool(run.answers()))
    assert run.answers() == [CANCELLED]


async def test_a_dead_agent_ends_the_reply_and_cancels_its_permissions(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[ask(RUN)]]})
    async with running(run) as agents:
        call = calls(await run.reply(agents, QUESTION))[0]
        process = next(iter(agents._processes.values()))._process
        assert process
        os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait_for(process.wait(), 5)
        await until(lambda: not agents.awaits(CHAT, call.call.id))
        assert (await agents.call(CHAT, call.call.id)).text == NOT_AWAITED
        text = with_results(f"{QUESTION}\n🤖:[A]\n\nx\n", call, status="error", words=NOT_AWAITED)
        again = calls(await run.reply(agents, text))
        assert again
        assert again[0].call.id != call.call.id
    assert "execute" in run.received("session/prompt")[1]["prompt"][0]["text"]


async def test_an_agent_that_dies_during_its_turn_is_an_error(tmp_path: Path) -> None:
    steps = [{"say": "Hm."}, {"complain": "no \u202ememory"}, {"exit": 3}]
    run = AgentRun(tmp_path, {"prompts": [steps]})
    async with running(run) as agents:
        with pytest.raises(ModelError, match="ended during its turn; its last output: no "):
            await run.reply(agents, QUESTION)
        (status,) = agents.status()
        assert (status.name, status.folder, status.is_running) == ("scripted", str(tmp_path), False)
        assert "ended during its turn" in status.problem
        assert status.stderr == ("no \\u202ememory",)


@pytest.mark.parametrize(
    ("command", "words"),
    [(("/nonexistent/agent",), "not found"), ((), "no command"), (("${NO_SUCH}",), "not set")],
)
async def test_an_agent_that_cannot_start_says_why(
    tmp_path: Path, command: tuple[str, ...], words: str
) -> None:
    run = AgentRun(tmp_path, {"prompts": [[]]})
    async with running(run) as agents:
        provider = replace(run.provider, command=command)
        with pytest.raises(ModelError, match=words):
            async for _ in agents.stream(provider, run.request(QUESTION), CHAT, tmp_path):
                pass


async def test_an_agent_that_ends_when_it_starts_says_its_last_words(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[]]})
    provider = replace(run.provider, command=("sh", "-c", "echo too old >&2; exit 1"))
    async with running(run) as agents:
        with pytest.raises(ModelError, match="ended when it started; its last output: too old"):
            async for _ in agents.stream(provider, run.request(QUESTION), CHAT, tmp_path):
                pass


async def test_a_session_that_requires_a_sign_in_says_so(tmp_path: Path) -> None:
    refusal = {"error": {"code": -32000, "message": "Authentication required"}}
    methods = [{"id": "x", "name": "Log in with X"}]
    start = {"protocolVersion": 1, "authMethods": methods}
    run = AgentRun(tmp_path, {"prompts": [[]], "session/new": refusal, "initialize": start})
    async with running(run) as agents:
        with pytest.raises(ModelError, match=r"requires a sign-in \(Log in with X\)"):
            await run.reply(agents, QUESTION)


async def test_an_agent_of_another_protocol_version_is_refused(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[]], "initialize": {"protocolVersion": 2}})
    async with running(run) as agents:
        with pytest.raises(ModelError, match="another version"):
            await run.reply(agents, QUESTION)


MODES = {
    "currentModeId": "auto",
    "availableModes": [{"id": "auto"}, {"id": "default"}, {"id": "yolo"}],
}


async def test_the_asking_mode_is_set_before_the_prompt(tmp_path: Path) -> None:
    new = {"sessionId": "s", "modes": MODES}
    run = AgentRun(
        tmp_path, {"prompts": [[{"say": "Ok."}]], "session/new": new, "session/set_mode": {}}
    )
    async with running(run) as agents:
        await run.reply(agents, QUESTION)
        assert agents.mode(CHAT) == "default"
    methods = [message.get("method") for message in run.received()]
    assert methods[2:4] == ["session/set_mode", "session/prompt"]
    assert run.received("session/set_mode")[0]["modeId"] == "default"


async def test_no_prompt_is_sent_if_the_mode_cannot_be_set(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[]], "session/new": {"sessionId": "s", "modes": MODES}})
    async with running(run) as agents:
        with pytest.raises(ModelError, match="refused session/set_mode"):
            await run.reply(agents, QUESTION)
    assert run.received("session/prompt") == []


async def test_another_mode_needs_the_front_matter_and_is_reported(tmp_path: Path) -> None:
    new = {"sessionId": "s", "modes": MODES}
    run = AgentRun(
        tmp_path, {"prompts": [[{"say": "Ok."}]], "session/new": new, "session/set_mode": {}}
    )
    async with running(run) as agents:
        events = await run.reply(agents, QUESTION, mode="yolo")
    assert Aside("scripted works in the mode yolo") in events


async def test_an_option_of_the_category_mode_takes_precedence(tmp_path: Path) -> None:
    option = {"id": "m", "category": "mode", "type": "select", "currentValue": "auto",
              "options": [{"value": "auto"}, {"value": "ask"}]}  # fmt: skip
    new = {"sessionId": "s", "modes": MODES, "configOptions": [option]}
    changed = {"configOptions": [{**option, "currentValue": "ask"}]}
    run = AgentRun(
        tmp_path,
        {"prompts": [[{"say": "Ok."}]], "session/new": new, "session/set_config_option": changed},
    )
    async with running(run) as agents:
        await run.reply(agents, QUESTION)
        assert agents.mode(CHAT) == "ask"
    assert run.received("session/set_config_option")[0] == {
        "sessionId": "s", "configId": "m", "value": "ask",
    }  # fmt: skip


async def test_a_mode_that_the_agent_changes_itself_is_changed_back(tmp_path: Path) -> None:
    new = {"sessionId": "s", "modes": MODES}
    update = {"sessionUpdate": "current_mode_update", "currentModeId": "yolo"}
    run = AgentRun(
        tmp_path,
        {
            "prompts": [[{"update": update}, {"say": "Ok."}, ask(RUN)]],
            "session/new": new,
            "session/set_mode": {},
        },
    )
    async with running(run) as agents:
        await run.reply(agents, QUESTION)
        await until(lambda: len(run.received("session/set_mode")) == 2)
    assert [each["modeId"] for each in run.received("session/set_mode")] == ["default", "default"]


async def test_a_mode_that_changes_before_the_prompt_is_changed_back(tmp_path: Path) -> None:
    run = AgentRun(
        tmp_path,
        {
            "prompts": [[{"say": "Ok."}]],
            "session/new": {"sessionId": "s", "modes": MODES},
            "session/set_mode": {},
        },
    )
    async with running(run) as agents:
        events = agents.stream(run.provider, run.request(QUESTION, mode="yolo"), CHAT, tmp_path)
        assert isinstance(await anext(events), Aside)  # the prompt is not sent yet
        session = agents._sessions[CHAT]
        session.update({"sessionUpdate": "current_mode_update", "currentModeId": "default"})
        async for _ in events:
            pass
        await until(lambda: len(run.received("session/set_mode")) == 2)
    assert [each["modeId"] for each in run.received("session/set_mode")] == ["yolo", "yolo"]


async def test_an_idle_agent_ends_but_not_while_a_permission_waits(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[{"say": "Ok."}], [ask(RUN)]]})
    async with running(run, idle_s=0.05) as agents:
        await run.reply(agents, QUESTION)
        call = calls(await run.reply(agents, f"{QUESTION}\n🤖:[A]\n\nOk.\n\n💬: b\n"))[0]
        await asyncio.sleep(0.2)
        assert agents.awaits(CHAT, call.call.id)
        agents.dismiss(CHAT, {call.call.id: ""})
        text = with_results(f"{QUESTION}\n🤖:[A]\n\nOk.\n\n💬: b\n\n🤖:[A]\n\nx\n", call)
        await run.reply(agents, text)
        process = next(iter(agents._processes.values()))
        await until(lambda: process.is_over)


async def test_an_agent_that_gets_no_prompt_ends_too(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[]], "silent": ["session/new"]})
    async with running(run, idle_s=0.05) as agents:
        looked = await agents.process(run.provider, tmp_path, lambda _: frozenset())
        await until(lambda: looked.is_over)
        asking = asyncio.ensure_future(run.reply(agents, QUESTION))
        await until(lambda: run.received("session/new") != [])
        (stopped,) = agents._processes.values()
        await asyncio.sleep(0.2)
        assert not stopped.is_over
        asking.cancel()
        await until(lambda: stopped.is_over)


async def test_an_agent_that_is_ended_while_it_starts_does_not_stay(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[]]})
    async with running(run) as agents:
        starting = asyncio.ensure_future(
            agents.process(run.provider, tmp_path, lambda _: frozenset())
        )
        while not agents._processes:  # noqa: ASYNC110
            await asyncio.sleep(0)
        (process,) = agents._processes.values()
        agents.renew(run.provider)
        with pytest.raises(ModelError, match="ended when it started"):
            await starting
        assert process._process is not None
        assert process._process.returncode is not None
        assert run.received("initialize") == []


async def test_methods_that_were_not_declared_are_refused(tmp_path: Path) -> None:
    path = f"{tmp_path}/secret"
    steps = [
        {"request": "fs/write_text_file", "params": {"path": path, "content": "x"}},
        {"request": "terminal/create", "params": {"command": "touch", "args": [path]}},
        {"say": "Ok."},
    ]
    run = AgentRun(tmp_path, {"prompts": [steps]})
    async with running(run) as agents:
        assert said(await run.reply(agents, QUESTION)) == "Ok."
    assert [answer["code"] for answer in run.answers()] == [-32601, -32601]
    assert not os.path.exists(path)  # noqa: ASYNC240, PTH110
