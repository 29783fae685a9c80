"""Markdown pages as HTML: headings get GitHub's anchors, and links lead to the site's pages. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from markdown_it.token import Token

from parley.conversion.exports.markdown_html import markdown_renderer
from website.bodies import Body, Heading, Screen, shown
from website.places import Places

_SECONDS = 600.0
"""The renderer's time limit for colours, which a build never reaches."""
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


def markdown_page(text: str, source: str, places: Places) -> Body:
    """A whole page; `source` is its path in the repository."""
    renderer = markdown_renderer(_SECONDS).enable("image")
    tokens = list(_changed(renderer.parse(text), source, places))
    headings = tuple(_headings(tokens))
    html: Any = renderer.renderer.render(tokens, renderer.options, {})
    title = next((heading.text for heading in headings if heading.level == 1), source)
    return Body(title, str(html), tuple(each for each in headings if each.level > 1))


def part_of(text: str, anchor: str) -> str:
    """The text below the heading of the second level that has this anchor."""
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        if anchor_of(heading) == anchor:
            return body.strip()
    raise KeyError(anchor)


def coloured(code: str, language: str) -> str:
    """A code block."""
    fence = "`" * (max(map(len, re.findall("`+", code)), default=2) + 1)
    html: Any = markdown_renderer(_SECONDS).render(
        f"{max(fence, '```')}{language}\n{code}{max(fence, '```')}\n"
    )
    return str(html)


def anchor_of(heading: str) -> str:
    """GitHub's anchor for a heading."""
    return _NOT_IN_ANCHORS.sub("", heading.strip().lower()).replace(" ", "-")


def _changed(tokens: list[Token], source: str, places: Places) -> Iterator[Token]:
    """The tokens, with tables that can scroll, and with the site's links and pictures."""
    for token in tokens:
        if token.type == "table_open":
            yield _html('<div class="scroll">')
        if token.type == "inline":
            token.children = list(_inline(token.children or [], source, places))
        yield token
        if token.type == "table_close":
            yield _html("</div>\n")


def _inline(tokens: list[Token], source: str, places: Places) -> Iterator[Token]:
    kept = list[bool]()
    for token in tokens:
        if token.type == "link_open":
            link = places.of_link(source, str(token.attrs["href"]))
            kept.append(link is not None)
            token.attrs["href"] = link or ""
        if token.type == "image":
            scene = str(token.attrs["src"]).rpartition("/")[2].removesuffix(".svg")
            yield _html(shown(Screen(scene, _plain(token.children or []))))
        elif not (token.type.startswith("link_") and not kept[-1]):
            yield token
        if token.type == "link_close":
            kept.pop()


def _headings(tokens: list[Token]) -> Iterator[Heading]:
    """The headings, which get their anchors."""
    seen = Counter[str]()
    for token, inside in pairwise(tokens):
        if token.type == "heading_open":
            text = _plain(inside.children or [])
            anchor = anchor_of(text)
            repeated = f"-{seen[anchor]}" if seen[anchor] else ""
            seen[anchor] += 1
            token.attrs["id"] = anchor + repeated
            yield Heading(int(token.tag[1:]), anchor + repeated, text)


def _plain(tokens: list[Token]) -> str:
    return "".join(" " if token.type == "softbreak" else token.content for token in tokens)


def _html(html: str) -> Token:
    return Token("html_block", "", 0, content=html)
