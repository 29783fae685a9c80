"""The list of a chat's questions on the screen, and jumps from it to a question."""

from __future__ import annotations

import pytest

from tests.nvim.harness import Child

QUESTIONS = 20
LINES = 20
BODY = "line\n" * LINES
CHAT = "---\ntopic: t\n---\n\n" + "".join(
    f"💬: question {n} {'about a thing ' * 9}\n\n🤖:[Demo]\n\n{BODY}\n"
    for n in range(1, QUESTIONS + 1)
)
FIRST, EACH = 5, LINES + 5


@pytest.fixture
def chat(plain: Child) -> Child:
    """A chat longer than the window."""
    plain.edit("a-long-name.md", CHAT)
    plain.until(
        lambda: plain.lua("return vim.fn.maparg('gO', 'n')") == "<Cmd>ParleyOutline<CR>", "the key"
    )
    return plain


def row_of(question: int) -> int:
    return FIRST + (question - 1) * EACH


def shown(chat: Child) -> list[str]:
    """The screen's rows below the chat's status line and above the command line."""
    rows = chat.screen().split("\n")
    above = next(number for number, row in enumerate(rows) if "a-long-name.md" in row)
    return rows[above + 1 : -1]


@pytest.mark.parametrize("key", ["gO", "<C-g>t"])
@pytest.mark.parametrize("question", [1, 12, QUESTIONS])
def test_it_opens_at_the_question_under_the_cursor_and_shows_only_questions(
    chat: Child, key: str, question: int
) -> None:
    chat.command(str(row_of(question) + 7))
    chat.keys(key)
    chat.until_screen("[Location List] Questions")
    *rows, status = shown(chat)
    assert [row.split()[0] for row in rows] == ["question"] * 10
    assert not any("a-long-name" in row or "|" in row for row in rows)
    assert "[Location List] Questions" in status
    cursor = chat.grid.cursor[0]
    assert chat.nvim.funcs.winline() == {1: 1, 12: 6, QUESTIONS: 10}[question]
    assert "".join(chat.grid.rows[cursor]).startswith(f"question {question} about")


def test_a_question_in_the_list_is_not_coloured_as_a_file_name(chat: Child) -> None:
    chat.keys("gO")
    chat.until_screen("[Location List] Questions")
    names = chat.lua("local p = vim.inspect_pos() return { #p.syntax, #p.treesitter }")
    assert names == [0, 0]


def test_before_the_first_question_it_opens_at_the_first(chat: Child) -> None:
    chat.command("1")
    chat.keys("gO")
    chat.until_screen("[Location List] Questions")
    assert chat.cursor == (1, 0)


def test_a_jump_to_a_question_opens_its_fold_and_can_be_reversed(chat: Child) -> None:
    chat.command(f"{row_of(14) - 2},{row_of(15) - 1}fold")
    chat.command(str(row_of(12) + 3))
    chat.keys("gOjj<CR>")
    chat.until(lambda: chat.cursor[0] == row_of(14), "the question")
    assert chat.nvim.funcs.foldclosed(row_of(14)) == -1
    chat.keys("<C-o>")
    assert chat.cursor[0] == row_of(12) + 3


def test_q_closes_it_and_records_in_another_list(chat: Child) -> None:
    chat.keys("gOq")
    chat.until(lambda: len(chat.nvim.windows) == 1, "the end of the list")
    assert chat.name.endswith("a-long-name.md")
    chat.keys("gO")
    chat.until(lambda: len(chat.nvim.windows) == 2, "the list")
    chat.command("wincmd p")
    chat.lua(
        "vim.fn.setloclist(0, {}, ' ', { title = 'other', items = { { filename = 'x', lnum = 1 "
        "} } })"
    )
    chat.command("lopen")
    chat.keys("qq")
    chat.until(lambda: chat.nvim.funcs.reg_recording() == "q", "a recording")
    chat.keys("q")
    chat.until(lambda: chat.nvim.funcs.reg_recording() == "", "its end")
    chat.command("lclose")


def test_q_in_the_last_window_brings_the_chat_back(chat: Child) -> None:
    chat.keys("gO<C-w>o")
    chat.until(lambda: len(chat.nvim.windows) == 1, "one window")
    chat.keys("q")
    chat.until(lambda: chat.name.endswith("a-long-name.md"), "the chat")
    assert chat.messages().count("E444") == 0


def test_a_short_chat_has_a_short_list(chat: Child) -> None:
    chat.edit("short.md", "💬: one\n\n🤖:\n\na\n\n💬:\n\n  two\n")
    chat.until(
        lambda: chat.lua("return vim.fn.maparg('gO', 'n')") == "<Cmd>ParleyOutline<CR>", "the key"
    )
    chat.keys("gO")
    chat.until_screen("[Location List] Questions")
    assert chat.lines() == ["one", "two"]
    assert chat.nvim.funcs.winheight(0) == 2


def test_its_keys_can_be_disabled(chat: Child) -> None:
    chat.lua("require('parley').setup({ keys = { outline = false } })")
    both = (
        "return { vim.fn.maparg('gO', 'n', false, true).desc or '', vim.fn.maparg('<C-g>t', 'n') }"
    )
    maps = chat.lua(both)
    chat.lua("require('parley').setup({})")
    assert "Parley" not in maps[0]
    assert maps[1] == ""


@pytest.mark.parametrize(
    ("mods", "kind"), [("vertical", "row"), ("botright", "col"), ("tab", "leaf")]
)
def test_the_commands_modifiers_say_where_it_opens(chat: Child, mods: str, kind: str) -> None:
    chat.command(str(row_of(12) + 7))
    chat.command(f"{mods} ParleyOutline")
    chat.until_screen("question 12 about")
    assert chat.nvim.funcs.winlayout()[0] == kind
    assert len(chat.nvim.api.list_tabpages()) == (2 if mods == "tab" else 1)
    height, width = (chat.nvim.funcs.eval(name) for name in ("winheight(0)", "winwidth(0)"))
    assert (height, width > 30) == (10, True) if kind == "col" else height > 20 and width > 30
    assert "".join(chat.grid.rows[chat.grid.cursor[0]])[chat.grid.cursor[1] :].startswith(
        "question 12"
    )
    chat.command("silent! tabonly")
