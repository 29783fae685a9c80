"""UTF-8 that arrives in whole lines only: what a stdio server writes, as the SDK is to get it.

The SDK joins a line anew with each piece of it: minutes of computing for a large one. In this encoding it
gets each line in one piece, in linear time, and never one that would fill the memory: that is dropped.
"""

import codecs

NAME = "parley-lines"
MOST_BYTES = 64_000_000


class Lines(codecs.IncrementalDecoder):
    """Holds back bytes until their line ends, `most` of them."""

    def __init__(self, errors: str = "strict", most: int = MOST_BYTES) -> None:
        super().__init__(errors)
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0

    def decode(self, piece: object, final: bool = False) -> str:
        """The text of all lines that are complete by now."""
        ended, newline, rest = bytes(piece).rpartition(b"\n")  # type: ignore[call-overload]
        if not newline:
            self._hold(rest)
            return self._taken() if final else ""
        first, newline, others = (ended + newline).partition(b"\n")
        self._hold(first + newline)
        lines: str = self._taken() + others.decode("utf-8", self.errors)
        self._hold(rest)
        return f"{lines}{self._taken()}" if final else lines

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        self._pieces.append(piece)
        if self._size > self._most:
            self._pieces.clear()

    def _taken(self) -> str:
        line = b"".join(self._pieces) if self._size <= self._most else b""
        self._pieces, self._size = [], 0
        return line.decode("utf-8", self.errors)


def _find(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != NAME:
        return None
    utf8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(utf8.encode, utf8.decode, incrementaldecoder=Lines, name=NAME)


codecs.register(_find)
