"""Text that waits until it is known what it is, kept in pieces so that each character is looked at once.

Readers of a stream are the same however it is cut, so a piece that only goes on a run of blanks or backticks
may wait for what ends it. Knows nothing of what the text may become.
"""

from __future__ import annotations

_MOST = 64


def portions(piece: str) -> list[str]:
    """A piece in portions small enough for a reader that cuts off what it settles."""
    return [piece[start : start + _MOST] for start in range(0, len(piece), _MOST)]


class PendingText:
    """The text that came since a reader last looked."""

    def __init__(self) -> None:
        self._pieces = list[str]()

    def add(self, piece: str) -> None:
        """Keep a piece for later."""
        self._pieces.append(piece)

    def goes_on(self, buffer: str, piece: str) -> bool:
        """Whether a piece only goes on the run in which `buffer`, and what waits after it, ends."""
        last = (self._pieces[-1] if self._pieces else buffer)[-1:]
        return (last == "`" and not piece.strip("`")) or (last.isspace() and not piece.strip())

    def take(self) -> str:
        """All of it; nothing waits then."""
        pieces, self._pieces = self._pieces, []
        return "".join(pieces)
