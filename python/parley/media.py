"""Kinds of files that a model can view: their first bytes, file extensions and media types.

A server may declare any type for a file, so only the bytes count.
"""

from __future__ import annotations

TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
}
"""The media type of each kind, by file extension."""
PDF = TYPES["pdf"]
PICTURE_BYTES = 32_000_000
"""The size limit for a stored picture, in bytes; providers do not accept larger pictures."""

_BEGINNINGS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg", b"GIF8": "gif", b"%PDF-": "pdf"}


def kind_of(content: bytes) -> str | None:
    """The file extension for these bytes; None if no model can view this kind of file."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next(
        (kind for beginning, kind in _BEGINNINGS.items() if content.startswith(beginning)), None
    )
