"""The site: its pages are complete, their links lead somewhere, and nothing comes from outside."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from parley.chat.grammar import MARKERS
from tests.nvim.picture import marker
from tests.nvim.screens import scene
from website.__main__ import main, pages, picture_names
from website.bodies import SIGNS, with_signs
from website.builder import PAGES
from website.contents import GROUPS, TASKS
from website.help_text import (
    Code,
    Definition,
    Listing,
    Paragraph,
    Section,
    Subheading,
    Table,
    sections,
)
from website.markdown_page import markdown_page
from website.places import Places

ROOT = Path(__file__).parent.parent
VOID = {"meta", "link", "img", "input", "br", "hr"}


class Tags(HTMLParser):
    """A page's tags with their attributes, its texts by enclosing tag, and its flaws."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.open: list[str] = []
        self.flaws: list[str] = []
        self.feed(html)
        self.flaws += self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open.pop() != tag:
            self.flaws.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))

    def values(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.all if attribute in attributes]

    def text(self, inside: str, between: str = "") -> str:
        return between.join(text for tags, text in self.texts if inside in tags)


@cache
def site() -> dict[str, Tags]:
    """All pages by file."""
    return {name: Tags(html) for name, html in pages().items()}


FILES = [page.file for page in PAGES]


def test_every_link_leads_to_a_page_and_a_place_in_it() -> None:
    dead, tracked = list[str](), set[str]()
    for name, page in site().items():
        for link in page.values("href"):
            file, _, anchor = link.partition("#")
            if file.startswith("files/"):
                tracked.add(file.removeprefix("files/"))
            elif not re.match(r"https?://", link) and file != "icon.svg":
                target = site().get(file or name)
                if target is None or (anchor and unquote(anchor) not in target.values("id")):
                    dead.append(f"{name}: {link}")
    assert dead == []
    assert {"LICENSE", "doc/json.schema.json", "examples/reader.py"} <= tracked
    assert [path for path in tracked if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("name", FILES)
def test_a_page_is_well_formed_and_has_landmarks_headings_in_order_and_alternative_texts(
    name: str,
) -> None:
    page = site()[name]
    assert page.flaws == []
    assert [anchor for anchor, count in Counter(page.values("id")).items() if count > 1] == []
    names = [tag for tag, _ in page.all]
    assert ("html", {"lang": "en"}) in page.all
    assert names.count("h1") == names.count("main") == names.count("header") == 1
    start, end = names.index("h1"), len(names)
    levels = [int(tag[1]) for tag in names[start:end] if re.fullmatch(r"h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(len(text) > 10 for text in page.values("alt"))
    assert names.count("img") == len(page.values("alt"))
    assert all(attributes.get("aria-label") for tag, attributes in page.all if tag == "nav")


@pytest.mark.parametrize("name", FILES)
def test_a_page_is_in_the_navigation_of_every_page(name: str) -> None:
    for file, page in site().items():
        links = [attributes for tag, attributes in page.all if tag == "a"]
        assert {"href": name} | ({"aria-current": "page"} if file == name else {}) in links


@pytest.mark.parametrize("name", FILES)
def test_a_page_loads_and_runs_nothing_from_outside(name: str) -> None:
    page = site()[name]
    policy = dict(
        part.split(" ", 1)
        for part in next(
            attributes["content"]
            for _, attributes in page.all
            if attributes.get("http-equiv") == "Content-Security-Policy"
        ).split("; ")
    )
    assert policy.pop("img-src") == "'self' file:"
    assert policy == {
        "default-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "style-src": hash_of(page.text("style")),
        "script-src": hash_of(page.text("script")),
    }
    loaded = [a["href"] for tag, a in page.all if tag == "link"] + page.values("src")
    assert [path for path in loaded if not re.fullmatch(r"(pictures/[\w-]+|icon)\.svg", path)] == []
    attributes = {attribute for _, attributes in page.all for attribute in attributes}
    assert not any(attribute.startswith("on") or attribute == "style" for attribute in attributes)
    style = page.text("style")
    assert not re.search(r"url\((?!pictures/marker-)|@import|src: (?!local)", style)
    assert not re.search(r"fetch|XMLHttp|import\b|eval|innerHTML|https?:", page.text("script"))


def hash_of(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_each_picture_is_a_scene_and_has_both_themes() -> None:
    used = {path for page in site().values() for path in page.values("src")}
    own = [name for name in picture_names() if name not in SIGNS]
    assert used == {f"pictures/{name}.svg" for name in own}
    assert all(scene(name) for name in own)
    themes = Counter(a["class"] for page in site().values() for tag, a in page.all if tag == "img")
    assert themes["light"] == themes["dark"] >= 18
    assert {"pictures/asking.svg", "pictures/light-editing.svg"} <= set(
        site()["index.html"].values("src")
    )


@pytest.mark.parametrize(("part", "selector"), [(0, "light"), (1, "dark")])
def test_colours_are_readable_in_both_themes(part: int, selector: str) -> None:
    """A contrast of at least 4.5: https://www.w3.org/TR/WCAG22/#contrast-minimum, 2026-11-26."""
    style = site()["index.html"].text("style")
    both = dict(re.findall(r"--(\w+): light-dark\((#\w{6}, #\w{6})\)", style))
    colours = {name: int(pair.split(", #")[part].lstrip("#"), 16) for name, pair in both.items()}
    assert f':root[data-theme="{selector}"] {{ color-scheme: {selector}; }}' in style
    grounds = [colours.pop(name) for name in ("back", "box")]
    del colours["line"]
    here = colours.pop("here")
    faint = [name for name, colour in colours.items() for g in grounds if contrast(colour, g) < 4.5]
    assert len(colours) == 10
    assert faint == []
    assert contrast(colours["text"], here) >= 4.5


def contrast(one: int, other: int) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: int) -> float:
    parts = ((colour >> shift & 0xFF) / 255 for shift in (16, 8, 0))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_site_has_every_word_of_the_help() -> None:
    text = (ROOT / "doc" / "parley.txt").read_text(encoding="utf-8").partition("\n")[2]
    own = [page.file for page in PAGES if isinstance(page.source, int)]
    shown = Counter(
        re.findall(r"[^\W\d]\w*", " ".join(site()[file].text("main", " ") for file in own))
    )
    tags = set(re.findall(r"(?<!\S)\*([^*\s]+)\*(?!\S)", text))
    words = Counter(
        re.findall(
            r"[^\W\d]\w*", re.sub(r"(?<!\S)\*[^*\s]+\*(?!\S)|^ vim:.*$|>\w+$", "", text, flags=re.M)
        )
    )
    assert {word: count for word, count in words.items() if shown[word] < count} == {}
    anchors = {anchor for file in own for anchor in site()[file].values("id")}
    assert tags <= anchors


def test_the_tasks_are_five_and_told_by_excerpts() -> None:
    page = site()["tasks.html"]
    titles = [text for tags, text in page.texts if tags[-1:] == ("h2",) and "nav" not in tags]
    assert titles == [f"{n}. {task.title}" for n, task in enumerate(TASKS, 1)]
    assert "Please choose" in page.text("pre")
    assert "ANTHROPIC_API_KEY" in page.text("code")


def test_the_index_names_commands_settings_and_headings() -> None:
    links = {
        text for tags, text in site()["names.html"].texts if tags[-1:] == ("a",) and "main" in tags
    }
    assert {":ParleyAsk", "keys.respond", "parley.setup()", "Exit codes", "b:parley_usage"} <= links


HELP = """*parley.txt*  A title

                                                            *parley*
Opening, see |parley-one|.

==============================================================================
1. One                                                            *parley-one*

Text `code` in
two lines: >lua

    local x = 1
<
More:
  - a point
    in two lines
  - another
                                                                *parley-tag*
A table with names:

  `a`   nil   the first
            in two lines
  `bb`  1     the second

                                                                    *:Command*
:Command [x]            Do it. The list has
                        two rows.

`one.setting`                                   "x"
        Its text.
`two.setting`                                   nil
`three`                                         nil
        Both.

Heading ~

Last.
"""


def test_the_helps_format_is_read() -> None:
    opening, one = sections(HELP)
    assert opening == Section(0, "", "parley", (Paragraph("Opening, see |parley-one|."),))
    assert one == Section(
        1,
        "One",
        "parley-one",
        (
            Paragraph("Text `code` in two lines:"),
            Code("local x = 1\n", "lua"),
            Paragraph("More:"),
            Listing(("a point in two lines", "another"), is_numbered=False),
            Subheading("parley-tag", ("parley-tag",), is_tag=True),
            Paragraph("A table with names:"),
            Table(
                (("`a`", "nil", "the first in two lines"), ("`bb`", "1", "the second")),
                has_head=False,
            ),
            Definition(
                (":Command [x]",), (":Command",), (Paragraph("Do it. The list has two rows."),)
            ),
            Definition(
                ('`one.setting`                                   "x"',),
                (),
                (Paragraph("Its text."),),
            ),
            Definition(
                (
                    "`two.setting`                                   nil",
                    "`three`                                         nil",
                ),
                (),
                (Paragraph("Both."),),
            ),
            Subheading("Heading", (), is_tag=False),
            Paragraph("Last."),
        ),
    )


def test_a_link_without_a_target_on_the_site_becomes_its_text_or_leads_to_the_repository() -> None:
    text = "# A\n\n## B `c`\n\n## B `c`\n\n[x](../a.md#b) [y](../tool) [z](b.py) <b>\n"
    places = Places({"a.md": "a.html"}, {}, {"doc/b.py"})
    page = markdown_page(text, "doc/c.md", places)
    assert '<a href="a.html#b">x</a> y <a href="files/doc/b.py">z</a> &lt;b&gt;' in page.html
    assert [heading.anchor for heading in page.headings] == ["b-c", "b-c-1"]
    with_address = Places({}, {}, set(), "https://host/o/r")
    assert with_address.of_link("doc/c.md", "../tool") == "https://host/o/r/tree/HEAD/tool"


def test_a_missing_picture_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rest = picture_names()
    (tmp_path / "pictures").mkdir()
    for name in rest:
        (tmp_path / "pictures" / f"{name}.svg").touch()
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"{tmp_path}/pictures/{first}.svg: this picture is missing. Run `make site`\n"
    )
    (tmp_path / "pictures" / f"{first}.svg").touch()
    assert main([str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.glob("*.html")} == set(FILES)
    assert (tmp_path / "files" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert main(["--scenes"]) == 0
    assert capsys.readouterr().out.split()[-len(rest) - 1 :] == [first, *rest]


def test_a_marker_can_be_drawn_without_a_font_for_emoji() -> None:
    assert {name: marker(sign).count("<svg") for name, sign in SIGNS.items()} == dict.fromkeys(
        SIGNS, 1
    )
    assert {sign.replace("\ufe0f", "")[0] for sign in MARKERS.values()} <= set(SIGNS.values())
    assert with_signs('<a title="💬">💬: \U0001f6e0\ufe0f</a>') == (
        '<a title="💬"><span class="marker m1f4ac">💬</span>: '
        '<span class="marker m1f6e0">\U0001f6e0\ufe0f</span></a>'
    )
    named = {name for page in site().values() for name in page.values("class") if "marker" in name}
    style = site()["index.html"].text("style")
    assert all(f".no-emoji .{name.removeprefix('marker ')} {{" in style for name in named)


def test_the_navigation_names_each_page_once() -> None:
    names = [page.name for group in GROUPS.values() for page in group]
    assert len(names) == len(set(names)) == len(set(FILES))


def test_the_workflow_publishes_the_site_with_the_least_rights() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text("utf-8"))
    assert workflow[True] == {"push": {"tags": ["v*"]}, "workflow_dispatch": None}
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "site": {"contents": "read"},
        "publish": {"pages": "write", "id-token": "write"},
    }
    assert jobs["publish"]["needs"] == "site"
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert [step["run"] for step in steps if "run" in step][-1] == "make site"
    pins = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", pin) for pin in pins)
    assert not any("${{" in step.get("run", "") for step in steps)
