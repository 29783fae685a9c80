"""Remembers which revision worked with each server, in a file for the next process.

Only a hint: a wrong entry costs one attempt. Knows nothing of how a way works.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, get_args

from parley.mcp.hints import Hints

Way: TypeAlias = Literal["newest", "older", "events"]
"""A way to begin with a server: ask for its revisions, the older handshake, or the oldest one."""


class Ways:
    """The ways by the servers' identities. After some days the newest way is tried again."""

    def __init__(self, path: Path) -> None:
        self._hints = Hints(path)

    def get(self, identity: str) -> Way | None:
        """The way that worked last time, within some days; None for the newest."""
        word = self._hints.get(identity)
        return next((way for way in get_args(Way) if way == word), None)

    def put(self, identity: str, way: Way) -> None:
        """Keep the way that worked. Its age counts from when it first was this one."""
        if self.get(identity) != (None if way == "newest" else way):
            self._hints.put(identity, None if way == "newest" else way)
