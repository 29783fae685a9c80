"""What a list of 5,000 chats in 200 folders costs: for `:ParleyFind`, completion and `parley list`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from parley.nvim.finder import find_chats
from parley.storage.known_chats import known_chats
from parley.storage.ledger import LedgerFile, default_path
from tests.bench.machine import median_of, seconds
from tests.many_chats import many_chats
from tests.nvim.harness import Child, child

CHATS, FOLDERS, RUNS = 5_000, 200, 7
PICK = """
_G.began, _G.took = vim.uv.hrtime(), nil
vim.ui.select = function(items, opts)
  for _, item in ipairs(items) do opts.format_item(item) end
  _G.took = (vim.uv.hrtime() - _G.began) / 1e9
end
"""


def chat_list_s() -> Mapping[str, float]:
    """Seconds for each way to list or complete the chats."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(os.path.realpath(folder))
        environ = {
            **os.environ,
            "HOME": str(home),
            **{
                f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "STATE")
            },
        }
        with closing(LedgerFile(default_path(environ))) as ledger:
            paths = many_chats(home, ledger, CHATS, FOLDERS)
            first = seconds(lambda: known_chats(ledger, home / "none"))

        def find(words: str) -> float:
            return median_of(
                RUNS, lambda: seconds(lambda: find_chats(home / "none", words, environ, home))
            )

        def command(*words: str) -> float:
            line = [sys.executable, "-m", "parley", *words]
            run = lambda: subprocess.run(line, env=environ, stdout=subprocess.PIPE, check=True)  # noqa: E731
            return median_of(RUNS, lambda: seconds(run))

        return {
            "the first list, which opens every file": first,
            "… `:ParleyFind`: key → picker": _picked_s(home),
            "… in the search's thread": find(""),
            "… with a tag": find("#tag-3"),
            "… with a word in all texts": find("nowhere"),
            "… the completion of a path, in the command": _completed_s(environ, str(paths[7])[:-5]),
            "… with the command's start": command("list", "--starting", "chat-12"),
            "`parley list --json`": command("list", "--json"),
            "`parley help`, for comparison": command("help"),
        }


def _completed_s(environ: Mapping[str, str], start: str) -> float:
    """Seconds for the completion itself, in a process that has started."""
    code = (
        "import sys, time\nfrom parley.cli import main\nmain(['list', '--starting', 'x'])\n"
        "began = time.perf_counter()\nmain(['list', '--starting', sys.argv[1]])\n"
        "sys.stderr.write(str(time.perf_counter() - began))"
    )
    line = [sys.executable, "-c", code, start]

    def run() -> float:
        done = subprocess.run(line, env=dict(environ), capture_output=True, check=True)
        return float(done.stderr)

    return median_of(RUNS, run)


def _picked_s(home: Path) -> float:
    """Seconds from `:ParleyFind` to the picker's rows, in a Neovim whose host has started."""
    with child(home) as nvim:
        _pick(nvim)
        return median_of(RUNS, lambda: _pick(nvim))


def _pick(nvim: Child) -> float:
    nvim.lua(PICK)
    nvim.command("ParleyFind")
    time.sleep(0.01)
    took: float = nvim.until(lambda: nvim.lua("return _G.took"), "the list")
    return took
