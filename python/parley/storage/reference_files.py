"""Reads files as the content of references: texts, lines and pictures, within their limits.

Follows no link that has replaced a file, and blocks on no pipe or device. Other modules decide
which files may be read.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from parley.bounded_files import beginning
from parley.chat.references import (
    Lines,
    ReferenceText,
    language_of,
)
from parley.frozen import frozen
from parley.media import kind_of
from parley.storage.bounds import LeftOutError, RoomLeft, too_large
from parley.text import visible

_NO_TEXT = "it is not text"
_BEGINNING = 16
_READ_ONLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


@frozen
class NamedPicture:
    """A picture or a PDF to attach."""

    name: str
    content: bytes
    kind: str


def text_or_picture(path: Path, name: str, room: RoomLeft) -> ReferenceText | NamedPicture:
    """A file's content as a model sees it. Raises LeftOutError."""
    return _picture(path, name, room) or ReferenceText(visible(name), _text(path, name, room))


def text_only(path: Path, name: str, room: RoomLeft) -> ReferenceText:
    return ReferenceText(visible(name), _text(path, name, room))


def _picture(path: Path, name: str, room: RoomLeft) -> NamedPicture | None:
    """The picture at a real path; None if the file is not a picture. Raises LeftOutError."""
    try:
        kind = kind_of(beginning(path, _BEGINNING)) if path.resolve() == path else None
        if kind is None:
            return None
        room.take_picture()
        return NamedPicture(name, _content(path, name, room.bounds.picture_bytes), kind)
    except OSError:
        return None  # reading it as text reports the reason


def _text(path: Path, name: str, room: RoomLeft) -> str:
    """The text at a real path."""
    text = _decoded(path, name, room.bounds.file_bytes)
    room.take(len(text.encode()))
    return text


def _decoded(path: Path, name: str, most: int) -> str:
    """The text at a real path; does not follow a link that has replaced the file."""
    if path.resolve() != path:
        raise LeftOutError("another file has replaced it, so it was not read")
    try:
        content = _content(path, name, most)
    except OSError as error:
        raise LeftOutError(error.strerror or "cannot be read") from error
    return text_of(content)


def text_of(content: bytes) -> str:
    """The text of bytes, with Unix line endings. Raises ParleyError if the bytes are not text."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise LeftOutError(_NO_TEXT, "no text") from error
    if "\0" in text:
        raise LeftOutError(_NO_TEXT, "no text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(path: Path, name: str, most: int) -> bytes:
    """The bytes of a regular file, at most `most`: reading other files might never end, or might
    block.
    """
    _regular(os.lstat(path), name, most)  # first: some devices act when they are merely opened
    with os.fdopen(os.open(path, _READ_ONLY), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        _regular(status, name, most)
        content = bytearray()
        while piece := file.read(
            most + 1 - len(content)
        ):  # the file may grow while it is read, and /proc reports no sizes
            content += piece
    if len(content) > most:
        raise too_large(len(content), "more than ")
    return bytes(content)


def _regular(status: os.stat_result, name: str, most: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise LeftOutError(
            f"a folder, so not read. A pattern such as {name.rstrip('/')}/* includes its files"
        )
    if stat.S_ISLNK(status.st_mode):  # a circular link, which Python 3.13 resolves to itself
        raise LeftOutError("no such file")
    if not stat.S_ISREG(status.st_mode):
        raise LeftOutError("not a regular file, so not read")
    if status.st_size > most:
        raise too_large(status.st_size)


def lines_at(path: Path, room: RoomLeft, lines: Lines) -> ReferenceText:
    """Some lines of the text at a real path. Raises LeftOutError."""
    brought = lines.of(_decoded(path, lines.path, room.bounds.bytes_for_lines))
    if brought is None:
        raise LeftOutError("it has no such lines")
    text, title = brought
    if (size := len(text.encode())) > room.bounds.file_bytes:
        raise too_large(size)
    room.take(size)
    return ReferenceText(visible(title), text, language=language_of(lines.path))
