"""`save`: which chats Parley saves after a turn, and when it leaves a file alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child
from tests.powers import bound_by_permissions

HEARD = "vim.api.nvim_create_autocmd('User', { pattern = 'ParleyAnswered', callback = function()"


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with child(tmp_path_factory.mktemp("saving")) as one:
        yield one


@pytest.fixture
def nvim(neovim: Child) -> Child:
    neovim.clear()
    neovim.lua("require('parley').setup({ save = 'always' })")
    neovim.command("messages clear")
    return neovim


def answered(nvim: Child, path: Path, text: str = "💬: say: one\n") -> None:
    """Ask the question in a file, and wait for the end of the turn."""
    nvim.lua(f"_G.ended = false {HEARD} _G.ended = true end, once = true }})")
    nvim.command(f"edit {path}")
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, ...)", text.rstrip("\n").split("\n"))
    nvim.command("set filetype=markdown")
    nvim.command("ParleyRespond")
    nvim.until(lambda: nvim.lua("return _G.ended"), "the answer")
    nvim.until_idle()


def test_a_chat_outside_of_the_chat_folder_is_saved_only_if_the_setting_says_so(
    nvim: Child, tmp_path: Path
) -> None:
    path = tmp_path / "chat.md"
    nvim.lua("require('parley').setup({})")
    answered(nvim, path)
    assert nvim.nvim.current.buffer.options["modified"]
    assert not path.exists()
    nvim.command("bwipeout!")
    nvim.lua("require('parley').setup({ save = 'always' })")
    answered(nvim, path)
    assert path.read_text(encoding="utf-8") == nvim.text() + "\n"
    assert not nvim.nvim.current.buffer.options["modified"]


def test_another_programs_text_is_never_overwritten(nvim: Child, tmp_path: Path) -> None:
    path = tmp_path / "chat.md"
    path.write_text("💬: mine\n", encoding="utf-8")
    nvim.command(f"edit {path}")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    path.write_text("💬: theirs\n", encoding="utf-8")
    later = path.stat().st_mtime + 100
    os.utime(path, (later, later))
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { '💬: say: one' })")
    nvim.command("ParleyRespond")
    nvim.until(lambda: "another program wrote this file at" in nvim.messages(), "the message")
    assert path.read_text(encoding="utf-8") == "💬: theirs\n"


@pytest.mark.parametrize("why", ["readonly", "no name", "address"])
def test_a_buffer_that_is_no_file_of_the_user_is_left_alone(
    nvim: Child, tmp_path: Path, why: str
) -> None:
    path = tmp_path / "chat.md"
    nvim.command("enew" if why == "no name" else f"edit {path}")
    if why == "readonly":
        nvim.command("set readonly")
    if why == "address":
        nvim.lua("vim.api.nvim_buf_set_name(0, 'scp://host/chat.md')")
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { '💬: a' })")
    nvim.lua("require('parley.chat').attach(vim.api.nvim_get_current_buf())")
    nvim.lua("require('parley.chat').keep(vim.api.nvim_get_current_buf())")
    assert nvim.nvim.current.buffer.options["modified"]
    assert list(tmp_path.iterdir()) == []
    assert "not saved" not in nvim.messages()


def test_a_failed_write_is_reported(nvim: Child, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with bound_by_permissions():
        nvim.command(f"edit {folder}/none/chat.md")
        nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { '💬: a' })")
        nvim.lua("require('parley.chat').attach(vim.api.nvim_get_current_buf())")
        nvim.lua("require('parley.chat').keep(vim.api.nvim_get_current_buf())")
    nvim.until(lambda: "not saved: E" in nvim.messages(), "the message")
    assert not nvim.blocked()
    assert nvim.messages().strip().endswith(". :w tries again")
    assert "traceback" not in nvim.messages()
