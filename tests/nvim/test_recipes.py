"""The help's recipes, each run verbatim in a real Neovim.

Tests cannot install the plugins themselves. Stand-ins have only the entry point that the plugin's
documentation names (`setup`, `refresh`, `add`), with the documented arguments.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest

from parley.chat.reader import parse
from parley.cli import main
from parley.settings.read import read_settings
from tests.nvim.harness import ROOT, Child, child

HELP = (ROOT / "doc" / "parley.txt").read_text(encoding="utf-8")
RECIPES = HELP[HELP.index("*parley-recipes*") : HELP.index("*parley-from*")]
AGENT = """require('parley').setup({
  agent = '50% Me', agents = { { name = '50% Me', provider = 'demo', model = 'demo' } },
})"""

LUALINE = """
local M = {}
function M.setup(config)
  M.components = config.sections.lualine_x
  vim.o.statusline = "%!v:lua.require'lualine'.line()"
end
function M.line()
  local parts = {}
  for _, component in ipairs(M.components) do
    table.insert(parts, component())
  end
  return "%f%=" .. table.concat(parts, " ")
end
function M.refresh() M.refreshed = true vim.cmd.redrawstatus() end
return M
"""
HEIRLINE = """
local M = {}
function M.eval(component)
  local provider = component.provider or ""
  local text = type(provider) == "function" and provider() or provider
  for _, part in ipairs(component) do text = text .. M.eval(part) end
  return text
end
function M.line() return M.eval(M.statusline) end
function M.setup(config)
  M.statusline = config.statusline
  vim.o.statusline = "%{%v:lua.require'heirline'.line()%}"
end
return M
"""
WHICH_KEY = """
local M = { groups = {} }
function M.add(spec) for _, entry in ipairs(spec) do M.groups[entry[1]] = entry.group end end
function M.popup(prefix)
  local lines = { M.groups[prefix] }
  for _, map in ipairs(vim.api.nvim_buf_get_keymap(0, "n")) do
    if vim.startswith(map.lhs:lower(), prefix:lower()) then
      table.insert(lines, map.lhs .. " " .. (map.desc or "?"))
    end
  end
  return lines
end
return M
"""
RENDER_MARKDOWN = """
local M = {}
function M.setup(config)
  vim.api.nvim_create_autocmd("FileType", { pattern = "markdown", callback = function(event)
    vim.b[event.buf].rendered = not (config.ignore and config.ignore(event.buf))
  end })
end
return M
"""
COMPLETE = """
function M.words(name)
  local call = name:match("^v:lua%.(.+)") .. "(_A[1], _A[2], _A[3])"
  local column = vim.api.nvim_win_get_cursor(0)[2]
  local start = vim.fn.luaeval(call, { 1, "" })
  local base = vim.api.nvim_get_current_line():sub(start + 1, column)
  return vim.tbl_map(function(item) return item.word end, vim.fn.luaeval(call, { 0, base }))
end
return M
"""
BLINK = f"""
local M = {{}}
function M.setup(config) M.sources = config.sources end
function M.complete()
  local names = M.sources.per_filetype[vim.bo.filetype]
  assert(names.inherit_defaults and vim.list_contains(names, "omni"))
  return M.words(vim.bo.omnifunc)
end
function M.triggers() return M.sources.providers.omni.override.get_trigger_characters() end
{COMPLETE}
"""
CMP = f"""
local M = {{}}
function M.setup(config) M.source = config.sources[1] end
function M.complete()
  assert(M.source.name == "omni")
  return M.words(vim.bo.omnifunc)
end
function M.triggers() return M.source.trigger_characters end
{COMPLETE}
"""
PLUGINS = {
    "lualine": LUALINE,
    "heirline": HEIRLINE,
    "which-key": WHICH_KEY,
    "render-markdown": RENDER_MARKDOWN,
    "blink.cmp": BLINK,
    "cmp": CMP,
}
HEADINGS = {plugin: f"{plugin}.nvim" for plugin in PLUGINS} | {
    "blink.cmp": "blink.cmp",
    "cmp": "nvim-cmp",
}


def recipe(plugin: str) -> str:
    """The code in a plugin's recipe."""
    found = re.search(rf"^{re.escape(HEADINGS[plugin])} ~\n.*?>lua\n(.*?)^<", RECIPES, re.M | re.S)
    assert found, plugin
    return textwrap.dedent(found[1])


def init(plugin: str) -> str:
    """A configuration with a stand-in for the plugin, and its recipe."""
    stand_in = f"package.preload[{plugin!r}] = load([==[{PLUGINS[plugin]}]==])"
    return f"{stand_in}\n{AGENT}\nvim.o.laststatus = 2\ndo\n{recipe(plugin)}\nend"


def status_line(nvim: Child) -> str:
    return nvim.screen().split("\n")[-2]


def test_every_recipe_is_run_here() -> None:
    assert re.findall(r"^(\S+) ~$", RECIPES, re.M) == list(HEADINGS.values())
    assert len(re.findall(r">lua$", RECIPES, re.M)) == len(PLUGINS) + 1  # and a project's


def test_the_recipe_for_a_project_has_valid_settings(tmp_path: Path) -> None:
    found = re.search(r"^A project ~\n.*?>lua\n(.*?)^<", RECIPES, re.M | re.S)
    assert found
    setup = "local given; package.loaded.parley = { setup = function(t) given = vim.json.encode(t) end }"
    with child(tmp_path, clean=True) as nvim:
        table = json.loads(nvim.lua(f"{setup}\n{found[1]}\nreturn given"))
    settings, problems = read_settings(table)
    assert problems == ()
    assert settings.workspace.sandbox == "require"
    assert len(settings.approval.auto) == 3


@pytest.mark.parametrize("plugin", ["lualine", "heirline"])
@pytest.mark.parametrize("width", [60, 80])
def test_a_status_line_shows_agent_and_tokens_and_evaluates_no_percent(
    tmp_path: Path, plugin: str, width: int
) -> None:
    with child(tmp_path, init=init(plugin), width=width, height=24) as nvim:
        nvim.edit("chat.md", "💬: say: hello\n")
        nvim.until(lambda: "50% Me" in status_line(nvim), "the agent")
        nvim.command("ParleyRespond")
        nvim.until(lambda: re.search(r"50% Me ↑\d+ ↓\d+$", status_line(nvim)), "the tokens")
        nvim.edit("notes.md", "# Notes\n")
        nvim.until(lambda: "notes.md" in status_line(nvim), "the other file")
        assert "Me" not in status_line(nvim)


@pytest.mark.parametrize("plugin", ["lualine", "heirline"])
def test_a_status_line_shows_the_current_activity(tmp_path: Path, plugin: str) -> None:
    with child(tmp_path, init=init(plugin), width=80, env={"PARLEY_DEMO_PACE": "0.02"}) as nvim:
        nvim.edit("chat.md", "💬: write 2000 words\n")
        nvim.command("ParleyRespond")
        nvim.until(
            lambda: (status := nvim.variable("parley_status")) and status in status_line(nvim),
            "the status",
        )
        nvim.command("ParleyStop")
        nvim.until_idle()


def test_which_key_has_a_description_for_each_key_and_the_group(tmp_path: Path) -> None:
    with child(tmp_path, init=init("which-key")) as nvim:
        nvim.edit("chat.md", "💬: hello\n")
        nvim.until(lambda: nvim.lua("return vim.fn.maparg(']]', 'n')") != "", "the keys")
        group, *lines = nvim.lua("return require('which-key').popup('<C-g>')")
        assert group == "Parley"
        assert {line.split()[0]: line for line in lines}["<C-G>x"] == "<C-G>x Parley: stop"
        assert [line for line in lines if line.endswith("?")] == []


def test_render_markdown_ignores_chats_and_renders_other_files(tmp_path: Path) -> None:
    """Its event comes before Parley's own, which is registered later."""
    with child(tmp_path, init=init("render-markdown")) as nvim:
        nvim.edit("chat.md", "💬: hello\n")
        assert nvim.variable("rendered") is False
        nvim.edit("notes.md", "# Notes\n")
        assert nvim.variable("rendered") is True


@pytest.mark.parametrize("plugin", ["blink.cmp", "cmp"])
def test_a_completion_menu_has_the_references(tmp_path: Path, plugin: str) -> None:
    """Completion plugins call the function by its Lua name, outside Vim's completion."""
    with child(tmp_path, init=init(plugin)) as nvim:
        nvim.edit("chat.md", "💬: ")
        nvim.until(lambda: "parley" in nvim.lua("return vim.bo.omnifunc"), "the function")
        nvim.keys("A@@di")
        assert nvim.lua(f"return require({plugin!r}).complete()") == ["diagnostics@@", "diff@@"]
        assert nvim.lua(f"return require({plugin!r}).triggers()") == ["@", "/"]


def test_gp_chats_are_converted_as_the_help_says(tmp_path: Path) -> None:
    found = re.search(r"\*parley-from-gp\*.*?>sh\n\s+parley (.*?)\n", HELP, re.S)
    assert found
    text = (
        "# topic: ?\n\n- file: x.md\n\n---\n\n🗨:\nhello 🗨: there\n\n🤖:[ChatGPT4]\nHi!\n\n🗨:\nbye\n"
    )
    (tmp_path / "gp.md").write_text(text, encoding="utf-8")
    places = {"FILE": str(tmp_path / "gp.md"), "NEW.md": str(tmp_path / "chat.md")}
    assert main([places.get(word, word) for word in found[1].split()]) == 0
    chat = (tmp_path / "chat.md").read_text(encoding="utf-8")
    transcript = parse(chat)
    assert [len(exchange.answers) for exchange in transcript.exchanges] == [1, 0]
    assert "hello 🗨: there" in chat
    assert transcript.problems == ()
