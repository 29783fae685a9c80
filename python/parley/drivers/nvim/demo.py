"""`make demo`: Neovim on a chat with the demo model; without a terminal, the session is typed and printed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pynvim

_ROOT = Path(__file__).parents[4]
_QUESTION = "can you find the latest stock price of google and microsoft?"
_CHAT = f"---\ntopic: stock prices\n---\n\n💬: {_QUESTION}\n"
_HINT = "<C-g><C-g> or :ParleyRespond asks; then yA on a proposal says yes to all, yo to one, yn to none"
_PATIENCE_S = 60.0
_LOOK_S = 0.02


def main() -> int:
    """Play or be played with, in a folder of its own that leaves no trace."""
    nvim = shutil.which("nvim")
    if nvim is None:
        sys.stderr.write("the demo needs Neovim 0.10 or newer, as nvim on the PATH\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="parley-demo-") as folder:
        chat = Path(folder) / "stock-prices.md"
        chat.write_text(_CHAT, encoding="utf-8")
        for name in ("STATE", "DATA", "CACHE", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = f"{folder}/{name.lower()}"
        os.environ.setdefault("PARLEY_DEMO_PACE", "0.02")
        lua = f"vim.g.parley_python = {sys.executable!r} require('parley').setup({{ agent = 'Demo' }})"
        command = [nvim, "--clean", "--cmd", f"set rtp^={_ROOT}", "--cmd", f"lua {lua}"]
        if sys.stdin.isatty() and sys.stdout.isatty():
            echo = f"autocmd VimEnter * ++once echo '{_HINT}'"
            return subprocess.run([*command, "--cmd", echo, "+normal! G$", str(chat)], check=False).returncode
        return _play([*command, "--embed", "--headless", str(chat)])


def _play(command: list[str]) -> int:
    """Type the session, and print the chat it made."""
    nvim = pynvim.attach("child", argv=command)

    def lines() -> list[str]:
        return list(nvim.current.buffer[:])

    def typed(keys: str, done: Callable[[], bool], what: str) -> None:
        nvim.input(keys)
        deadline = time.monotonic() + _PATIENCE_S
        while not done():
            if time.monotonic() > deadline:
                shown = nvim.command_output("messages")
                raise SystemExit(f"the demo waited in vain for {what}:\n{shown}\n" + "\n".join(lines()))
            time.sleep(_LOOK_S)

    def waits() -> bool:
        return sum(line.startswith("❓:") for line in lines()) == 2 and bool(nvim.funcs.maparg("yA", "n"))

    typed(":ParleyRespond<CR>", waits, "two proposals")
    typed("yA", lambda: lines()[-1].startswith("💬:") and len(lines()) > 10, "the answer")
    sys.stdout.write("\n".join(lines()) + "\n")
    with contextlib.suppress(EOFError, OSError):  # it is gone, as it should be
        nvim.command("qall!")
    return 0


if __name__ == "__main__":
    sys.exit(main())
