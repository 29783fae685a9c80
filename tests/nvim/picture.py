"""A picture of a real session, cell by cell as Neovim draws it; not a test.

`make screens` makes it anew, as `doc/session.svg`. It shows the demo
model, at the moment at which two tool calls wait for a choice.
"""

from __future__ import annotations

import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.nvim.harness import Child, child

QUESTION = "can you find the latest stock price of google and microsoft?"
CHAT = f"---\ntopic: stock prices\n---\n\n💬: {QUESTION}\n"
SETTINGS = """
vim.o.termguicolors, vim.o.background, vim.o.showcmd, vim.o.cmdheight = true, 'dark', false, 0
vim.o.laststatus, vim.o.fillchars = 2, 'eob: '
vim.o.statusline = " %t%=%{%v:lua.require'parley'.status()%} "
"""
WIDTH, HEIGHT = 80, 22
CELL, LINE, MARGIN = 8.43, 18, 12
FONTS = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"


def main(path: Path) -> None:
    """Play the session and write its picture."""
    with (
        tempfile.TemporaryDirectory() as home,
        child(Path(home), init=SETTINGS, width=WIDTH, height=HEIGHT) as neovim,
    ):
        neovim.edit("stocks.md", CHAT)
        neovim.command("normal! G$")
        neovim.keys(":ParleyRespond<CR>")
        neovim.until_waiting()
        neovim.until_screen("yn/yN to refuse")
        neovim.command("silent write")
        neovim.flush()
        path.write_text(drawn(neovim), encoding="utf-8")


def drawn(neovim: Child) -> str:
    """The screen as SVG."""
    normal = neovim.nvim.api.get_hl(0, {"name": "Normal"})
    size = f'width="{WIDTH * CELL + 2 * MARGIN:.0f}" height="{HEIGHT * LINE + 2 * MARGIN}"'
    font = f'font-family="{FONTS}" font-size="14"'
    runs = (
        part
        for row in range(HEIGHT)
        for column, text, style in _runs(neovim, row)
        for part in _run(row, column, text, {"foreground": normal["fg"], **style})
    )
    ground = f'<rect width="100%" height="100%" rx="8" fill="{_colour(normal["bg"])}"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>'
    return "\n".join([head, ground, *runs, "</svg>", ""])


def _runs(neovim: Child, row: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Column, text and style of what stands on a row: neighbours of one style together, wide cells alone."""
    grid = neovim.grid
    cells = list(enumerate(zip(grid.rows[row], grid.attributes[row], strict=True)))

    def kind(cell: tuple[int, tuple[str, int]]) -> tuple[int, int]:
        column, (text, style) = cell
        return style, column if text and unicodedata.east_asian_width(text[0]) in "WF" else -1

    for (style, _), run in groupby((c for c in cells if c[1][0]), kind):
        found = list(run)
        yield found[0][0], "".join(text for _, (text, _) in found), grid.styles[style]


def _run(row: int, column: int, text: str, style: dict[str, Any]) -> Iterator[str]:
    front, back = style["foreground"], style.get("background")
    if style.get("reverse"):
        front, back = back or 0, front
    y = MARGIN + row * LINE
    if back is not None:
        box = f'x="{_x(column)}" y="{y}" width="{len(text) * CELL:.1f}" height="{LINE}"'
        yield f'<rect {box} fill="{_colour(back)}"/>'
    if said := text.strip():
        place = f'x="{_x(column + len(text) - len(text.lstrip()))}" y="{y + 14}"'
        width = f' textLength="{len(said) * CELL:.1f}"' if len(said) > 1 else ""
        weight = ' font-weight="bold"' if style.get("bold") else ""
        look = f'fill="{_colour(front)}"{width}{weight} xml:space="preserve"'
        yield f"<text {place} {look}>{escape(said)}</text>"


def _x(column: int) -> str:
    return f"{MARGIN + column * CELL:.1f}"


def _colour(number: int) -> str:
    return f"#{number:06x}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
