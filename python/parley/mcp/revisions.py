"""Remembers which revision worked with each server, in a file for the next process.

An entry is only a hint: a wrong hint costs one attempt. Does not know how Parley connects in each
way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, get_args

from parley.hints import Hints

Way: TypeAlias = Literal["newest", "older", "events"]
"""How to connect to a server: ask for its revisions, or use the older or the oldest handshake."""


class Ways:
    """The ways by server identity. After some days, Parley tries the newest way again."""

    def __init__(self, path: Path) -> None:
        self._hints = Hints(path)

    def get(self, identity: str) -> Way | None:
        """The way that worked last time, unless that was too long ago; None for the newest way."""
        word = self._hints.get(identity)
        return next((way for way in get_args(Way) if way == word), None)

    def put(self, identity: str, way: Way) -> None:
        """Keep the way that worked. The entry's age counts from the first time that this way
        worked, until another way works.
        """
        if self.get(identity) != (None if way == "newest" else way):
            self._hints.put(identity, None if way == "newest" else way)
