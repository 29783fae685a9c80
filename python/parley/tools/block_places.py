"""Where a code block from an answer belongs in a text: the whole text, or the lines that begin and
end like the block.

Never guesses: if no place or several places fit, the error says so. Knows only lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from parley.frozen import frozen
from parley.text import counted
from parley.tools.indentation import BLANKS, indent_of, reindent
from parley.tools.nearest_places import elided_line
from parley.tools.text_edits import EditError

_MOST_PLACES = 100
_MOST_NAMED = 5
_MOST_COLUMNS = 60


@frozen
class BlockPlace:
    """Lines of a text, from `start` up to `end`, counted from 0, and the lines that replace them."""

    start: int
    end: int
    lines: tuple[str, ...]

    @property
    def title(self) -> str:
        """The numbers of the lines, counted from 1."""
        first, last = self.start + 1, self.end
        return f"line {first}" if first == last else f"lines {first} to {last}"

    def applied(self, lines: Sequence[str]) -> list[str]:
        """The lines of the whole text after the replacement."""
        return [*lines[: self.start], *self.lines, *lines[self.end :]]


def block_place(
    lines: Sequence[str], block: Sequence[str], *, is_whole: bool = False
) -> BlockPlace:
    """The place of a block in a text; with `is_whole`, the block is the whole new text.

    The block's first and last lines must be in the text, in the same indentation or in another one.
    Raises EditError.
    """
    content = _without_blank_ends(block)
    if not content:
        raise EditError("the code block is empty")
    if placeholder := elided_line("\n".join(content), "\n".join(lines)):
        raise EditError(
            f"the code block leaves out lines: {_excerpt(placeholder)}. Ask for the complete lines"
        )
    if is_whole or not any(map(_trimmed, lines)):
        place = BlockPlace(0, len(lines), tuple(content))
    else:
        place = _only(
            lines, _places(lines, content, _trimmed) or _places(lines, content, _bare), content
        )
    if place.applied(lines) == list(lines):
        raise EditError("the file already has the lines of this code block")
    return place


def _places(
    lines: Sequence[str], block: Sequence[str], key: Callable[[str], str]
) -> list[BlockPlace]:
    """The places whose first and last lines have the keys of the block's first and last lines."""
    first, last = key(block[0]), key(block[-1])
    starts = [row for row, line in enumerate(lines) if key(line) == first]
    ends = [row for row, line in enumerate(lines) if key(line) == last]
    places = list[BlockPlace]()
    for start in starts:
        for end in ends:
            if (start == end) if len(block) == 1 else (start < end):
                around = (block[0], block[-1])
                fitted = reindent((lines[start], lines[end]), around, block)
                if fitted:
                    places.append(BlockPlace(start, end + 1, tuple(map(fitted, block))))
                if len(places) > _MOST_PLACES:
                    raise EditError("the code block resembles too many places in the file")
    return places


def _only(lines: Sequence[str], places: Sequence[BlockPlace], block: Sequence[str]) -> BlockPlace:
    """The place that the block changes least. Raises EditError."""
    if not places:
        missing = next(
            (
                f"its {name} line is missing: {_excerpt(line)!r}"
                for name, line in (("first", block[0]), ("last", block[-1]))
                if all(_bare(each) != _bare(line) for each in lines)
            ),
            "its first line is not above its last line there",
        )
        raise EditError(f"the code block does not fit anywhere in the file, because {missing}")
    costs = [_cost(lines[place.start : place.end], place.lines) for place in places]
    best = [place for place, cost in zip(places, costs, strict=True) if cost == min(costs)]
    if len(best) > 1:
        rows = ", ".join(place.title for place in best[:_MOST_NAMED])
        raise EditError(
            f"the code block fits {counted(len(best), 'place')} in the file equally well: {rows}"
        )
    return best[0]


def _cost(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines a replacement removes or adds."""
    matcher = SequenceMatcher(
        None, [_trimmed(line) for line in old], [_trimmed(line) for line in new], autojunk=False
    )
    same = sum(block.size for block in matcher.get_matching_blocks())
    return len(old) + len(new) - 2 * same


def _without_blank_ends(block: Sequence[str]) -> list[str]:
    filled = [row for row, line in enumerate(block) if _trimmed(line)]
    return list(block[filled[0] : filled[-1] + 1]) if filled else []


def _trimmed(line: str) -> str:
    return line.rstrip(BLANKS)


def _bare(line: str) -> str:
    return _trimmed(line[len(indent_of(line)) :])


def _excerpt(line: str) -> str:
    text = line.strip()
    return text if len(text) <= _MOST_COLUMNS else f"{text[: _MOST_COLUMNS - 1]}…"
