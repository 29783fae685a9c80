"""Vim's refusals appear as one line, for any command anywhere, without a traceback or a key to
press first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child

CHAT = "\U0001f4ac: hello\n\n\U0001f916:[Demo]\n\nHello.\n\n\U0001f4ac: say: hi\n"

PLACES = {
    "anywhere": "",
    "text that is not saved": (
        "vim.o.hidden = false; vim.api.nvim_buf_set_lines(0, -1, -1, true, { 'x' })"
    ),
    "a window that keeps its buffer": (
        "if vim.fn.exists('+winfixbuf') == 1 then vim.wo.winfixbuf = true end"
    ),
    "text that cannot be changed": "vim.bo.modifiable = false",
    "text that is read only": "vim.bo.readonly = true",
    "no room for a window": "vim.o.cmdheight = 4; while pcall(vim.cmd.split) do end",
    "no place for a swap file": (
        "vim.o.directory = '/nowhere'; vim.bo.swapfile, vim.o.swapfile = true, true"
    ),
    "a folder of chats that is a file": (
        "require('parley').setup({ chat_dir = vim.env.HOME .. '/init.lua' })"
    ),
    "a buffer without a name": "vim.cmd('enew') vim.bo.filetype = 'markdown'",
    "help": "vim.cmd('help') ",
    "a terminal": "vim.cmd('enew | call termopen([\"cat\"])')",
    "a list of errors": "vim.fn.setqflist({ { text = 'x' } }) vim.cmd.copen()",
}
"""Places to type a command: Lua code that leads there."""
COMMANDS = {
    "Agent": "Demo",
    "Approve": "ya",
    "Export": "/nowhere/page.html",
    "Prompt": "none/none",
}
KEYS = ["<C-g><C-g>", "<C-g>x", "<C-g>t", "<C-g>q", "]]", "[[", "K", "gO", "ya"]

_number = count(1)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    init = "vim.ui.select = function(_, _, done) done() end"
    with child(tmp_path_factory.mktemp("refusals"), init=init, width=120) as nvim:
        yield nvim


def settle(nvim: Child) -> None:
    """Return when the host has processed all messages and finished its work."""
    name = f"nothing{next(_number)}"
    find = "require('parley.host').notify('find', { dir = '/nowhere', cwd = '/', words = ... })"
    nvim.lua(find, name)
    nvim.until(lambda: name in nvim.messages(), "the host", 15)
    nvim.until(lambda: not nvim.lua("return require('parley.handle').busy()"), "the end of it", 15)


def check(nvim: Child) -> None:
    """Check that no text on the screen or in the messages is for programmers, and no key is needed."""
    settle(nvim)
    seen = f"{nvim.screen()}\n{nvim.messages()}"
    assert "Press ENTER" not in seen
    assert not re.search(
        r"traceback|Error executing|Error detected|\.lua:\d|Traceback|failed: \w+Error", seen
    ), seen


def go(nvim: Child, place: str) -> None:
    nvim.clear()
    nvim.lua("require('parley').setup({ agent = 'Demo' })")
    nvim.edit("chat.md", CHAT)
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.lua(PLACES[place])


@pytest.mark.timeout(180)
@pytest.mark.parametrize("place", PLACES)
def test_a_refused_command_says_so_in_one_line(desk: Child, place: str) -> None:
    names = [name for name in desk.nvim.api.get_commands({}) if name.startswith("Parley")]
    names.remove("ParleyInstall")  # it would fetch packages, and has no place
    assert len(names) > 12
    for name in sorted(names):
        go(desk, place)
        desk.keys(f":{name} {COMMANDS.get(name.removeprefix('Parley'), '')}<CR>")
        desk.keys("<C-\\><C-n>")
        check(desk)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("place", PLACES)
def test_a_refused_key_says_so_in_one_line(desk: Child, place: str) -> None:
    for key in KEYS:
        go(desk, place)
        desk.keys(key)
        desk.keys("<C-\\><C-n>")
        check(desk)


def test_in_the_command_line_window_every_command_is_refused_in_one_line(desk: Child) -> None:
    if desk.nvim.funcs.has("nvim-0.13"):
        pytest.skip("the command-line window of Neovim 0.13 is a window like any other")
    refused = 0
    for command in (
        "ParleyChatNew",
        "ParleyLog",
        "ParleyRespond",
        "ParleyQuestion",
        "ParleyOutline",
    ):
        go(desk, "anywhere")
        desk.keys("q:")
        desk.lua("vim.api.nvim_input('<Cmd>' .. ... .. '<CR>')", command)
        check(desk)
        refused += "E11: Invalid in command-line window" in desk.messages()
        desk.keys(":quit<CR>")
    assert refused


def test_a_chat_with_a_leftover_swap_file_opens_read_only(desk: Child) -> None:
    go(desk, "anywhere")
    chats = Path(desk.lua("return require('parley.chat').dir()"))
    chats.mkdir(parents=True, exist_ok=True)
    (chats / "left.md").write_text("\U0001f4ac: what was left\n", encoding="utf-8")
    desk.command("set updatecount=1 swapfile directory=.")
    (desk.home / "other").mkdir()
    with child(desk.home / "other") as other:
        other.command("set updatecount=1 swapfile directory=.")
        other.command(f"edit {chats / 'left.md'}")
        other.keys("Gosome more text than was saved<Esc>:preserve<CR>")
        other.until(lambda: list(chats.glob(".left.md.sw?")), "the swap file")
        swap = next(chats.glob(".left.md.sw?"))
        content = swap.read_bytes()
    swap.write_bytes(content)  # like after a crash
    desk.lua("vim.ui.select = function(items, _, done) done(items[1]) end")
    desk.command("ParleyFind")
    desk.until(lambda: desk.name.endswith("left.md"), "the chat")
    desk.until(lambda: "has a swap file" in desk.messages(), "the message")
    check(desk)
    assert desk.lua("return vim.bo.readonly")
    desk.lua("vim.ui.select = function(_, _, done) done() end")
