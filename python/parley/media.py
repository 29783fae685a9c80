"""Kinds of files that a model can look at: by their first bytes, by their endings, by their media types.

What anybody calls a file is not asked: a server may say anything of what it sends.
"""

from __future__ import annotations

TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
}
"""The media type of each kind, by the ending of its files."""
PDF = TYPES["pdf"]
MOST_BYTES = 32_000_000
"""Of a picture that is kept: no provider takes more."""

_BEGINNINGS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg", b"GIF8": "gif", b"%PDF-": "pdf"}


def kind_of(content: bytes) -> str | None:
    """The ending of files with such bytes; None for what no model can look at."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((kind for beginning, kind in _BEGINNINGS.items() if content.startswith(beginning)), None)
