"""The command that writes the repository's address into all places that name it.

`[project.urls]` in pyproject.toml has the address; a test compares the pages with it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NO_ADDRESS = "<this repository>"
"""The pages' words until there is an address."""
_ENTRY = re.compile(r"^(# )?Repository = .*$", re.M)
_PLACE = re.compile(
    r'^( *(?:git clone |\{ url = "|vim\.pack\.add\(\{ \{ src = "))(<this repository>|[^\s"]+)',
    re.M,
)


def address(pyproject: str) -> str | None:
    """The repository's address; None if there is none yet."""
    urls: dict[str, str] = tomllib.loads(pyproject)["project"].get("urls", {})
    return urls.get("Repository")


def named(page: str) -> list[str]:
    """The addresses in a page's instructions for cloning."""
    return [match[2] for match in _PLACE.finditer(page)]


def with_address(name: str, text: str, url: str) -> str:
    """A file's text with this address instead of the old one."""
    if name == "pyproject.toml":
        return _ENTRY.sub(lambda _: f'Repository = "{url}"', text)
    return _PLACE.sub(lambda match: match[1] + url, text)


def address_problem(url: str) -> str | None:
    """The reason why a text cannot be the address."""
    if re.fullmatch(r"https://[\w.-]+(/[\w.~-]+)+/?", url):
        return None
    return f"URL={url}: expected an address such as https://host/owner/parley. Pass such an address"


def main(url: str) -> int:
    """Write the address; returns 1 if it is refused."""
    if problem := address_problem(url):
        sys.stderr.write(f"{problem}\n")
        return 1
    for path in (*ROOT.glob("*.md"), ROOT / "doc" / "parley.txt", ROOT / "pyproject.toml"):
        text = path.read_text(encoding="utf-8")
        if (changed := with_address(path.name, text, url)) != text:
            path.write_text(changed, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)} names {url}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
