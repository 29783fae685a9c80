"""No server outlives its host, however the host ends."""

import asyncio
import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from parley.processes.reaper import Reaper
from tests.child_processes import alive, pids_in, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups and FIFOs are POSIX")

# Prints its pid, ignores the end of its stdin and, on request, SIGTERM; its child does the same.
STUBBORN = "{trap}; sleep 60 & echo $$ >>{pids}; echo $! >>{pids}; while :; do wait; sleep 60; done"

HOST = """
import asyncio, sys
from parley.processes.reaper import Reaper

async def main():
    command, args = Reaper().launch("/bin/sh", ["-c", sys.argv[1]])
    pipe = asyncio.subprocess.PIPE
    await asyncio.create_subprocess_exec(command, *args, stdin=pipe, start_new_session=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def stubborn(pids: Path, trap: str) -> str:
    return STUBBORN.format(trap=f"trap '' {trap}", pids=pids)


async def start(reaper: Reaper, script: str) -> asyncio.subprocess.Process:
    command, args = reaper.launch("/bin/sh", ["-c", script])
    return await asyncio.create_subprocess_exec(
        command, *args, stdin=asyncio.subprocess.PIPE, start_new_session=True
    )


async def test_closing_ends_the_server_and_its_children_and_removes_the_fifo(
    tmp_path: Path,
) -> None:
    pids = tmp_path / "pids"
    reaper = Reaper()
    server = await start(reaper, stubborn(pids, "HUP"))
    fifo = reaper._guards[0].fifo
    await until(lambda: len(pids_in(pids)) == 2)
    await asyncio.gather(reaper.close(), server.wait())
    assert server.returncode == -signal.SIGTERM
    await until(lambda: not any(map(alive, pids_in(pids))))
    assert not fifo.parent.exists()


SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER in man prctl: a process gets the orphans below it, like process 1."""


@pytest.mark.skipif(sys.platform != "linux", reason="the first process of a container is Linux's")
async def test_a_zombie_does_not_delay_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses, pids, sleep = tmp_path / "pauses", tmp_path / "pids", tmp_path / "sleep"
    real = shutil.which("sleep")
    sleep.write_text(f'#!/bin/sh\necho "$1" >>{pauses}\nexec {real} "$1"\n', encoding="utf-8")
    sleep.chmod(0o700)
    reaper = Reaper()
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        server = await start(reaper, f"{real} 60 & echo $! >{pids}; wait")
    await until(lambda: len(pids_in(pids)) == 1)
    prctl = ctypes.CDLL(None).prctl
    prctl(SUBREAPER, 1, 0, 0, 0)
    try:
        await asyncio.gather(reaper.close(), server.wait())
    finally:
        prctl(SUBREAPER, 0, 0, 0, 0)
    orphan = os.waitid(os.P_PID, pids_in(pids)[0], os.WEXITED)  # noqa: ASYNC222 - it has ended
    assert (server.returncode, orphan and orphan.si_status) == (-signal.SIGTERM, signal.SIGTERM)
    assert sum(map(float, pauses.read_text().split())) < 1  # half of them before the signal


async def test_a_server_that_ends_with_its_stdin_is_not_signalled(tmp_path: Path) -> None:
    reaper = Reaper()
    begun = tmp_path / "begun"
    server = await start(reaper, f"echo >{begun}; cat; exit 3")
    assert server.stdin
    await until(begun.exists)
    server.stdin.close()
    await asyncio.gather(reaper.close(), server.wait())
    assert server.returncode == 3


async def test_an_ended_server_is_forgotten_and_the_others_stay() -> None:
    reaper = Reaper()
    first = await start(reaper, "exit 0")
    await first.wait()
    reaper.prune()
    second = await start(reaper, "read -r line; exit 4")
    reaper.prune()
    assert second.stdin
    second.stdin.write(b"go\n")
    assert await second.wait() == 4
    await reaper.close()


async def test_a_killed_reaper_or_one_without_its_fifo_is_replaced() -> None:
    reaper = Reaper()
    reaper.launch("x", [])
    reaper._guards[0].process.kill()
    reaper._guards[0].process.wait()
    second = reaper.launch("x", [])
    shutil.rmtree(reaper._guards[1].fifo.parent)
    assert second != reaper.launch("x", [])
    assert second[1][2] != reaper.launch("x", [])[1][2]
    reaper.prune()
    folders = [guard.fifo.parent for guard in reaper._guards]
    await reaper.close()
    shutil.rmtree(folders[0])  # its reaper was killed before it could remove it
    assert not any(folder.exists() for folder in folders)


async def test_closing_without_a_server_does_nothing() -> None:
    await Reaper().close()
    Reaper().prune()


# Runs in its own session and ends only by SIGKILL; prints its pid.
STRAY = """
import os, signal, sys, time
os.setsid()
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(60)
"""


def straying(pids: Path) -> str:
    """The script of a server that ends with its stdin, and leaves a child running."""
    return f"{shlex.quote(sys.executable)} -c '{STRAY}' {pids} </dev/null & read -r line"


async def dies_with_its_host(script: str, pids: Path, count: int) -> None:
    """Check that a server of this many processes is gone after its host was killed."""
    host = subprocess.Popen(  # noqa: ASYNC220 - this test must choose its death
        [sys.executable, "-c", HOST, script]
    )
    try:
        await until(lambda: len(pids_in(pids)) == count)
    finally:
        host.send_signal(signal.SIGKILL)
        host.wait()
    await until(lambda: not any(map(alive, pids_in(pids))))


async def test_stubborn_servers_and_their_own_sessions_die_with_a_killed_host(
    tmp_path: Path,
) -> None:
    hup, term, stray = (tmp_path / name for name in ("hup", "term", "stray"))
    await asyncio.gather(
        dies_with_its_host(stubborn(hup, "HUP"), hup, 2),
        dies_with_its_host(stubborn(term, "HUP TERM"), term, 2),
        dies_with_its_host(straying(stray), stray, 1),
    )


async def test_children_in_their_own_session_die_soon_after_their_server(
    tmp_path: Path,
) -> None:
    reaper = Reaper()
    lasting = await start(reaper, straying(tmp_path / "lasting"))
    ending = await start(reaper, straying(tmp_path / "ending"))
    await until(
        lambda: len(pids_in(tmp_path / "lasting")) == len(pids_in(tmp_path / "ending")) == 1
    )
    assert ending.stdin
    ending.stdin.close()
    await ending.wait()
    reaper.prune()
    await until(lambda: not any(map(alive, pids_in(tmp_path / "ending"))))
    assert all(map(alive, pids_in(tmp_path / "lasting")))
    await asyncio.gather(reaper.close(), lasting.wait())
    await until(lambda: not any(map(alive, pids_in(tmp_path / "lasting"))))
