"""Commands: their output, and their end together with all of their processes."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from parley.errors import ParleyError
from parley.processes.reaper import Reaper
from parley.workspace.command_runs import MOST_OUTPUT, MOST_SHOWN, Commands
from parley.workspace.sandbox import Sandbox
from tests.child_processes import alive, pids_in, until

ENVIRON = {**os.environ, "OPENAI_API_KEY": "sk-a-key", "LC_ALL": "C.UTF-8"}


@pytest_asyncio.fixture
async def commands(tmp_path: Path) -> AsyncIterator[Commands]:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    reaper = Reaper()
    yield Commands(root, ENVIRON, reaper, Sandbox(ENVIRON), "off")
    await reaper.close()


async def test_a_command_has_an_exit_code_an_output_and_a_duration(commands: Commands) -> None:
    result = await commands.run("pwd; echo oops >&2; exit 3", "sub", 30)
    assert result.output == result.whole == f"{commands.root}/sub\noops\n"
    assert (result.exit_code, result.was_timed_out) == (3, False)
    assert 0 < result.seconds < 30
    assert (result.sandboxed, result.why_not_sandboxed) == (False, "workspace.sandbox is off")


async def test_a_command_has_no_keys_no_stdin_and_no_terminal(commands: Commands) -> None:
    script = "env | sort; cat; tty; [ -t 1 ] || echo none; : </dev/tty"
    result = await commands.run(script, ".", 30)
    lines = result.output.split("\n")
    assert not [line for line in lines if "sk-a-key" in line]
    assert "LC_ALL=C.UTF-8" in lines
    assert "TERM=dumb" in lines
    assert "not a tty" in lines
    assert "none" in lines
    assert result.exit_code != 0, "it has no terminal to open"


async def test_only_absolute_folders_of_the_path_are_searched(commands: Commands) -> None:
    program = commands.root / "sub" / "ls"
    program.write_text("#!/bin/sh\necho theirs\n", encoding="utf-8")
    program.chmod(0o755)
    environ = {**ENVIRON, "PATH": f"sub:.::{os.environ['PATH']}"}
    bare = Commands(commands.root, environ, commands.reaper, commands.sandbox, "off")
    assert (await bare.run("ls", ".", 30)).output == "sub\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [("kill -9 $$", 128 + signal.SIGKILL), ("/nowhere", 127), ("exit 0", 0), ("(", 2)],
)
async def test_the_exit_code_is_a_shells(commands: Commands, command: str, code: int) -> None:
    assert (await commands.run(command, ".", 30)).exit_code == code


@pytest.mark.parametrize("directory", ["..", "/", "sub/../..", "link", "missing", "file"])
async def test_a_command_starts_only_in_a_folder_of_the_root(
    commands: Commands, directory: str
) -> None:
    (commands.root / "link").symlink_to("/")
    (commands.root / "file").touch()
    with pytest.raises(ParleyError, match="no such folder"):
        await commands.run("true", directory, 30)


@pytest.mark.parametrize("command", ["echo \0", "x" * 3_000_000])
async def test_a_command_that_cannot_be_started_says_why(commands: Commands, command: str) -> None:
    with pytest.raises(ParleyError, match=r"cannot be run: (embedded null byte|Argument list)"):
        await commands.run(command, ".", 30)


async def test_a_long_output_keeps_its_head_and_its_tail(commands: Commands) -> None:
    result = await commands.run("echo first; yes line | head -c 3000000; echo last", ".", 30)
    for text, most in ((result.output, MOST_SHOWN), (result.whole, MOST_OUTPUT)):
        assert text.startswith("first\nline\n")
        assert text.endswith("line\nlast\n")
        assert "left out …]\n" in text
        assert len(text) < most + 100


async def test_the_last_line_streams(commands: Commands) -> None:
    lines = list[tuple[str, float]]()
    go_on = commands.root / "go"

    async def note(line: str, seconds: float) -> None:
        lines.append((line, seconds))
        if line == "one":
            go_on.touch()

    script = "echo one; while [ ! -e go ]; do :; done; printf two; while [ ! -e stop ]; do :; done"

    async def note_until_two(line: str, seconds: float) -> None:
        await note(line, seconds)
        if line == "two":
            (commands.root / "stop").touch()

    result = await commands.run(script, ".", 30, note_until_two, every_s=0.01)
    assert result.output == "one\ntwo"
    assert list(dict.fromkeys(line for line, _ in lines if line)) == ["one", "two"]
    assert [seconds for _, seconds in lines] == sorted(seconds for _, seconds in lines)


async def test_a_listener_that_fails_or_waits_does_not_keep_the_command(
    commands: Commands,
) -> None:
    async def fail(line: str, seconds: float) -> None:
        raise TimeoutError(line)

    async def wait(line: str, seconds: float) -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match="mine"):
        await commands.run("echo mine; echo $$ >pid; sleep 60", ".", 30, fail, every_s=0.3)
    assert not any(map(alive, pids_in(commands.root / "pid")))
    assert (await commands.run("sleep 60", ".", 0.1, wait, every_s=0.01)).was_timed_out


# Runs in its own session and ends only by SIGKILL; writes its pid.
STRAY = """
import os, signal, sys, time
os.setsid()
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
with open("pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(60)
"""
STRAYING = f"{shlex.quote(sys.executable)} -c {shlex.quote(STRAY)} &"
"""Starts a process that leaves the command's process group."""
STUBBORN = "trap '' HUP INT TERM; echo $$ >>pids; sleep 60 & echo $! >>pids; wait; wait; sleep 60"


async def ends_with(commands: Commands, count: int) -> None:
    """Wait until a command's processes have ended."""
    pids = pids_in(commands.root / "pids")
    assert len(pids) == count
    await until(lambda: not any(map(alive, pids)))


async def test_the_time_limit_ends_every_process(commands: Commands) -> None:
    result = await commands.run(f"echo begun; {STUBBORN}", ".", 0.5)
    assert (result.exit_code, result.was_timed_out, result.output) == (None, True, "begun\n")
    assert result.seconds < 30
    await ends_with(commands, 2)


async def test_cancelling_ends_every_process(commands: Commands) -> None:
    task = asyncio.create_task(commands.run(f"{STRAYING} {STUBBORN}", ".", 60))
    await until(lambda: len(pids_in(commands.root / "pids")) == 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ends_with(commands, 3)


async def test_a_command_leaves_no_process_running(commands: Commands) -> None:
    script = f"{STRAYING} sleep 60 & echo $! >>pids; until [ $(wc -l <pids) = 2 ]; do :; done"
    result = await commands.run(script, ".", 30)
    assert (result.exit_code, result.was_timed_out) == (0, False)
    await ends_with(commands, 2)


HOST = """
import asyncio, os, sys
from pathlib import Path
from parley.processes.reaper import Reaper
from parley.workspace.command_runs import Commands
from parley.workspace.sandbox import Sandbox

commands = Commands(Path(sys.argv[1]), os.environ, Reaper(), Sandbox(os.environ), sys.argv[3])
asyncio.run(commands.run(sys.argv[2], ".", 60))
"""


async def test_every_process_dies_with_a_killed_host(commands: Commands) -> None:
    script = f"{STRAYING} {STUBBORN}"
    host = subprocess.Popen(  # noqa: ASYNC220 - this test must choose its death
        [sys.executable, "-c", HOST, str(commands.root), script, "off"]
    )
    try:
        await until(lambda: len(pids_in(commands.root / "pids")) == 3)
    finally:
        host.kill()
        host.wait()
    await ends_with(commands, 3)
