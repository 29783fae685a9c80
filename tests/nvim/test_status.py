"""A running turn's status in a real Neovim: the variable, the event, the line at the tip."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with child(tmp_path_factory.mktemp("status"), init=RECORD) as nvim:
        yield nvim


def desk(nvim: Child, home: Path, **settings: Any) -> None:
    """A restarted server whose tool ends when `home/go` exists; no file is open."""
    nvim.clear()
    nvim.lua("_G.said = {}")
    server = {
        "command": sys.executable,
        "args": [str(HERE / "patient_server.py")],
        "env": {"GO": str(home / "go")},
    }
    wanted = {"agent": "Demo-OpenAI", "mcp": {"servers": {"patient": server}}}
    nvim.lua(
        "require('parley').setup(...)", wanted | {"approval": {"auto": ["patient/*"]}} | settings
    )


def ask(nvim: Child, home: Path) -> Path:
    path = nvim.edit(str(home / "chat.md"), f"💬: {QUESTION}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")
    return path


def statuses(nvim: Child) -> list[str]:
    texts: list[str] = nvim.lua("return _G.said")
    return texts


def complete(nvim: Child) -> None:
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()


def go(home: Path) -> None:
    (home / "go").touch()


def test_the_statuses_of_a_turn_with_a_tool_match_the_recording(
    neovim: Child, tmp_path: Path
) -> None:
    desk(neovim, tmp_path)
    ask(neovim, tmp_path)
    neovim.until(lambda: "Searching for google..." in statuses(neovim), "the sentence")
    shown = neovim.until_screen("Searching for google...")
    assert any(
        line.strip()[:1] in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" for line in shown.split("\n") if "Searching" in line
    )
    neovim.until(
        lambda: re.search(r"Searching for google\.\.\. \d+s", neovim.screen()),
        "the time that passes",
    )
    assert "Searching" not in neovim.text()
    go(tmp_path)
    complete(neovim)
    recorded = (HERE / "status_of_a_turn.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert statuses(neovim) == recorded
    assert "Searching" not in neovim.screen()
    assert "Searching" not in neovim.text()


def test_after_a_key_the_running_call_also_has_a_sentence(neovim: Child, tmp_path: Path) -> None:
    desk(neovim, tmp_path, approval={})
    ask(neovim, tmp_path)
    neovim.until_waiting()
    neovim.until_idle()
    neovim.lua("_G.said = {}")
    neovim.keys("ya")
    neovim.until(lambda: "Searching for google..." in statuses(neovim), "the sentence")
    go(tmp_path)
    complete(neovim)
    assert statuses(neovim) == [
        "Analyzing request...",
        "Using Look Up...",
        "Searching for google...",
        "Processing tool results...",
        "Formulating response...",
        "",
    ]


@pytest.mark.parametrize("agent", ["Demo", "Demo-OpenAI", "Demo-Text"])
def test_a_long_call_that_is_being_written_is_shown_with_its_size(
    neovim: Child, tmp_path: Path, agent: str
) -> None:
    desk(neovim, tmp_path, agent=agent, status={"llm": False}, approval={})
    query = "many words " * 900
    neovim.edit(str(tmp_path / "chat.md"), f'💬: call look_up {{"query":"{query}"}}\n')
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.command("ParleyRespond")
    neovim.until_waiting()
    neovim.until_idle()
    sizes = [text for text in statuses(neovim) if text.startswith("Writing a call of")]
    assert [text for text in sizes if "look_up, 3 kB..." in text], statuses(neovim)
    assert sizes == list(dict.fromkeys(sizes))
    assert len(sizes) <= 11


def test_a_status_model_that_hangs_delays_nothing(neovim: Child, tmp_path: Path) -> None:
    """The turn continues and ends without that model's answer, which comes late or never."""
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
        desk(neovim, tmp_path, **settings)
        ask(neovim, tmp_path)
        neovim.until(lambda: model.asked, "the request for a sentence")
        go(tmp_path)
        complete(neovim)
        assert "look_up returned: found" in neovim.text()
        assert "Using Look Up..." in statuses(neovim)
        assert statuses(neovim)[-3:] == [
            "Processing tool results...",
            "Formulating response...",
            "",
        ]
        neovim.until(lambda: model.given_up == 1, "the end of the request for a sentence")


def test_closing_a_buffer_in_a_turn_says_once_that_it_has_stopped(
    neovim: Child, tmp_path: Path
) -> None:
    desk(neovim, tmp_path)
    ask(neovim, tmp_path)
    neovim.until(lambda: "Searching for google..." in statuses(neovim), "the sentence")
    neovim.command("messages clear | bwipeout!")
    neovim.until(lambda: "its turn has ended" in neovim.messages(), "the message")
    ask(neovim, tmp_path)
    go(tmp_path)
    complete(neovim)
    assert neovim.messages().count("the buffer was closed") == 1


def test_reloading_a_buffer_in_a_turn_is_not_reported_as_closing(
    neovim: Child, tmp_path: Path
) -> None:
    desk(neovim, tmp_path)
    ask(neovim, tmp_path)
    neovim.until(lambda: "Searching for google..." in statuses(neovim), "the sentence")
    neovim.command("messages clear | edit!")
    neovim.until(lambda: "its turn has ended" in neovim.messages(), "the message")
    assert neovim.messages() == "Parley: the buffer was reloaded, so its turn has ended"
    neovim.until_idle()
    assert neovim.lines() == [f"💬: {QUESTION}"]
    go(tmp_path)
    neovim.command("ParleyRespond")
    complete(neovim)
    assert "look_up returned: found" in neovim.text()


def test_a_question_right_after_a_reload_is_answered(neovim: Child, tmp_path: Path) -> None:
    desk(neovim, tmp_path)
    ask(neovim, tmp_path)
    neovim.until(lambda: "Searching for google..." in statuses(neovim), "the sentence")
    go(tmp_path)
    neovim.command("messages clear | edit! | ParleyRespond")
    complete(neovim)
    assert "look_up returned: found" in neovim.text()
    assert "is running" not in neovim.messages()


def test_a_question_right_after_an_undo_in_a_turn_is_answered(
    neovim: Child, tmp_path: Path
) -> None:
    desk(neovim, tmp_path)
    ask(neovim, tmp_path)
    neovim.until(lambda: "Searching for google..." in statuses(neovim), "the sentence")
    go(tmp_path)
    neovim.command("undo | ParleyRespond")
    complete(neovim)
    assert neovim.text().count("look_up returned: found") == 1
    assert "is running" not in neovim.messages()


@pytest.mark.parametrize("bar", ["statusline", "winbar"])
def test_a_bar_shows_a_new_step_at_once(plain: Child, bar: str) -> None:
    plain.command(f"let &{bar} = \"%{{%v:lua.require'parley'.status()%}}\"")
    plain.lua("require('parley.status').show(vim.api.nvim_get_current_buf(), 'Sorting...')")
    plain.until_screen("Sorting...", 5)


def test_a_step_is_shown_if_it_lasts_longer_than_a_moment(plain: Child) -> None:
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


def test_the_log_has_every_request_and_call_and_ends_in_totals(
    neovim: Child,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    desk(neovim, tmp_path)
    path = ask(neovim, tmp_path)
    neovim.until(lambda: "Searching for google..." in statuses(neovim), "the sentence")
    go(tmp_path)
    complete(neovim)
    neovim.command("ParleyLog")
    neovim.until(lambda: neovim.name.endswith("parley://log"), "the log")
    log = neovim.text()
    assert "## Totals\n\nRequests: 3 (1 for the status), " in log
    assert "| patient/look_up |     1 |         1 |      0 |       0 |" in log
    monkeypatch.setenv("XDG_STATE_HOME", str(neovim.home / "state"))
    assert main(["log", str(path), "--json"]) == 0
    *records, totals, end = map(json.loads, capsys.readouterr().out.splitlines())
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
    assert end == {"type": "end", "code": 0, "kind": "complete"}
    assert (totals["requests"], totals["for_status"]) == (3, 1)
    assert totals["tokens"]["output"] == sum(r["tokens"]["output"] for r in requests)
    assert totals["tools"]["patient/look_up"]["seconds"] == call["seconds"]
    assert main(["log", str(path)]) == 0
    assert "| patient/look_up |     1 |" in capsys.readouterr().out
