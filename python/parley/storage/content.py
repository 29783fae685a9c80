"""The bytes or the text of a chat file, which must be a regular file of limited size."""

from __future__ import annotations

from pathlib import Path

from parley.bounded_files import beginning
from parley.errors import ParleyError, reason_of
from parley.text import size_text

CHAT_BYTES = 100_000_000


def content(path: Path) -> bytes:
    """The bytes of a regular file of limited size: reading other files might never end, or might
    block.

    Raises ParleyError.
    """
    try:
        return bytes_of(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def text_of(path: Path) -> str:
    """The text of a regular file of limited size; preserves bytes that are not UTF-8. Raises
    ParleyError.
    """
    return decoded(content(path))


def decoded(data: bytes) -> str:
    """Bytes as the text of a chat."""
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """The text of a chat as the bytes from which it was decoded."""
    return text.encode("utf-8", "surrogateescape")


def opening(path: Path, size: int) -> bytes:
    """The first bytes of a regular file, however large. Raises ParleyError."""
    try:
        return beginning(path, size)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def bytes_of(path: Path) -> bytes:
    """Does the same as `content`, but raises OSError."""
    data = beginning(path, CHAT_BYTES + 1)
    if len(data) > CHAT_BYTES:
        raise too_large(path)
    return data


def too_large(what: object) -> ParleyError:
    """The error for a file larger than any chat."""
    return ParleyError(
        f"cannot read {what}: it is larger than {size_text(CHAT_BYTES)}, which is too large for a chat"
    )


def _unreadable(path: Path, error: Exception) -> ParleyError:
    return ParleyError(f"cannot read {path}: {reason_of(error)}")
