"""References in a question, `@@path@@`: their positions, and the text that they include.

A reference is expanded once, when its question is first asked. From then on, the included text is
part of the question, and a reference inside it is plain text. Does not access files or servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from parley.chat.transcript import Attachment, Question, Text
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.text import counted

_REFERENCE = late_pattern(r"@@(?P<name>[^@\s](?:[^@\n]*[^@\s])?)@@")
_RESOURCE = late_pattern(r"(?P<server>[A-Za-z0-9_.-]+):(?P<uri>[A-Za-z][A-Za-z0-9+.-]*:.+)")
_LINES = late_pattern(r"(?P<path>.+):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?")
_EXPANSION = late_pattern(
    r"^`(?P<title>[^`\n]+)` \((?P<count>\d+ lines?)\)\n\n(?P<ticks>`{3,})[^`\n]*"
    r"(?:\n.*)*?(?:(?P<end>\n(?P=ticks)$)|\Z)",
    re.MULTILINE,
)
_FENCE = late_pattern(r" {0,3}(?P<ticks>`{3,}|~{3,})")
_INFO_WORD = late_pattern(r"[\w+#-]+")
_LANGUAGES = {
    "py": "python",
    "rs": "rust",
    "js": "javascript",
    "ts": "typescript",
    "md": "markdown",
    "sh": "bash",
}


@frozen
class Path:
    """A file, its lines, or the files that match a glob, relative to the working directory."""

    name: str


@frozen
class Lines:
    """Lines of a file, counted from 1."""

    path: str
    first: int
    last: int

    def of(self, text: str) -> tuple[str, str] | None:
        """The requested lines that exist, and their title; None if none of them exists."""
        all_lines = text.removesuffix("\n").split("\n") if text else []
        first, last = max(self.first, 1), min(self.last, len(all_lines))
        if first > last:
            return None
        return "\n".join(all_lines[first - 1 : last]) + "\n", Lines(self.path, first, last).title

    @property
    def title(self) -> str:
        """The path and the line numbers, as written in a reference."""
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")


@frozen
class ResourceReference:
    """A resource on an MCP server."""

    server: str
    uri: str


@frozen
class Live:
    """A text that is not in a file: the working tree's changes, or text from the editor."""

    name: str


Reference: TypeAlias = Path | ResourceReference | Live
IN_EDITOR = ("buffer", "selection", "diagnostics")
LIVE = (*IN_EDITOR, "diff")
"""The reserved names of live texts; a file with the same name is written as `./diff`."""


@frozen
class ReferenceText:
    """A reference's title with its text or picture, or with the reason why it is missing."""

    title: str
    text: str
    kind: Literal["text", "missing", "partial"] = "text"
    """Whether the content is complete, missing or incomplete."""
    language: str = ""
    """The fence's info word; "" to derive it from the file extension in the title."""
    picture: Attachment | None = None


def references(question: Question) -> tuple[Reference, ...]:
    """A question's references in order, without duplicates; fenced references are plain text."""
    return tuple({reference: None for _, reference in rows(question)})


def rows(question: Question) -> Iterator[tuple[int, Reference]]:
    """A question's references with their lines, counted from 0."""
    fence = ""
    for row, line in _lines(question):
        mark = _FENCE.match(line)
        if fence:
            closes = (
                mark
                and mark["ticks"].startswith(fence)
                and not line.strip().strip(mark["ticks"][0])
            )
            fence = "" if closes else fence
        elif mark:
            fence = mark["ticks"]
        else:
            yield from ((row, _reference(match["name"])) for match in _REFERENCE.finditer(line))


def _lines(question: Question) -> Iterator[tuple[int, str]]:
    for part in question.parts:
        if isinstance(part, Text):
            yield from enumerate(part.text.split("\n"), part.span.start)


def name_of(reference: Reference) -> str:
    """The text between a reference's `@@`."""
    return (
        f"{reference.server}:{reference.uri}"
        if isinstance(reference, ResourceReference)
        else reference.name
    )


def can_be_named(reference: Reference) -> bool:
    """Whether text between two `@@` can be the reference's name."""
    match = _REFERENCE.fullmatch(f"@@{name_of(reference)}@@")
    return match is not None and _reference(match["name"]) == reference


def _reference(name: str) -> Reference:
    if name in LIVE:
        return Live(name)
    resource = _RESOURCE.fullmatch(name)
    return ResourceReference(resource["server"], resource["uri"]) if resource else Path(name)


def lines_of(name: str) -> Lines | None:
    """The path and line numbers in a name such as `path:10-40`; None if it has no line numbers."""
    match = _LINES.fullmatch(name)
    return (
        Lines(match["path"], int(match["first"]), int(match["last"] or match["first"]))
        if match
        else None
    )


def expansion(reference: ReferenceText) -> list[str]:
    """The lines that a reference adds to the question, not yet escaped."""
    if reference.kind != "text":
        return [f"`{_title(reference.title)}`: {reference.text}"]
    lines = reference.text.removesuffix("\n").split("\n") if reference.text else []
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", reference.text)), default=0))
    count = counted(len(lines), "line")
    info = reference.language or language_of(reference.title)
    return [f"`{_title(reference.title)}` ({count})", "", f"{ticks}{info}", *lines, ticks]


def expansions(text: str) -> Iterator[re.Match[str]]:
    """The blocks that references and quotes added to a question, with `title` and `count`."""
    return (match for match in _EXPANSION.finditer(text) if match["end"])


def own_words(question: Question) -> str:
    """The text that the user typed in a question, without included text and quoted lines."""
    parts = (_EXPANSION.sub("", part.text) for part in question.parts if isinstance(part, Text))
    return "\n\n".join(part for part in parts if part.strip())


def language_of(name: str) -> str:
    """The language for a fence, from the file extension; "" if there is none."""
    suffix = name.rpartition(".")[2] if "." in name else ""
    return _LANGUAGES.get(suffix, suffix if suffix.isascii() and suffix.isalnum() else "")


def info_word(filetype: str) -> str:
    """A fence's info word for an editor's file type."""
    word = _INFO_WORD.match(filetype)
    return word[0] if word else ""


def _title(title: str) -> str:
    return title.replace("`", "'").replace("\n", " ")
