"""The limits of the content that a question includes, and the room that is left. Pure.

Knows numbers and the reasons for leaving something out; other modules read files.
"""

from __future__ import annotations

from collections.abc import Callable

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.media import PICTURE_BYTES
from parley.storage.patterns import SearchBudget
from parley.text import size_text

MORE, MORE_PICTURES = "more", "too many pictures"


@frozen
class Bounds:
    """Limits for one question: on references, texts and bytes, and on the files examined."""

    references: int = 100
    texts: int = 100
    file_bytes: int = 262_144
    bytes_for_lines: int = 4_194_304
    """The limit for a file from which only some lines are included."""
    all_bytes: int = 1_048_576
    opened: int = 1_000
    names: int = 20_000
    seconds: float = 5.0
    pictures: int = 20
    picture_bytes: int = PICTURE_BYTES


class LeftOutError(ParleyError):
    """The reason why a file is not included, and the kind of reason, for a summary of many
    files.
    """

    def __init__(self, why: str, kind: str = "cannot be read") -> None:
        super().__init__(why)
        self.kind = kind


class RoomLeft:
    """The remaining room for included content, and for the search."""

    def __init__(self, bounds: Bounds, now: Callable[[], float]) -> None:
        until = now() + bounds.seconds
        self.bounds = bounds
        self.looks = SearchBudget(bounds.names, lambda: now() > until)
        self._texts, self._bytes, self._opened = bounds.texts, bounds.all_bytes, bounds.opened
        self._pictures = bounds.pictures

    def open(self) -> bool:
        """Whether one more file that matches a pattern may be opened; if so, counts it."""
        self._opened -= 1
        return self._texts > 0 and self._bytes > 0 and self._opened >= 0

    def take(self, size: int) -> None:
        """Use room for a text, or raise LeftOutError."""
        if self._texts <= 0 or size > self._bytes:
            raise LeftOutError(f"left out: {self.most()}. Ask about it in another question", MORE)
        self._texts -= 1
        self._bytes -= size

    def take_picture(self) -> None:
        """Use room for a picture, or raise LeftOutError."""
        if self._pictures <= 0:
            most = f"a question can include at most {self.bounds.pictures} pictures"
            raise LeftOutError(f"left out: {most}. Ask about it in another question", MORE_PICTURES)
        self._pictures -= 1

    def most(self) -> str:
        """The limits in words."""
        size = size_text(self.bounds.all_bytes)
        return f"a question can include at most {self.bounds.texts} files or other texts, {size} in all"


def too_large(size: int, about: str = "") -> LeftOutError:
    return LeftOutError(f"too large ({about}{size_text(size)}), so not read", "too large")
