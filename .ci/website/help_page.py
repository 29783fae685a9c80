"""Sections of the help as HTML. Pure; knows the blocks, but not the help's text format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from website.bodies import Body, Heading, Screen, shown
from website.help_text import (
    TAG,
    Block,
    Code,
    Definition,
    Listing,
    Paragraph,
    Section,
    Subheading,
    Table,
)
from website.markdown_page import coloured
from website.places import Places

_KEY = r"<(?:[CSMA]-.|CR|Esc|Tab|Plug|leader|Space)[^\s>]*>"
_INLINE = re.compile(
    r"(?P<fence>```\w+ [^\s,]+)|`(?P<code>[^`]+)`|\|(?P<link>[^|\s]+)\|"
    rf"|(?P<key>(?:{_KEY})+(?:[a-zA-Z](?!\w))?)|(?P<address>https?://[^\s)]+)"
    r"|(?<!\w)'(?P<option>[a-z]{3,})'"
)
_LONGEST_KEY = 2
_GAP = re.compile(r" {2,}")


def help_page(section: Section, places: Places, screens: Mapping[str, Screen]) -> Body:
    """A section as a page; `screens` maps tags to the pictures that follow them."""
    title = section.title or "The help"
    first = _picture((section.tag,), screens)
    text = blocks_html(section.blocks, places, screens, first)
    heading = f'<h1 id="{escape(section.tag)}">{escape(title)}</h1>'
    return Body(title, f"{heading}\n{text}", tuple(_headings(section.blocks)))


def blocks_html(
    blocks: Sequence[Block],
    places: Places,
    screens: Mapping[str, Screen] | None = None,
    picture: str = "",
) -> str:
    """Blocks as HTML; adjacent definitions are one list, and a picture follows the first text below
    its heading.
    """
    parts, known = list[str](), screens or {}
    for is_list, run in groupby(blocks, lambda block: isinstance(block, Definition)):
        if is_list:
            terms = "\n".join(_block(block, places, known) for block in run)
            parts.append(f"<dl>\n{terms}\n</dl>")
            continue
        for block in run:
            parts.append(_block(block, places, known))
            if isinstance(block, Subheading):
                picture += _picture(block.tags, known)
            else:
                parts.append(picture)
                picture = ""
    return "\n".join(filter(None, [*parts, picture]))


def blocks_of(section: Section, tag: str) -> Sequence[Block]:
    """The blocks below a tag's heading, up to the next heading."""
    if tag == section.tag:
        return section.blocks
    starts = [
        n for n, b in enumerate(section.blocks) if isinstance(b, Subheading) and tag in b.tags
    ]
    rest = section.blocks[starts[0] + 1 :]
    ends = (n for n, block in enumerate(rest) if isinstance(block, Subheading))
    return rest[: next(ends, len(rest))]


def _headings(blocks: Sequence[Block]) -> Iterator[Heading]:
    """The headings and terms that have anchors."""
    for block in blocks:
        match block:
            case Subheading(text=text) if text:
                yield Heading(2, _anchor(block), text.replace("`", ""))
            case Definition(terms=terms, tags=tags):
                own = [*tags, *(tag for term in terms for tag in TAG.findall(term))]
                names = own or setting_names(terms)
                yield from (Heading(3, name, name) for name in names)
            case _:
                pass


def _anchor(heading: Subheading) -> str:
    return heading.tags[0] if heading.tags else re.sub(r"\W+", "-", heading.text.lower()).strip("-")


def setting_names(terms: Sequence[str]) -> list[str]:
    """The settings, and the fields of a server, among terms."""
    return [match[1] for term in terms if (match := re.match(r"`([\w.]+)`", term))]


def _block(block: Block, places: Places, screens: Mapping[str, Screen]) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{_text(text, places)}</p>"
        case Code(text, language):
            return coloured(text, language).rstrip("\n")
        case Subheading():
            return _heading(block, places)
        case Listing(items, is_numbered):
            kind = "ol" if is_numbered else "ul"
            rows = "\n".join(f"<li>{_text(item, places)}</li>" for item in items)
            return f"<{kind}>\n{rows}\n</{kind}>"
        case Table():
            return _table(block, places)
        case Definition():
            return _definition(block, places, screens)


def _heading(block: Subheading, places: Places) -> str:
    if not block.text:
        return _anchors(block.tags)
    text = f"<code>{escape(block.text)}</code>" if block.is_tag else _text(block.text, places)
    kind = ' class="tag"' if block.is_tag else ""
    return f'<h2 id="{escape(_anchor(block))}"{kind}>{text}{_anchors(block.tags[1:])}</h2>'


def _anchors(tags: Sequence[str]) -> str:
    return "".join(f'<span id="{escape(tag)}"></span>' for tag in tags)


def _picture(tags: Sequence[str], screens: Mapping[str, Screen]) -> str:
    found = [screens[tag] for tag in tags if tag in screens]
    return "".join(f"\n<p>{shown(screen)}</p>\n" for screen in found)


def _table(table: Table, places: Places) -> str:
    head, rest = (table.rows[:1], table.rows[1:]) if table.has_head else ((), table.rows)
    lines = [*(_row(row, "th", places) for row in head), *(_row(row, "td", places) for row in rest)]
    return '<div class="scroll"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _row(row: Sequence[str], kind: str, places: Places) -> str:
    scope = ' scope="col"' if kind == "th" else ""
    first = _keys(row[0]) or _cell(row[0], places)
    cells = [first, *(_cell(cell, places) for cell in row[1:])]
    return "<tr>" + "".join(f"<{kind}{scope}>{cell}</{kind}>" for cell in cells) + "</tr>"


def _keys(cell: str) -> str:
    """A cell with nothing but keys; "" if it has other text."""
    words = cell.split()
    are_keys = all(len(word) <= _LONGEST_KEY or re.match(_KEY, word) for word in words)
    return " ".join(f"<kbd>{escape(word)}</kbd>" for word in words) if are_keys else ""


def _cell(cell: str, places: Places) -> str:
    """A cell's text; its tags are names that links lead to."""
    named = TAG.sub(lambda match: f"\0{match[1]}\0", cell)
    parts = _GAP.sub(" ", named).split("\0")
    return "".join(
        f'<code id="{escape(part)}">{escape(part)}</code>' if n % 2 else _text(part, places)
        for n, part in enumerate(parts)
    )


def _definition(block: Definition, places: Places, screens: Mapping[str, Screen]) -> str:
    terms = "\n".join(
        _term(term, block.tags if number == 0 else ()) for number, term in enumerate(block.terms)
    )
    inner = blocks_html(block.blocks, places)
    return f"{terms}\n<dd>{inner}{_picture(block.tags, screens)}</dd>"


def _term(term: str, tags: Sequence[str]) -> str:
    """A command, function or event; or a setting with its default on the right."""
    own = [*tags, *TAG.findall(term)]
    name, _, default = (part.strip() for part in TAG.sub("", term).strip().partition("  "))
    own = own or setting_names([term])
    names = name.replace("`", "").split(", ") if "`" in name else [name]
    text = ", ".join(f"<code>{escape(each)}</code>" for each in names)
    value = f' <code class="default">{escape(default)}</code>' if default else ""
    return f"<dt>{_anchors(own)}{text}{value}</dt>"


def _text(text: str, places: Places) -> str:
    """The text with code, links and keys."""
    parts, end = list[str](), 0
    for match in _INLINE.finditer(text):
        parts += [escape(text[end : match.start()], quote=False), _marked(match, places)]
        end = match.end()
    return "".join([*parts, escape(text[end:], quote=False)])


def _marked(match: re.Match[str], places: Places) -> str:
    word = escape(match[match.lastgroup or 0])
    match match.lastgroup:
        case "link" | "code":
            place = places.of_tag(match["link"] or match["code"])
            name = f"<code>{word}</code>"
            return f'<a href="{place}">{name}</a>' if place else name
        case "key":
            return f"<kbd>{word}</kbd>"
        case "address":
            return f'<a href="{word}">{word}</a>'
        case "option":
            return f"<code>'{word}'</code>"
        case _:
            return f"<code>{word}</code>"
