"""`make demo`: opens Neovim with a chat for the demo model in a small project; without a terminal,
types the session and prints it.

Knows what a newcomer should see first; does not know how Parley works.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pynvim

from parley.chat.grammar import MARKERS
from parley.policy.doubts import LEAST_SEEN_S

_ROOT = Path(__file__).parents[3]
_QUESTION = "can you find the latest stock price of google and microsoft?"
BUG_QUESTION = "fix the bug in the shopping cart"
_FILES = {
    "cart.py": '''"""A shopping cart: a list of items, each with its price and how many pieces it has."""


def total(items):
    """The price of all items."""
    return sum(price for price, count in items)
''',
    "test_cart.py": """import unittest

from cart import total


class CartTest(unittest.TestCase):
    def test_each_piece_has_its_price(self):
        self.assertEqual(total([(5, 2), (3, 1)]), 13)
""",
    ".gitignore": "__pycache__/\n",
}
"""The project with the bug: the text of each file, by its path."""
_NOTE = f"{MARKERS['note']} Then ask: {BUG_QUESTION}"
_CHAT = f"---\ntopic: stock prices\n---\n\n{MARKERS['question']} {_QUESTION}\n\n{_NOTE}\n"
_HINT = "<C-g><C-g> asks, yA approves tools, :qa! ends the demo"
_NEXT = (
    'That was the demo. To have Parley in your own Neovim,\ncontinue with "Install" in README.md.'
)
_PATIENCE_S = 60.0
_LOOK_S = 0.02

_FOREIGN = ("VIM", "VIMRUNTIME", "VIMINIT", "NVIM_APPNAME", "NVIM_LISTEN_ADDRESS", "PYTHONPATH")
"""Variables from a Neovim whose terminal runs this program, or meant only for this process."""

# A bar instead of a message, because a long message waits for ENTER and swallows the keys.
_INIT = """
local here, python, hint = {here}, {python}, {hint}
vim.opt.runtimepath:prepend(here .. '/parley')
vim.opt.runtimepath:append(here .. '/help')
pcall(vim.cmd.helptags, {{ here .. '/help/doc', magic = {{ file = false }} }})
vim.g.parley_python = python
vim.o.winbar = ' ' .. hint
vim.o.linebreak, vim.o.swapfile = true, false
vim.cmd('filetype plugin on')
vim.fn.chdir(here .. '/shop')
require('parley').setup({{ agent = 'Demo', chat_dir = here .. '/chats' }})
"""


def main(nvim: str) -> int:
    """Play the session, or let the user play, in a temporary folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="parley-demo-") as folder:
        chat = Path(folder) / "chats" / "stock-prices.md"
        chat.parent.mkdir()
        chat.write_text(_CHAT, encoding="utf-8")
        init = Path(folder) / "init.lua"
        init.write_text(_init(folder), encoding="utf-8")
        # Use links, because 'runtimepath' interprets commas, wildcards and variables in names.
        Path(folder, "parley").symlink_to(_ROOT)
        _create_project(Path(folder, "shop"))
        tags = Path(folder, "help", "doc")  # a checkout has no tags, and may be read-only
        tags.mkdir(parents=True)
        (tags / "parley.txt").symlink_to(_ROOT / "doc" / "parley.txt")
        command = [nvim, "--clean", "-i", "NONE", "-u", str(init)]
        environ = _environ(folder)
        if sys.stdin.isatty() and sys.stdout.isatty():
            sys.stdout.write(f"Opening a chat with the demo model in {nvim} ...\n")
            sys.stdout.flush()
            code = subprocess.run(
                [*command, "+normal! G$", str(chat)], env=environ, check=False
            ).returncode
            sys.stdout.write(f"{_NEXT}\n")
            return code
        os.environ.clear()
        os.environ.update(environ)
        return _play([*command, "--embed", "--headless", str(chat)])


def _create_project(folder: Path) -> None:
    """A Git work tree with a bug. Without Git, the demo model gets no file tools."""
    folder.mkdir()
    for name, text in _FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    # A hook's variables would name another repository, and a template may contain hooks.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    with contextlib.suppress(OSError):
        command = ["git", "init", "-q", "--template="]
        subprocess.run(command, cwd=folder, env=environ, check=False, stderr=subprocess.DEVNULL)


def _init(folder: str) -> str:
    return _INIT.format(here=_lua(folder), python=_lua(sys.executable), hint=_lua(_HINT))


def _lua(text: str) -> str:
    """A Lua string literal for any text."""
    return '"' + "".join(f"\\{byte:03d}" for byte in os.fsencode(text)) + '"'


def _environ(folder: str) -> Mapping[str, str]:
    places = {
        f"XDG_{name}_HOME": f"{folder}/{name.lower()}"
        for name in ("STATE", "DATA", "CACHE", "CONFIG")
    }
    mine = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    # The demo's own Python runs the project's tests if there is no other.
    path = f"{mine.get('PATH', os.defpath)}{os.pathsep}{Path(sys.executable).parent}"
    return {"PARLEY_DEMO_PACE": "0.02", **mine, **places, "PATH": path}


def _play(command: list[str]) -> int:
    """Type the session, and print the resulting chat."""
    nvim = pynvim.attach("child", argv=command)

    def lines() -> list[str]:
        return list(nvim.current.buffer[:])

    def typed(keys: str, is_done: Callable[[], bool], what: str) -> None:
        nvim.input(keys)
        deadline = time.monotonic() + _PATIENCE_S
        while not is_done():
            if time.monotonic() > deadline:
                messages = nvim.command_output("messages")
                raise SystemExit(
                    f"the demo timed out waiting for {what}:\n{messages}\n" + "\n".join(lines())
                )
            time.sleep(_LOOK_S)

    def waits(count: int, total: int) -> bool:
        """Whether the last `count` of all calls are waiting, and have been seen for long enough."""
        calls = [line for line in lines() if line.startswith(MARKERS["proposal"])]
        undecided = [line for line in calls if line.startswith(f"{MARKERS['proposal']} ")]
        times = nvim.exec_lua("return require('parley.sightings').times(vim.fn.bufnr())")
        seen = [ms / 1000 >= LEAST_SEEN_S for _, ms in times]
        return (len(undecided), len(calls), seen) == (count, total, [True] * count)

    def answered(count: int) -> bool:
        """Whether this question is the last one, and still empty."""
        questions = [line for line in lines() if line.startswith(MARKERS["question"])]
        return len(questions) == count and lines()[-1] == f"{MARKERS['question']} "

    typed(":ParleyRespond<CR>", lambda: waits(2, 2), "two proposals")
    typed("yA", lambda: answered(2), "the answer")
    typed(f"GA{BUG_QUESTION}<Esc>:ParleyRespond<CR>", lambda: waits(1, 3), "the search")
    typed("ya", lambda: waits(1, 4), "the edit")
    typed("ya", lambda: waits(1, 5), "the tests")
    typed("ya", lambda: answered(3), "the fix")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # the encoding of chats in every locale
    sys.stdout.write("\n".join(lines()) + "\n")
    with contextlib.suppress(EOFError, OSError):  # Neovim has exited, as expected
        nvim.command("qall!")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or ["nvim"]))
