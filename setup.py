"""The package page, which `pyproject.toml` cannot describe: README.md with links that work there.

A package index has no other files of the repository. So the links lead to the repository, whose address is
in `[project.urls]`. Without an address, the page has the links' words without links, and no pictures.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

_LINK = re.compile(r"(!?)\[([^\]\n]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
_EMPTY = re.compile(r"\n\n\n+")


def page(readme: str, repository: str | None) -> str:
    """The README for readers outside the repository."""

    def link(match: re.Match[str]) -> str:
        mark, words, path = match.groups()
        if repository is None:
            return "" if mark else words
        # Both lead to the newest version; `raw` is the file itself, which a picture needs.
        return f"{mark}[{words}]({repository.rstrip('/')}/{'raw' if mark else 'blob'}/HEAD/{path})"

    return _EMPTY.sub("\n\n", _LINK.sub(link, readme))


if __name__ == "__main__":
    here = Path(__file__).parent
    project = tomllib.loads((here / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = page(
        (here / "README.md").read_text(encoding="utf-8"), project.get("urls", {}).get("Repository")
    )
    setup(long_description=text, long_description_content_type="text/markdown")
