"""A chat's colours on the grid, in a plain Neovim: with Treesitter and with syntax."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parley.nvim.pages import log_page, project_page
from parley.nvim.tools_page import ServerOffer, tools_page
from parley.tools.catalogue import Tool
from parley.tools.mcp_files import read_servers
from parley.tools.server_settings import ServerStatus
from tests.nvim.harness import ROOT, Child, child
from tests.nvim.test_edit import append, remote

CHAT = """\
💬: What is in my_old_file.csv, by max_row_size?

🤖:[Claude]

🧠:[anthropic:claude_5 c2ln]
> I look at snake_case_words.

A file_with_rows, its __init__ aside; `code_span_here`, see [the_manual](https://a.b/c_d).

| head_of_it | b |
|---|---|
| cell_of_it | dict_or_none |

> as others say

- an item_of_a_list
- another *with_stress* in it

## A heading_of_it

❓:[ya] `{"id":"call_1","function":{"name":"web_search","arguments":"{}"}}`

🛠️: [web_search][call_1]

`text_of_a_result`

🔒: [Stopped: by_the_user]
💬: second_question
"""

COUNT_PARSES = """
local tree = vim.treesitter.get_parser(0, 'markdown')
local parse = tree.parse
_G.parses = 0
function tree.parse(...)
  _G.parses = _G.parses + 1
  return parse(...)
end
"""


@pytest.fixture(scope="module", params=[True, False], ids=["treesitter", "syntax"])
def neovim(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Child]:
    """A Neovim without a host."""
    init = "vim.g.parley_python = '/nowhere/python' vim.o.termguicolors = true"
    with child(tmp_path_factory.mktemp("colours"), init=init, width=80, height=40) as neovim:
        neovim.lua("require('parley.host').start = function() return false end")
        neovim.lua("require('parley').setup({ highlight = { treesitter = ... } })", request.param)
        show(neovim, CHAT)
        assert has_treesitter(neovim) == request.param
        yield neovim


@pytest.fixture
def chat(neovim: Child) -> Child:
    """The chat."""
    neovim.command("colorscheme default")
    show(neovim, CHAT)
    return neovim


def is_link(neovim: Child) -> bool:
    """Whether a link in the answer looks like a link: Treesitter may colour a text after drawing
    it.
    """
    return bool(neovim.grid.style("the_manual").get("underline"))


def has_treesitter(neovim: Child) -> bool:
    active: bool = neovim.lua("return vim.treesitter.highlighter.active[vim.fn.bufnr()] ~= nil")
    return active


def show(neovim: Child, text: str) -> None:
    """Open a chat with its last line on the screen."""
    neovim.clear()
    neovim.edit("chat.md", text)
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.command("normal! G")
    neovim.until(
        lambda: "the_manual" in neovim.screen() and is_link(neovim), "the colours of the Markdown"
    )


def underscores(neovim: Child) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each `_` between letters: the text up to it, its style, and the style of the letter before
    it.
    """
    grid = neovim.grid
    for cells, attributes in zip(grid.rows, grid.attributes, strict=True):
        for column in range(1, len(cells) - 1):
            if cells[column] == "_" and cells[column - 1].isalpha() and cells[column + 1].isalpha():
                style, before = grid.styles[attributes[column]], grid.styles[attributes[column - 1]]
                yield "".join(cells[: column + 1]), style, before


def assert_no_underscore_stands_out(neovim: Child) -> None:
    neovim.screen()
    all_of_them = [*underscores(neovim)]
    assert len(all_of_them) > 10
    assert [text for text, style, before in all_of_them if style != before] == []


def test_no_underscore_is_coloured_as_an_error(chat: Child) -> None:
    assert_no_underscore_stands_out(chat)


def test_no_underscore_is_coloured_as_an_error_after_the_syntax_is_set_again(chat: Child) -> None:
    chat.command("set syntax=markdown | redraw!")
    assert_no_underscore_stands_out(chat)
    chat.command("edit | normal! G")
    assert_no_underscore_stands_out(chat)


def test_no_underscore_is_coloured_as_an_error_in_a_chat_too_long_for_treesitter(
    chat: Child,
) -> None:
    show(chat, "💬: long\n\n🤖:\n\n" + "a line_of_words\n" * 1000 + CHAT)
    assert not has_treesitter(chat)
    assert_no_underscore_stands_out(chat)


def test_markers_are_not_coloured_as_links(chat: Child) -> None:
    for text in ("[Claude]", "[ya]", "[web_search][call_1]", "[call_1]", "[Stopped", "[anthropic"):
        assert not chat.grid.style(text).get("underline"), text
    assert is_link(chat)


def test_thinking_is_dimmed_but_other_quotes_are_not(chat: Child) -> None:
    if has_treesitter(chat):
        dim = colours(chat, "Comment")["fg"]
        assert [
            chat.grid.style(text).get("foreground") == dim for text in ("> I look", "snake_case")
        ] == [True] * 2
        assert chat.grid.style("> as others say").get("foreground") != dim


def colours(neovim: Child, group: str) -> dict[str, Any]:
    """A highlight group's colours."""
    spec: dict[str, Any] = neovim.lua(
        "return vim.api.nvim_get_hl(0, { name = ..., link = false })", group
    )
    return spec


def backgrounds(neovim: Child, text: str) -> set[int | None]:
    """The backgrounds in a text's row."""
    neovim.screen()
    row, _ = neovim.grid.place(text)
    return {neovim.grid.styles[style].get("background") for style in neovim.grid.attributes[row]}


def test_a_replys_pieces_share_a_parse_and_its_end_has_its_colours(chat: Child) -> None:
    if not has_treesitter(chat):
        return
    show(chat, "💬: how?\n\n🤖:[A]\n\nSee [the_manual](https://a.b/c_d).\n")
    handle, end = chat.lua("return require('parley.handle').open(vim.fn.bufnr(), 0)"), 5
    chat.command("normal! gg")
    edits = [{"start": end, "stop": end, "lines": [""]}]
    tick = chat.nvim.api.buf_get_changedtick(0)
    assert remote(chat, "open_stream", handle, tick, edits, 2, end)["applied"]
    chat.lua(COUNT_PARSES)
    pieces = 40
    for number in range(pieces):
        append(chat, handle, f"word{number} ")
    append(chat, handle, "**strong")
    append(chat, handle, "_end**")
    counted = chat.lua("return _G.parses")
    assert counted <= pieces / 4
    chat.until(lambda: "strong_end" in chat.screen() and chat.grid.style("strong").get("bold"))
    assert chat.lua("return _G.parses") > counted
    chat.lua("require('parley.handle').close(...)", handle)


def test_a_question_has_a_band_from_edge_to_edge(chat: Child) -> None:
    band = colours(chat, "CursorLine")["bg"]
    for scheme in ("default", "habamax", "quiet", "lunaperche", "default"):
        chat.command(f"colorscheme {scheme} | redraw!")
        band = colours(chat, "CursorLine")["bg"]
        assert backgrounds(chat, "What is in") == {band}, scheme
        assert backgrounds(chat, "second_question") == {band}, scheme
        assert backgrounds(chat, "[Claude]") == {None}, scheme
        assert not chat.grid.style("[Claude]").get("underline"), scheme


def test_the_bands_are_links_that_users_can_set(chat: Child) -> None:
    chat.command(
        "hi! link ParleyQuestionLine DiffAdd | hi! link ParleyAnswerLine DiffText | redraw!"
    )
    assert backgrounds(chat, "What is in") == {colours(chat, "DiffAdd")["bg"]}
    assert backgrounds(chat, "[Claude]") == {colours(chat, "DiffText")["bg"]}
    chat.command("hi! link ParleyQuestionLine NONE | hi! link ParleyAnswerLine NONE | redraw!")
    assert backgrounds(chat, "What is in") == backgrounds(chat, "[Claude]") == {None}
    chat.command("hi! link ParleyQuestionLine CursorLine")


def terminal_styles(neovim: Child, text: str) -> list[dict[str, Any]]:
    neovim.screen()
    row, _ = neovim.grid.place(text)
    return [neovim.grid.terminal_styles[style] for style in neovim.grid.attributes[row]]


def test_without_suitable_terminal_colours_a_question_is_underlined(
    chat: Child,
) -> None:
    chat.command("colorscheme default | redraw!")
    assert all(style.get("underline") for style in terminal_styles(chat, "What is in"))
    chat.command("colorscheme habamax | redraw!")
    assert {style["background"] for style in terminal_styles(chat, "What is in")} == {236}
    assert not any(style.get("underline") for style in terminal_styles(chat, "What is in"))


COUNT = """
_G.reads = 0
local get_text = vim.api.nvim_buf_get_text
vim.api.nvim_buf_get_text = function(...) _G.reads = _G.reads + 1 return get_text(...) end
"""


def test_a_redraw_reads_only_the_rows_on_the_screen(chat: Child) -> None:
    show(chat, CHAT * 800)
    chat.lua(COUNT)
    for key in ("gg", "<C-f>", "10000G", "ix<Esc>", "G"):
        chat.lua("_G.reads = 0")
        chat.keys(key)
        chat.screen()
        assert 0 < chat.lua("return _G.reads") <= 3 * 40, key


def test_the_users_own_pages_keep_their_syntax(tmp_path: Path) -> None:
    init = "vim.g.parley_python = '/nowhere/python' vim.o.termguicolors = true"
    with child(tmp_path, init=init, width=60, height=10) as neovim:
        neovim.edit("notes.md", "# Notes\n\nsome snake_case\n")
        # 0.12 has started it without a request
        neovim.lua("pcall(vim.treesitter.stop) vim.bo.syntax = 'markdown'")
        neovim.until_screen("snake_case")
        assert neovim.grid.style("_case") != neovim.grid.style("case")


TOOL = Tool("files", "write_file", "Write_file", "Writes a_file.\nSays what.", {"type": "object"})
PAGE = ServerOffer(
    [
        ServerStatus("files", "ready", True, "2025-06-18", (TOOL,), "", ("one_line",)),
        ServerStatus("broken", "failed", True, "", (), "no such_file", ()),
    ],
    frozenset({("files", "write_file")}),
    frozenset({("files", "write_file")}),
    problems=["a.b: no such_setting"],
)


def page(neovim: Child, name: str, lines: list[str]) -> None:
    neovim.command("silent! only")
    neovim.lua("require('parley.pages').scratch(...)", name, lines, "parley")
    neovim.command("only | redraw!")
    neovim.screen()


def foregrounds(neovim: Child, *texts: str) -> list[int | None]:
    return [neovim.grid.style(text).get("foreground") for text in texts]


def test_the_tools_page_has_its_own_colours(chat: Child) -> None:
    page(chat, "tools", tools_page(PAGE).lines)
    good, bad = (colours(chat, name)["fg"] for name in ("DiagnosticOk", "DiagnosticError"))
    assert foregrounds(chat, "[x] write_file", "ready, protocol", "failed, 0") == [good, good, bad]
    assert foregrounds(chat, "Error: no such", "! a.b: no such") == [bad, bad]
    assert foregrounds(chat, "write_file ~25  Writes", "x: on", "<CR>:", 'object"') == [
        colours(chat, name)["fg"] for name in ("Function", "Special", "Special", "String")
    ]
    assert [text for text, style, before in underscores(chat) if style != before] == []


def test_the_log_has_its_own_colours(chat: Child) -> None:
    call = {"call": "call_1", "tool": "files/write_file", "seconds": 0.1, "bytes": 3, "rule": "key"}
    page(
        chat,
        "log",
        log_page(
            "chat_of_mine.md",
            [(1.0, "call", call | {"outcome": "ok"}), (2.0, "call", call | {"outcome": "error"})],
            [],
        ),
    )
    names = ("Comment", "Identifier", "Function", "DiagnosticOk", "DiagnosticError")
    row = next(line for line in chat.text().split("\n") if " ok, " in line)
    assert foregrounds(chat, row, row[8:].lstrip(), "files/write_file", "ok, ", "error, ") == [
        colours(chat, name)["fg"] for name in names
    ]
    assert [text for text, style, before in underscores(chat) if style != before] == []


def test_a_projects_server_arguments_and_variables_stand_out(chat: Child, tmp_path: Path) -> None:
    server = {"command": "node", "args": ["./my_server.js"], "env": {"TOKEN": "${MY_TOKEN}"}}
    content = json.dumps({"mcpServers": {"my_files": server}}, indent=1).encode()
    (tmp_path / "my_server.js").touch()
    file = read_servers(content, ".mcp.json", str(tmp_path))
    page(chat, "project", project_page(tmp_path / ".mcp.json", content, file))
    bad = colours(chat, "DiagnosticError")["fg"]
    assert foregrounds(chat, "receives your", "uses files from the project", "starts the") == [
        bad,
        bad,
        None,
    ]
    assert foregrounds(chat, 'node",') == [colours(chat, "String")["fg"]]
    show(chat, CHAT)


def test_the_help_names_every_group(chat: Child) -> None:
    help_text = (ROOT / "doc" / "parley.txt").read_text(encoding="utf-8")
    page(chat, "tools", [])
    groups = {
        name
        for name in chat.lua("return vim.fn.getcompletion('', 'highlight')")
        if "Parley" in name
    }
    assert groups | {"ParleyAnswerLine"} == set(
        re.findall(r"(?:\*hl-|\(`)(Parley\w+)[*`]", help_text)
    )
