"""A small file of hints that processes share; a hint lasts some days, and may be missing or wrong.

Does not know what the hints mean.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from parley.bounded_files import whole
from parley.paths import private_file, private_folder

_MOST_BYTES = 1_000_000
_MOST = 500
_GOOD_FOR_S = 7 * 24 * 3600.0


class Hints:
    """A word for each key; the file contains only the keys' digests. A word's age counts from its
    `put`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> str | None:
        """The key's word, unless it is missing or too old."""
        match self._table().get(_digest(key)):
            case [str(word), int() | float() as since] if 0 <= time.time() - since < _GOOD_FOR_S:
                return word
            case _:
                return None

    def put(self, key: str, word: str | None) -> None:
        """Store a word for the key; None deletes the key's word."""
        table, digest = self._table(), _digest(key)
        if table.pop(digest, None) is None and word is None:
            return
        if word is not None:
            table[digest] = [word, time.time()]
        new = self._path.with_suffix(f".{os.getpid()}.new")
        with suppress(OSError):  # a missing hint costs only one attempt
            private_folder(self._path.parent)
            private_file(new).write_text(
                json.dumps(dict(list(table.items())[-_MOST:])), encoding="utf-8"
            )
            new.replace(self._path)
        with suppress(OSError):
            new.unlink(missing_ok=True)

    def _table(self) -> dict[str, Any]:
        try:
            table = json.loads(whole(self._path, _MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        return table if isinstance(table, dict) else {}


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
