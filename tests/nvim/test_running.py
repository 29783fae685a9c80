"""A call that runs says so at its own row, with its seconds and its server's progress, and how it ended."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child

HERE = Path(__file__).parent
LONG = "\n".join(f"Line {number} of a long answer." for number in range(60))
BEFORE = f"💬: first\n\n🤖:[Demo-OpenAI]\n\n{LONG}\n\n"
_number = count(1)


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with child(tmp_path_factory.mktemp("running"), width=100, height=24) as nvim:
        yield nvim


@pytest.fixture
def nvim(neovim: Child) -> Child:
    neovim.keys("<C-\\><C-n>")
    neovim.lua("vim.cmd('silent! %bwipeout! | silent! only!') vim.cmd('messages clear')")
    neovim.lua("""
        _G.events = {}
        vim.api.nvim_create_autocmd('User', {
          group = vim.api.nvim_create_augroup('test', {}),
          pattern = { 'ParleyToolStart', 'ParleyToolEnd' },
          callback = function(event) table.insert(_G.events, { event.match, event.data }) end,
        })
    """)
    return neovim


def ask(nvim: Child, home: Path, question: str, before: str = "", **more: object) -> None:
    """Ask in a long chat for calls of a server whose tool ends when `home/go` is there."""
    server = {
        "command": sys.executable,
        "args": [str(HERE / "patient_server.py")],
        "env": {"GO": str(home / "go"), "PROGRESS": "half of it"},
    }
    settings = {
        "agent": "Demo-OpenAI",
        "status": {"llm": False},
        "mcp": {"servers": {"patient": server}},
        "approval": {"auto": ["patient/*"]},
        "safety": {"rate_limit_per_minute": 100000},
    }
    nvim.lua("require('parley').setup(...)", settings | more)
    nvim.edit(f"chat-{next(_number)}.md", f"{BEFORE}💬: {question}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    if before:
        nvim.command(before)
    nvim.command("normal! G$")
    nvim.command("ParleyRespond")


def row(nvim: Child, start: str) -> str:
    """The last row of the screen that starts so; "" where none does."""
    return next((line for line in reversed(nvim.screen().split("\n")) if line.startswith(start)), "")


def complete(nvim: Child) -> None:
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()


def test_a_call_that_runs_counts_its_seconds_tells_its_progress_and_is_folded_when_it_is_done(
    nvim: Child, tmp_path: Path
) -> None:
    ask(nvim, tmp_path, 'call look_up {"query":"google"}')
    nvim.until(lambda: "running" in row(nvim, "❓"), "the state")
    nvim.until(lambda: row(nvim, "❓").endswith("(half of it, 2 of 5)"), "the progress")
    nvim.until(lambda: re.search(r"running [1-9] s \(", row(nvim, "❓")), "a second")
    assert row(nvim, "❓").startswith('❓ ya look_up(query: "google") · patient · by rule · running')
    (tmp_path / "go").touch()
    complete(nvim)
    done = nvim.until(lambda: row(nvim, "🛠 "), "the fold")
    assert re.fullmatch(r'🛠 look_up\(query: "google"\) → 5 B, ok · by rule · \d+\.\d s', done)
    assert "🛠️: [look_up]" in nvim.text()
    assert "`found`" not in nvim.screen()


def test_a_call_that_failed_shows_its_result_and_says_so(nvim: Child, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    ask(nvim, tmp_path, 'call look_up {"query":"fail"}')
    complete(nvim)
    nvim.until(
        lambda: re.search(r'look_up\(query: "fail"\).* · failed [\d.]+ s$', row(nvim, "❓")), "the state"
    )
    assert "`found`" in nvim.screen()


def test_a_call_whose_line_is_text_says_behind_it_what_it_does(nvim: Child, tmp_path: Path) -> None:
    ask(nvim, tmp_path, 'call look_up {"query":"google"}', before="setlocal foldmethod=expr foldexpr=0")
    nvim.until(
        lambda: re.search(r"\}` running( \d+ s)? \(half of it, 2 of 5\)", nvim.screen().replace("\n", "")),
        "it",
    )
    (tmp_path / "go").touch()
    complete(nvim)
    assert "running" not in nvim.screen()


def test_those_who_listen_are_told_of_the_start_and_the_end_of_each_call(nvim: Child, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    ask(nvim, tmp_path, 'call look_up {"query":"google"}')
    complete(nvim)
    nvim.until(lambda: len(nvim.lua("return _G.events")) == 2, "two events")
    (start, began), (end, ended) = nvim.lua("return _G.events")
    assert (start, end) == ("ParleyToolStart", "ParleyToolEnd")
    buf = nvim.nvim.current.buffer.number
    assert {key: began[key] for key in ("buf", "name", "server")} == {
        "buf": buf,
        "name": "look_up",
        "server": "patient",
    }
    assert ended["id"] == began["id"]
    assert ended["ok"] is True
    assert ended["seconds"] >= 0


def test_after_a_stop_nothing_is_said_to_run(nvim: Child, tmp_path: Path) -> None:
    ask(nvim, tmp_path, 'call look_up {"query":"google"}')
    nvim.until(lambda: "running" in row(nvim, "❓"), "the state")
    nvim.command("ParleyStop")
    nvim.until_idle()
    nvim.until(lambda: "failed" in row(nvim, "❓"), "how it ended")
    assert "cancelled" in nvim.text()
    assert "running" not in nvim.screen()
