"""A command's terminal as a person sees it: its output on the real screen of Neovim's terminal."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.cli.shell import PATIENCE_S, Terminal
from tests.nvim.harness import Child

_OPEN = """
vim.o.laststatus, vim.o.cmdheight, vim.o.ruler, vim.o.showcmd, vim.o.showmode = 0, 0, false, false, false
vim.cmd('enew!')
return vim.api.nvim_open_term(0, {})
"""
_TOP = """
local rows = vim.api.nvim_buf_get_lines(0, 0, -1, false)
local count = 0
for number, row in ipairs(rows) do count = row ~= '' and number or count end
return vim.list_slice(rows, 1, count)
"""

_FEED = """
vim.api.nvim_chan_send(...)
vim.wait(30, function() end)
"""
"""Neovim updates its buffer after 10 ms."""


class Glass:
    """A program's terminal: its screen, its scrollback, and its keys."""

    def __init__(self, neovim: Child, terminal: Terminal, columns: int, rows: int) -> None:
        self.terminal = terminal
        self._neovim = neovim
        self._fed = 0
        self._neovim.nvim.ui_try_resize(columns, rows)
        self._channel = neovim.lua(_OPEN)

    def until(self, condition: Callable[[str], bool], what: str) -> list[str]:
        """All rows, including the scrollback, as soon as their text matches."""
        end = time.monotonic() + PATIENCE_S
        while not condition("\n".join(rows := self.rows())):
            assert time.monotonic() < end, f"{what}:\n" + "\n".join(rows)
            self.terminal.read(0.05)
        return rows

    def until_row(self, text: str) -> list[str]:
        """All rows, as soon as one contains a text."""
        return self.until(lambda rows: text in rows, repr(text))

    def press(self, keys: str) -> None:
        """Type keys."""
        self.terminal.press(keys.encode())

    def end(self) -> int:
        """The exit code."""
        return self.terminal.end()

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size, and notify its program."""
        self._neovim.nvim.ui_try_resize(columns, rows)
        self.terminal.resize(columns, rows)

    def rows(self) -> list[str]:
        """All rows so far, without blank rows at the end."""
        new, self._fed = self.terminal.output[self._fed :], len(self.terminal.output)
        if new:
            self._neovim.lua(_FEED, self._channel, new)
        rows: list[str] = self._neovim.lua(_TOP)
        return [row.rstrip() for row in rows]
