"""`make demo`: opens Neovim with a chat for the demo model; without a terminal, types the session
and prints it.

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
_CHAT = f"---\ntopic: stock prices\n---\n\n{MARKERS['question']} {_QUESTION}\n"
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
    return {"PARLEY_DEMO_PACE": "0.02", **mine, **places}


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

    def waits() -> bool:
        proposals = [line for line in lines() if line.startswith(MARKERS["proposal"])]
        times = nvim.exec_lua("return require('parley.sightings').times(vim.fn.bufnr())")
        return len(proposals) == 2 and [ms / 1000 >= LEAST_SEEN_S for _, ms in times] == [
            True,
            True,
        ]

    typed(":ParleyRespond<CR>", waits, "two proposals")
    typed(
        "yA",
        lambda: lines()[-1].startswith(MARKERS["question"]) and len(lines()) > 10,
        "the answer",
    )
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # the encoding of chats in every locale
    sys.stdout.write("\n".join(lines()) + "\n")
    with contextlib.suppress(EOFError, OSError):  # Neovim has exited, as expected
        nvim.command("qall!")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or ["nvim"]))
