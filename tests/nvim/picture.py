"""Draws a screen as an SVG picture, cell by cell like Neovim; `screens.py` makes the scenes.

Each cell has its own position, so a picture is right in programs with other fonts or without text
stretching, such as browsers and rsvg-convert.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from tests.nvim.harness import Child

CELL, LINE, MARGIN, BASE = 8.43, 18, 12, 14
FONTS = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"
DASHES = {"underdotted": "1.5 1.5", "underdashed": "4 2"}


@dataclass(frozen=True, slots=True)
class Run:
    """Adjacent cells with one style in a row."""

    row: int
    column: int
    width: int
    text: str
    style: dict[str, Any]

    @property
    def x(self) -> float:
        """The x coordinate of the run's start."""
        return MARGIN + self.column * CELL

    @property
    def y(self) -> float:
        """The y coordinate of the run's row."""
        return MARGIN + self.row * LINE

    @property
    def colours(self) -> tuple[str, str]:
        """The colours of text and background."""
        both = _colour(self.style["foreground"]), _colour(self.style["background"])
        return (both[1], both[0]) if self.style.get("reverse") else both


def drawn(neovim: Child) -> str:
    """The screen as SVG, with its cursor."""
    normal = neovim.nvim.api.get_hl(0, {"name": "Normal"})
    ground = {"foreground": normal["fg"], "background": normal["bg"]}
    rows = neovim.grid.rows
    size = (
        f'width="{len(rows[0]) * CELL + 2 * MARGIN:.0f}" height="{len(rows) * LINE + 2 * MARGIN}"'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONTS}" font-size="14">'
    back = f'<rect width="100%" height="100%" rx="8" fill="{_colour(normal["bg"])}"/>'
    runs = [run for row in range(len(rows)) for run in _runs(neovim, row, ground)]
    boxes = (_box(run) for run in runs if run.colours[1] != _colour(normal["bg"]))
    texts = (part for run in runs for part in (*_text(run), *_lines(run)))
    return "\n".join([head, back, *boxes, *texts, _cursor(neovim, normal["fg"]), "</svg>", ""])


def _runs(neovim: Child, row: int, ground: dict[str, Any]) -> Iterator[Run]:
    """The row's runs: plain letters in one style together, any other character alone and in its own
    width.
    """
    grid = neovim.grid
    texts = grid.rows[row]
    cells = [column for column, text in enumerate(texts) if text]

    def kind(column: int) -> tuple[int, int]:
        return grid.attributes[row][column], column if not texts[column].isascii() else -1

    for (style, _), run in groupby(cells, kind):
        columns = list(run)
        after = columns[-1] + 1
        # a wide character is followed by an empty cell
        width = after - columns[0] + (after < len(texts) and not texts[after])
        text = "".join(texts[column] for column in columns)
        yield Run(row, columns[0], width, text, {**ground, **grid.styles[style]})


def _box(run: Run) -> str:
    place = f'x="{run.x:.1f}" y="{run.y}" width="{run.width * CELL:.2f}" height="{LINE}"'
    return f'<rect {place} fill="{run.colours[1]}"/>'


def _text(run: Run) -> Iterator[str]:
    if not run.text.strip():
        return
    text = run.text.rstrip()
    start = len(text) - len(text.lstrip())
    text = text.lstrip()
    style = run.style
    bold = ' font-weight="bold"' if style.get("bold") else ""
    italic = ' font-style="italic"' if style.get("italic") else ""
    width = f' textLength="{len(text) * CELL:.1f}"' if len(text) > 1 and text.isascii() else ""
    place = f'x="{run.x + start * CELL:.1f}" y="{run.y + BASE}"{width}'
    yield (
        f'<text {place} fill="{run.colours[0]}"{bold}{italic} '
        f'xml:space="preserve">{escape(text)}</text>'
    )


def _lines(run: Run) -> Iterator[str]:
    """The lines below and through a text."""
    style, x, end = run.style, run.x, run.x + run.width * CELL
    colour = _colour(style.get("special", run.style["foreground"]))
    below = run.y + BASE + 2.5
    stroke = f'stroke="{colour}" fill="none"'
    for name in ("underline", "underdotted", "underdashed", "underdouble"):
        if style.get(name):
            dash = f' stroke-dasharray="{DASHES[name]}"' if name in DASHES else ""
            yield f'<path d="M{x:.1f} {below}H{end:.1f}" {stroke}{dash}/>'
    if style.get("underdouble"):
        yield f'<path d="M{x:.1f} {below - 2}H{end:.1f}" {stroke}/>'
    if style.get("undercurl"):
        waves = "q1.05 -2 2.1 0t2.1 0" * (2 * run.width)
        yield f'<path d="M{x:.1f} {below}{waves}" {stroke}/>'
    if style.get("strikethrough"):
        yield f'<path d="M{x:.1f} {run.y + 9.5}H{end:.1f}" {stroke}/>'


def _cursor(neovim: Child, colour: int) -> str:
    """The cursor: in Normal mode a block that shows the text below it, otherwise a bar."""
    row, column = neovim.grid.cursor
    width = CELL if neovim.grid.mode.startswith(("normal", "visual", "operator")) else 2
    place = (
        f'x="{MARGIN + column * CELL:.1f}" y="{MARGIN + row * LINE}" width="{width}" '
        f'height="{LINE}"'
    )
    return f'<rect {place} fill="{_colour(colour)}" fill-opacity="0.45"/>'


def _colour(number: int) -> str:
    return f"#{number:06x}"
