""":ParleyAllow keeps a yes beyond its chat, and only a yes that the user gave; the page removes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from parley.nvim.permission_dialog import permissions_page
from parley.policy.permissions import Permission
from tests.nvim.harness import Child, child
from tests.nvim.test_waiting import BASE

PICK = """
_G.picks, _G.offered = {}, {}
vim.ui.select = function(items, opts, done)
  table.insert(_G.offered, { opts.prompt, unpack(items) })
  local pick = table.remove(_G.picks, 1)
  done(pick and items[pick], pick)
end
"""
QUESTION = 'call extra__web_search {"query":"google"}'


@pytest.fixture
def nvim(tmp_path: Path) -> Iterator[Child]:
    with child(tmp_path, init=PICK, width=100, height=30) as nvim:
        nvim.lua("require('parley').setup(...)", BASE)
        nvim.command(f"cd {tmp_path}")
        yield nvim


def ask(nvim: Child, name: str) -> None:
    nvim.edit(name, f"💬: {QUESTION}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")


def on_call(nvim: Child) -> None:
    nvim.keys("gg/^❓<CR>")


def said(nvim: Child, text: str) -> None:
    nvim.until(lambda: text in nvim.messages(), f"the message {text}")


def test_a_yes_is_kept_for_the_project_until_the_page_removes_it(nvim: Child) -> None:
    ask(nvim, "one.md")
    nvim.until_waiting()
    on_call(nvim)
    nvim.command("ParleyAllow")
    said(nvim, "approve this call first")
    nvim.keys("yO")
    said(nvim, "remembered web_search in this chat (:ParleyAllow widens it)")
    nvim.until_text("🛠️:")
    nvim.until_idle()
    on_call(nvim)
    nvim.lua("_G.picks = { 1, 4 }")
    nvim.command("ParleyAllow")
    nvim.until(lambda: len(nvim.lua("return _G.offered")) == 1, "the list")
    nvim.command("ParleyAllow")
    root = Path(nvim.nvim.funcs.getcwd()).resolve()
    said(nvim, f"permission 1: extra/web_search in {root}")
    assert nvim.lua("return _G.offered[1]") == nvim.lua("return _G.offered[2]")
    assert nvim.lua("return _G.offered[1]") == [
        "Run extra/web_search without asking from now on?",
        "No",
        "This chat",
        f'This project, these arguments ({{"query":"google"}} in {root})',
        f"This project, this tool ({root})",
        "Everywhere, this tool",
    ]

    ask(nvim, "two.md")
    nvim.until_text("🛠️:")
    nvim.until_screen(" allowed")
    nvim.until_idle()
    nvim.command("ParleyLog")
    nvim.until_text("permission 1 allows")
    nvim.keys("q")

    nvim.command("enew")
    nvim.command("ParleyAllow")
    nvim.until_text(f"1: extra/web_search in {root}")
    nvim.keys("x")
    nvim.until_text("No permissions. To give one")
    nvim.keys("q")
    ask(nvim, "three.md")
    nvim.until_waiting()


def test_the_page_shows_the_characters_that_a_name_hides() -> None:
    lines = permissions_page([Permission("a\u202eb", "c\nd", "", number=7)])
    assert len(lines) == 4
    assert lines[-1].startswith("7: a")
    assert "\u202e" not in lines[-1]
