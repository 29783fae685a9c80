"""Messages in the command line: simultaneous messages become one. A message never waits for a key
and is never lost.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child

WRONG = """require('parley').setup({
  agent = 'Dmeo', thinking = { budget_tokens = 'many' }, nonsense = 1, max_tool_calls = 'x',
  tool_mode = 'jsno', loop = { max_iterations = 0, paralel = true }, keys = { respond = 5 },
  safety = { blocked_tool_patterns = 'rm' }, status = { llm = 'no' },
  mcp = { servers = { a = { command = 5 } } },
})"""
NAMES = [
    *(
        "agent",
        "thinking.budget_tokens",
        "nonsense",
        "max_tool_calls",
        "tool_mode",
        "loop.max_iterations",
    ),
    *(
        "loop.paralel",
        "keys.respond",
        "safety.blocked_tool_patterns",
        "status.llm",
        "mcp.servers.a.command",
    ),
]


def say(nvim: Child, *texts: str, level: str = "warn") -> None:
    """Show messages at once, and wait until the last is in the history."""
    nvim.lua(
        "local level = select(1, ...) for i = 2, select('#', ...) do "
        "require('parley.host').message(select(i, ...), level) end",
        level,
        *texts,
    )
    nvim.until(lambda: texts[-1] in nvim.messages().replace("\n", ""), "the messages")


@pytest.mark.parametrize("width", [60, 80])
def test_eleven_wrong_settings_can_all_be_read_at_once(tmp_path: Path, width: int) -> None:
    with child(tmp_path, init=WRONG, width=width, height=24) as nvim:
        nvim.edit("chat.md", "💬: hi\n")
        nvim.until(lambda: nvim.messages().count("Parley: ") == 11, "the complaints")
        shown = nvim.screen().replace("\n", "")
        assert [name for name in NAMES if f"{name}: " not in shown] == []
        assert "did you mean parallel?" in shown
        assert "Press ENTER" not in shown
        assert "hi" in shown, "the chat is still to be seen"

        def is_given_back() -> bool:
            nvim.keys("j")
            return bool(nvim.nvim.options["cmdheight"] == 1)

        nvim.until(is_given_back, "the rows given back")


@pytest.mark.parametrize(
    "init", ["", "vim.notify = load(string.dump(vim.notify, true))"], ids=["", "0.12"]
)
def test_a_long_message_is_cut_on_the_screen_and_whole_in_the_history(
    tmp_path: Path, init: str
) -> None:
    with child(tmp_path, init=init, width=80, height=24) as nvim:
        long = " ".join(f"word{n}" for n in range(150))
        say(nvim, long, "short")
        assert nvim.messages().count("word149") == 1
        screen = nvim.screen()
        assert "word149" not in screen
        assert "…" in screen
        assert "Parley: short" in screen
        assert "Press ENTER" not in screen


def test_a_message_stays_above_the_name_of_the_mode_while_the_user_types(tmp_path: Path) -> None:
    with child(tmp_path, width=60, height=12) as nvim:
        nvim.keys("i")
        nvim.until_screen("-- INSERT --")
        say(nvim, "y" * 90)
        time.sleep(0.4)  # the user's next key ends a message in Normal mode
        nvim.keys("text")
        nvim.until_screen("text")
        lines = nvim.screen().rstrip("\n").split("\n")[-3:]
        assert [line.strip()[-12:] for line in lines] == ["y" * 12, "y" * 12, "-- INSERT --"]
        nvim.keys("<Esc>")
        nvim.until(lambda: nvim.nvim.options["cmdheight"] == 1, "the rows given back")


@pytest.mark.parametrize("width", [51, 52, 53])
def test_messages_that_fill_their_rows_to_the_last_cell_wait_for_no_key(
    tmp_path: Path, width: int
) -> None:
    """A wide character leaves half a cell at a row's end; a full row adds an empty row."""
    with child(tmp_path, width=60, height=24) as nvim:
        say(nvim, "x" * width, "y" * (width + 60), "y" * (width - 1) + "❓ wide", "z" * width)
        screen = nvim.screen().replace("\n", "")
        assert "Press ENTER" not in screen
        assert "x" * width in screen
        assert "❓ wide" in screen
        assert "z" * width in screen


def test_if_messages_outnumber_the_rows_the_rest_is_counted(tmp_path: Path) -> None:
    with child(tmp_path, width=60, height=12) as nvim:
        say(nvim, *(f"number {n} of many" for n in range(30)))
        screen = nvim.screen()
        assert "23 more: see :messages" in screen
        assert "Press ENTER" not in screen
        assert all(f"number {n} of many" in nvim.messages() for n in range(30))


def test_one_message_takes_one_row_and_its_colour_even_if_it_comes_twice_at_once(
    tmp_path: Path,
) -> None:
    with child(tmp_path, width=60, height=12) as nvim:
        say(nvim, "alone", "alone", level="error")
        nvim.until_screen("Parley: alone")
        assert nvim.nvim.options["cmdheight"] == 1
        normal = nvim.grid.style("~")
        assert nvim.grid.style("Parley: alone") != normal
        assert nvim.messages().count("alone") == 1


@pytest.mark.parametrize(
    ("source", "is_neovims"),
    [
        ("@vim/_editor.lua", True),  # Neovim 0.10 and 0.11
        ("=?", True),  # 0.12
        ("vim/_core/editor", True),  # 0.13
        ("@/home/me/pack/vim/notify.lua", False),
        ("@vimrc.lua", False),
    ],
)
def test_the_functions_of_each_neovim_are_its_own(
    plain: Child, source: str, is_neovims: bool
) -> None:
    code = "return require('parley.plugins').is_builtin(load('return 1', ...))"
    assert plain.lua(code, source) is is_neovims


def test_a_message_plugin_that_is_a_callable_table_gets_them(plain: Child) -> None:
    """Like nvim-notify's `vim.notify = require("notify")`."""
    plain.lua("""
      _G.own, _G.notes = vim.notify, {}
      vim.notify = setmetatable({}, {
        __call = function(_, text, level) table.insert(_G.notes, { text, level }) end,
      })
      require('parley.host').message('by the plugin', 'warn')
    """)
    notes = [["Parley: by the plugin", 3]]
    plain.until(lambda: plain.lua("return _G.notes") == notes, "the note")
    plain.lua("vim.notify = _G.own")


def test_a_broken_message_plugin_loses_no_message(plain: Child) -> None:
    plain.lua("""
      _G.own, _G.notes = vim.notify, {}
      vim.notify = function(text)
        assert(#_G.notes == 0, 'broken')
        table.insert(_G.notes, text)
      end
    """)
    say(plain, "the first", "the second", "the third")
    assert plain.lua("return _G.notes") == ["Parley: the first"]
    assert "the first" not in plain.messages()
    assert plain.messages().count("the second") == 1
    assert "Press ENTER" not in plain.screen()
    plain.lua("vim.notify = _G.own")


def test_a_callable_table_can_list_chats(plain: Child) -> None:
    plain.lua("""
      _G.own = vim.ui.select
      vim.ui.select = setmetatable({}, { __call = function(_, items) _G.items = #items end })
      local chats = {}
      for number = 1, 100 do
        chats[number] = { path = '/x', when = 'now', topic = 'chat' }
      end
      require('parley.finder').pick(chats)
    """)
    assert plain.lua("return _G.items") == 100
    plain.lua("vim.ui.select = _G.own")
