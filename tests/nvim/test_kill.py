"""Neovim or its host is killed at any step of a turn: nothing is lost, no call runs twice, and the
file can continue.

A step is a request from the host to Neovim: to read, write, draw or show. SIGKILL comes at the
chosen step. Each Neovim reopens the previous one's file, and is then killed too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from parley.chat.reader import parse
from tests.formats import FORMATS
from tests.nvim.counting import Chat, furnish, is_complete, opened, problems, until, waits
from tests.nvim.harness import Child, child

POINTS = 5
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.fuzz) for seed in range(2, 20))]
STEPS = 70
"""About the number of a turn's steps: the first deaths come before it does anything, the last after
its end.
"""

STRIKE = """
local left, who, before = ...
_G.remote = _G.remote or require('parley.remote')
_G.struck = false
local function strike()
  local host = vim.fn.jobpid(require('parley.host').state().channel)
  _G.struck = true
  vim.uv.kill(who == 'Neovim' and vim.fn.getpid() or host, 'sigkill')
end
package.loaded['parley.remote'] = function(...)
  left = left - 1
  if left == 0 and before then strike() end
  local asked = { pcall(_G.remote, ...) }
  if left == 0 and not before then strike() end
  return unpack(asked, 2, table.maxn(asked))
end
"""


@dataclass(frozen=True)
class Death:
    """The process to kill, the step, and whether to kill before or after the step is done."""

    who: str
    step: int
    before: bool


def deaths(seed: int) -> list[Death]:
    """Random points, some in each part of the turn."""
    chance, part = random.Random(seed), STEPS // POINTS
    return [
        Death(
            "Neovim" if (number + seed) % 2 else "its host",
            number * part + chance.randint(1, part),
            chance.random() < 0.5,
        )
        for number in range(POINTS)
    ]


@contextmanager
def editor(home: Path) -> Iterator[Child]:
    """A new Neovim in this home."""
    with suppress(EOFError, OSError), child(home, env={"PARLEY_DEMO_PACE": "0.001"}) as nvim:
        yield nvim


def live(nvim: Child, chat: Chat, death: Death) -> None:
    """Run a turn with an approved call until the kill, or until its end and then kill."""
    opened(nvim, chat)
    nvim.lua(STRIKE, death.step, death.who, death.before)

    def struck() -> bool:
        return bool(nvim.lua("return _G.struck"))

    nvim.command("ParleyRespond")
    until(nvim, lambda: struck() or waits(nvim), "the choice")
    if not struck():
        nvim.keys("ya")
        until(nvim, lambda: struck() or is_complete(nvim), "the answer")
    if not struck():
        nvim.lua(STRIKE, 1, death.who, True)
        nvim.lua("pcall(package.loaded['parley.remote'], 'status', 0, '')")
    until(
        nvim,
        lambda: not nvim.lua("return require('parley.host').state().channel"),
        "the end of the host",
    )
    assert nvim.text().startswith(chat.question)
    nvim.command("write")


def respond(nvim: Child) -> None:
    """Run `:ParleyRespond` to its outcome, and again while a dead Neovim's host still holds the
    chat.
    """

    def done() -> bool:
        nvim.command("messages clear")
        nvim.command("ParleyRespond")
        until(
            nvim,
            lambda: waits(nvim) or not nvim.lua("return require('parley.handle').busy(0)"),
            "the turn",
        )
        nvim.flush()
        return "another Neovim" not in nvim.messages()

    until(nvim, done, "the turn of the chat")


LAST_WORDS = "\U0001f4dd: you had me call a tool, and I told you what it returned.\n"
WARNING = "may have run: no result in the file"


def go_on(nvim: Child, chat: Chat, death: Death) -> None:
    """Open the remaining file, check that it is intact, and continue to a complete answer."""
    left = chat.path.read_text(encoding="utf-8")
    assert left.startswith(chat.question), death
    assert not [p for p in parse(left).problems if p.severity == "error"], death
    opened(nvim, chat)
    assert f"{nvim.text()}\n" == left, death
    assert not is_complete(nvim) or LAST_WORDS in left, (
        f"half a reply counts as complete after {death}"
    )
    respond(nvim)  # from now on, a dead Neovim's host no longer runs calls
    before = chat.calls()
    assert before <= 1, death
    if not is_complete(nvim):
        assert waits(nvim), f"{death}\n{nvim.report()}"
        if before:
            until(
                nvim,
                lambda: any("may already have run" in said for said in problems(nvim)),
                "the problem",
            )
        nvim.command("ParleyApprove yN" if before else "ParleyApprove ya")
        until(
            nvim, lambda: is_complete(nvim) or WARNING in nvim.messages(), f"an end after {death}"
        )
        if not is_complete(nvim):
            # The call was started but never reached its server, so the first approval warns.
            until(nvim, lambda: waits(nvim), "the choice")
            nvim.command("ParleyApprove ya")
    until(nvim, lambda: is_complete(nvim), f"the answer after {death}")
    nvim.command("write")
    assert chat.calls() <= 1, death


def assert_sendable(chat: Chat) -> None:
    """Check that every provider accepts the resulting chat with another question."""
    text = chat.path.read_text(encoding="utf-8")
    assert LAST_WORDS in text, "half a reply counts as complete"
    assert text.count("\U0001f916:") == 1
    transcript = parse(f"{text.rstrip()} and now?\n")
    assert len(transcript.exchanges) == 2
    for as_tuples in FORMATS:
        assert as_tuples.check(as_tuples.body(as_tuples.ask(transcript, 1))) == [], as_tuples.name


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_at_any_step_nothing_is_lost_no_call_runs_twice_and_the_file_continues(
    tmp_path: Path, seed: int
) -> None:
    furnish(tmp_path)
    lives = [(Chat(tmp_path, f"life{number}"), death) for number, death in enumerate(deaths(seed))]
    for before, now in pairwise([None, *lives, None]):
        with editor(tmp_path) as nvim:
            if before:
                go_on(nvim, *before)
                assert_sendable(before[0])
            if now:
                live(nvim, *now)
