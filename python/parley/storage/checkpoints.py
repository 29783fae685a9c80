"""The contents of files before and after changes, by digest, so that a change can be reverted.

The files are private, as the rest of the state folder. Does not know which change needs a content;
`changed_files` does.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from parley.atomic_files import create_file, folder_of
from parley.bounded_files import whole
from parley.errors import ParleyError
from parley.paths import private_folder
from parley.text import size_text

MOST_DAYS_KEPT = 30
MOST_KEPT = 500_000_000
"""How long contents are kept, and how many bytes of them; the oldest are deleted first."""
LARGEST_KEPT = 50_000_000
"""The maximum number of bytes of one content."""
_DAY_S = 24 * 3600.0
_NEW_S = 3600.0
"""A content younger than this is never deleted, because a change may be about to use it."""


class Checkpoints:
    """Contents by digest, in a folder that editor and shell share."""

    def __init__(
        self,
        folder: Path,
        now: Callable[[], float] = time.time,
        most_bytes: int = MOST_KEPT,
    ) -> None:
        self._folder = folder
        self._now = now
        self._most_bytes = most_bytes
        self._is_swept = False

    def keep(self, content: bytes | None) -> str:
        """Keep a content durably; returns its digest, "" for no content. Raises ParleyError."""
        if content is None:
            return ""
        if len(content) > LARGEST_KEPT:
            raise ParleyError(
                f"the file is larger than {size_text(LARGEST_KEPT)}, so its old content cannot be kept"
            )
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        try:
            private_folder(private_folder(self._folder) / digest[:2])
            with folder_of(path) as folder:
                try:
                    create_file(folder, path.name, content, 0o600)
                except FileExistsError:
                    os.utime(path.name, (self._now(),) * 2, dir_fd=folder)
            self._sweep()
        except OSError as error:
            raise ParleyError(
                f"its old content cannot be kept in {self._folder}: {error.strerror}"
            ) from error
        return digest

    def content(self, digest: str) -> bytes | None:
        """The content with this digest; None if it was deleted, or if the file has another
        content."""
        try:
            content = whole(self._path(digest), LARGEST_KEPT)
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == digest else None

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def _sweep(self) -> None:
        """Delete the contents that are too old or too many; each process does this once."""
        if self._is_swept:
            return
        self._is_swept = True
        now, kept = self._now(), 0
        found = list[tuple[float, int, Path]]()
        for path in self._folder.glob("??/*"):
            with suppress(OSError):
                status = path.lstat()
                found.append((status.st_mtime, status.st_size, path))
        for changed, size, path in sorted(found, reverse=True):
            kept += size
            age = now - changed
            if age > _NEW_S and (age > MOST_DAYS_KEPT * _DAY_S or kept > self._most_bytes):
                with suppress(OSError):
                    path.unlink()
