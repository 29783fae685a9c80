"""The pictures that a chat's buffer may show, and the lines above them. Pure.

Knows attachments and rows; other plugins draw pictures, and Lua knows which plugin is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from parley.chat.attachments import linked
from parley.chat.transcript import Attachment, Result, Transcript, is_blank
from parley.late_patterns import late_pattern
from parley.media import PDF

_PLAIN = late_pattern(r"[\w .,+=@-]+/[0-9a-f]{64}\.[a-z]+")
"""Matches paths that every picture program interprets as a path and as nothing else."""


def picture_rows(transcript: Transcript, lines: Sequence[str]) -> list[tuple[int, str]]:
    """The rows with a picture below them, in order, and the pictures' paths in the chat's folder.

    A question's picture is drawn below its line. A result's picture is drawn below the blank line
    after the result, because the result is folded.
    """
    return [
        (row, picture.path) for row, picture in _pictures(transcript, lines) if _is_drawn(picture)
    ]


def pictures_of(transcript: Transcript, paths: Iterable[str]) -> list[Attachment]:
    """The chat's pictures that have these paths."""
    pictures = {
        picture.path: picture for _, picture in _pictures(transcript, ()) if _is_drawn(picture)
    }
    return [pictures[path] for path in dict.fromkeys(paths) if path in pictures]


def _is_drawn(attachment: Attachment) -> bool:
    is_picture = not attachment.is_text and attachment.media_type != PDF
    return is_picture and bool(_PLAIN.fullmatch(attachment.path))


def _pictures(transcript: Transcript, lines: Sequence[str]) -> Iterator[tuple[int, Attachment]]:
    for holder, attachment in linked(transcript):
        if isinstance(holder, Attachment):
            yield holder.span.start, attachment
        elif isinstance(holder, Result):
            end = holder.span.end
            yield end if end < len(lines) and is_blank(lines[end]) else end - 1, attachment
