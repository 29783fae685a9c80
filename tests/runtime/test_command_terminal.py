"""An agent asks Parley for commands: in the workspace's sandbox, and never without the user's yes."""

from __future__ import annotations

import asyncio
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

from parley.acp import terminals
from parley.acp.client_request import INVALID_PARAMS, NOT_ALLOWED
from parley.runtime.command_terminal import ENDED_EARLY
from tests.runtime.test_chat_agents import AgentDesk, desk_with, desks

__all__ = ["desks"]
OVER = ["wait_for_exit", "output", "release"]


def command(line: str, *then: Any, **more: Any) -> dict[str, Any]:
    return {"terminal": {"command": line, **more}, "then": list(then)}


def permitted(line: str, *then: Any, **more: Any) -> dict[str, Any]:
    """A command for which the agent asks for permission first."""
    call = {"toolCallId": "t", "title": line, "kind": "execute", "rawInput": {"command": line}}
    return {"ask": [call], "then": [command(line, *then, **more)]}


def sleeping(desk: AgentDesk) -> str:
    """A command that no other test runs."""
    return f"sleep 60.{zlib.crc32(str(desk.root).encode())}"


async def until_it_runs(desk: AgentDesk, *, runs: bool = True) -> None:
    async with asyncio.timeout(10):
        while (sleeping(desk) in await asyncio.to_thread(every_command)) is not runs:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def every_command() -> str:
    listed = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True)
    return listed.stdout


async def test_a_command_runs_after_the_yes_and_its_changes_are_reverted(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    line = "echo hi; echo new > b.txt; exit 3"
    desk = desk_with(desks, tmp_path, command(line, *OVER, "output"), {"say": "Done."})
    assert (await desk.respond()).kind == "waiting"
    assert (desk.run.answers(), (desk.root / "b.txt").exists()) == ([], False)
    assert desk.run.received("initialize")[0]["clientCapabilities"]["terminal"] is True
    assert (await desk.press("ya")).kind == "complete"
    made, end, output, released, unknown = desk.run.answers()
    assert made["terminalId"]
    assert end == {"exitCode": 3, "signal": None}
    assert output == {"output": "hi\n", "truncated": False, "exitStatus": end}
    assert (released, unknown["code"]) == ({}, INVALID_PARAMS)
    (call,) = desk.calls
    assert (call.call.name, call.choice) == ("run_command", "ya")
    assert call.result
    assert call.result.body.startswith("[exit code 3, ")
    assert "it changed 1 file: b.txt" in call.result.body
    reverter = desk.app.reverter(desk.chat)
    assert (await reverter.revert(await reverter.histories())).problems == []
    assert not (desk.root / "b.txt").exists()


async def test_a_declined_command_never_runs(desks: list[AgentDesk], tmp_path: Path) -> None:
    desk = desk_with(desks, tmp_path, command("touch b.txt"), {"say": "Ok."})
    await desk.respond()
    assert (await desk.press("yn")).kind == "complete"
    assert [answer["code"] for answer in desk.run.answers()] == [NOT_ALLOWED]
    assert not (desk.root / "b.txt").exists()


async def test_a_capital_letter_remembers_only_the_exact_command(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    same = command("echo a", "wait_for_exit")
    other = command("echo a", "wait_for_exit", env=[{"name": "A", "value": "1"}])
    desk = desk_with(desks, tmp_path, same, same, other, {"say": "Done."})
    await desk.respond()
    assert (await desk.press("yA")).kind == "waiting"
    assert [call.choice for call in desk.calls] == ["yA", "ya", None]
    assert desk.calls[-1].call.arguments == '{"command":"export A=1; echo a"}'


async def test_a_command_that_was_approved_runs_once_without_a_second_question(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    line = "echo x >> b.txt"
    again = command(line, "wait_for_exit")
    desk = desk_with(desks, tmp_path, permitted(line, "wait_for_exit"), again, {"say": "Done."})
    await desk.respond()
    assert (await desk.press("ya")).kind == "waiting"
    assert [call.call.name for call in desk.calls] == ["execute", "run_command"]
    assert (desk.root / "b.txt").read_text() == "x\n"
    assert (await desk.press("yn")).kind == "complete"
    histories = await desk.app.reverter(desk.chat).histories()
    assert [each.change.kind for each in histories] == ["command"]


@pytest.mark.parametrize("more", [{"env": [{"name": "A", "value": "b"}]}, {"args": ["b"]},
                                  {"cwd": "sub"}])  # fmt: skip
async def test_another_command_than_the_approved_one_asks(
    desks: list[AgentDesk], tmp_path: Path, more: dict[str, Any]
) -> None:
    def step(desk: AgentDesk) -> dict[str, Any]:
        (desk.root / "sub").mkdir()
        where = {"cwd": str(desk.root / "sub")} if "cwd" in more else more
        return permitted("touch c.txt", **where)

    desk = desk_with(desks, tmp_path, step, {"say": "Done."})
    await desk.respond()
    assert (await desk.press("ya")).kind == "waiting"
    assert [call.call.name for call in desk.calls] == ["execute", "run_command"]
    assert not list(desk.root.rglob("c.txt"))


async def test_the_agent_sees_the_last_bytes_and_may_end_the_command(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    then = [0.3, "output", "kill", "wait_for_exit", "output", "kill"]
    steps = command("printf 'abcdé'; sleep 60", *then, outputByteLimit=3), {"say": "Done."}
    desk = desk_with(desks, tmp_path, *steps)
    await desk.respond()
    assert (await desk.press("ya")).kind == "complete"
    _, output, _, end, last, _ = desk.run.answers()
    assert output == {"output": "dé", "truncated": True}
    assert end == {"exitCode": None, "signal": "SIGTERM"}
    assert last == {**output, "exitStatus": end}
    result = desk.calls[0].result
    assert result
    assert result.body.splitlines()[1:] == ["abcdé", ENDED_EARLY]


async def test_a_command_in_the_background_ends_with_the_turn(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    ask = {"ask": {"toolCallId": "x", "title": "x", "kind": "read"}}
    sleep = lambda d: command(f"{sleeping(d)} & {sleeping(d)}", ask)  # noqa: E731
    desk = desk_with(desks, tmp_path, sleep, {"say": "Done."})
    await desk.respond()
    assert (await desk.press("ya")).kind == "waiting"
    result = desk.calls[0].result
    assert result
    assert "asked about another call" in result.body
    await until_it_runs(desk)
    assert (await desk.press("ya")).kind == "complete"
    await until_it_runs(desk, runs=False)


@pytest.mark.parametrize("way", ["stop", "close", "exit"])
async def test_a_command_ends_with_the_turn_the_agent_and_parley(
    desks: list[AgentDesk], tmp_path: Path, way: str
) -> None:
    then = [0.2, {"exit": 1}] if way == "exit" else ["wait_for_exit"]
    steps = (lambda d: command(f"{sleeping(d)}; true", *then)), {"say": "Done."}
    desk = desk_with(desks, tmp_path, *steps)
    await desk.respond()
    turn = asyncio.ensure_future(desk.press("ya"))
    await until_it_runs(desk)
    if way == "stop":
        turn.cancel()
    if way == "close":
        await desk.app.close()
    await asyncio.wait({turn}, timeout=10)
    await until_it_runs(desk, runs=False)
    assert turn.done()


async def test_the_output_is_in_the_call_that_shows_the_terminal(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    def shown(desk: AgentDesk) -> dict[str, Any]:
        return {"show_terminal": "echo hello"}

    desk = desk_with(desks, tmp_path, shown, {"say": "Done."})
    await desk.respond()
    assert (await desk.press("ya")).kind == "complete"
    command_call, own = desk.calls
    assert (command_call.call.name, own.ran_by) == ("run_command", "agent")
    assert own.result
    assert own.result.body.strip() == "hello"


async def test_commands_that_cannot_run_are_refused(
    desks: list[AgentDesk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminals, "MOST_TERMINALS", 1)
    wrong: list[Any] = [
        {"request": "terminal/create", "params": params}
        for params in ({}, {"command": ""}, {"command": "a", "args": "b"}, {"command": "a", "env": 1},
                       {"command": "a", "env": [{"name": "x y", "value": ""}]},
                       {"command": "a", "cwd": "/etc"}, {"command": "a", "cwd": 7},
                       {"command": "a", "outputByteLimit": -1})
    ]  # fmt: skip
    ids = [{"request": "terminal/output", "params": {"terminalId": name}} for name in ("x", 7)]
    two = [command("true", "wait_for_exit"), command("true")]
    desk = desk_with(desks, tmp_path, *wrong, *ids, *two, {"say": "Done."})
    assert (await desk.respond()).kind == "waiting"
    assert {answer["code"] for answer in desk.run.answers()} == {INVALID_PARAMS}
    assert (await desk.press("ya")).kind == "complete"
    assert "too many terminals" in desk.run.answers()[-1]["message"]


async def test_without_commands_terminals_are_not_declared(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, command("touch b.txt"), {"say": "Done."})
    desk.settings = {"workspace": {"command": False}}
    desk.restart()
    assert (await desk.respond()).kind == "complete"
    start = desk.run.received("initialize")[0]["clientCapabilities"]
    assert (start["terminal"], start["fs"]["readTextFile"]) == (False, True)
    assert [answer["code"] for answer in desk.run.answers()] == [-32601]
