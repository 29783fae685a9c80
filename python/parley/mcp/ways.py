"""How each server could be spoken to last time, in a file: the next process need not try in vain first.

A hint and no more: whatever is wrong with it costs one try. Knows nothing of what a way does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, get_args

from parley.mcp.hints import Hints

Way: TypeAlias = Literal["newest", "older", "events"]
"""A way to begin with a server: to ask what it speaks, or the handshake of the revisions before, or that over
the two addresses of the first revision."""


class Ways:
    """All of them, by the identities of servers. After some days the newest way is tried again."""

    def __init__(self, path: Path) -> None:
        self._hints = Hints(path)

    def get(self, identity: str) -> Way | None:
        """The way that did last time, some days ago at the most; None for the newest."""
        word = self._hints.get(identity)
        return next((way for way in get_args(Way) if way == word), None)

    def put(self, identity: str, way: Way) -> None:
        """Keep the way that did. The time counts from when it first was this one."""
        if self.get(identity) != (None if way == "newest" else way):
            self._hints.put(identity, None if way == "newest" else way)
