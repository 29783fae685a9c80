"""`:ParleyFind` lists a folder's chats, despite other entries, with the installed picker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nvim.counting import MARKER
from tests.nvim.harness import Child, child

PICK = "vim.ui.select = function(items, opts) _G.picked = vim.tbl_map(opts.format_item, items) end"


def fill(folder: Path) -> None:
    """A chat, and files next to it that an attack or an accident leaves."""
    folder.mkdir(parents=True)
    (folder / "good.md").write_text(f"{MARKER}a good question on `a.md`\n", encoding="utf-8")
    (folder / "dangling.md").symlink_to(folder / "gone.md")
    os.mkfifo(folder / "pipe.md")
    hostile = "a: !!timestamp foo\nb: !!bool maybe\nc: !!python/object/apply:os.abort []\nd: ["
    text = f"---\n{hostile}\n---\n\n{MARKER}below hostile YAML\n"
    (folder / "hostile.md").write_text(text, encoding="utf-8")
    # a file that even root cannot read at its start
    (folder / "closed.md").symlink_to("/proc/self/mem")


def picked(nvim: Child) -> list[str]:
    nvim.lua("_G.picked = nil")
    nvim.lua(PICK)
    nvim.command("ParleyFind")
    nvim.until(lambda: nvim.lua("return _G.picked ~= nil"), "the list of chats")
    chosen: list[str] = nvim.lua("return _G.picked")
    return chosen


def test_pipes_dangling_links_unreadable_files_and_hostile_yaml_hide_no_chat(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data" / "parley" / "chats"
    fill(folder)
    with child(tmp_path) as nvim:
        items = picked(nvim)
        assert len(items) == 3, items
        for expected in (
            "a good question on `a.md`",
            "below hostile YAML",
            "closed.md: Input/output error",
        ):
            assert [item for item in items if expected in item], (expected, items)
        (folder / "later.md").write_text(f"{MARKER}asked later\n", encoding="utf-8")
        assert "asked later" in picked(nvim)[0]  # the host is alive
        assert nvim.lua("return require('parley.host').state().stderr") == []


ANSWER = "An answer.\n" * 40
CHATS = 30


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """Thirty chats, three with a needle at the end of an answer."""
    home = tmp_path_factory.mktemp("find")
    folder = home / "data" / "parley" / "chats"
    folder.mkdir(parents=True)
    for n in range(CHATS):
        path = folder / f"chat-{n}.md"
        needle = "\nHere is a Needle, and hay.\n" if n % 10 == 3 else ""
        topic = f"Topic {n} {'that is long ' * (n % 9)}"
        path.write_text(
            f"---\ntopic: {topic}\n---\n\n{MARKER}ask\n\n🤖:\n\n{ANSWER}{needle}", encoding="utf-8"
        )
        os.utime(path, (1e9 + n * 100, 1e9 + n * 100))
    with child(home, width=80, height=24) as one:
        yield one


@pytest.fixture
def nvim(neovim: Child) -> Iterator[Child]:
    neovim.clear()
    neovim.lua("require('parley').setup({})")
    yield neovim
    assert not neovim.blocked()
    neovim.lua("""
        for name in pairs(package.preload) do
          if name:find('^snacks') or name:find('^telescope') or name:find('^fzf') then
            package.preload[name], package.loaded[name] = nil, nil
          end
        end
        _G.shown = nil
    """)


def is_open(nvim: Child, number: int, row: int) -> None:
    nvim.until(lambda: nvim.name.endswith(f"/chat-{number}.md"), "the chat")
    nvim.until(lambda: nvim.cursor[0] == row, "the line")


def seen(nvim: Child, text: str) -> list[str]:
    """The screen's rows, as soon as it shows this text."""
    nvim.until(lambda: nvim.flush() or text in nvim.grid.text(), text)  # type: ignore[func-returns-value]
    return nvim.grid.text().split("\n")


NEEDLE = 9 + 40 + 1


def test_neovims_own_list_fits_the_screen_and_opens_at_the_line(nvim: Child) -> None:
    nvim.command("ParleyFind")
    rows = seen(nvim, "Type number")
    assert "The newest 20 of 30 chats; :ParleyFind {words} narrows the list" in rows
    assert [row.split(":")[0] for row in rows if "Topic" in row] == [str(n) for n in range(1, 21)]
    assert "1: 2001-09-09 02:35  Topic 29 that is long that is long" in "\n".join(rows)
    assert not any("-- More" in row for row in rows)
    nvim.keys("1<CR>")
    nvim.until(lambda: nvim.name.endswith("/chat-29.md"), "the chat")
    nvim.command("ParleyFind HAY needle")
    rows = [row for row in seen(nvim, "Here is") if ": 2001-" in row]
    assert len(rows) == 3
    assert all("— Here is a Needle, and" in row and len(row) <= 80 for row in rows), rows
    nvim.keys("2<CR>")
    is_open(nvim, 13, NEEDLE)


def test_a_module_in_the_working_directory_is_not_a_picker(nvim: Child) -> None:
    here = nvim.home / "anybodys"
    here.mkdir()
    for name in ("snacks", "telescope", "fzf-lua"):
        (here / f"{name}.lua").write_text(f"vim.g.evil = '{name}' return {{}}", encoding="utf-8")
    before = nvim.lua("return { package.path, package.cpath }")
    nvim.command(f"cd {here}")
    nvim.command("ParleyFind")
    seen(nvim, "Type number")
    nvim.keys("<CR>")
    nvim.until(
        lambda: nvim.nvim.api.get_mode() == {"mode": "n", "blocking": False},
        "the end of the prompt",
    )
    nvim.command(f"cd {nvim.home}")
    assert nvim.lua("return vim.g.evil") is None
    assert nvim.lua("return { package.path, package.cpath }") == before


def test_words_without_a_match_are_reported(nvim: Child) -> None:
    nvim.command("ParleyFind no such words")
    nvim.until(
        lambda: "contains all of these words: no such words" in nvim.messages(), "the message"
    )


def test_a_buffer_that_may_not_be_left_keeps_its_window(nvim: Child) -> None:
    nvim.command("set nohidden")
    nvim.lua("vim.ui.select = (function(select) return function(items, opts, done)"
             " vim.ui.select = select done(items[1]) end end)(vim.ui.select)")  # fmt: skip
    nvim.command("enew | call setline(1, 'changed')")
    nvim.command("ParleyFind needle")
    nvim.until(lambda: "Needle" in nvim.text(), "the chat")
    assert "E37" not in nvim.messages()
    assert nvim.lua("return vim.fn.winnr('$')") == 2


def test_an_open_chat_is_not_read_again(nvim: Child) -> None:
    nvim.command(f"edit {nvim.home}/data/parley/chats/chat-13.md")
    nvim.keys("Goof my own<Esc>gg")
    nvim.lua(SNACKS)
    nvim.command("ParleyFind needle")
    is_open(nvim, 13, NEEDLE)
    assert nvim.lines()[-1] == "of my own"
    assert nvim.nvim.current.buffer.options["buflisted"]
    nvim.keys("<C-o>")
    assert nvim.cursor[0] == 1


# Stand-ins for plugins that are not available here. Each has the part of the documented interface
# that Parley uses, records its arguments, and chooses the second row.

SNACKS = """
package.preload.snacks = function()
  return { config = { picker = { enabled = true } }, picker = { pick = function(opts)
    local rows = vim.tbl_map(function(item)
      return table.concat(vim.tbl_map(function(chunk) return chunk[1] end, opts.format(item, {})))
    end, opts.items)
    _G.shown = { title = opts.title, rows = rows, preview = opts.preview, at = {
      opts.items[2].file, opts.items[2].pos[1] } }
    opts.confirm({ close = function() end }, opts.items[2])
  end } }
end
"""
TELESCOPE = """
local chosen, replaced
package.preload.telescope = function() return {} end
package.preload['telescope.actions'] = function()
  return { close = function() end, select_default = { replace = function(_, act) replaced = act end } }
end
package.preload['telescope.actions.state'] = function()
  return { get_selected_entry = function() return chosen end }
end
package.preload['telescope.config'] = function()
  return { values = {
    generic_sorter = function() return 'sorter' end,
    grep_previewer = function() return 'file' end,
  } }
end
package.preload['telescope.finders'] = function()
  return { new_table = function(opts) return vim.tbl_map(opts.entry_maker, opts.results) end }
end
package.preload['telescope.pickers'] = function()
  return { new = function(_, opts)
    return { find = function()
      local rows = vim.tbl_map(function(entry) return entry.display end, opts.finder)
      chosen = opts.finder[2]
      assert(opts.sorter == 'sorter' and opts.attach_mappings(1) == true and chosen.ordinal)
      _G.shown = { title = opts.prompt_title, rows = rows, preview = opts.previewer,
        at = { chosen.path, chosen.lnum } }
      replaced()
    end }
  end }
end
"""
FZF = """
package.preload['fzf-lua.previewer.builtin'] = function()
  local class = {}
  function class:new(...) return setmetatable({}, { __index = self }) end
  function class:extend()
    local sub = setmetatable({ super = self }, { __index = self })
    sub.__index = sub
    return sub
  end
  return { buffer_or_file = class }
end
package.preload['fzf-lua'] = function()
  return { fzf_exec = function(rows, opts)
    local entry = opts.previewer:parse_entry(rows[2])
    assert(opts.fzf_opts['--delimiter'] == '\t' and opts.fzf_opts['--with-nth'] == '2..')
    _G.shown = { title = vim.trim(opts.winopts.title), rows = vim.tbl_map(function(row)
      return row:match('\t(.*)')
    end, rows), preview = 'file', at = { entry.path, entry.line } }
    opts.actions.default({ rows[2] })
  end }
end
"""
STANDINS = {"snacks": SNACKS, "telescope": TELESCOPE, "fzf-lua": FZF}


@pytest.mark.parametrize("setting", ["auto", "named"])
@pytest.mark.parametrize("name", STANDINS)
def test_the_installed_picker_gets_topic_line_and_file(
    nvim: Child, name: str, setting: str
) -> None:
    nvim.lua(STANDINS[name])
    if setting == "named":
        for other in STANDINS.values():
            nvim.lua(other)
        nvim.lua("require('parley').setup({ picker = ... })", name)
    nvim.command("ParleyFind needle")
    shown: dict[str, Any] = nvim.until(lambda: nvim.lua("return _G.shown"), "the picker")
    assert (shown["title"], shown["preview"], len(shown["rows"])) == ("Chats", "file", 3)
    assert shown["rows"][2].startswith("2001-09-09 01:51  Topic 3 that is long")
    assert shown["rows"][2].endswith("Here is a Needle, and hay.")
    assert shown["at"] == [str(nvim.home / "data/parley/chats/chat-13.md"), NEEDLE]
    is_open(nvim, 13, NEEDLE)
    assert nvim.nvim.current.buffer.options["filetype"] == "markdown"


def test_snacks_with_its_picker_disabled_is_not_used(nvim: Child) -> None:
    nvim.lua(SNACKS.replace("enabled = true", "enabled = false") + TELESCOPE)
    nvim.command("ParleyFind needle")
    nvim.until(lambda: nvim.lua("return _G.shown"), "the picker")
    assert nvim.lua("return package.loaded['telescope.pickers'] ~= nil")


@pytest.mark.parametrize(
    ("setup", "problem"),
    [
        ("", "the picker telescope is not installed"),
        ("package.preload.telescope = function() return {} end", "telescope cannot list the chats"),
    ],
)
def test_a_missing_or_broken_picker_is_reported_and_the_list_appears(
    nvim: Child, setup: str, problem: str
) -> None:
    nvim.lua(setup + " require('parley').setup({ picker = 'telescope' })")
    nvim.command("ParleyFind needle")
    seen(nvim, "Type number")
    nvim.keys("q<CR>")
    nvim.until(lambda: problem in nvim.messages(), "the message")
