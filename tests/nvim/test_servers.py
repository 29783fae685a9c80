"""MCP servers from a real Neovim: what the user is asked, sees and switches."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drivers.hubs import FAKE
from nvim.harness import Child, child
from nvim.test_turn import ask, complete

LONG_S = 40.0


def server(*args: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [FAKE, *args], **more}


def setup(servers: dict[str, Any], **more: Any) -> str:
    mcp = {"servers": servers, "patience_s": 40}  # the machine may be busy
    settings = {"agent": "Demo", "mcp": mcp, **more}
    return f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(settings))}))"


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim with one server."""
    with child(tmp_path_factory.mktemp("servers"), init=setup({"fake": server("--more")})) as nvim:
        yield nvim


@pytest.fixture
def desk(neovim: Child, tmp_path: Path) -> Child:
    """The same with nothing open, in a folder of its own."""
    neovim.keys("<C-\\><C-n>")
    neovim.lua("vim.cmd('silent! %bwipeout!') vim.cmd('silent! only!') vim.cmd('messages clear')")
    neovim.command(f"cd {tmp_path}")
    return neovim


def prompted(nvim: Child, text: str) -> str:
    """The screen, once Neovim's own prompt shows a text."""
    nvim.until(lambda: nvim.nvim.api.get_mode()["mode"] == "c" and text in nvim.screen(), text, LONG_S)
    return nvim.screen()


def approved(nvim: Child, question: str) -> Path:
    """The chat of a question whose one call was approved."""
    path = ask(nvim, question)
    nvim.until_waiting(LONG_S)
    nvim.until_idle(LONG_S)
    nvim.keys("ya")
    nvim.until_text("❓:[ya]", LONG_S)
    return path


def stop(nvim: Child, chat: Path) -> None:
    """`:ParleyStop` in a chat, while a prompt is open."""
    code = "vim.api.nvim_buf_call(vim.fn.bufnr(...), require('parley').stop)"
    nvim.lua(code, str(chat))


# --- Trust ------------------------------------------------------------------------------------------------


def project(nvim: Child, **servers: Any) -> Path:
    path = Path(nvim.nvim.funcs.getcwd()) / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def test_a_project_s_servers_are_shown_and_used_after_a_yes(desk: Child) -> None:
    project(
        desk,
        extra=server("--many", env={"TOKEN": "${HOME}"}),
        **{"web\u202e": {"url": "http://127.0.0.1:9/mcp"}},
    )
    ask(desk, 'call tool_7 {"a": 1}')
    seen = prompted(desk, "1: Yes, I trust")
    assert "## extra" in seen
    assert f"- starts the program {sys.executable}" in seen
    assert "- sets the variables TOKEN" in seen
    assert "asks" not in seen
    desk.keys("1<CR>")
    desk.until_waiting(LONG_S)
    assert "parley://project-servers" not in desk.nvim.funcs.bufname("%")


def test_a_no_holds_until_the_file_changes(desk: Child) -> None:
    project(desk, extra=server("--many"))
    ask(desk, 'call tool_7 {"a": 1}')
    prompted(desk, "2: No")
    desk.keys("2<CR>")
    complete(desk)
    assert "I have no tool named tool_7" in desk.text()
    desk.keys('Gacall tool_7 {"a": 2}<Esc><C-g><C-g>')
    desk.until(lambda: desk.text().count("I have no tool named tool_7") == 2, "the second answer", LONG_S)
    complete(desk)
    project(desk, other=server("--many"))
    desk.keys('Gacall tool_7 {"a": 3}<Esc><C-g><C-g>')
    assert "## other" in prompted(desk, "1: Yes, I trust")
    desk.keys("1<CR>")
    desk.until_waiting(LONG_S)


def test_stopping_takes_the_question_away(desk: Child) -> None:
    project(desk, extra=server())
    chat = ask(desk, "say: hello")
    prompted(desk, "1: Yes, I trust")
    stop(desk, chat)
    desk.until(lambda: desk.nvim.api.get_mode()["mode"] == "n", "the prompt's end")
    desk.until_idle()
    assert "parley://project-servers" not in desk.screen()


# --- Forms ------------------------------------------------------------------------------------------------


def test_a_server_s_question_is_answered_in_the_editor(desk: Child) -> None:
    approved(desk, "call ask {}")
    assert "fake asks: Which \\x1b[31mcolour?" in prompted(desk, "1: Answer")
    assert desk.lua("return vim.b.parley_status").startswith("fake asks: Which")
    desk.keys("1<CR>")
    prompted(desk, "colour:")
    desk.keys("red<CR>")
    desk.until_text('"content": {"colour": "red"}', LONG_S)
    complete(desk)


@pytest.mark.parametrize(("keys", "action"), [("2<CR>", "decline"), ("<Esc>", "cancel")])
def test_a_server_s_question_can_be_left(desk: Child, keys: str, action: str) -> None:
    approved(desk, "call ask {}")
    prompted(desk, "1: Answer")
    desk.keys(keys)
    desk.until_text(f'{{"action": "{action}"}}', LONG_S)
    complete(desk)


def test_a_server_s_question_ends_with_its_call(desk: Child) -> None:
    chat = approved(desk, "call ask {}")
    prompted(desk, "1: Answer")
    stop(desk, chat)
    desk.until(lambda: desk.nvim.api.get_mode()["mode"] == "n", "the prompt's end", LONG_S)
    desk.until_text("[Stopped: ", LONG_S)
    desk.until_idle()


def test_a_prompt_waits_until_the_user_does_not_type(desk: Child) -> None:
    chat = ask(desk, "call ask {}")
    desk.until_waiting(LONG_S)
    desk.until_idle(LONG_S)
    desk.command("new")
    desk.keys("i")
    yes = "function() require('parley').approve('ya') end"
    desk.lua(f"vim.api.nvim_buf_call(vim.fn.bufnr(...), {yes})", str(chat))
    status = "return vim.b[vim.fn.bufnr(...)].parley_status"
    desk.until(lambda: desk.lua(status, str(chat)).startswith("fake asks"), "the status", LONG_S)
    desk.keys("typed")
    assert desk.nvim.api.get_mode()["mode"] == "i"
    desk.keys("<Esc>")
    prompted(desk, "1: Answer")
    desk.keys("2<CR>")
    assert desk.text() == "typed"
    desk.command(f"buffer {chat}")
    desk.until_text("decline", LONG_S)
    desk.until_idle()
