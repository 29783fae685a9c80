"""Terminal rows: styled text of a limited width in cells. Pure.

Knows cells, colours, and how to cut or break text; does not know calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

from parley.display.summary import Chunk, Chunks
from parley.frozen import frozen

_COLOURS: Mapping[str, str] = {
    "ParleyTool": "1",
    "ParleyServer": "2",
    "ParleyArgument": "36",
    "ParleyValue": "32",
    "ParleyAdded": "32",
    "ParleyRemoved": "31",
    "ParleyHint": "2",
    "ParleyNote": "33",
    "ParleyPrompt": "1;32",
    "ParleyProposal": "2",
    "ParleyCurrent": "1",
}
"""SGR parameters for each highlight group, with colours from the terminal's own palette only."""
_LEAST = 6
_MOST_ROWS_OF_NOTE = 4
_INDENT = "    "
_WIDEST = 2
"""The widest character's width in cells."""
_MOST_IN_CELL = 8
"""The maximum number of characters in one cell; `text.contained` ensures this limit."""


@frozen
class Pen:
    """Writes styled text with the escapes that a terminal supports."""

    has_styles: bool = True
    has_colours: bool = True

    def write(self, chunks: Chunks) -> str:
        """The chunks as text, with escapes for their styles."""
        return "".join(self._styled(chunk[0], chunk[1]) for chunk in chunks)

    def _styled(self, text: str, group: str) -> str:
        codes = _COLOURS.get(group, "").split(";") if self.has_styles else []
        sgr = ";".join(code for code in codes if code and (self.has_colours or len(code) == 1))
        return f"\x1b[{sgr}m{text}\x1b[m" if sgr and text else text


def is_cut(chunks: Chunks) -> bool:
    """Whether chunks were cut. Only Parley writes ellipses: in text from other sources, they are
    escaped.
    """
    return any("…" in chunk[0] for chunk in chunks)


def fit(chunks: Chunks, width: int) -> list[Chunk]:
    """Chunks cut to a width, with an ellipsis wherever text is missing.

    Sizes are dropped first. Chunks with a third part may be cut: these chunks share the room, so
    that a long chunk does not displace others. A path has room for its last name.
    """
    chunks = _without_sizes(chunks, width)
    lengths = [cell_len(chunk[0]) for chunk in chunks]
    fixed = sum(length for chunk, length in zip(chunks, lengths, strict=True) if len(chunk) < 3)
    flexible = [length for chunk, length in zip(chunks, lengths, strict=True) if len(chunk) > 2]
    room = max(width - fixed, 0)
    share = max(_share(flexible, room), _LEAST)
    names = {
        number: needed
        for number, chunk in enumerate(chunks)
        if len(chunk) == 4 and (needed := _name_cells(chunk[0], width)) > share
    }
    for number, needed in names.items():
        flexible.remove(lengths[number])
        room -= needed
    share = max(_share(flexible, max(room, 0)), _LEAST) if names else share
    fitting, used = list[Chunk](), 0
    for number, chunk in enumerate(chunks):
        text = _shortened(chunk, names.get(number, share))
        length = cell_len(text)
        if used + length > width:
            before: Chunk = ("", chunk[1])
            while used == width and fitting and not cell_len(before[0]):
                before = fitting.pop()
            room = width - used + cell_len(before[0])
            fitting.append((cut(f"{before[0]}{text}…", room), before[1] if before[0] else chunk[1]))
            break
        fitting.append((text, chunk[1]))
        used += length
    return fitting


def _name_cells(path: str, width: int) -> int:
    """The cells for a path that is cut to its last name: at most half of the width."""
    name = path[max(path.rfind("/"), path.rfind("\\"), 0) :]
    return min(2 + cell_len(name), cell_len(path), max(width // 2, _LEAST))


def _without_sizes(chunks: Chunks, width: int) -> list[Chunk]:
    """The chunks without the sizes that do not fit; the last sizes are dropped first."""
    kept, used = list[Chunk](), sum(cell_len(chunk[0]) for chunk in chunks)
    for chunk in reversed(chunks):
        text = chunk[0]
        if len(chunk) == 4 and chunk[3] == "size":
            text = chunk[2] if used > width else text
            used -= cell_len(chunk[0]) - cell_len(text)
            chunk = (text, chunk[1])
        kept.append(chunk)
    return kept[::-1]


def _shortened(chunk: Chunk, width: int) -> str:
    if len(chunk) == 2:
        return chunk[0]
    return cut_start(chunk[0], width) if len(chunk) == 4 else cut(chunk[0], width, chunk[2])


def _share(lengths: Sequence[int], room: int) -> int:
    """The highest limit for every length with which all lengths fit into the room."""
    for number, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - number)
        if length > share:
            return share
        room -= length
    return max(lengths, default=0)


def cut(text: str, width: int, end: str = "") -> str:
    """Text cut to a width; if part of it is missing, an ellipsis and `end` follow."""
    if cell_len(text) <= width:
        return text
    room = max(width - len(end) - 1, 0)
    return f"{set_cell_size(text, room).rstrip(' ') if room else ''}…{end}"


def cut_start(text: str, width: int) -> str:
    """Text cut to a width: the first character, an ellipsis if text is missing, and the end of the
    text.
    """
    if cell_len(text) <= width:
        return text
    head = text[:1] if cell_len(text[:1]) == 1 < width else ""
    start = max(len(text) - (width - len(head) - 1) * _MOST_IN_CELL, len(head))
    while cell_len(head) + 1 + cell_len(text[start:]) > max(width, 1) or (
        start < len(text) and not cell_len(text[start])
    ):
        start += 1
    return f"{head}…{text[start:]}"


def rows(chunks: Chunks, width: int) -> list[list[Chunk]]:
    """All chunks on as many rows as they need; rows after the first are indented.

    If a character after the indent does not fit into the width, the rows are wider.
    """
    width = max(width, len(_INDENT) + _WIDEST)
    lines, used = [list[Chunk]()], 0
    for chunk in chunks:
        text = chunk[0]
        while not _fits(text, width - used):
            at = _break(text, width - used)
            lines[-1].append((text[:at], chunk[1]))
            text, used = text[at:], len(_INDENT)
            lines.append([(_INDENT, "")])
        lines[-1].append((text, chunk[1]))
        used += cell_len(text)
    return lines


def _fits(text: str, cells: int) -> bool:
    return len(text) <= cells * _MOST_IN_CELL and cell_len(text) <= cells


def _break(text: str, cells: int) -> int:
    """How many characters to put into this number of cells: up to a space near the end, if any."""
    start = text[: cells * _MOST_IN_CELL]
    fitting = len(next(iter(chop_cells(start, cells)), "")) if cells > 1 else 0
    blank = text.rfind(" ", 0, fitting)
    return blank + 1 if blank > fitting // 2 else fitting


def note_rows(chunks: Chunks, width: int) -> list[list[Chunk]]:
    """A note on a few rows, cut if it needs more rows."""
    lines = rows(chunks, width)
    rest = [
        chunk for line in lines[_MOST_ROWS_OF_NOTE - 1 :] for chunk in line if chunk[0] != _INDENT
    ]
    if len(lines) <= _MOST_ROWS_OF_NOTE:
        return lines
    return [*lines[: _MOST_ROWS_OF_NOTE - 1], fit([(_INDENT, ""), *rest], width)]


def markdown_rows(lines: Sequence[str], width: int) -> Iterator[list[Chunk]]:
    """A call's details, written by Parley in Markdown, as rows: titles and code blocks."""
    ticks = ""
    for line in lines:
        if ticks:
            if line == ticks:
                ticks = ""
                yield []
            else:
                yield from rows([("│ ", "ParleyHint"), (line, "ParleyValue")], width)
        elif match := re.fullmatch(r"(`{3,})\w*", line):
            ticks = match[1]
        else:
            title = line.removeprefix("**").removesuffix("**")
            yield from rows([(title.removeprefix("`").removesuffix("`"), "ParleyTool")], width)
