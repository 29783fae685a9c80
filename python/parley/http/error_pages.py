"""Turns unexpected pages, such as error pages, into readable text."""

from __future__ import annotations

import json
from typing import Any

from parley.late_patterns import late_pattern
from parley.text import one_line

MOST_READ = 20_000
_TAGS = late_pattern(r"(?is)<(style|script)\b.*?(</\1\s*>|\Z)|<!--.*?(-->|\Z)|<[^<>]*>")
_KEYS = ("message", "error_description", "detail", "title", "error")


def without_tags(text: str) -> str:
    """A page's text without tags, up to a readable length."""
    return _TAGS.sub(" ", text[:MOST_READ])


def words(body: str, most: int) -> str:
    """A JSON page's message or an HTML page's text, as a line of at most `most` characters."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    return one_line(_message(value) or without_tags(body))[:most].rstrip(" .")


def _message(value: Any) -> str:
    if isinstance(value, dict):
        texts = (_message(value[key]) for key in _KEYS if key in value)
        return next((text for text in texts if text), "")
    return value if isinstance(value, str) else ""
