"""Reads the help page as a series of blocks. Pure; knows Vim's help format, but no HTML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

TAG = re.compile(r"(?<!\S)\*([^*\s|]+)\*(?!\S)")
_BREAK = re.compile(r"^={78}$", re.M)
_MODELINE = re.compile(r"^ vim:.*$", re.M)
_CODE = re.compile(r"(^|.* )>(\w*)$")
_ITEM = re.compile(r"(-|\d+\.) +(?=\S)")
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
_TWO_KEYS = re.compile(r"^ *\S{1,2}(  )\S{1,2}(?= )")
_SETTING = re.compile(r"`[^`]+`(, `[^`]+`)*( {2,}\S.*)?")
_FUNCTION = re.compile(r"\w+\(.*\)\s+\*\S+\*|\w+\(.*\)$")
_TAGGED = re.compile(r"([^*|`\s()][^*|()]*?) {2,}(\*\S+\*)")
_LONG_TERM = re.compile(r"(:.{22}) (?=\S)")
_HEADS = ("there ", "agent       provider")
"""How the first rows of the tables with a heading begin."""
_SETTING_INDENT, _COMMAND_INDENT = 8, 24
_TOLERANCE = 3
"""How far a cell may begin from its column."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text whose lines are joined."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """An example."""

    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Subheading:
    """A line that ends with `~`, or a tag before a text without a heading."""

    text: str
    tags: tuple[str, ...]
    is_tag: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """Points or steps."""

    items: tuple[str, ...]
    is_numbered: bool


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with equally many cells."""

    rows: tuple[tuple[str, ...], ...]
    has_head: bool


@dataclass(frozen=True, slots=True)
class Definition:
    """Commands, settings or functions, and the text that describes them together."""

    terms: tuple[str, ...]
    tags: tuple[str, ...]
    blocks: tuple[Block, ...]


Block = Paragraph | Code | Subheading | Listing | Table | Definition


@dataclass(frozen=True, slots=True)
class Section:
    """A numbered part of the help; the part before part 1 has the number 0."""

    number: int
    title: str
    tag: str
    blocks: tuple[Block, ...]


def sections(text: str) -> list[Section]:
    """The help's sections, in order."""
    first, *rest = _BREAK.split(_MODELINE.sub("", text))
    opening = first.partition("*parley*\n")[2]
    found = [Section(0, "", "parley", tuple(_blocks(opening.split("\n"))))]
    for part in rest:
        head, _, body = part.lstrip("\n").partition("\n")
        tag = TAG.search(head)
        assert tag, f"doc/parley.txt: the section `{head}` has no tag"
        number, _, title = head[: tag.start()].strip().partition(". ")
        found.append(Section(int(number), title, tag[1], tuple(_blocks(body.split("\n")))))
    return found


def tags(blocks: Sequence[Block]) -> Iterator[str]:
    """The tags in blocks, in order."""
    for block in blocks:
        match block:
            case Subheading(tags=own):
                yield from own
            case Definition(terms=terms, tags=own, blocks=inner):
                yield from own
                yield from (tag for term in terms for tag in TAG.findall(term))
                yield from tags(inner)
            case Table(rows=rows):
                yield from (tag for row in rows for cell in row for tag in TAG.findall(cell))
            case _:
                pass


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _blocks(lines: list[str]) -> Iterator[Block]:
    """The blocks of these lines; text at the left edge is at column 0."""
    at, waiting, is_heading = 0, tuple[str, ...](), False
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        if tagged := _TAGGED.fullmatch(line):
            waiting += tuple(TAG.findall(tagged[2]))
            lines[at] = tagged[1]
            continue
        if _is_tags(line):
            own = tuple(TAG.findall(line))
            at += 1
            if is_heading:  # the tags of the heading above
                yield Subheading("", own, is_tag=False)
            else:
                waiting += own
            continue
        end, block = _next_block(lines, at, waiting)
        is_named = isinstance(block, Definition) or (
            isinstance(block, Subheading) and not block.is_tag
        )
        if waiting and not is_named:
            yield Subheading(waiting[0], waiting, is_tag=True)
        waiting = ()
        is_heading = isinstance(block, Subheading)
        yield block
        at = end
    if waiting:
        yield Subheading(waiting[0], waiting, is_tag=True)


def _next_block(lines: list[str], at: int, waiting: tuple[str, ...]) -> tuple[int, Block]:
    """The line after the block that starts here, and the block."""
    line = lines[at]
    if (opening := _CODE.fullmatch(line)) and not opening[1].strip():
        return _code(lines, at, opening[2])
    if line.endswith(" ~"):
        return at + 1, Subheading(line.removesuffix(" ~").strip(), waiting, is_tag=False)
    if (indent := _term_indent(lines, at)) is not None:
        return _definition(lines, at, indent, waiting)
    end = at
    while end < len(lines) and lines[end].strip() and not _is_break(lines, end, at):
        end += 1
    part = list(lines[at:end])
    if _ITEM.match(part[0].lstrip()):
        return end, _listing(part)
    if _GAP.search(part[0]) or (len(part) > 1 and any(map(_GAP.search, part)) and _is_rows(part)):
        return end, _table(part)
    if opening := _CODE.fullmatch(part[-1]):
        lines[end - 1] = f">{opening[2]}"  # the example that follows is the next block
        return end - 1, Paragraph(_joined([*part[:-1], opening[1]]))
    return end, Paragraph(_joined(part))


def _is_break(lines: Sequence[str], here: int, start: int) -> bool:
    """Whether a new block starts here without an empty line before it."""
    if here == start:
        return False
    previous, line = lines[here - 1], lines[here]
    is_list, is_item = (bool(_ITEM.match(each.lstrip())) for each in (lines[start], line))
    return (
        bool(_CODE.fullmatch(previous))
        or (_indent(line) < _indent(lines[start]) and not (is_list and is_item))
        or line.endswith(" ~")
        or _is_tags(line)
        or (is_item and not is_list)
        or (is_list and _indent(line) <= _indent(lines[start]) and not is_item)
        or (
            not is_list
            and _indent(line) == 2
            and _indent(previous) == 0
            and bool(_GAP.search(line))
        )
    )


def _is_tags(line: str) -> bool:
    return bool(line.strip()) and not TAG.sub("", line).strip() and line.startswith(" " * 8)


def _is_rows(part: Sequence[str]) -> bool:
    """Whether lines are rows of a table whose first row has only one cell."""
    return part[0].startswith("  ") and not part[0].startswith("    ")


def _code(lines: Sequence[str], at: int, language: str) -> tuple[int, Code]:
    """An example: it ends at `<`, or before the first line that is not indented."""
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
        end += 1
    text = list(lines[at + 1 : end])
    if end < len(lines) and lines[end].startswith("<"):
        end += 1
    while text and not text[0].strip():
        del text[0]
    while text and not text[-1].strip():
        del text[-1]
    least = min((_indent(line) for line in text if line.strip()), default=0)
    return end, Code("\n".join(line[least:] for line in text) + "\n", language)


def _term_indent(lines: Sequence[str], at: int) -> int | None:
    """The indentation of the description below a term; None if this line is no term."""
    line = lines[at]
    if line.startswith(" "):
        return None
    if _FUNCTION.fullmatch(line):
        return _SETTING_INDENT
    following = at + 1
    while following < len(lines) and _SETTING.fullmatch(lines[following]):
        following += 1
    below = lines[following] if following < len(lines) else ""
    if _SETTING.fullmatch(line) and _indent(below) == _SETTING_INDENT and below.strip():
        return _SETTING_INDENT
    gap = _GAP.search(line)
    if (
        (gap and gap.end() == _COMMAND_INDENT)
        or _LONG_TERM.match(line)
        or (
            at + 1 < len(lines)
            and lines[at + 1].strip()
            and _indent(lines[at + 1]) == _COMMAND_INDENT
            and not _is_tags(lines[at + 1])
        )
    ):
        return _COMMAND_INDENT
    if line.startswith(":") and at + 1 < len(lines) and lines[at + 1].startswith(":"):
        return _COMMAND_INDENT
    return None


def _definition(
    lines: Sequence[str], at: int, indent: int, waiting: tuple[str, ...]
) -> tuple[int, Definition]:
    terms, body = list[str](), list[str]()
    while at < len(lines) and lines[at].strip() and not lines[at].startswith(" ") and not body:
        line = lines[at]
        if indent == _COMMAND_INDENT and line[indent - 1 : indent] == " " and line[indent] != " ":
            terms.append(line[:indent].rstrip())
            body.append(line[indent:])
        else:
            terms.append(line)
        at += 1
        if at < len(lines) and _term_indent(lines, at) != indent:
            break
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) >= indent):
        body.append(lines[at][indent:])
        at += 1
    while body and (not body[-1].strip() or _is_tags(lines[at - 1])):
        del body[-1]
        at -= 1
    return at, Definition(tuple(terms), waiting, tuple(_blocks(body)))


def _listing(part: Sequence[str]) -> Listing:
    edge, items = _indent(part[0]), list[list[str]]()
    for line in part:
        if _indent(line) <= edge and _ITEM.match(line.lstrip()):
            items.append([])
        items[-1].append(line)
    texts = (_ITEM.sub("", _joined(item), count=1) for item in items)
    is_numbered = part[0].lstrip()[0].isdigit()
    return Listing(tuple(re.sub(r" ?\.{3,} ?", " ", text) for text in texts), is_numbered)


def _table(part: Sequence[str]) -> Table:
    """The rows; a line that is further to the right continues the row above."""
    if part[0].startswith(_HEADS[1]):
        places = [match.start() for match in re.finditer(r"(?<=  )\w", part[0])]
        return Table(tuple(_cut(line, places) for line in part), has_head=True)
    edge, columns, rows = _indent(part[0]), _columns(part), list[list[str]]()
    for line in part:
        if _indent(line) > edge and rows:
            rows[-1] = _continued(rows[-1], line, columns)
        elif rows and len(rows[-1]) == 1 and rows[-1][0].endswith(","):
            first, *others = _cells(line, columns)
            rows[-1] = [f"{rows[-1][0]} {first}", *others]
        else:
            rows.append(_cells(line, columns))
    most = max(map(len, rows))
    filled = (tuple(row + [""] * (most - len(row))) for row in rows)
    return Table(tuple(filled), part[0].strip().startswith(_HEADS[0]))


def _columns(part: Sequence[str]) -> list[int]:
    """The places at which the cells of most rows begin."""
    lines = [line for line in part if _indent(line) == _indent(part[0])]
    places = [[_width(line[:end]) for _, end in _gaps(line)] for line in lines]
    counted = Counter(place for row in places for place in row)
    return sorted(place for place, count in counted.items() if 2 * count > sum(map(bool, places)))


def _continued(row: list[str], line: str, columns: Sequence[int]) -> list[str]:
    """A row whose last cell to the left of a line continues with this line."""
    passed = sum(place <= _indent(line) + _TOLERANCE for place in columns)
    cell = max(passed, 1)
    longer = row + [""] * (cell + 1 - len(row))
    longer[cell] = f"{longer[cell]} {line.strip()}".strip()
    return longer


def _gaps(line: str) -> list[tuple[int, int]]:
    """Where cells end and begin; two short keys are in one cell."""
    keys = _TWO_KEYS.match(line)
    gaps = (gap.span() for gap in _GAP.finditer(line))
    return [gap for gap in gaps if not keys or gap != keys.span(1)]


def _cells(line: str, columns: Sequence[int]) -> list[str]:
    cells, start = list[str](), 0
    for left, right in _gaps(line):
        place = _width(line[:right])
        if not columns or any(abs(place - column) <= _TOLERANCE for column in columns):
            cells.append(line[start:left].strip())
            start = right
    return [*cells, line[start:].strip()]


def _cut(line: str, columns: Sequence[int]) -> tuple[str, ...]:
    ends = [*columns, len(line) + 1]
    return tuple(line[a:b].strip() for a, b in zip([0, *columns], ends, strict=True))


def _width(text: str) -> int:
    """The width on the screen, on which Vim hides the marks of code, links and tags."""
    shown = re.sub(r"`([^`]*)`", r"\1", text)
    shown = re.sub(r"\|(\S+)\|", r"\1", TAG.sub(r"\1", shown))
    return sum(2 if east_asian_width(c) in "WF" else c != "\ufe0f" for c in shown)


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line.strip() for line in lines)
