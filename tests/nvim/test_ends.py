"""A process started for a Neovim never survives it, however Neovim or its host ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child
from tests.nvim.test_host import host_pid
from tests.nvim.test_servers_page import server, setup, tools
from tests.nvim.test_turn import MARKER

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")

SERVERS = {"stubborn": server("--stubborn"), "parent": server("--parent"), "plain": server()}


def parents() -> dict[int, int]:
    """The parent of each running process, without zombies.

    Without /proc, the result is empty.
    """
    found = dict[int, int]()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(entry.name)] = int(parent)
    return found


def below(pid: int) -> set[int]:
    """All descendants of a process."""
    known, found = parents(), set[int]()
    while more := {each for each, parent in known.items() if parent in {pid, *found}} - found:
        found |= more
    return found


def within(seconds: float) -> float:
    """A time limit that allows for other work on the machine."""
    return seconds * max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))


def quit_(nvim: Child) -> None:
    with suppress(EOFError, OSError):
        nvim.command("qa!")


def kill(signal_number: int) -> Callable[[Child], None]:
    return lambda nvim: os.kill(nvim.pid, signal_number)


def kill_host(nvim: Child) -> None:
    os.kill(host_pid(nvim), signal.SIGKILL)


ENDS = {
    ":qa!": quit_,
    "SIGTERM": kill(signal.SIGTERM),
    "SIGKILL": kill(signal.SIGKILL),
    "SIGKILL of the host": kill_host,
}


def test_servers_start_with_the_chat_if_the_setting_says_so(tmp_path: Path) -> None:
    with child(tmp_path, init=setup({"early": server()}, start="chat"), forked=False) as nvim:
        nvim.edit("chat.md", f"{MARKER} ask\n")

        def started() -> bool:
            commands = (Path(f"/proc/{pid}/cmdline") for pid in below(nvim.pid))
            return any(b"fake_server.py" in command.read_bytes() for command in commands)

        nvim.until(started, "a server that nobody has asked for yet")


def test_no_process_survives(tmp_path: Path) -> None:
    """Several Neovims, each with another end."""
    with ExitStack() as stack:
        started = dict[str, tuple[Child, set[int]]]()
        for number, end in enumerate(ENDS):
            home = tmp_path / str(number)
            home.mkdir()
            nvim = stack.enter_context(child(home, init=setup(SERVERS), forked=False))
            tools(nvim, "plain: ready")
            for name in SERVERS:
                nvim.until_text(f"{name}: ready")
            started[end] = nvim, below(nvim.pid)
            assert len(started[end][1]) >= len(SERVERS) + 3, (
                "the host, its reaper, and the child of a server"
            )
        for end, (nvim, _) in started.items():
            ENDS[end](nvim)
        began = time.monotonic()
        while left := {
            end: pids for end, (_, all_) in started.items() if (pids := all_ & parents().keys())
        }:
            assert time.monotonic() - began < within(3.0), f"still there: {left}"
            time.sleep(0.05)
        tools(started["SIGKILL of the host"][0], "plain: ready")
