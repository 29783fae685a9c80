"""`make demo` as a newcomer sees it: a real terminal with keys and a screen.

The README's tests run its commands, so they cover the demo without a terminal.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from parley.nvim.demo import BUG_QUESTION
from tests.nvim.harness import ROOT, Child, child, nvim_path

BOUND_S = 40.0
HINT = "<C-g><C-g> asks, yA approves tools, :qa! ends the demo"
QUESTION = "can you find the latest stock price of google and microsoft?"
ANSWER = (
    "Google (GOOGL) is at $911 and Microsoft (MSFT) is at $544 as of today. Do you want "
    "something else?"
)
PROXIES = {f"{name}_PROXY": "socks5://127.0.0.1:9" for name in ("HTTP", "HTTPS", "ALL")}
TERMINAL = """
local command, env = ...
vim.o.laststatus, vim.o.cmdheight, vim.o.ruler, vim.o.showcmd = 0, 0, false, false
local start = vim.fn.has('nvim-0.11') == 1 and vim.fn.jobstart or vim.fn.termopen
vim.cmd('enew')
job = start(command, { term = vim.fn.has('nvim-0.11') == 1 or nil, env = env })
"""


def copy_of_parley(folder: Path) -> Path:
    """The files from a clone that Parley needs to run, copied to another folder."""
    for name in ("python", "lua", "plugin", "rplugin", "doc"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    return folder


class Terminal:
    """A terminal inside Neovim: its program has a pseudo-terminal, and its screen is readable."""

    def __init__(self, outer: Child) -> None:
        self.outer = outer

    def screen(self) -> list[str]:
        return [line.rstrip() for line in self.outer.lines()]

    def keys(self, keys: str) -> None:
        self.outer.lua("vim.fn.chansend(job, vim.keycode(...))", keys)

    def until(self, condition: Callable[[str], bool], what: str) -> str:
        """Wait until the screen shows a text; return the screen as one text without line breaks."""

        def shows() -> str:
            # Never wait for ENTER: that prompt would take the session's keys.
            text = " ".join(" ".join(self.screen()).split())
            assert "Press ENTER" not in text, "\n".join(self.screen())
            return text if condition(text) else ""

        text: str = self.outer.until(shows, what, BOUND_S)
        return text


def shows_waiting(call: str, text: str) -> bool:
    """Whether a screen shows this call and the keys that decide on it."""
    return call in text and "yn no" in text


def fix_the_bug(terminal: Terminal) -> None:
    """The second scene, whose question is in the chat's note, and its revert."""
    note = f"🔒: Then ask: {BUG_QUESTION}"

    def asks(text: str) -> bool:
        terminal.keys("G")
        return "💬:" in terminal.screen() and note in text

    terminal.until(asks, "the next question")
    terminal.keys(f"GA{BUG_QUESTION}<Esc><C-g><C-g>")
    for call in ("❓ search_text(", "❓ edit_file(cart.py) +1 −1", "❓ run_command("):
        terminal.until(partial(shows_waiting, call), call)
        terminal.keys("ya")
    fixed = "and the tests pass. `:ParleyRevert`"
    terminal.until(lambda text: fixed in text and "💬:" in terminal.screen(), "the fix")
    terminal.keys(":ParleyRevert<CR>")
    terminal.until(lambda text: "reverted cart.py" in text, "the revert")


@pytest.mark.parametrize(
    ("columns", "folder", "env"),
    [
        (60, "parley", {"LC_ALL": "C", "NVIM_APPNAME": "other"}),
        (80, """with a blank, 'quotes' "and" $HOME, {a,b} [c]*""", {}),
        (120, "parley", PROXIES),
    ],
)
def test_a_demo_session_takes_two_keys_and_fits_the_screen(
    tmp_path: Path, columns: int, folder: str, env: dict[str, str]
) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from parley.nvim.demo import main; "
    root = copy_of_parley(tmp_path / folder)
    command = [
        sys.executable,
        "-c",
        f"{code}sys.exit(main(sys.argv[2]))",
        str(root / "python"),
        nvim_path(),
    ]
    with child(tmp_path, width=columns, height=20) as outer:
        terminal = Terminal(outer)
        outer.lua(TERMINAL, command, env or {"NONE": ""})
        terminal.until(lambda text: QUESTION in text and HINT in text, "the question and the hint")
        assert terminal.screen()[1].startswith("---")  # the chat from its first line
        terminal.keys("<C-g><C-g>")
        terminal.until(lambda text: text.count("❓ web_search(") == 2, "two calls")
        terminal.until(lambda text: "yn no" in text, "what can be pressed")
        terminal.keys("yA")
        terminal.until(lambda text: ANSWER in text, "the answer")
        if columns == 80:
            fix_the_bug(terminal)
        terminal.keys(":help parley<CR>")
        terminal.until(lambda text: "Parley lets you talk" in text, "the help")
        terminal.keys(":qa!<CR>")
        end = terminal.until(lambda text: "That was the demo" in text, "the end")
        assert 'continue with "Install" in README.md.' in end
