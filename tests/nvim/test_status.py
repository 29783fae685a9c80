"""What a person is told while a turn runs, in a real Neovim: the variable, the event, the line at the tip."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main
from tests.nvim.hanging_model import hanging_model
from tests.nvim.harness import Child, child

HERE = Path(__file__).parent
QUESTION = 'call look_up {"query":"google"}'
RECORD = """
_G.said = {}
vim.api.nvim_create_autocmd('User', { pattern = 'ParleyStatus', callback = function(e)
  assert(vim.b[e.data.buf].parley_status == e.data.text)
  assert(e.data.text == '' or require('parley').status(e.data.buf) == e.data.text)
  table.insert(_G.said, e.data.text)
end })
"""


@contextmanager
def desk(home: Path, **settings: Any) -> Iterator[Child]:
    """A Neovim with a server whose tool ends when `home/go` is there."""
    server = {
        "command": sys.executable,
        "args": [str(HERE / "patient_server.py")],
        "env": {"GO": str(home / "go")},
    }
    wanted = {"mcp": {"servers": {"patient": server}}, "approval": {"auto": ["patient/*"]}} | settings
    with child(home, init=RECORD) as nvim:
        nvim.lua("require('parley').setup(...)", wanted)
        yield nvim


def ask(nvim: Child) -> Path:
    path = nvim.edit("chat.md", f"💬: {QUESTION}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")
    return path


def statuses(nvim: Child) -> list[str]:
    texts: list[str] = nvim.lua("return _G.said")
    return texts


def complete(nvim: Child) -> None:
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()


def go(nvim: Child) -> None:
    (nvim.home / "go").touch()


def test_the_statuses_of_a_turn_with_a_tool_are_as_recorded(tmp_path: Path) -> None:
    with desk(tmp_path) as nvim:
        ask(nvim)
        nvim.until(lambda: "Searching for google..." in statuses(nvim), "the sentence")
        shown = nvim.until_screen("Searching for google...")
        assert any(line.strip()[:1] in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" for line in shown.split("\n") if "Searching" in line)
        nvim.until(
            lambda: re.search(r"Searching for google\.\.\. \d+s", nvim.screen()), "the time that passes"
        )
        assert "Searching" not in nvim.text()
        go(nvim)
        complete(nvim)
        recorded = (HERE / "status_of_a_turn.txt").read_text(encoding="utf-8").split("\n")[:-1]
        assert statuses(nvim) == recorded
        assert "Searching" not in nvim.screen()
        assert "Searching" not in nvim.text()


def test_after_a_key_the_running_call_has_a_sentence_too(tmp_path: Path) -> None:
    with desk(tmp_path, approval={}) as nvim:
        ask(nvim)
        nvim.until_waiting()
        nvim.until_idle()
        nvim.lua("_G.said = {}")
        nvim.keys("ya")
        nvim.until(lambda: "Searching for google..." in statuses(nvim), "the sentence")
        go(nvim)
        complete(nvim)
        assert statuses(nvim) == [
            "Analyzing request...",
            "Using Look Up...",
            "Searching for google...",
            "Processing tool results...",
            "Formulating response...",
            "",
        ]


def test_a_status_model_that_hangs_delays_nothing(tmp_path: Path) -> None:
    """The turn goes on and ends while that model has not answered: not in time, and not at all."""
    with hanging_model() as model:
        provider = {
            "kind": "anthropic",
            "base_url": model.url,
            "api_key_command": ["echo", "key"],
            "official": True,
        }
        settings = {
            "providers": {"here": provider},
            "agents": [{"name": "Here", "provider": "here", "model": "demo"}],
            "agent": "Here",
            "status": {"model": "hanging"},
        }
        with desk(tmp_path, **settings) as nvim:
            ask(nvim)
            nvim.until(lambda: model.asked, "the request for a sentence")
            go(nvim)
            complete(nvim)
            assert "look_up returned: found" in nvim.text()
            assert "Using Look Up..." in statuses(nvim)
            assert statuses(nvim)[-3:] == ["Processing tool results...", "Formulating response...", ""]
            nvim.until(lambda: model.given_up == 1, "the end of the request for a sentence")


def test_closing_a_buffer_in_a_turn_says_once_that_it_has_stopped(tmp_path: Path) -> None:
    with desk(tmp_path) as nvim:
        ask(nvim)
        nvim.until(lambda: "Searching for google..." in statuses(nvim), "the sentence")
        nvim.command("messages clear | bwipeout!")
        nvim.until(lambda: "its turn has ended" in nvim.messages(), "the message")
        ask(nvim)
        go(nvim)
        complete(nvim)
        assert nvim.messages().count("the buffer was closed") == 1


def test_a_step_is_shown_once_it_lasts_longer_than_a_moment(plain: Child) -> None:
    shown = plain.lua("""
        local status, now = require('parley.status'), vim.uv.now
        local ns, buf = vim.api.nvim_create_namespace('parley.status'), vim.api.nvim_get_current_buf()
        local function drawn() return #vim.api.nvim_buf_get_extmarks(buf, ns, 0, -1, {}) end
        local time, shown = 0, {}
        vim.uv.now = function() return time end
        status.show(buf, 'Analyzing request...', require('parley.handle').open(0, 0))
        for _, after in ipairs({ 299, 301 }) do
          time = after
          vim.wait(after < 300 and 400 or 20000, function() return drawn() > 0 end)
          shown[#shown + 1] = drawn()
        end
        status.show(buf, '')
        shown[#shown + 1] = drawn()
        vim.uv.now = now
        return shown
    """)
    assert shown == [0, 1, 0]


def test_the_log_holds_every_request_and_call_and_ends_in_totals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tmp_path) as nvim:
        path = ask(nvim)
        nvim.until(lambda: "Searching for google..." in statuses(nvim), "the sentence")
        go(nvim)
        complete(nvim)
        nvim.command("ParleyLog")
        nvim.until(lambda: nvim.nvim.current.buffer.name.endswith("parley://log"), "the log")
        log = nvim.text()
    assert "## Totals\n\nRequests: 3 (1 for the status), " in log
    assert "| patient/look_up |     1 |         1 |      0 |       0 |" in log
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert main(["log", str(path), "--json"]) == 0
    *records, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [r["at"] for r in records] == sorted(r["at"] for r in records)
    (call,) = [r for r in records if r["kind"] == "call"]
    assert (call["tool"], call["outcome"], call["rule"]) == ("patient/look_up", "ok", "auto")
    requests = [r for r in records if r["kind"] == "request"]
    assert [(r.get("for"), r["outcome"]) for r in requests] == [
        (None, "tool_calls"),
        ("status", "complete"),
        (None, "complete"),
    ]
    assert all(r["seconds"] >= 0 and r["tokens"]["output"] > 0 for r in requests)
    totals = last["totals"]
    assert (totals["requests"], totals["for_status"]) == (3, 1)
    assert totals["tokens"]["output"] == sum(r["tokens"]["output"] for r in requests)
    assert totals["tools"]["patient/look_up"]["seconds"] == call["seconds"]
    assert main(["log", str(path)]) == 0
    assert "| patient/look_up |     1 |" in capsys.readouterr().out
