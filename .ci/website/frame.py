"""A page around its body: navigation, headings, style and script. Pure.

The browser runs only this script and uses only this style: a hash in the policy names each.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from urllib.parse import quote

from website.bodies import Body, Heading, with_signs
from website.contents import Page

_SHORT_CODE = re.compile(r"<code>(?=[^<]{1,26}</code>)")
"""Code that is not broken between lines, as a browser would after each hyphen."""
_FEWEST_HEADINGS = 3
"""A page with fewer headings has no list of headings."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The parts that all pages share."""

    groups: Mapping[str, Sequence[Page]]
    style: str
    script: str

    def page(self, page: Page, body: Body) -> str:
        """A page of the site."""
        title = body.title if body.title == "Parley" else f"{body.title} · Parley"
        policy = (
            "default-src 'none'; img-src 'self' file:; base-uri 'none'; form-action 'none'; "
            f"style-src '{_hash(self.style)}'; script-src '{_hash(self.script)}'"
        )
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<link rel="icon" href="icon.svg">
<style>{self.style}</style>
<script>{self.script}</script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="home" href="index.html">Parley</a>
<a class="menu" href="#pages">All pages</a>
<label class="theme" hidden>Theme <select id="theme"><option value="">Auto</option>\
<option value="light">Light</option><option value="dark">Dark</option></select></label>
</header>
<div class="columns">
<main id="content" tabindex="-1">
{with_signs(_SHORT_CODE.sub('<code class="short">', _with_contents(body)))}
{self._neighbours(page)}
</main>
{self._navigation(page)}
</div>
</body>
</html>
"""

    def _navigation(self, here: Page) -> str:
        parts = [
            f"<h2>{escape(name)}</h2>\n<ul>\n"
            + "\n".join(f"<li>{_link(page, here)}</li>" for page in pages)
            + "\n</ul>"
            for name, pages in self.groups.items()
        ]
        inside = "\n".join(parts)
        return f'<nav id="pages" aria-label="All pages">\n{inside}\n</nav>'

    def _neighbours(self, here: Page) -> str:
        pages = [page for group in self.groups.values() for page in group]
        at = pages.index(here)
        before = pages[at - 1 : at] if at else []
        links = [
            *(f'<a rel="prev" href="{page.file}">← {escape(page.name)}</a>' for page in before),
            *(
                f'<a rel="next" href="{page.file}">{escape(page.name)} →</a>'
                for page in pages[at + 1 : at + 2]
            ),
        ]
        inside = "\n".join(links)
        return f'<nav class="neighbours" aria-label="Next pages">\n{inside}\n</nav>'


def _link(page: Page, here: Page) -> str:
    current = ' aria-current="page"' if page == here else ""
    return f'<a href="{page.file}"{current}>{escape(page.name)}</a>'


def _with_contents(body: Body) -> str:
    """The body, with the list of its headings below the title."""
    level = 2 if any(heading.level == 2 for heading in body.headings) else 3
    own = [heading for heading in body.headings if heading.level == level]
    if len(own) < _FEWEST_HEADINGS:
        return body.html
    rows = "\n".join(f"<li>{_contents_link(heading)}</li>" for heading in own)
    contents = (
        '<details class="contents">\n<summary>On this page</summary>\n'
        f'<nav aria-label="On this page">\n<ul>\n{rows}\n</ul>\n</nav>\n</details>\n'
    )
    return re.sub(r"(</h1>\n)", lambda match: match[1] + contents, body.html, count=1)


def _contents_link(heading: Heading) -> str:
    return f'<a href="#{quote(heading.anchor)}">{escape(heading.text)}</a>'


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
