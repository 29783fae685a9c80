"""What the workspace costs: drawing the diff of a large file, and searching a large folder."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from pathlib import Path

from parley.programs import program
from parley.workspace.boundary import Boundary
from parley.workspace.searching import search_text
from parley.workspace.walk import WalkBudget
from tests.bench.machine import median_of, seconds
from tests.bench.subjects import LINE, parley, started
from tests.workspace.trees import write

RUNS = 7
LINES = 10_000
FILES = 50_000
FOUND = 100
"""In how many of the files the searched text is."""
WATCH = """
local set, buf = vim.api.nvim_buf_set_extmark, vim.api.nvim_get_current_buf()
_G.bench = {}
vim.api.nvim_buf_attach(buf, false, { on_lines = function(_, _, _, from, _, to)
  if bench.proposed then return true end
  for _, line in ipairs(vim.api.nvim_buf_get_lines(buf, from, to, false)) do
    if vim.startswith(line, '❓:') then bench.proposed = vim.uv.hrtime() end
  end
end })
vim.api.nvim_buf_set_extmark = function(...)
  local _, _, _, _, opts = ...
  for _, line in ipairs(opts.virt_lines or {}) do
    for _, chunk in ipairs(line) do
      bench.is_set = bench.is_set or vim.startswith(vim.trim(chunk[1]), '@@ ')
    end
  end
  return set(...)
end
vim.api.nvim_set_decoration_provider(vim.api.nvim_create_namespace('bench'), {
  on_end = function()
    if bench.is_set and not bench.drawn then bench.drawn = vim.uv.hrtime() end
  end,
})
"""
"""Records when the proposal is in the buffer, and when Neovim has drawn a hunk of its diff."""
DRAWN_S = "return bench.drawn and bench.proposed and (bench.drawn - bench.proposed) / 1e9"


def diff_drawn_s(port: int, home: Path) -> float:
    """Seconds from an edit's proposal to its diff on the screen, in a file of 10,000 lines of which
    the edit changes 100.
    """
    root = home / "tree"
    lines = [f"{LINE} {number}{' mark' * (number % 100 == 0)}\n" for number in range(LINES)]
    write(root, {"long.txt": "".join(lines)})
    options = {
        "agent": "Demo-OpenAI",
        "status": {"llm": False},
        "workspace": {"enabled": True, "root": str(root)},
    }
    edit = {"path": "long.txt", "edits": [{"old": " mark", "new": " changed", "all": True}]}
    took = list[float]()
    with started(parley(options), port, home / "diff", {"PARLEY_DEMO_PACE": "0"}) as desk:
        for _ in range(RUNS + 1):
            desk.open(0, f"call edit_file {json.dumps(edit)}")
            desk.nvim.lua(WATCH)
            desk.nvim.keys(desk.subject.key)
            took.append(desk.nvim.until(lambda: desk.nvim.lua(DRAWN_S), "the diff"))
    return statistics.median(took[1:])  # the first starts the host's server of tools


def search_s() -> dict[str, float]:
    """Seconds for one search of 50,000 files in 500 folders, by the way it is made."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        for number in range(FILES):
            text = f"{LINE}\n" * 20 + "the needle\n" * (number % (FILES // FOUND) == 0)
            write(root, {f"{number % 500}/{number}.txt": text})
        boundary = Boundary(root)
        ways = {"with": program("rg"), "without": None}
        return {
            way: median_of(5, lambda rg=rg: seconds(lambda: search(boundary, rg)))  # type: ignore[misc]
            for way, rg in ways.items()
            if rg or way == "without"
        }


def search(boundary: Boundary, rg: str | None) -> None:
    """Search all files for a text, without the limits of time and names."""
    budget = WalkBudget(names=2 * FILES, seconds=600)
    found = search_text(boundary, "the needle", rg=rg, budget=budget)
    assert found.count("the needle") == FOUND, found[-200:]
