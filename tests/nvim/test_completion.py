"""Completion of references in a chat, with CTRL-X CTRL-O."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mcp_servers import FAKE
from tests.nvim.harness import Child, child
from tests.nvim.test_servers_page import tools

FAKE_SERVER = {"command": sys.executable, "args": [FAKE]}


@pytest.fixture
def work(plain: Child, tmp_path: Path) -> Path:
    """A folder as Neovim's working directory, with a chat open that has no question."""
    folder = tmp_path / "project"
    for name in (
        "src/a.py",
        "src/b.py",
        "src/.key",
        "notes.md",
        ".env",
        ".editorconfig",
        ".github/ci.yml",
        ".git/config",
        "odd@name",
        "diff",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n", encoding="utf-8")
    (folder / "link").symlink_to(folder / "src")
    plain.command(f"cd {folder}")
    plain.edit("chat.md", "💬: ")
    plain.until(lambda: plain.lua("return require('parley.chat').is_attached(0)"), "the chat")
    return folder


def offers(nvim: Child, text: str, after: str = "") -> list[str]:
    """The completions after text is typed at the end of the question."""
    nvim.keys("<C-\\><C-n>")
    nvim.lua(
        "vim.o.completeopt = 'menuone,noselect' vim.api.nvim_buf_set_lines(0, 0, -1, true, { "
        "'💬: ' })"
    )
    nvim.keys(f"A{text}{after}{'<Left>' * len(after)}<C-x><C-o>")
    items: list[dict[str, Any]] = nvim.lua("return vim.fn.complete_info({ 'items' }).items")
    return [item["word"] for item in items]


def test_after_the_signs_names_files_and_folders_are_offered(plain: Child, work: Path) -> None:
    names = ["buffer@@", "selection@@", "diagnostics@@", "diff@@"]
    assert offers(plain, "see @@") == [*names, "link/", "notes.md@@", "src/"]
    shown = plain.screen()
    assert "the file you came from, as it is in the editor" in shown
    assert "notes.md" in shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@@d", ["diagnostics@@", "diff@@"]),
        ("@@src/", ["src/a.py@@", "src/b.py@@"]),
        ("@@src/b", ["src/b.py@@"]),
        ("@@./s", ["./src/"]),
        ("@@../project/n", ["../project/notes.md@@"]),
        ("@@buffer@@ and @@no", ["notes.md@@"]),
        ("@@.e", [".editorconfig@@"]),
        ("@@src/.", ["src/.key@@"]),
        ("@@.g", [".github/"]),
        ("@@.github/", [".github/ci.yml@@"]),
        ("@@.git/", []),
        ("@@src/../.git/", []),
        ("@@none/", []),
        ("no sign", []),
        ("a@b @c", []),
        ("@@buffer@@ no", []),
        ("@@ no", []),
    ],
)
def test_matches_for_the_typed_beginning_are_offered(
    plain: Child, work: Path, text: str, words: list[str]
) -> None:
    assert offers(plain, text) == words


def test_files_elsewhere_are_offered_with_their_whole_path(plain: Child, work: Path) -> None:
    assert offers(plain, f"@@{work}/no") == [f"{work}/notes.md@@"]
    (plain.home / "project").mkdir()
    assert "~/project/" in offers(plain, "@@~/pro")


def test_the_signs_are_closed_once(plain: Child, work: Path) -> None:
    assert offers(plain, "@@no", after="@@ there") == ["notes.md"]
    plain.keys("<C-n><C-y>")
    assert plain.text() == "💬: @@notes.md@@ there"
    assert offers(plain, "@@not") == ["notes.md@@"]
    plain.keys("<C-n><C-y>")
    assert plain.text() == "💬: @@notes.md@@"


def test_a_name_that_is_a_command_is_only_a_name(plain: Child, work: Path) -> None:
    assert offers(plain, f"@@`touch {work}/proof`") == []
    assert offers(plain, "@@$HOME/") == []
    assert not (work / "proof").exists()


def test_reading_a_folder_with_many_files_is_bounded(plain: Child, work: Path) -> None:
    many = work / "many"
    many.mkdir()
    for number in range(11_000):
        (many / f"{number}.txt").touch()
    assert len(offers(plain, "@@many/")) == 10_000


def test_elsewhere_completion_works_as_before(plain: Child, work: Path) -> None:
    plain.edit("other.md", "<div></div>\n\n💬: \n")
    plain.until(lambda: plain.lua("return require('parley.chat').is_attached(0)"), "the chat")
    assert plain.lua("return vim.bo.omnifunc") == "v:lua.require'parley.completion'.omni"
    assert plain.variable("parley_omnifunc") == "htmlcomplete#CompleteTags"
    assert offers(plain, "<lt>tab") == ["table"]
    assert offers(plain, "@@no") == ["notes.md@@"]
    plain.keys("<C-\\><C-n>")
    plain.command("set filetype=markdown")
    plain.until(lambda: "parley" in plain.lua("return vim.bo.omnifunc"), "the function")
    assert plain.variable("parley_omnifunc") == "htmlcomplete#CompleteTags"


def test_no_other_buffer_or_option_is_changed(plain: Child, work: Path) -> None:
    assert plain.lua("return vim.bo.completefunc") == ""
    plain.edit("plain.md", "# Notes\n")
    assert "parley" not in plain.lua("return vim.bo.omnifunc")


def test_resources_of_running_servers_are_offered_and_included(tmp_path: Path) -> None:
    settings = {"mcp": {"start": "chat", "servers": {"fake": FAKE_SERVER}}, "agent": "Demo"}
    init = f"require('parley').setup(vim.json.decode([==[{json.dumps(settings)}]==]))"
    with child(tmp_path, init=init) as nvim:
        nvim.command(f"cd {tmp_path}")
        tools(nvim, "fake: ready")
        nvim.edit("chat.md", "💬: ")
        words = ["fake:note://a.py@@", "fake:note://b c.md@@"]
        nvim.until(lambda: offers(nvim, "@@fake") == words, "the resources")
        assert "resource" in nvim.screen()
        nvim.keys("<C-n><C-y><Esc>")
        assert nvim.text() == "💬: @@fake:note://a.py@@"
        nvim.keys("<C-g><C-g>")
        nvim.until_text("`fake:note://a.py` (3 lines)")
        nvim.until_idle()


def test_a_templates_values_match_the_last_typed_text_and_can_be_requested_again(
    plain: Child, work: Path
) -> None:
    """A late reply replaces no other, and a server that was too slow gets another chance."""
    plain.lua("""
      local host, completion = require('parley.host'), require('parley.completion')
      _G.before = { state = host.state, mention = host.mention, now = vim.uv.now }
      _G.time, _G.asked = 0, {}
      vim.uv.now = function() return _G.time end
      host.state = function() return { channel = 1 } end
      host.mention = function(name, what) table.insert(_G.asked, what.base) end
      completion.has_resources({}, { { start = 'docs:page://', uri = 'docs:page://{name}' } })
    """)
    try:
        for text in ("@@docs:page://a", "@@docs:page://ab", "@@docs:page://ab"):
            offers(plain, text)
        assert plain.lua("return _G.asked") == ["docs:page://a", "docs:page://ab"]
        answer = "require('parley.completion').has_values(...)"
        plain.lua(answer, "docs:page://ab", [{"name": "docs:page://abc", "is_open": False}])
        plain.lua(answer, "docs:page://a", [{"name": "docs:page://a1", "is_open": False}])
        assert offers(plain, "@@docs:page://ab") == ["docs:page://abc@@"]
        plain.lua("_G.time = 5001")
        offers(plain, "@@docs:page://ab")
        assert plain.lua("return _G.asked")[2:] == ["docs:page://ab"]
    finally:
        plain.lua("""
          local host = require('parley.host')
          host.state, host.mention, vim.uv.now = _G.before.state, _G.before.mention, _G.before.now
          require('parley.completion').has_resources({}, {})
          require('parley.completion').has_values('docs:page://ab', {})
        """)
