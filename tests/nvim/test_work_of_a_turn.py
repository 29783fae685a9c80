"""The work of a question and of a round of tools: database, files, parsing and messages to Neovim."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.bench.counted_host import counts_of, program
from tests.bench.subjects import HERE, Server, parley, serving
from tests.mcp_servers import TABLE
from tests.nvim.harness import Child, child

TOOL = {"name": "look", "description": "Look.", "inputSchema": {"type": "object", "properties": {}}}
ANSWERS = {
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "seen"}]},
}
OPTIONS = {
    "approval": {"auto": ["one/*"]},
    "loop": {"max_iterations": 100},
    "max_tool_calls": {"per_message": 100, "per_session": 100},
    "agents": [{"name": "Bench", "provider": "bench", "model": "bench", "tools": ["one/*"]}],
    "mcp": {
        "servers": {"one": {"command": sys.executable, "args": ["-S", TABLE, json.dumps(ANSWERS)]}}
    },
}
REMOTE = """
local remote = require('parley.remote')
_G.asked = {}
package.loaded['parley.remote'] = function(name, ...)
  table.insert(_G.asked, name)
  return remote(name, ...)
end
"""
WAITING = frozenset({"open_stream", "apply", "draw", "finish"})
"""The messages for whose answer a turn waits; not `read`, which it sends if its text is too old."""
OF_A_QUESTION = {
    "statements": 29,
    "transactions": 2,
    "parsed lines": 25,
    "looks": 110,
    "waits": 5,
    "messages": 22,
}
OF_A_ROUND = {
    "statements": 58,
    "transactions": 6,
    "parsed lines": 40,
    "looks": 66,
    "waits": 3.3,
    "messages": 20,
}
"""The limits; `looks` counts `stat` and `lstat`, of which each folder above the chat needs some."""
KNOWN = """
local buf = vim.api.nvim_get_current_buf()
return require('parley.view').tick(buf) == vim.api.nvim_buf_get_changedtick(buf)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(HERE / "model_server.py") as server:
        yield server


class Desk:
    """A Neovim with a counted host."""

    def __init__(self, nvim: Child, counts: Path) -> None:
        self._nvim = nvim
        self._counts = counts
        self._number = 0

    def work(self, question: str) -> Mapping[str, int]:
        """Ask, and return the work for the whole turn."""
        self._number += 1
        above = "💬: how?\n\n🤖:[Bench]\n\n" + "some words of prose\n" * 100
        self._nvim.edit(f"{self._number}.md", f"{above}\n💬: {question}\n")
        self._nvim.until(lambda: self._nvim.lua(KNOWN), "the chat")
        self._nvim.command("normal! G")
        self._nvim.lua("_G.asked = {}")
        before = Counter(counts_of(self._counts))
        self._nvim.command("ParleyRespond")
        self._nvim.until(lambda: self._nvim.lines()[-1] == "💬: ", "the answer")
        self._nvim.until_idle()
        self._nvim.until(lambda: self._nvim.lua(KNOWN), "the last drawing")
        done = {name: n - before[name] for name, n in counts_of(self._counts).items()}
        asked = Counter(self._nvim.lua("return _G.asked"))
        waits = sum(n for name, n in asked.items() if name in WAITING)
        return {**done, "waits": waits, "messages": asked.total()}


@pytest.fixture
def desk(tmp_path: Path, server: Server) -> Iterator[Desk]:
    counts = tmp_path / "counts"
    init = parley(OPTIONS, str(server.port)).init
    init += f"\nvim.g.parley_python = {json.dumps(str(program(tmp_path)))}\n{REMOTE}"
    env = {"BENCH_KEY": "x", "PARLEY_COUNTS": str(counts)}
    with child(tmp_path, init=init, env=env, forked=False) as nvim:
        yield Desk(nvim, counts)


def test_a_question_and_a_round_do_little(desk: Desk) -> None:
    desk.work("2 calls")  # starts the server
    question = desk.work("1 tokens")
    few, many = desk.work("4 calls"), desk.work("24 calls")
    a_round = {name: (many[name] - few[name]) / 20 for name in many}
    assert too_much(question, OF_A_QUESTION) == {}
    assert too_much(a_round, OF_A_ROUND) == {}


def too_much(work: Mapping[str, float], most: Mapping[str, float]) -> Mapping[str, float]:
    """The work of which there is more than these limits."""
    return {name: work[name] for name, limit in most.items() if work[name] > limit}
