"""Random sessions in a real Neovim and the shell: no call runs again without an approval for that
run.

A real stdio server counts the calls; the screen shows the warnings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from parley import engine
from parley.errors import BusyError
from parley.runtime.app import App
from parley.settings.load import load_settings
from parley.storage.ledger import LedgerFile, default_path
from tests.e2e.machine import Process
from tests.examples import examples
from tests.nvim.counting import Chat, environ, furnish, opened, until
from tests.nvim.harness import Child, child

SAYS = "may have run: no result in the file"
WATCH = """
local chat = require('parley.chat')
local ask = chat.ask
_G.asks = 0
chat.ask = function(...) _G.asks = _G.asks + 1 return ask(...) end
"""
_numbers = count(1)


class Session:
    """One chat, its history, and the number of warnings that a call may have run."""

    def __init__(self, nvim: Child) -> None:
        self.nvim = nvim
        self.chat = Chat(nvim.home, f"session{next(_numbers)}")
        self.warnings = 0
        opened(nvim, self.chat)

    def rest(self) -> None:
        self.nvim.until_open()
        until(
            self.nvim,
            lambda: not self.nvim.lua("return require('parley.handle').busy(0)"),
            "the end",
        )

    def go(self, keys: str) -> None:
        self.nvim.command(keys)
        self.rest()

    def waits(self) -> bool:
        """Whether the last call waits for a choice, with the cursor on it."""
        self.nvim.command("normal! G$")
        if not self.nvim.lua("return vim.fn.search('^❓', 'bcW')"):
            return False
        has_keys = self.nvim.lua("return vim.fn.maparg('ya', 'n') ~= ''")
        here = "return require('parley.view').waits_at(0, vim.fn.line('.') - 1)"
        return bool(has_keys and self.nvim.lua(here))

    def yes(self, how: str) -> None:
        if not self.waits():
            return
        self.nvim.command("messages clear")
        before = self.nvim.lua("return _G.asks")
        self.nvim.keys(how)
        until(self.nvim, lambda: self.nvim.lua("return _G.asks") > before, "the yes")
        self.rest()
        self.nvim.lua("vim.wait(20)")  # a message appears a moment later
        self.warnings += SAYS in self.nvim.messages()

    def regenerate(self) -> None:
        self.nvim.command("1")
        self.go("ParleyRespond!")

    def write(self) -> None:
        self.nvim.command("silent write!")

    def reopen(self) -> None:
        opened(self.nvim, self.chat)

    def shell(self) -> None:
        """Approve in the shell, in the file's present state."""
        self.warnings += asyncio.run(shell_yes(self.nvim.home, self.chat.path))


async def shell_yes(home: Path, path: Path) -> bool:
    """Whether the approval only caused a warning."""
    env = environ(home, PARLEY_DEMO_PACE="0", PARLEY_LEAST_SEEN_S="0")
    here = Process(App(load_settings(env)[0], env, LedgerFile(default_path(env), viewer="shell")))
    ports, resolve = here.ports(path), here.app.resolve(None)
    try:
        if (await engine.run_turn(ports, resolve)).kind != "waiting":
            return False
        call = (await engine.observe(ports, resolve)).undecided()[0]
        made = await engine.choose(ports, resolve, call.span.start, engine.Press("ya", "command"))
        if made.decided:
            await engine.run_turn(ports, resolve)
    except BusyError:
        return False
    else:
        return SAYS in made.message
    finally:
        await here.app.close()


DEEDS: dict[str, Callable[[Session], None]] = {
    "respond": lambda s: s.go("ParleyRespond"),
    "regenerate": Session.regenerate,
    "undo": lambda s: s.go("silent undo"),
    "undo more": lambda s: s.go("silent undo | silent undo"),
    "redo": lambda s: s.go("silent redo"),
    "ya": lambda s: s.yes("ya"),
    "ya again": lambda s: s.yes("ya"),
    "command": lambda s: s.yes(":ParleyApprove ya<CR>"),
    "write": Session.write,
    "reopen": Session.reopen,
    "shell": Session.shell,
}


@pytest.fixture(scope="module")
def nvim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    home = tmp_path_factory.mktemp("sessions")
    furnish(home)
    init = "vim.o.timeoutlen = 20 vim.o.autoread = true"
    with child(home, init=init, env={"PARLEY_DEMO_PACE": "0"}) as one:
        one.lua(WATCH)
        yield one


@pytest.mark.fuzz
@pytest.mark.timeout(900)
@examples(3, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(st.sampled_from(list(DEEDS)), min_size=3, max_size=10))
def test_no_call_runs_again_without_an_approval_for_that_run(nvim: Child, deeds: list[str]) -> None:
    session = Session(nvim)
    for deed in ["respond", "ya", *deeds, "ya"]:
        DEEDS[deed](session)
    ledger = LedgerFile(default_path(environ(nvim.home)))
    entries = ledger.chat(str(session.chat.path)).view().entries
    ledger.close()
    started = [entry.key.id for entry in entries if entry.state in ("used", "closed")]
    runs = session.chat.calls()
    assert runs <= len(started)
    assert runs <= len(set(started)) + session.warnings, (deeds, started)
    nvim.command("silent! %bwipeout!")
