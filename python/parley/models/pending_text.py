"""Text whose meaning is not yet known, kept in pieces so that each character is read only once.

Stream readers must not depend on the cuts, so a piece that only continues a run of blanks or
backticks may wait for its end. Knows nothing of the text's meaning.
"""

from __future__ import annotations

_MOST = 64


def portions(piece: str) -> list[str]:
    """A piece in portions small enough for a reader that cuts off the part it settles."""
    return [piece[start : start + _MOST] for start in range(0, len(piece), _MOST)]


class PendingText:
    """The text that arrived since a reader last looked."""

    def __init__(self) -> None:
        self._pieces = list[str]()

    def add(self, piece: str) -> None:
        """Keep a piece for later."""
        self._pieces.append(piece)

    def goes_on(self, buffer: str, piece: str) -> bool:
        """Whether a piece only continues the run that ends `buffer` and the waiting text."""
        last = (self._pieces[-1] if self._pieces else buffer)[-1:]
        return (last == "`" and not piece.strip("`")) or (last.isspace() and not piece.strip())

    def take(self) -> str:
        """All waiting text, which is then cleared."""
        pieces, self._pieces = self._pieces, []
        return "".join(pieces)
