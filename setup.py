"""What `pyproject.toml` cannot say: the package page is README.md, with links that work there.

A page of a package index has no files beside it. So the links lead to the repository, whose address is in
`[project.urls]`; as long as there is none, their words are left, and no picture.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

_LINK = re.compile(r"(!?)\[([^\]\n]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
_EMPTY = re.compile(r"\n\n\n+")


def page(readme: str, repository: str | None) -> str:
    """The README as it is read away from its repository."""

    def link(match: re.Match[str]) -> str:
        mark, words, path = match.groups()
        if repository is None:
            return "" if mark else words
        # Both lead to the newest state; `raw` is the file itself, which a picture has to be.
        return f"{mark}[{words}]({repository.rstrip('/')}/{'raw' if mark else 'blob'}/HEAD/{path})"

    return _EMPTY.sub("\n\n", _LINK.sub(link, readme))


if __name__ == "__main__":
    here = Path(__file__).parent
    project = tomllib.loads((here / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = page(
        (here / "README.md").read_text(encoding="utf-8"), project.get("urls", {}).get("Repository")
    )
    setup(long_description=text, long_description_content_type="text/markdown")
