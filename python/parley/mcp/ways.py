"""How each server could be spoken to last time, in a file: the next process need not try in vain first.

A hint and no more: whatever is wrong with it costs one try. Knows nothing of what a way does.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from parley.paths import private_file, private_folder
from parley.regular import whole

Way: TypeAlias = Literal["newest", "older", "events"]
"""A way to begin with a server: to ask what it speaks, or the handshake of the revisions before, or that over
the two addresses of the first revision."""

_MOST_BYTES = 1_000_000
_MOST = 500
_GOOD_FOR_S = 7 * 24 * 3600.0
"""Then the newest way is tried again: the server may have been brought up to date."""


class Ways:
    """All of them, by the identities of servers, in a file that processes share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, identity: str) -> Way | None:
        """The way that did last time, some days ago at the most; None for the newest."""
        match self._table().get(_key(identity)):
            case [str(way), int() | float() as since] if 0 <= time.time() - since < _GOOD_FOR_S:
                return next((known for known in get_args(Way) if known == way), None)
            case _:
                return None

    def put(self, identity: str, way: Way) -> None:
        """Keep the way that did. The time counts from when it first was this one."""
        if self.get(identity) == (None if way == "newest" else way):
            return
        table, key = self._table(), _key(identity)
        table.pop(key, None)
        if way != "newest":
            table[key] = [way, time.time()]
        new = self._path.with_suffix(f".{os.getpid()}.new")
        with suppress(OSError):  # then it is found out again
            private_folder(self._path.parent)
            private_file(new).write_text(json.dumps(dict(list(table.items())[-_MOST:])), encoding="utf-8")
            new.replace(self._path)
        with suppress(OSError):
            new.unlink(missing_ok=True)

    def _table(self) -> dict[str, Any]:
        try:
            table = json.loads(whole(self._path, _MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        return table if isinstance(table, dict) else {}


def _key(identity: str) -> str:
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]
