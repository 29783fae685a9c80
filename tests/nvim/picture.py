"""Draws a screen as an SVG picture, cell by cell like Neovim; `screens.py` makes the scenes.

Each cell has its own position, so a picture is right in programs with other fonts or without text
stretching, such as browsers and rsvg-convert. The markers are shapes, because many machines have no
font with emoji. A moving picture is a series of screens with captions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, groupby
from typing import Any

from tests.nvim.harness import Child

CELL, LINE, MARGIN, BASE, CAPTION = 8.43, 18, 12, 14, 44
FONTS = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"
DASHES = {"underdotted": "1.5 1.5", "underdashed": "4 2"}
SHAPES = {
    "💬": '<path d="M1 3h15v9H9l-3 4v-4H1z" fill="#4f8fd0"/>'
    '<path d="M4.5 7.5h1.5M8 7.5h1.5M11.5 7.5H13" stroke="#ffffff" stroke-width="1.5"/>',
    "🤖": '<path d="M8.5 1v3" stroke="#b070c4"/><rect x="2" y="4" width="13" height="11" rx="2" '
    'fill="#8b9bb0"/><path d="M5 7h2v2H5zM10 7h2v2h-2zM5 12h7v1H5z" fill="#14161b"/>',
    "❓": '<path d="M5 6.5q0-3.5 3.5-3.5T12 6q0 2-3.5 3.5V11m0 2.5v2" fill="none" '
    'stroke="#ff5c57" stroke-width="2.4"/>',
    "🛠": '<path d="M3 15l7-7M9.5 3l5 5-2 2-5-5z" fill="#d0a45c" stroke="#d0a45c" '
    'stroke-width="2.2"/>',
    "🔒": '<path d="M5.5 8V5.5q0-3 3-3t3 3V8" fill="none" stroke="#a0a7b3" stroke-width="1.6"/>'
    '<rect x="3" y="8" width="11" height="7.5" rx="1.5" fill="#e5b84b"/>',
    "📝": '<path d="M3 2h11v14H3z" fill="#b9b9ab"/><path d="M5 5.5h7M5 8.5h7M5 11.5h4" '
    'stroke="#606878"/>',
    "🧠": '<path d="M8.5 3Q3 1 2.5 8q-.5 7 6 7 6.5 0 6-7-.5-7-6-5z" fill="#e28fa8"/>'
    '<path d="M8.5 3v12M5 6.5q2 0 2 2.5m5-2q-2 0-2 2.5" fill="none" stroke="#9c4f68"/>',
}
"""Markers, as shapes in a box as wide as two cells."""


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


@dataclass(frozen=True, slots=True)
class Frame:
    """A screen in parts that may stay the same in the next one: its rows and the cursor."""

    parts: tuple[str, ...]
    size: tuple[int, int]
    colours: tuple[str, str]
    """The colours of plain text and its background."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A frame of a moving picture, the keys that the user pressed, and the time that it is shown."""

    frame: Frame
    keys: str
    caption: str
    seconds: float


def drawn(neovim: Child) -> str:
    """The screen as SVG, with its cursor."""
    shown = frame(neovim)
    return "\n".join(
        [*_head(shown.size, shown.colours[1]), *filter(None, shown.parts), "</svg>", ""]
    )


def marker(sign: str) -> str:
    """The shape of a marker as an SVG of its own."""
    box = 'viewBox="0 0 17 18" width="17" height="18"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{SHAPES[sign]}</svg>\n'


def frame(neovim: Child) -> Frame:
    """The present screen."""
    normal = neovim.nvim.api.get_hl(0, {"name": "Normal"})
    ground = {"foreground": normal["fg"], "background": normal["bg"]}
    rows = neovim.grid.rows
    size = round(len(rows[0]) * CELL + 2 * MARGIN), len(rows) * LINE + 2 * MARGIN
    parts = (_row(list(_runs(neovim, row, ground)), normal["bg"]) for row in range(len(rows)))
    colours = _colour(normal["fg"]), _colour(normal["bg"])
    return Frame((*parts, _cursor(neovim, normal["fg"])), size, colours)


def moving(shots: Sequence[Shot]) -> str:
    """The shots as one SVG, which repeats them. A reader who wants no motion sees the longest shot, and so
    does a page that adds `#still` to the address.

    A part that stays the same from one shot to the next is drawn once.
    """
    still = max(range(len(shots)), key=lambda number: shots[number].seconds)
    width, height = shots[0].frame.size
    places = zip(*((*shot.frame.parts, _caption(shot, height)) for shot in shots), strict=True)
    drawn_parts, spans = list[str](), set[tuple[int, int]]()
    for shown in places:
        start = 0
        for part, same in groupby(shown):
            span = start, start + len(list(same))
            start = span[1]
            if part and span == (0, len(shots)):
                drawn_parts.append(part)
            elif part:
                spans.add(span)
                also = " still" if span[0] <= still < span[1] else ""
                drawn_parts.append(f'<g class="part{also} s{span[0]}-{span[1]}">\n{part}\n</g>')
    times = [0.0, *accumulate(shot.seconds for shot in shots)]
    style = "\n".join([_STILL, *(_span(span, times) for span in sorted(spans))])
    head = _head((width, height + CAPTION), shots[0].frame.colours[1])
    beginning = [head[0], f"<style>\n{style}\n</style>", *head[1:], '<g id="still"/>']
    return "\n".join([*beginning, *drawn_parts, "</svg>", ""])


_STILL = """#still:target ~ .part { animation: none }
.part { visibility: hidden } .still { visibility: visible }
@media (prefers-reduced-motion: reduce) { g.part { animation: none } }
@media print { g.part { animation: none } }"""


def _span(span: tuple[int, int], times: Sequence[float]) -> str:
    """The style of the parts that are shown from one time to another."""
    start, end = (100 * times[shot] / times[-1] for shot in span)
    name = f"s{span[0]}-{span[1]}"
    steps = [(0.0, "hidden")] * (start > 0) + [(start, "visible")] + [(end, "hidden")] * (end < 100)
    frames = " ".join(f"{at:.2f}% {{ visibility: {value} }}" for at, value in steps)
    return (
        f".{name} {{ animation: {name} {times[-1]:g}s step-end infinite }} "
        f"@keyframes {name} {{ {frames} }}"
    )


def _head(size: tuple[int, int], ground: str) -> list[str]:
    width, height = size
    place = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {place} font-family="{FONTS}" font-size="14">',
        f'<rect width="100%" height="100%" rx="8" fill="{ground}"/>',
    ]


def _caption(shot: Shot, top: int) -> str:
    """The keys, and what they do, in a bar below the screen."""
    middle, x = top + CAPTION // 2 - 2, MARGIN
    parts = [f'<path d="M0 {top}H{shot.frame.size[0]}" stroke="#808080" stroke-opacity="0.5"/>']
    if shot.keys:
        width = len(shot.keys) * CELL + 14
        box = f'x="{x}" y="{middle - 11}" width="{width:.1f}" height="24" rx="5"'
        text = f'x="{x + 7}" y="{middle + 6}" textLength="{width - 14:.1f}" font-weight="bold"'
        parts += [
            f'<rect {box} fill="#f2c14e"/>',
            f'<text {text} fill="#14161b">{escape(shot.keys)}</text>',
        ]
        x += round(width) + 10
    colour = f'fill="{shot.frame.colours[0]}" fill-opacity="0.8"'
    words = f'<text x="{x}" y="{middle + 6}" {colour}>{escape(shot.caption)}</text>'
    return "\n".join([*parts, words])


def _row(runs: Sequence[Run], ground: int) -> str:
    boxes = (_box(run) for run in runs if run.colours[1] != _colour(ground))
    texts = (part for run in runs for part in (*_text(run), *_lines(run)))
    return "\n".join((*boxes, *texts))


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
    if shape := SHAPES.get(run.text.rstrip("\ufe0f")):
        yield f'<g transform="translate({run.x:.1f} {run.y})">{shape}</g>'
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
