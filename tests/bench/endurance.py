"""`make endurance`: many questions, after which memory, descriptors, tasks and times must be as
before.

One Neovim with its host asks 300 questions with tool calls, in ten chats at a time, with 20 MCP
servers, a ledger of a million rows, and 5,000 known chats. The table compares the first hundred
questions with the last hundred. Exits with 1 if something has grown.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from parley.storage.ledger import LedgerFile, default_path
from tests.bench.counted_host import counts_of, program
from tests.bench.machine import precise_cpu_s
from tests.bench.subjects import HERE, parley, serving
from tests.many_chats import fill, many_chats
from tests.mcp_servers import TABLE
from tests.nvim.harness import Child, child
from tests.nvim.test_ends import below
from tests.nvim.test_host import host_pid
from tests.nvim.test_long_life import resident_mb

CHATS, QUESTIONS, ROUNDS = 10, 10, 3
"""In each round, ten chats get ten questions each, and are then closed."""
KNOWN, FOLDERS, SERVERS, ROWS = 5_000, 200, 20, 1_000_000
AGE_S = 400 * 24 * 3600
"""The age of the ledger's rows: the log's are old enough to be deleted, some after each turn."""
TOOL = {"name": "look", "description": "Look.", "inputSchema": {"type": "object", "properties": {}}}
ANSWERS = {
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "seen " * 100}]},
}
TOKENS = 200
EDITOR = """
collectgarbage()
local marks, held = 0, 0
for _, space in pairs(vim.api.nvim_get_namespaces()) do
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) then
      marks = marks + #vim.api.nvim_buf_get_extmarks(buf, space, 0, -1, {})
    end
  end
end
for _ in pairs(package.loaded) do held = held + 1 end
return {
  marks = marks, modules = held, buffers = #vim.api.nvim_list_bufs(),
  windows = #vim.api.nvim_list_wins(), autocommands = #vim.api.nvim_get_autocmds({}),
  lua_kb = math.floor(collectgarbage('count')), channels = #vim.api.nvim_list_chans(),
}
"""
EQUAL = {
    *("tasks", "threads", "descriptors", "children", "editor descriptors", "buffers", "windows"),
    *("autocommands", "channels", "modules", "marks", "statements"),
}
GROWTH = {"host MB": 1.1, "editor MB": 1.1, "lua_kb": 1.1}
GROWTH |= {"ms": 1.5, "CPU ms": 1.3, "ledger steps": 1.3}
"""The largest permitted ratio of the last round to the first."""


@contextmanager
def long_lived(home: Path, port: int, counts: Path) -> Iterator[Child]:
    """A Neovim with its servers and its counted host."""
    server = {"command": sys.executable, "args": ["-S", TABLE, json.dumps(ANSWERS)]}
    agent = {"name": "Bench", "provider": "bench", "model": "bench"}
    options = {
        "mcp": {"servers": {f"s{number}": server for number in range(SERVERS)}},
        "approval": {"auto": ["s*/look"]},
        "agents": [agent],
        "status": {"llm": False},
        "highlight": {"treesitter": False},  # in Neovim 0.11, its memory grows with each text
    }
    init = (
        parley(options, str(port)).init
        + f"\nvim.g.parley_python = {json.dumps(str(program(home)))}"
    )
    env = {"BENCH_KEY": "x", "PARLEY_COUNTS": str(counts)}
    with child(home, init=init, forked=False, env=env) as nvim:
        yield nvim


class Watch:
    """The values after each question."""

    def __init__(self, nvim: Child, counts: Path) -> None:
        self._nvim = nvim
        self._counts = counts
        self.rows = list[dict[str, float]]()
        self._before = dict[str, float]()

    def look(self, took_s: float, cpu_s: float) -> None:
        """Add a row for a question that took so many seconds, and seconds of CPU time."""
        host = host_pid(self._nvim)
        row: dict[str, float] = {"ms": took_s * 1e3, "CPU ms": cpu_s * 1e3, **self._of_host()}
        done = {name: row[name] - self._before.get(name, 0) for name in ("statements", "steps")}
        self._before = {"statements": row.pop("statements"), "steps": row.pop("steps")}
        row |= {"statements": done["statements"], "ledger steps": done["steps"]}
        row |= {"host MB": resident_mb(host), "editor MB": resident_mb(self._nvim.pid)}
        row |= {"children": len(below(self._nvim.pid))}
        row |= {"editor descriptors": len(list(Path(f"/proc/{self._nvim.pid}/fd").iterdir()))}
        self.rows.append(row | self._nvim.lua(EDITOR))

    def _of_host(self) -> Mapping[str, int]:
        names = {"tasks", "threads", "descriptors", "statements", "steps"}
        return {name: n for name, n in counts_of(self._counts).items() if name in names}


def ask(nvim: Child, chat: Path) -> tuple[float, float]:
    """Ask in a chat; returns the seconds from the key to the end of the turn, and the CPU seconds of
    editor, host and servers until shortly after it."""
    nvim.command(f"buffer {chat}")
    nvim.nvim.api.buf_set_lines(0, -2, -1, True, ["", f"💬: 1 calls, {TOKENS} tokens"])
    nvim.command("normal! G")
    nvim.flush()
    time.sleep(0.1)
    cpu_s = precise_cpu_s(nvim.pid)
    tick, began = nvim.variable("changedtick"), time.monotonic()
    nvim.keys("<C-g><C-g>")
    done = "return vim.b.changedtick > ... + 5 and not require('parley.handle').busy(0)"
    nvim.until(lambda: nvim.lua(done, tick), "the answer")
    took = time.monotonic() - began
    nvim.command("silent! write")
    time.sleep(0.15)
    return took, precise_cpu_s(nvim.pid) - cpu_s


def compared(rows: Sequence[Mapping[str, float]]) -> Iterator[tuple[str, float, float, bool]]:
    """For each value, its median in the first and in the last round, and whether it has grown."""
    size = CHATS * QUESTIONS
    for name in rows[0]:
        first, last = (
            statistics.median(row[name] for row in part) for part in (rows[:size], rows[-size:])
        )
        most = first if name in EQUAL else first * GROWTH.get(name, float("inf"))
        yield name, first, last, last > most


def live(nvim: Child, counts: Path) -> list[dict[str, float]]:
    """Ask all questions; returns the values after each."""
    watch = Watch(nvim, counts)
    for number in range(ROUNDS + 1):
        chats = [nvim.edit(f"{number}-{each}.md", "💬: \n") for each in range(CHATS)]
        for _ in range(QUESTIONS if number else 1):
            for chat in chats:
                watch.look(*ask(nvim, chat))
        if not number:  # the first questions started the servers, and imported their packages
            watch.rows.clear()
        for chat in chats:
            nvim.command(f"bwipeout! {chat}")
    return watch.rows


def main() -> None:
    """Print a row for each value."""
    with tempfile.TemporaryDirectory() as folder, serving(HERE / "model_server.py") as server:
        home = Path(folder)
        path = default_path({"XDG_STATE_HOME": str(home / "state")})
        with closing(LedgerFile(path)) as ledger:
            fill(ledger, many_chats(home, ledger, KNOWN, FOLDERS), ROWS, time.time() - AGE_S)
        print(f"{ROWS:,} rows in a ledger of {path.stat().st_size / 1e6:.0f} MB", flush=True)
        with long_lived(home, server.port, home / "counts") as nvim:
            verdicts = list(compared(live(nvim, home / "counts")))
    names = [f"questions {first}" for first in (f"1 to {CHATS * QUESTIONS}", "in the last round")]
    print(f"| | {' | '.join(names)} | ratio |\n|---|---|---|---|")
    for name, first, last, has_grown in verdicts:
        ratio = f"{last / first:.2f}" if first else "–"
        print(f"| {name} | {first:.1f} | {last:.1f} | {ratio}{', grown' * has_grown} |")
    sys.exit(any(has_grown for *_, has_grown in verdicts))


if __name__ == "__main__":
    main()
