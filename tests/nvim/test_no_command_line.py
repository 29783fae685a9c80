"""Without a command line ('cmdheight' 0), and with Neovim's new message windows (ui2): nothing waits
for a key.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nvim.harness import child
from tests.nvim.test_turn import ask_stocks, complete

UI2 = "_G.has_ui2 = pcall(function() require('vim._core.ui2').enable({}) end)"


@pytest.mark.parametrize("ui", ["", UI2], ids=["plain", "ui2"])
def test_a_chat_needs_no_command_line(tmp_path: Path, ui: str) -> None:
    with child(tmp_path, init=f"{ui}\nvim.o.cmdheight = 0", height=24, width=80) as nvim:
        if ui and not nvim.lua("return _G.has_ui2"):
            pytest.skip("this Neovim has no ui2: 0.12 has")
        ask_stocks(nvim)
        assert nvim.lua("return vim.wo.linebreak and vim.wo.smoothscroll")
        nvim.keys("yn")
        nvim.until_screen("Reason (may be empty)")
        nvim.keys("too dear<CR>")
        nvim.until_text("too dear")
        assert "Reason" not in nvim.screen()
        nvim.command("ParleyApprove yx")
        nvim.until_screen("unknown choice yx")
        nvim.keys("ya")
        complete(nvim)
        assert "$544" in nvim.screen()
        assert "unknown choice" not in nvim.screen()
        nvim.keys("<C-g>a")
        nvim.until_screen("Type number and <Enter>")
        nvim.keys("<CR>")
        nvim.until_open()
        assert nvim.lua("return vim.o.cmdheight") == 0


def test_the_status_line_stays_when_the_swap_file_is_written(tmp_path: Path) -> None:
    with child(tmp_path, init="vim.o.cmdheight = 0", height=24, width=80) as nvim:
        folder = str(tmp_path)
        nvim.lua("vim.o.updatecount, vim.o.directory, vim.o.swapfile = 200, ..., true", folder)
        nvim.command(f"edit {tmp_path}/chat.md")
        nvim.command("redrawstatus!")
        nvim.until_screen("chat.md")
        nvim.lua("require('parley.messages').silently('preserve', '!')")
        nvim.until_screen("chat.md")  # Neovim 0.11 clears the line
