"""The site's addresses of pages, help tags and files. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import quote

FILES = "files"
"""The site's folder with the files that pages link to."""


@dataclass(frozen=True, slots=True)
class Places:
    """`pages` maps the repository's paths to pages, and `tags` maps help tags to pages."""

    pages: Mapping[str, str]
    tags: Mapping[str, str]
    files: Collection[str]
    repository: str | None = None

    def of_link(self, source: str, link: str) -> str | None:
        """A link of the page `source`, as a link of the site; None if the site lacks the target."""
        if re.match(r"https?:|#", link):
            return link
        name, _, fragment = link.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), name))
        if path in self.pages:
            return self.pages[path] + (f"#{fragment}" if fragment else "")
        if path in self.files:
            return f"{FILES}/{path}"
        return f"{self.repository}/tree/HEAD/{path}" if self.repository else None

    def of_tag(self, tag: str) -> str | None:
        """A help tag's link; None for a tag of Vim's own help."""
        return f"{self.tags[tag]}#{quote(tag)}" if tag in self.tags else None
