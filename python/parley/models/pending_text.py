"""Text whose meaning is not yet known, kept in pieces so that each character is read only once.

A piece that only continues a run of whitespace or backticks can wait for the run's end, because the
result must not depend on where the stream is split. Knows nothing about the text's meaning.
"""

from __future__ import annotations

_MOST = 64


def portions(piece: str) -> list[str]:
    """Split a piece into portions that are small enough for a reader that cuts off text after each
    portion.
    """
    return [piece[start : start + _MOST] for start in range(0, len(piece), _MOST)]


class PendingText:
    """The text that arrived after a reader last took it."""

    def __init__(self) -> None:
        self._pieces = list[str]()

    def add(self, piece: str) -> None:
        """Keep a piece for later."""
        self._pieces.append(piece)

    def goes_on(self, buffer: str, piece: str) -> bool:
        """Whether a piece only continues the run at the end of the waiting text, or of `buffer`."""
        last = (self._pieces[-1] if self._pieces else buffer)[-1:]
        return (last == "`" and not piece.strip("`")) or (last.isspace() and not piece.strip())

    def take(self) -> str:
        """Return all waiting text, and clear it."""
        pieces, self._pieces = self._pieces, []
        return "".join(pieces)
