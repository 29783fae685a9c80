"""Calls run as tasks; Neovim is killed, and another Neovim collects their results."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from parley.chat.reader import parse
from tests.forks import forks
from tests.mcp_servers import until as until_true
from tests.nvim.counting import environ, has_ended, is_complete, problems, until, waits
from tests.nvim.harness import Child, child
from tests.nvim.test_ends import parents
from tests.nvim.test_host import host_pid
from tests.nvim.test_kill import respond
from tests.nvim.test_status import RECORD, statuses

SERVER = str(Path(__file__).parents[1] / "mcp" / "task_server.py")
QUESTION = "💬: call dig {}"
PENDING = "[pending]\n\n`task-1`"


@dataclass(frozen=True)
class Digging:
    """A server in its own process, and its client's home."""

    home: Path
    server: subprocess.Popen[bytes]

    @property
    def chat(self) -> Path:
        return self.home / "data" / "parley" / "chats" / "digging.md"

    @property
    def go(self) -> Path:
        return self.home / "go"

    def methods(self) -> list[str]:
        return (self.home / "log").read_text(encoding="utf-8").split()


@pytest.fixture
def digging(tmp_path: Path) -> Iterator[Digging]:
    port = tmp_path / "port"
    command = [sys.executable, SERVER, "--http", str(port)]
    files = {name: str(tmp_path / name.lower()) for name in ("LOG", "GO", "HOLD")}
    with subprocess.Popen(command, env={**os.environ, **files}) as server:
        asyncio.run(until_true(port.exists))
        lines = [
            'agent = "Demo-OpenAI"',
            "status.llm = false",
            f'mcp.servers.far.url = "http://127.0.0.1:{port.read_text()}/mcp"',
        ]
        config = tmp_path / "config" / "parley" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text("\n".join(lines), encoding="utf-8")
        digging = Digging(tmp_path, server)
        digging.chat.parent.mkdir(parents=True)
        digging.chat.write_text(f"{QUESTION}\n", encoding="utf-8")
        yield digging
        server.kill()


@contextmanager
def editor(digging: Digging) -> Iterator[Child]:
    """A new Neovim in this home, with the chat open."""
    with (
        suppress(EOFError, OSError),
        child(digging.home, env={"PARLEY_DEMO_PACE": "0.001"}, width=80, height=24) as nvim,
    ):
        nvim.command(f"edit {digging.chat}")
        until(nvim, lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        yield nvim


def begun(nvim: Child, digging: Digging) -> None:
    """Approve the call; return when the file on disk names its task, and the screen shows its
    state.
    """
    nvim.command("ParleyRespond")
    until(nvim, lambda: waits(nvim), "the choice")
    nvim.keys("ya")
    until(nvim, lambda: PENDING in digging.chat.read_text(encoding="utf-8"), "the task")
    until(nvim, lambda: "(step " in nvim.screen(), "the progress")


def test_after_neovim_was_killed_the_next_collects_its_task(digging: Digging) -> None:
    with editor(digging) as nvim:
        begun(nvim, digging)
        assert "· far · running" in nvim.screen()
        host = host_pid(nvim)
        os.kill(nvim.pid, signal.SIGKILL)
    asyncio.run(until_true(lambda: host not in parents()))  # the host polls the task to its end
    asked = digging.methods().count("tasks/get")
    digging.go.touch()  # it ends while no host polls
    with editor(digging) as nvim:
        until(
            nvim, lambda: "it runs as a task on its server" in "".join(problems(nvim)), "the hint"
        )
        assert "[pending]" not in nvim.screen()  # only its row is drawn
        # results are collected only on request
        assert digging.methods().count("tasks/get") == asked
        respond(nvim)
        until(nvim, lambda: is_complete(nvim), "the answer")
        nvim.until_screen("→ 3 B, ok")
        nvim.until_screen("dig returned: dug")
        assert "[pending]" not in nvim.text()
        methods = digging.methods()
        assert [methods.count(name) for name in ("tools/call", "tasks/result", "tasks/cancel")] == [
            1,
            1,
            0,
        ]
        # In a copy, it is a call that may have run, and Parley does not fetch another chat's
        # result.
        copy = digging.chat.with_name("copy.md")
        before, head, _ = re.split(r"(🛠️: \[dig\]\[[^]]*\])", nvim.text())
        copy.write_text(f"{before}{head}{PENDING}\n", encoding="utf-8")
        nvim.command(f"edit {copy}")
        until(
            nvim,
            lambda: any("may already have run" in said for said in problems(nvim)),
            "the warning",
        )
        nvim.command("ParleyRespond")
        until(nvim, lambda: waits(nvim), "the choice")
        assert digging.methods().count("tasks/get") == methods.count("tasks/get")


def test_after_a_host_was_killed_the_next_neovim_collects_two_tasks(
    digging: Digging,
) -> None:
    digging.chat.write_text("💬: the stock price of google and microsoft?\n", encoding="utf-8")
    with editor(digging) as nvim:
        nvim.command("ParleyRespond")
        until(nvim, lambda: waits(nvim), "the choice")
        nvim.keys("yA")
        until(
            nvim,
            lambda: digging.chat.read_text(encoding="utf-8").count("[pending]") == 2,
            "the tasks",
        )
        transcript = parse(nvim.text())
        calls = transcript.exchanges[0].answers[0].proposals
        assert {call.task and call.task.id for call in calls} == {"task-1", "task-2"}
        assert transcript.problems == ()
        os.kill(host_pid(nvim), signal.SIGKILL)
        until(
            nvim,
            lambda: not nvim.lua("return require('parley.host').state().channel"),
            "the end of the host",
        )
        digging.go.touch()
        respond(nvim)  # with another host
        until(nvim, lambda: is_complete(nvim), "the answer")
        calls = parse(nvim.text()).exchanges[0].answers[0].proposals
        assert [(call.result and call.result.body, call.task) for call in calls] == [
            ("dug", None)
        ] * 2
        assert digging.methods().count("tools/call") == 2


def test_a_stop_cancels_the_task_but_a_server_that_ends_leaves_it(digging: Digging) -> None:
    with editor(digging) as nvim:
        begun(nvim, digging)
        nvim.command("ParleyStop")
        until(nvim, lambda: has_ended(nvim), "the end")
        assert "The call was cancelled: the user stopped it" in nvim.text()
        until(nvim, lambda: "tasks/cancel" in digging.methods(), "the cancellation")
        digging.chat.with_name("other.md").write_text(f"{QUESTION}\n", encoding="utf-8")
        nvim.command(f"edit {digging.chat.with_name('other.md')}")
        nvim.command("ParleyRespond")
        until(nvim, lambda: waits(nvim), "the choice")
        nvim.keys("ya")
        until(nvim, lambda: "`task-2`" in nvim.text(), "the task")
        digging.server.kill()
        until(nvim, lambda: has_ended(nvim), "the end")
        assert "[pending]\n\n`task-2`" in nvim.text()
        nvim.until_screen("Its result will be")


def test_a_question_right_after_a_reload_waits_for_the_ending_turn(
    digging: Digging,
) -> None:
    hold = digging.home / "hold"
    hold.touch()
    with editor(digging) as nvim:
        begun(nvim, digging)
        nvim.lua(RECORD)
        nvim.command("edit! | ParleyRespond")
        until(nvim, lambda: "tasks/cancel" in digging.methods(), "the cancellation")
        until(
            nvim, lambda: nvim.variable("parley_status") == "Analyzing request...", "the next turn"
        )
        hold.unlink()
        until(nvim, lambda: has_ended(nvim), "the end")
        assert "its server cancelled it" in nvim.text()
        assert "Neovim" not in nvim.messages()
        assert statuses(nvim).count("Analyzing request...") >= 2, "again when the other has ended"


def test_the_shell_collects_the_task_of_a_killed_shell(digging: Digging) -> None:
    shell = [forks().python, "-m", "parley", "respond", str(digging.chat)]
    home = environ(digging.home, PARLEY_DEMO_PACE="0.001")
    waiting = subprocess.run(shell, env=home, capture_output=True, check=False)
    assert waiting.returncode == 3, waiting
    with subprocess.Popen([*shell, "--choose", "ya"], env=home, stdout=subprocess.DEVNULL) as first:
        asyncio.run(until_true(lambda: PENDING in digging.chat.read_text(encoding="utf-8")))
        first.kill()
    digging.go.touch()
    second = subprocess.run(shell, env=home, capture_output=True, text=True, check=False)
    assert (second.returncode, "dig returned: dug" in second.stdout) == (0, True), second
    assert "`dug`" in digging.chat.read_text(encoding="utf-8")
    assert digging.methods().count("tools/call") == 1
