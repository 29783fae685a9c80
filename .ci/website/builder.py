"""Makes all pages of the site from the texts of the repository's pages. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from urllib.parse import quote

from website.bodies import MOVING, Body, Heading, shown
from website.contents import (
    GROUPS,
    HELP,
    INDEX_PAGE,
    SCREENS,
    START_PAGE,
    TASKS,
    TASKS_PAGE,
    Excerpt,
)
from website.frame import Frame
from website.help_page import blocks_html, blocks_of, help_page, setting_names
from website.help_text import Block, Definition, Section, sections, tags
from website.markdown_page import anchor_of, markdown_page, part_of
from website.places import Places

PAGES = tuple(page for group in GROUPS.values() for page in group)
_FILTER = """<p class="filter" hidden><label>Find a name <input id="filter" type="search" \
autocomplete="off"></label> <span id="found" role="status"></span></p>"""
SOURCES = (HELP, *(page.source for page in PAGES if page.source and isinstance(page.source, str)))
"""The repository's pages that the site shows."""


def built(
    texts: Mapping[str, str], files: Collection[str], repository: str | None, frame: Frame
) -> dict[str, str]:
    """The site's pages by file, made from texts by path; `files` are the repository's files."""
    help_sections = {section.number: section for section in sections(texts[HELP])}
    places = _places(help_sections, files, repository)
    bodies = dict[str, Body]()
    for page in PAGES:
        match page.source:
            case int(number):
                bodies[page.file] = help_page(help_sections[number], places, SCREENS)
            case "":
                pass
            case source:
                bodies[page.file] = markdown_page(texts[source], source, places)
    bodies[TASKS_PAGE] = _tasks(texts, help_sections, places)
    bodies[INDEX_PAGE] = _index(bodies)
    return {page.file: frame.page(page, bodies[page.file]) for page in PAGES}


def _places(
    help_sections: Mapping[int, Section], files: Collection[str], repository: str | None
) -> Places:
    pages = {page.source: page.file for page in PAGES if isinstance(page.source, str)}
    numbered = {page.source: page.file for page in PAGES if isinstance(page.source, int)}
    known = {
        tag: numbered[number]
        for number, section in help_sections.items()
        for tag in (section.tag, *tags(section.blocks), *_settings(section.blocks))
    }
    return Places({**pages, HELP: numbered[0]}, known, files, repository)


def _settings(blocks: Sequence[Block]) -> Iterator[str]:
    """The settings in blocks whose names are in a table, such as `keys.stop`; others are words."""
    definitions = (block for block in blocks if isinstance(block, Definition))
    return (name for each in definitions for name in setting_names(each.terms) if "." in name)


def _tasks(texts: Mapping[str, str], help_sections: Mapping[int, Section], places: Places) -> Body:
    """The first tasks, told by excerpts."""
    parts, headings = ["<h1>The first five tasks</h1>\n"], list[Heading]()
    for number, task in enumerate(TASKS, 1):
        anchor = anchor_of(task.title)
        title = f"{number}. {task.title}"
        headings.append(Heading(2, anchor, title))
        first, *rest = (_excerpt(each, texts, help_sections, places) for each in task.excerpts)
        picture = f"<p>{shown(task.screen)}</p>"
        parts += [f'<h2 id="{anchor}">{escape(title)}</h2>', first, picture, *rest]
        links = ", ".join(_more(excerpt, help_sections, places) for excerpt in task.excerpts)
        parts.append(f'<p class="more">More: {links}</p>')
    return Body("The first five tasks", "\n".join(parts), tuple(headings))


def _excerpt(
    excerpt: Excerpt, texts: Mapping[str, str], help_sections: Mapping[int, Section], places: Places
) -> str:
    if excerpt.source != HELP:
        text = part_of(texts[excerpt.source], excerpt.target)
        return markdown_page(text, excerpt.source, places).html
    section = _section_of(excerpt.target, help_sections)
    return blocks_html(blocks_of(section, excerpt.target)[: excerpt.blocks], places)


def _more(excerpt: Excerpt, help_sections: Mapping[int, Section], places: Places) -> str:
    """The link to the place of an excerpt."""
    if excerpt.source != HELP:
        link = places.of_link("", f"{excerpt.source}#{excerpt.target}")
        name = next(page.name for page in PAGES if page.source == excerpt.source)
        return f'<a href="{link}">{escape(name)}</a>'
    link = places.of_tag(excerpt.target)
    return f'<a href="{link}"><code>:help {escape(excerpt.target)}</code></a>'


def _section_of(tag: str, help_sections: Mapping[int, Section]) -> Section:
    return next(s for s in help_sections.values() if tag in (s.tag, *tags(s.blocks)))


def _index(bodies: Mapping[str, Body]) -> Body:
    """All headings, commands, settings and functions by their first letter, with a filter."""
    rows = sorted(
        {
            (heading.text, f"{file}#{quote(heading.anchor)}", bodies[file].title)
            for file, body in bodies.items()
            if file not in (START_PAGE, TASKS_PAGE, "changes.html")
            for heading in body.headings
        },
        key=lambda row: (_letter(row[0]), row[0].lstrip(":*").casefold(), row[1]),
    )
    parts = ["<h1>Index</h1>\n", _FILTER]
    for letter, names in groupby(rows, lambda row: _letter(row[0])):
        items = "\n".join(
            f'<li><a href="{link}">{escape(name)}</a> <small>{escape(title)}</small></li>'
            for name, link, title in names
        )
        parts.append(
            f'<section class="letter">\n<h2>{letter}</h2>\n<ul>\n{items}\n</ul>\n</section>'
        )
    return Body("Index", "\n".join(parts))


def _letter(name: str) -> str:
    first = name.lstrip(":`*([_.")[:1].upper()
    return first if first.isalpha() else "#"


def scenes() -> list[str]:
    """The scenes of all pictures, without the beginnings that name a theme."""
    shown_tasks = [task.screen.scene for task in TASKS]
    return list(dict.fromkeys([*MOVING, *shown_tasks, *(s.scene for s in SCREENS.values())]))
