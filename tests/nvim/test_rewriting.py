"""`:ParleyRewrite` shows a model's new lines over the old ones; only the user's `ya` takes them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.nvim.harness import Child

CODE = "first = 1\nif first:\n\tsecond = 'a'\n\nlast = 3\n"
HINT = "ya take · yn leave · K diff tab"
_number = count(1)


@pytest.fixture
def code(nvim: Child) -> Iterator[Path]:
    """A file of the user, with a map of the user's own in its buffer."""
    path = nvim.edit(f"rewrite-{next(_number)}.py", CODE)
    nvim.command("set tabstop=4 | nnoremap <buffer> ya <Cmd>let g:own = get(g:, 'own', 0) + 1<CR>")
    yield path
    nvim.command("unlet! g:own")


def rewrite(nvim: Child, lines: str, instruction: str = "make it louder") -> None:
    nvim.command(f"{lines}ParleyRewrite {instruction}")


def keys_of(nvim: Child) -> list[bool]:
    """Whether our keys are mapped in the current buffer."""
    code = """
        return vim.tbl_map(function(key)
          return (vim.fn.maparg(key, 'n', false, true).desc or ''):find('Parley: ', 1, true) ~= nil
        end, ...)
    """
    mapped: list[bool] = nvim.lua(code, ["ya", "yn", "K"])
    return mapped


def test_the_new_lines_are_taken_as_one_undo_step_wherever_the_lines_are_now(
    nvim: Child, code: Path
) -> None:
    rewrite(nvim, "2,3")
    assert nvim.name == str(code)
    assert nvim.lua("return vim.api.nvim_get_mode().mode") == "n"
    nvim.keys("ggOabove<Esc>")  # the user keeps typing
    screen = nvim.until_screen(HINT)
    assert "    SECOND = 'A'" in screen
    assert "make it louder" in screen
    assert "1 make it louder" not in screen
    assert nvim.lines() == ["above", *CODE.splitlines()]
    assert keys_of(nvim) == [True, True, True]
    nvim.keys("ya")  # outside of the lines: the user's own map
    nvim.until(lambda: nvim.lua("return vim.g.own") == 1, "the user's map")
    nvim.command("3 | normal ya")
    assert nvim.lines() == ["above", *CODE.splitlines()]
    nvim.keys("ya")
    taken = CODE.replace("if first:\n\tsecond = 'a'", "IF FIRST:\n\tSECOND = 'A'")
    nvim.until(lambda: nvim.lines() == ["above", *taken.splitlines()], "the new lines")
    assert keys_of(nvim) == [False, False, False]
    assert HINT not in nvim.screen()
    nvim.command("undo")
    assert nvim.lines() == ["above", *CODE.splitlines()]
    nvim.command("undo")
    assert nvim.lines() == CODE.splitlines()
    nvim.command("normal ya")
    assert nvim.lua("return vim.g.own") == 2


def test_lines_that_have_changed_are_shown_again_before_they_are_replaced(
    nvim: Child, code: Path
) -> None:
    rewrite(nvim, "1")
    nvim.until_screen(HINT)
    nvim.keys("ggAx<Esc>")
    nvim.keys("ya")
    nvim.until(lambda: "this is the new diff: decide again" in nvim.messages(), "the message")
    assert nvim.lines()[0] == "first = 1x"
    nvim.keys("ya")
    nvim.until(lambda: nvim.lines()[0] == "FIRST = 1", "the new line")

    rewrite(nvim, "2")
    nvim.until_screen(HINT)
    nvim.keys("2Gdd")
    nvim.until(lambda: keys_of(nvim) == [False, False, False], "the end of the rewrite")
    assert "the lines to rewrite are gone" in nvim.messages()
    rewrite(nvim, "2")
    nvim.until_screen(HINT)
    nvim.keys("2Gyn")
    nvim.until(lambda: keys_of(nvim) == [False, False, False], "the end of the rewrite")
    assert nvim.lines() == ["FIRST = 1", "\tsecond = 'a'", "", "last = 3"]


def test_the_tab_page_takes_the_users_own_text(nvim: Child, code: Path) -> None:
    rewrite(nvim, "5")
    nvim.until_screen(HINT)
    nvim.keys("GK")
    nvim.until(lambda: nvim.lua("return vim.wo.diff"), "the diff")
    assert nvim.lines() == [*CODE.splitlines()[:4], "LAST = 3"]
    nvim.keys("Gccmine<Esc>")
    nvim.keys("ya")
    nvim.until(lambda: nvim.name == str(code), "the file")
    assert nvim.lines() == [*CODE.splitlines()[:4], "mine"]
    assert keys_of(nvim) == [False, False, False]
    assert code.read_text(encoding="utf-8") == CODE


def test_an_answer_without_one_block_changes_nothing_and_asking_again_does(
    nvim: Child, code: Path
) -> None:
    rewrite(nvim, "1", "x")
    nvim.until_screen(HINT)
    chat = nvim.lua("return require('parley.chat').last()")
    edit = """
        local buf, old, new = ...
        local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, true)
        for row, line in ipairs(lines) do
          if line == old then vim.api.nvim_buf_set_lines(buf, row - 1, row, true, { new }) end
        end
        require('parley.rewrite').answered(buf)
    """
    nvim.lua(edit, chat, "FIRST = 1", "again = 1")
    nvim.until_screen("again = 1")
    nvim.lua(edit, chat, "again = 1", "# ... existing code ...")
    nvim.until(lambda: "the answer leaves out lines" in nvim.messages(), "the message")
    assert keys_of(nvim) == [False, False, False]
    assert nvim.lines() == CODE.splitlines()


def test_in_a_chat_the_command_says_where_it_works(nvim: Child) -> None:
    nvim.edit("chat.md", "💬: one\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    rewrite(nvim, "1")
    nvim.until(lambda: "Run :ParleyRewrite in another file" in nvim.messages(), "the message")
    assert nvim.lines() == ["💬: one"]
