"""Reads a Markdown file with front matter, from its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

from parley.chat.front_matter import read_yaml
from parley.chat.page import Page
from parley.chat.reader import split_lines
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.text import visible

MOST_FRONT_MATTER = 8_000
"""The maximum number of characters of front matter. A larger one could keep the YAML library busy
for long."""

_table = lru_cache(maxsize=512)(read_yaml)
"""Front matter is read again before each turn, and the YAML library is slow."""


@frozen
class MarkdownFile:
    """The front matter's keys with their values, and the text below it."""

    keys: Mapping[Any, Any] = field(default_factory=dict)
    body: str = ""


def read_markdown(content: bytes) -> MarkdownFile:
    """Read a file; hidden characters in its body become escapes. Raises ParleyError."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ParleyError("it is not UTF-8 text") from error
    if "\0" in text:
        raise ParleyError("it is not text")
    page = Page(split_lines(text))
    raw, start = page.front_matter()
    if len(raw or "") > MOST_FRONT_MATTER:
        raise ParleyError(f"its front matter has more than {MOST_FRONT_MATTER} characters")
    table = _table(raw)
    if table.problem:
        raise ParleyError(f"line {table.problem.line + 1}: {table.problem.message}")
    return MarkdownFile(table.values, visible("\n".join(page.lines[start:])).strip("\n"))
