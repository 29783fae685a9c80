"""Flaws of the help's tags. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINK = re.compile(r"\|((?:parley|:Parley|b:parley|g:parley)[^|\s]*)\|")


def help_problems(text: str, tags: str, flaw: str) -> Iterator[str]:
    """Flaws of the help's tags."""
    if flaw:
        yield f"doc/parley.txt: {flaw}. Correct the tags, or set PARLEY_NVIM to Neovim 0.10 or newer"
        return
    known = {line.split("\t")[0] for line in tags.splitlines()}
    for link in sorted(set(_LINK.findall(text)) - known):
        yield f"doc/parley.txt: it links to |{link}|, a tag that does not exist. Correct the link"
