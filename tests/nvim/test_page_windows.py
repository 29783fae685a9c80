"""A chat's pages on a screen of 80 columns by 24 rows, and their key `q`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child
from tests.nvim.test_turn import MARKER, ask, complete

PAGES = {"ParleyLog": "log", "ParleyRequest": "request", "ParleyTools": "tools"}


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with child(tmp_path_factory.mktemp("pages"), width=80, height=24) as nvim:
        yield nvim


@pytest.fixture
def desk(neovim: Child) -> Child:
    """The Neovim with no file open."""
    neovim.clear()
    return neovim


def page(nvim: Child, command: str) -> str:
    """Open a page; return its text."""
    nvim.command(command)
    nvim.until(lambda: nvim.name.endswith(f"parley://{PAGES[command]}"), "the page")
    if command == "ParleyTools":
        nvim.until_text("ready")
    return nvim.text()


@pytest.mark.parametrize("command", PAGES)
def test_q_in_the_only_window_restores_the_previous_buffer(desk: Child, command: str) -> None:
    chat = desk.edit("before.md", f"{MARKER} hello\n")
    page(desk, command)
    desk.command("only")
    desk.keys("q")
    desk.until(lambda: desk.name == str(chat), "the chat")
    assert "E444" not in desk.screen()
    assert len(desk.nvim.windows) == 1


def test_q_leaves_an_empty_buffer_if_no_other_is_listed(desk: Child) -> None:
    page(desk, "ParleyTools")
    desk.command("only")
    desk.lua("for _, b in ipairs(vim.api.nvim_list_bufs()) do vim.bo[b].buflisted = false end")
    desk.keys("q")
    desk.until(lambda: desk.name == "", "an empty buffer")
    assert desk.text() == ""
    assert "E444" not in desk.screen()


@pytest.mark.parametrize("command", PAGES)
def test_q_next_to_a_chat_closes_the_window_and_returns_its_rows(desk: Child, command: str) -> None:
    chat = desk.edit("beside.md", f"{MARKER} hello\n")
    height = desk.nvim.current.window.height
    page(desk, command)
    desk.keys("q")
    desk.until(lambda: desk.name == str(chat), "the chat")
    assert desk.nvim.current.window.height == height


def test_a_short_page_takes_only_its_texts_rows(desk: Child) -> None:
    desk.edit("little.md", f"{MARKER} hello\n")
    page(desk, "ParleyTools")
    last = "the working directory is not in a Git work tree"  # so there is no workspace
    desk.until_screen(last)
    rows = desk.grid.place(last)[0] + 1  # a long path takes two rows

    def is_folded() -> bool:
        screen = desk.screen().split("\n")
        return [row for row in screen if row.startswith("parley://tools")] == [screen[rows]]

    desk.until(is_folded, "all else folded")
    desk.keys("<CR>")  # on the server, where the cursor starts
    desk.until_screen("Title: Web search")
    desk.keys("<CR>")
    desk.until(lambda: desk.nvim.current.window.height == rows, "all that the server has, folded")
    desk.command("7")
    desk.keys("<CR>")
    desk.until_screen("Title: Web search")
    desk.until(lambda: desk.nvim.current.window.height == min(rows + 5, 12), "one tool unfolded")
    desk.keys("<CR>")
    desk.until(lambda: desk.nvim.current.window.height == rows, "the rows given back")


def test_a_page_keeps_the_height_that_the_user_sets(desk: Child) -> None:
    desk.edit("own.md", f"{MARKER} hello\n")
    page(desk, "ParleyTools")
    desk.command("resize 15")
    desk.keys("R")
    desk.until_text("ready")
    assert desk.nvim.current.window.height == 15


def test_a_page_opens_without_room_for_a_split(desk: Child) -> None:
    desk.edit("tiny.md", f"{MARKER} hello\n")
    for _ in range(9):
        desk.command("silent! split")
    page(desk, "ParleyRequest")
    assert "E36" not in desk.messages()
    desk.keys("q")
    desk.until(lambda: desk.name.endswith("tiny.md"), "the chat")


def test_the_request_page_begins_with_its_recipient_and_its_tools(desk: Child) -> None:
    desk.edit("request.md", f"{MARKER} hello\n")
    text = page(desk, "ParleyRequest")
    head, _, body = text.partition("\n{")
    agent, url, tools, tokens = head.split("\n")
    assert agent == "// agent   Demo: demo of demo"
    assert url == "// URL     a small program on this machine"
    assert tools == "// tools   1: web_search"
    assert tokens.startswith("// tokens  about ")
    assert "(estimated)" in tokens
    request = json.loads("{" + body)
    assert [tool["name"] for tool in request["tools"]] == ["web_search"]
    desk.until_screen("// tokens")
    assert desk.grid.style("// agent") != desk.grid.style('"model"'), (
        "comments are coloured as such"
    )


def test_the_log_has_the_newest_entry_first_in_columns_that_fit_80_cells(desk: Child) -> None:
    ask(desk, "can you find the latest stock price of google and microsoft?", "log.md")
    desk.until_waiting()
    desk.until_idle()
    desk.keys("ya")
    complete(desk)
    text = page(desk, "ParleyLog")
    rows = [line.split() for line in text.split("\n\n## Totals")[0].split("\n") if line]
    assert [row[1] for row in rows if row[0][2:3] == ":"] == [
        "request",
        *("ran", "ran", "ya", "ya", "asked", "asked"),
        "request",
    ]
    assert max(map(len, text.split("\n")[2:])) <= 78
    ran, *_ = (line for line in text.split("\n") if "  ran " in line)
    asked, after = next(
        (line, following)
        for line, following in zip(text.split("\n"), text.split("\n")[1:], strict=False)
        if "  asked " in line
    )
    column = ran.index("ok, ")
    assert ran.endswith("by key")
    assert asked[column:] == "no rule allows it, and no choice"
    assert after == " " * column + "is remembered for the tool"
    assert "## Totals\n\nRequests: 2, " in text
    request = next(line for line in text.split("\n") if "  request  demo" in line)
    assert re.search(r"  complete, \d+\.\d s, \d+ input, \d+ output$", request)


def test_in_60_columns_a_page_breaks_its_lines_between_words(tmp_path: Path) -> None:
    with child(tmp_path, width=60, height=24) as nvim:
        ask(nvim, "say: hello", "narrow.md")
        complete(nvim)
        line = next(line for line in page(nvim, "ParleyLog").split("\n") if "  request  " in line)
        assert len(line) > 60
        rows = nvim.until_screen("  request  ").split("\n")
        first = next(number for number, row in enumerate(rows) if "  request  " in row)
        assert " ".join(rows[first : first + 2]).split() == line.split()
        assert rows[first + 1].startswith("  ")


def rows_of_keys(nvim: Child) -> dict[str, str]:
    """The entry for each row's keys on the key page."""
    nvim.keys("g?")
    nvim.until(lambda: nvim.name.endswith("parley://keys"), "the page")
    rows = (
        line.partition("  ") if "gO" not in line else line.rpartition("  ")
        for line in nvim.lines()[2:]
    )
    return {keys: what.strip() for keys, _, what in rows}


def test_the_key_page_lists_the_present_maps_and_q_closes_it(desk: Child) -> None:
    chat = desk.edit("keys.md", f"{MARKER} hello\n")
    desk.until(lambda: desk.lua("return vim.fn.maparg('g?', 'n')") != "", "the keys")
    before = rows_of_keys(desk)
    assert before["<C-G><C-G>"] == "continue this exchange (Normal, Insert)"
    assert before["<C-G>x"] == "stop"
    assert "ya" not in before
    assert max(map(len, desk.lines())) <= 80
    desk.until_screen("# Keys of this chat")
    assert desk.grid.style("<C-G>x") != desk.grid.style("stop")
    desk.keys("q")
    desk.until(lambda: desk.name == str(chat), "the chat")
    desk.lua("vim.keymap.del('n', '<C-g>x', { buffer = 0 })")
    desk.lua(
        "vim.keymap.set('n', 'ZS', '<Cmd>ParleyStop<CR>', { buffer = 0, desc = 'Parley: stop' })"
    )
    after = rows_of_keys(desk)
    assert "<C-G>x" not in after
    assert after["ZS"] == "stop"
    desk.keys("q")


def test_the_key_page_lists_the_choices_while_a_call_waits(desk: Child) -> None:
    ask(desk, "can you find the latest stock price of google and microsoft?", "choices.md")
    desk.until_waiting()
    desk.until_idle()
    assert {"ya", "yA", "yo", "yO", "yn", "yN", "K"} <= set(rows_of_keys(desk))


def test_the_key_for_the_key_page_can_be_changed_or_disabled(tmp_path: Path) -> None:
    with child(tmp_path, init="require('parley').setup({ keys = { help = false } })") as nvim:
        nvim.edit("none.md", f"{MARKER} hello\n")
        nvim.until(lambda: nvim.lua("return vim.fn.maparg(']]', 'n')") != "", "the keys")
        assert nvim.lua("return vim.fn.maparg('g?', 'n')") == ""
        nvim.lua("require('parley').setup({ keys = { help = '<F1>' } })")
        nvim.until(lambda: nvim.lua("return vim.fn.maparg('<F1>', 'n')") != "", "the key")
