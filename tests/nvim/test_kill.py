"""Neovim or its host killed in the middle of a turn: no call runs twice, and the file goes on.

The moments are counted in steps of the session rather than in time: what the buffer shows, and how often the
server was called, say when to strike.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from nvim.harness import Child, child

SERVER = Path(__file__).parent.parent / "e2e" / "counting_server.py"
ASK = '\U0001f4ac: call note {"text":"one"}'

Moment = Callable[[Child, Path], None]


@contextmanager
def editor(home: Path) -> Iterator[Child]:
    """A Neovim of this home, with a server that counts its calls."""
    env = {"CALLS": str(home / "calls")}
    server = {"command": sys.executable, "args": [str(SERVER)], "env": env}
    setup = {"agent": "Demo", "mcp": {"servers": {"count": server}}, "status": {"llm": False}}
    init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(setup))}))"
    with child(home, init=init, env={"PARLEY_DEMO_PACE": "0.01"}) as nvim:
        yield nvim


def calls(home: Path) -> int:
    log = home / "calls"
    return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0


def says(wanted: str) -> Moment:
    return lambda nvim, _: nvim.until(lambda: wanted in nvim.text(), wanted) and None


def asked(nvim: Child, home: Path) -> None:
    nvim.until_waiting()
    nvim.until_idle()
    nvim.command("write")


def called(nvim: Child, home: Path) -> None:
    asked(nvim, home)
    nvim.keys("ya")
    nvim.until(lambda: calls(home) == 1, "the call")


def answered(nvim: Child, home: Path) -> None:
    called(nvim, home)
    says("note returned")(nvim, home)
    nvim.command("write")


MOMENTS: dict[str, Moment] = {
    "as soon as the answer begins": says("\U0001f916:[Demo]"),
    "in the middle of the reply": says("I call"),
    "while a choice is waited for": asked,
    "as soon as the call has run": called,
    "in the answer to its result": answered,
}


def kill(nvim: Child, who: str) -> None:
    pid = (
        nvim.pid
        if who == "Neovim"
        else nvim.lua("return vim.fn.jobpid(require('parley.host').state().channel)")
    )
    os.kill(pid, signal.SIGKILL)


def respond(nvim: Child) -> None:
    """`:ParleyRespond` and what comes of it; again while the host of a dead Neovim still holds the chat."""
    for _ in range(20):
        nvim.command("messages clear")
        nvim.command("ParleyRespond")
        nvim.until_idle()
        if "another Neovim" not in nvim.messages():
            return


def go_on(nvim: Child) -> None:
    """Say yes to what waits, until the answer is complete."""
    for _ in range(4):
        if nvim.lines()[-1] == "\U0001f4ac: ":
            return
        if nvim.lua("return vim.fn.maparg('ya', 'n') ~= ''"):
            nvim.command("ParleyApprove ya")
            nvim.until(lambda: nvim.lines()[-1] == "\U0001f4ac: ", "the answer")
            nvim.until_idle()
        else:
            respond(nvim)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("who", ["Neovim", "its host"])
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_killed_in_mid_turn_no_call_runs_twice_and_the_file_goes_on(
    tmp_path: Path, moment: Moment, who: str
) -> None:
    path = tmp_path / "chat.md"
    with suppress(EOFError, OSError), editor(tmp_path) as nvim:
        nvim.edit("chat.md", f"{ASK}\n")
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        nvim.command("ParleyRespond")
        moment(nvim, tmp_path)
        kill(nvim, who)
    before = calls(tmp_path)
    assert before <= 1
    with editor(tmp_path) as nvim:
        nvim.command(f"edit {path}")
        assert nvim.lines()[0] == ASK
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        respond(nvim)
        assert calls(tmp_path) == before, "a call ran that nobody approved again"
        go_on(nvim)
        assert nvim.lines()[-1] == "\U0001f4ac: "
        assert nvim.text().count("\U0001f916:") == 1
    assert calls(tmp_path) <= before + 1
