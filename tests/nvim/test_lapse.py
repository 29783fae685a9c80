"""If a server redefines its tool, earlier approvals become void, and Parley shows the old and new
definition.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nvim.counting import Chat, furnish, is_complete, opened, problems, until, waits
from tests.nvim.harness import Child, child

CHANGED = "the definition of count/note has changed since you"


def define(nvim: Child, home: Path, definition: str) -> None:
    """Change the server's description of its tool from now on."""
    furnish(home, DEFINITION=definition)
    nvim.command("messages clear")
    nvim.lua("require('parley').setup({})")


def to_last_call(nvim: Child) -> None:
    nvim.command("normal! G")
    nvim.command("call search('^❓', 'bc')")


def float_text(nvim: Child) -> str:
    """The float of `K` on the last proposal."""
    to_last_call(nvim)
    nvim.keys("K")
    until(nvim, lambda: len(nvim.nvim.windows) == 2, "the float")
    shown: list[str] = nvim.lua(
        "local win = vim.iter(vim.api.nvim_list_wins()):find(function(w)"
        " return vim.api.nvim_win_get_config(w).relative ~= '' end)"
        " return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, true)"
    )
    nvim.keys("gg")
    until(nvim, lambda: len(nvim.nvim.windows) == 1, "the end of the float")
    return "\n".join(shown)


@pytest.mark.timeout(180)
def test_a_void_approval_is_marked_on_the_line_and_k_shows_the_change(tmp_path: Path) -> None:
    furnish(tmp_path)
    chat = Chat(tmp_path, "one")
    with child(tmp_path, height=50) as nvim:
        opened(nvim, chat)
        nvim.command("ParleyRespond")
        until(nvim, lambda: waits(nvim), "the choice")
        nvim.keys("yA")
        until(nvim, lambda: is_complete(nvim), "the answer")

        define(nvim, tmp_path, "Writes a note,\nand sends it\u200b away.")
        nvim.keys('Gacall note {"text":"two"} call note {"text":"three"}<Esc>:ParleyRespond<CR>')
        until(nvim, lambda: waits(nvim), "the question about the tool that was remembered")
        message = f"{CHANGED} remembered it: K shows the changes"
        assert problems(nvim) == [message] * 2
        assert nvim.screen().count(message) == 2
        shown = float_text(nvim)
        assert (
            '-    "Writes a note."\n+    "Writes a note,",\n+    "and sends it\\u200b away."\n'
            in shown
        )

        to_last_call(nvim)
        nvim.keys("yo")
        until(nvim, lambda: nvim.text().count("❓:[yo]") == 1 and waits(nvim), "the mark")
        define(nvim, tmp_path, "Writes no note.")
        nvim.command("ParleyRespond")
        until(
            nvim,
            lambda: f"{CHANGED} approved this call: K shows the changes" in problems(nvim),
            "the problem",
        )
        until(nvim, lambda: waits(nvim), "the end of the turn")
        assert '+    "Writes no note."' in float_text(nvim)
    assert chat.calls() == 1
