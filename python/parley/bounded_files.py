"""Reads only regular files of limited size: reading a pipe or a device might never end, or might
block.

Does not know their content. Raises OSError, with the reason in `strerror`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path

MOST_SETTINGS = 10_000_000
"""More bytes than in any settings file."""

_PIECE = 1_000_000
_READ_ONLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)


def beginning(path: Path, size: int, *, follows: bool = True) -> bytes:
    """The first bytes of a regular file, however large; `follows` a link at the path, or refuses
    it.
    """
    _check(path, path.stat())  # before opening it: some devices react to that
    flags = _READ_ONLY if follows else _READ_ONLY | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        _check(path, os.fstat(file.fileno()))
        return file.read(size)


def both_ends(path: Path, first: int, last: int) -> tuple[bytes, bytes]:
    """The first bytes of a regular file, and the last bytes after them, which may be none."""
    _check(path, path.stat())
    with os.fdopen(os.open(path, _READ_ONLY), "rb") as file:
        _check(path, status := os.fstat(file.fileno()))
        beginning = file.read(first)
        file.seek(max(len(beginning), status.st_size - last))
        return beginning, file.read(last)


def whole(path: Path, most: int = MOST_SETTINGS, *, follows: bool = True) -> bytes:
    """All bytes of a regular file with at most `most` bytes."""
    content = beginning(path, most + 1, follows=follows)
    if len(content) > most:
        raise _too_large(path, most)
    return content


def sha256(path: Path, most: int) -> str:
    """The hexadecimal digest of a regular file with at most `most` bytes. Reads it in pieces."""
    _check(path, path.stat())
    with os.fdopen(os.open(path, _READ_ONLY), "rb") as file:
        _check(path, os.fstat(file.fileno()))
        digest, size = hashlib.sha256(), 0
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
            if size > most:
                raise _too_large(path, most)
        return digest.hexdigest()


def _too_large(path: Path, most: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {most} bytes", str(path))


def _check(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
