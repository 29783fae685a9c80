"""Attachments as links in a chat file: on a line of their own in a question, or after a result's
header.

Knows how to write and read a link, and how to escape text that looks like one. Knows nothing about
files or how they are read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from parley.chat import grammar
from parley.chat.transcript import (
    NOWHERE,
    PICTURE_PATH,
    TEXT_PATH,
    Attachment,
    Note,
    Orphan,
    Proposal,
    Result,
    Span,
    Transcript,
)
from parley.late_patterns import late_pattern
from parley.text import size_text

_LABEL = r"\[[^\[\]\n\r]*\]"
_PICTURE = rf"!{_LABEL}\({PICTURE_PATH}\)"
_TEXT = rf"{_LABEL}\({TEXT_PATH}\)"
_LINE = late_pattern(rf"(?P<escape>\\*)(?P<link>{_PICTURE})[ \t\r]*")
_LINKS = late_pattern(rf"{_PICTURE}|{_TEXT}")

LINKS = rf"(?:[ \t\u00a0]*(?:{_PICTURE}|{_TEXT}))*"
"""The links that may follow a result's header."""


def link(attachment: Attachment) -> str:
    """The link to an attachment: an image link for a picture, a plain link for a long text."""
    return f"{'' if attachment.is_text else '!'}[{attachment.label}]({attachment.path})"


def read_line(line: str, span: Span) -> Attachment | None:
    """The attachment on a question's line; None for a line of text."""
    match = _LINE.fullmatch(line) if line.startswith("![") else None
    return _read(match["link"], span) if match else None


def read_links(text: str) -> tuple[Attachment, ...]:
    """The attachments after a result's header."""
    return tuple(map(_read, _LINKS.findall(text)))


def linked(transcript: Transcript) -> Iterator[tuple[Attachment | Result | Note, Attachment]]:
    """A chat's attachments, each with the part that contains its link; an attachment in a question
    is its own part.

    Notes contain the attachments that a tool returned only for the user.
    """
    for exchange in transcript.exchanges:
        for part in exchange.question.parts if exchange.question else ():
            if isinstance(part, Attachment):
                yield part, part
        for segment in (segment for answer in exchange.answers for segment in answer.segments):
            if isinstance(segment, Proposal | Orphan) and (result := segment.result):
                yield from ((result, attachment) for attachment in result.attachments)
            elif isinstance(segment, Note):
                yield from ((segment, attachment) for attachment in read_links(segment.text))


def attachment_of(content: bytes, folder: str, suffix: str) -> Attachment:
    """An attachment for these bytes. Raises ValueError if a link cannot contain the folder's
    name.
    """
    path = f"{folder}/{hashlib.sha256(content).hexdigest()}.{suffix}"
    attachment = Attachment("", path)
    about = "" if attachment.is_text else f"{attachment.media_type} "
    return Attachment(f"{about}{size_text(len(content))}", path)


def is_name(name: str) -> bool:
    """Whether a file of this name may be an attachment."""
    return bool(re.fullmatch(rf"{PICTURE_PATH}|{TEXT_PATH}", f"_.assets/{name}"))


def _read(text: str, span: Span = NOWHERE) -> Attachment:
    label, _, path = text.removeprefix("!")[1:-1].partition("](")
    return Attachment(label, path, span)


def unescape_line(line: str) -> str:
    """A question's line without the backslash that marks it as text, not an attachment."""
    return line[1:] if line.startswith("\\") and _LINE.fullmatch(line) else line


def escape_line(line: str) -> str:
    """Escape one line of any text for column 0 in a question."""
    return (
        "\\" + line
        if line[:1] in ("!", "\\") and _LINE.fullmatch(line)
        else grammar.escape_line(line)
    )


def escape(text: str) -> list[str]:
    """The lines of any text, escaped for column 0 in a question."""
    return [escape_line(line) for line in text.split("\n")]
