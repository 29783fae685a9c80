"""Chats that were answered and closed leave nothing in the editor or its host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nvim.harness import Child, child
from tests.nvim.test_ends import below
from tests.nvim.test_host import host_pid
from tests.nvim.test_servers_page import setup
from tests.nvim.test_turn import ask, complete

ROUNDS = 3
COUNTS = """
local seen, counts = {}, {}
local function count(value)
  if type(value) == 'table' and not seen[value] then
    seen[value] = true
    local entries = 0
    for key, each in next, value do
      entries = entries + 1 + count(key) + count(each)
    end
    return entries + count(getmetatable(value))
  elseif type(value) == 'function' and not seen[value] then
    seen[value] = true
    local number, entries = 1, 0
    while true do
      local name, held = debug.getupvalue(value, number)
      if not name then return entries end
      number, entries = number + 1, entries + count(held)
    end
  end
  return 0
end
seen[_G], seen[vim], seen[package.loaded] = true, true, true
for name, module in pairs(package.loaded) do
  if vim.startswith(name, 'parley') then counts[name] = count(module) end
end
counts.autocommands = #vim.api.nvim_get_autocmds({})
counts.buffers, counts.windows = #vim.api.nvim_list_bufs(), #vim.api.nvim_list_wins()
counts.channels, counts.handles = #vim.api.nvim_list_chans(), 0
if vim.fn.has('nvim-0.11') == 1 then  -- 0.10 can abort at a handle of its own
  vim.uv.walk(function() counts.handles = counts.handles + 1 end)
end
return counts
"""


def counts(nvim: Child) -> dict[str, int]:
    """The entries of the tables that each of Parley's modules holds, and Neovim's objects."""
    found: dict[str, int] = nvim.lua(COUNTS)
    host = host_pid(nvim)
    for name, pid in (("host", host), ("editor", nvim.pid)):
        if Path(f"/proc/{pid}/fd").exists():
            found[f"descriptors of the {name}"] = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            found[f"threads of the {name}"] = len(list(Path(f"/proc/{pid}/task").iterdir()))
    found["processes"] = len(below(nvim.pid))
    return found


def live(nvim: Child, name: str) -> None:
    """Answer a chat with a call, look at its pages, and close it."""
    ask(nvim, 'call web_search {"query":"x"}', name)
    nvim.until_waiting()
    nvim.keys("K")
    nvim.until(lambda: len(nvim.nvim.windows) > 1, "the details")
    nvim.keys("q")
    nvim.until(lambda: len(nvim.nvim.windows) == 1, "their end")
    nvim.keys("ya")
    complete(nvim)
    nvim.command("ParleyLog")
    nvim.until(lambda: "parley://" in nvim.name, "the log")
    nvim.command("bwipeout!")
    nvim.command("silent! %bwipeout!")
    nvim.flush()


def test_closed_chats_leave_nothing(tmp_path: Path) -> None:
    with child(tmp_path, init=setup({}), forked=False) as nvim:
        for number in range(2):
            live(nvim, f"first-{number}.md")
        before = counts(nvim)
        for number in range(ROUNDS):
            live(nvim, f"{number}.md")
        nvim.until(lambda: not grown(before, counts(nvim)), "as few things as before", 5)


def grown(before: dict[str, int], now: dict[str, int]) -> set[str]:
    """The counts that are larger than before; timers that end may make some smaller."""
    return {name for name, number in now.items() if number > before.get(name, 0)}


LINES = 20_000
IS_DRAWN = """
local buf = vim.api.nvim_get_current_buf()
return require('parley.view').tick(buf) == vim.api.nvim_buf_get_changedtick(buf)
"""
LARGE = "💬: how?\n\n🤖:[A]\n\n" + "some words of prose\n" * 30 + "\n"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_the_texts_of_closed_chats_are_forgotten(tmp_path: Path) -> None:
    text = LARGE * (LINES // LARGE.count("\n")) + "💬: \n"
    with child(tmp_path, init=setup({}), forked=False) as nvim:
        sizes = list[float]()
        for number in range(14):
            nvim.edit(f"{number}.md", text)
            nvim.until(lambda: nvim.lua(IS_DRAWN), "the drawn chat")
            nvim.command("bwipeout!")
            sizes.append(resident_mb(host_pid(nvim)))
    assert sizes[-1] - sizes[-4] < 6, sizes  # each text takes more than 3 MB


def resident_mb(pid: int) -> float:
    """A process's memory."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024
