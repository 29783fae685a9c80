"""Locks between processes. Each lock is a file while it is held; when a process dies, its locks are
released.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a file's lock, and then remove the file; yields False if another process holds the lock.

    A process that opened the file before its removal does not hold the lock: it then tries the new
    file.
    """
    while True:
        with _opened(path) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
            if not _is_at(lock, path):
                continue
            try:
                yield True
            finally:
                path.unlink(missing_ok=True)
            return


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A descriptor of a file, which is created if necessary, with its folder."""
    how = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        file = os.open(path, how, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        file = os.open(path, how, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def _is_at(file: int, path: Path) -> bool:
    """Whether this open file is still the file at this path."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), path.stat())
    return False
