"""Searches that a provider ran: their text for people, their JSON for the provider, and footnotes.

Everything comes from servers and from chat files, so nothing here is trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from parley.late_patterns import late_pattern
from parley.text import one_line, visible
from parley.tools.catalogue import Tool

WEB_SEARCH = "web_search"
"""The setting; among a request's refused fields, the provider's search."""
SEARCH_NAME = "web_search"
"""The name of all the provider's calls in the file; their arguments show what they do."""
NOTHING_FOUND = "(nothing was found)"
_MOST_TITLE = 200
_MOST_URL = 2_000
_MOST_SOURCES = 100
_MOST_SEALED = 16_000_000
"""The maximum number of bytes of an attachment with a search's parts; anyone may have written
it."""
_USUAL_NOTE = 9_999
"""A footnote with a higher number is not continued, because a model may write any number."""
_SAFE = "!#$%&*+,-./:;=?@_~'"
"""The characters of an address that stay as they are."""
_NOTES = late_pattern(r"(?:\A|\n\n)(?:\[\^\d{1,9}\]: \[[^\[\]\n]*\]\(\S+\)(?:\n|\Z))+\Z")
_NOTE = late_pattern(r"\[\^(\d{1,9})\]")


def cannot_search(name: str) -> str:
    """The message that a provider or a model cannot search the web."""
    return (
        f"{name} cannot search the web in Parley, so the setting `{WEB_SEARCH}` is ignored. "
        "Set up an MCP server with a search tool, :help parley-web-search"
    )


def is_web_search(tool: Tool) -> bool:
    """Whether a server's tool seems to search the web, according to its name and description."""
    words = f"{tool.name.replace('_', ' ')} {tool.description}"
    return bool(_SEARCH.search(words) and _WEB.search(words))


_SEARCH = late_pattern(r"\bsearch", re.IGNORECASE)
_WEB = late_pattern(r"\b(web|internet|online)\b", re.IGNORECASE)


def web_address(url: object) -> str:
    """A URL that a Markdown link can contain; "" unless it is a web address of a usual length."""
    if not isinstance(url, str) or len(url) > _MOST_URL:
        return ""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return ""
    is_web = parts.scheme.lower() in ("http", "https") and parts.netloc
    return quote(url.strip(), _SAFE, errors="replace") if is_web else ""


def source_line(title: object, url: object) -> str:
    """A source on one line; "" if it has no web address."""
    address = web_address(url)
    name = one_line(visible(title), _MOST_TITLE) if isinstance(title, str) else ""
    return f"{name}: {address}" if name and address else address


def sources_text(sources: Iterable[tuple[object, object]]) -> str:
    """The result of a search, as text: one line for each source, from titles and URLs."""
    lines = [line for title, url in sources if (line := source_line(title, url))]
    more = [f"… and {len(lines) - _MOST_SOURCES} more"] if len(lines) > _MOST_SOURCES else []
    return "\n".join([*lines[:_MOST_SOURCES], *more]) or NOTHING_FOUND


def sealed(form: str, value: object) -> str:
    """The parts of a result that only the providers with this wire format understand, as text for
    an attachment; `opened` reads it back.
    """
    return json.dumps({"format": form, "value": value}, separators=(",", ":"))


def opened(content: bytes, form: str) -> Any:
    """The value in an attachment, if it is for this wire format; otherwise None. Its shape is
    unknown, because anyone may have written it.
    """
    table = _table(content)
    return table.get("value") if table.get("format") == form else None


def is_sealed(content: bytes) -> bool:
    """Whether an attachment looks like such parts, rather than like a text for people."""
    return _table(content).keys() == {"format", "value"}


def _table(content: bytes) -> dict[str, Any]:
    if len(content) > _MOST_SEALED:
        return {}
    try:
        table = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def without_footnotes(texts: Sequence[str]) -> list[str]:
    """A reply's texts as the model wrote them, without the footnotes that Parley added; "" for a
    text that has only footnotes.
    """
    notes = _NOTES.search(texts[-1]) if texts else None
    if notes is None:
        return list(texts)
    numbers = set(_NOTE.findall(notes[0]))
    whole = [*texts[:-1], texts[-1][: notes.start()]]
    return [_NOTE.sub(lambda mark: "" if mark[1] in numbers else mark[0], text) for text in whole]


class Footnotes:
    """The footnotes of one reply, numbered after the footnotes that the chat already has."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._used = {int(number) for line in lines for number in _NOTE.findall(line)}
        self._next = max((number for number in self._used if number <= _USUAL_NOTE), default=0)
        self._numbers = dict[str, int]()
        self._definitions = list[str]()

    def mark(self, url: str, title: str) -> str:
        """The mark in the text for a source; "" if it has no web address."""
        address = web_address(url)
        if not address:
            return ""
        if address not in self._numbers:
            number = self._numbers[address] = self._unused()
            name = re.sub(r"[\[\]\\`<>]", " ", one_line(visible(title), _MOST_TITLE)).strip()
            self._definitions.append(f"[^{number}]: [{name or address}]({address})")
        return f"[^{self._numbers[address]}]"

    def _unused(self) -> int:
        self._next += 1
        while self._next in self._used:
            self._next += 1
        return self._next

    def definitions(self) -> str:
        """The text below the reply that names the sources; "" if there are none."""
        lines, self._definitions = self._definitions, []
        return "\n\n" + "\n".join(lines) if lines else ""
