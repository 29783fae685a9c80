"""Finds the code blocks in an answer's text, and the paths of the files that they name.

Knows how models name a block's file: in the info string of its fence, or in the line above. Does
not know which files exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from parley.chat.grammar import is_escaped
from parley.chat.transcript import Span, is_blank
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.text import is_hidden

_FENCE = late_pattern(r"(?P<indent>[ \t]*)(?P<ticks>`{3,}|~{3,})(?P<info>[^\r]*)\r?")
_ATTRIBUTE = late_pattern(
    r"(?:title|file|file_?name|path|name)\s*=\s*"
    r"(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<bare>[^\s{}\"']+))",
    re.IGNORECASE,
)
_NO_WORD = late_pattern(r"\{[^{}]*\}|[\w-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|\S+)")
_LEAD = late_pattern(r"\s*(?:(?:#{1,6}|[-*+]|\d+[.)])\s+)*")
_LABEL = late_pattern(r"(?:file|file ?name|path)\s*:\s*", re.IGNORECASE)
_REMARK = late_pattern(r"\s*\([^()]*\)$")
_LINE_NUMBERS = late_pattern(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)$|^\d+:\d+:(?=\S)")
_CODE_SPAN = late_pattern(r"`([^`]+)`")
_EXTENSION = late_pattern(r".*\.[A-Za-z]\w{0,15}")
_PLAIN_NAMES = frozenset(
    {"Makefile", "Dockerfile", "Justfile", "Gemfile", "Rakefile", "Procfile", "Vagrantfile"}
)
_LANGUAGES = frozenset({"asp.net", "vb.net"})
_LONGEST = 500


@frozen
class CodeBlock:
    """A fenced block: the info string of its fence, its lines, and the line of text above it ("" if
    there is none); `span` has the rows from fence to fence.
    """

    info: str
    lines: tuple[str, ...]
    above: str
    span: Span


def code_blocks(lines: Sequence[str]) -> Iterator[CodeBlock]:
    """The code blocks in the lines of a chat's text, in order; one without an end is left out."""
    opening: re.Match[str] | None = None
    start, above = 0, ""
    content = list[str]()
    for row, written in enumerate(lines):
        line = written[1:] if is_escaped(written) else written
        fence = _FENCE.fullmatch(line)
        if opening is None:
            if fence and (fence["ticks"][0] == "~" or "`" not in fence["info"]):
                opening, start, content = fence, row, []
            elif not is_blank(line):
                above = line
        elif fence and fence["ticks"].startswith(opening["ticks"]) and not fence["info"].strip():
            yield CodeBlock(opening["info"].strip(), tuple(content), above, Span(start, row + 1))
            opening, above = None, ""
        else:
            content.append(_outdented(line, len(opening["indent"])))


def block_at(lines: Sequence[str], row: int) -> CodeBlock | None:
    """The code block that contains a row."""
    return next((b for b in code_blocks(lines) if b.span.start <= row < b.span.end), None)


def named_paths(block: CodeBlock) -> tuple[str, ...]:
    """The paths that a block names, the most explicit first, without duplicates."""
    candidates = [*_paths_in_info(block.info), *_paths_above(block.above)]
    paths = (_LINE_NUMBERS.sub("", candidate.strip()) for candidate in candidates)
    return tuple(dict.fromkeys(path for path in paths if _is_path(path)))


def _outdented(line: str, columns: int) -> str:
    """A line without the indentation of its fence, as far as the line has it."""
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(columns, blanks) :]


def _paths_in_info(info: str) -> Iterator[str]:
    for match in _ATTRIBUTE.finditer(info):
        yield match["double"] or match["single"] or match["bare"] or ""
    for word in _NO_WORD.sub(" ", info).split():
        plain = _LINE_NUMBERS.sub("", word)
        language, colon, path = plain.partition(":")
        yield path if colon and not _is_path(language) else plain


def _paths_above(line: str) -> Iterator[str]:
    whole = _unwrapped(_LEAD.sub("", line, count=1))
    yield _unwrapped(_REMARK.sub("", _LABEL.sub("", whole, count=1)))
    spans = [span for span in _CODE_SPAN.findall(line) if _is_path(_LINE_NUMBERS.sub("", span))]
    if len(set(spans)) == 1 and line.rstrip(" \t*").endswith(":"):
        yield spans[0]


def _unwrapped(text: str) -> str:
    """A text without emphasis, backticks and a colon around it."""
    before = ""
    while before != text:
        before, text = text, text.strip().removesuffix(":").strip()
        for mark in ("**", "__", "`", "*", "_", '"'):
            if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark):
                text = text[len(mark) : -len(mark)]
    return text


def _is_path(text: str) -> bool:
    """Whether a text looks like a file's path, so that it needs no other sign."""
    name = text.rpartition("/")[2]
    return (
        0 < len(text) <= _LONGEST
        and "://" not in text
        and text.lower() not in _LANGUAGES
        and not text.startswith(("@", "-", "~"))
        and not any(c in ' \t`*?<>|"\\' or is_hidden(c) or ord(c) < 32 for c in text)
        and name not in ("", ".", "..")
        and ("/" in text or name in _PLAIN_NAMES or _EXTENSION.fullmatch(name) is not None)
    )
