"""Locks that processes share: each a file, there while it is held; a dead process gives its own back."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file, and take the file away at the end; False where another process holds it.

    Who waited at a file that was taken away meanwhile holds nothing: it looks for the one that is there now.
    """
    path.parent.mkdir(mode=0o700, exist_ok=True)
    while True:
        with path.open("a+b") as lock:
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


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Whether this open file is still the one of this path."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False
