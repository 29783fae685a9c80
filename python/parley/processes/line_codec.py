"""A UTF-8 codec that passes a stdio server's output to the SDK only in whole lines.

The SDK joins the pieces of a line again each time a piece arrives, which takes minutes for a long
line. With this codec, the SDK receives each line in one piece, in linear time, and `LONG_LINE`
instead of a line that would fill the memory.
"""

import codecs

NAME = "parley-lines"
LINE_BYTES = 64_000_000
LONG_LINE = "parley: too long a line"
"""Not a message in any protocol; if a server itself writes this line, the line counts as too
long.
"""


class LineDecoder(codecs.IncrementalDecoder):
    """Holds bytes back until their line is complete, up to `most` bytes."""

    def __init__(self, errors: str = "strict", most: int = LINE_BYTES) -> None:
        super().__init__(errors)
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_told = False

    def decode(self, piece: object, final: bool = False) -> str:
        """The text of all lines that are complete so far."""
        ended, newline, rest = bytes(piece).rpartition(b"\n")  # type: ignore[call-overload]
        if not newline:
            warning = self._hold(rest)
            return warning + (self._take_line() if final else "")
        first, newline, others = (ended + newline).partition(b"\n")
        warning = self._hold(first + newline)
        lines = warning + self._take_line() + others.decode("utf-8", self.errors) + self._hold(rest)
        return f"{lines}{self._take_line()}" if final else lines

    def _hold(self, piece: bytes) -> str:
        """Keep a piece of the line; return the line `LONG_LINE` once if the line is too long."""
        self._size += len(piece)
        self._pieces.append(piece)
        if self._size <= self._most:
            return ""
        self._pieces.clear()
        was_told, self._is_told = self._is_told, True
        return "" if was_told else f"{LONG_LINE}\n"

    def _take_line(self) -> str:
        line = b"".join(self._pieces)
        self._pieces, self._size, self._is_told = [], 0, False
        return line.decode("utf-8", self.errors)


def _find(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != NAME:
        return None
    utf8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(utf8.encode, utf8.decode, incrementaldecoder=LineDecoder, name=NAME)


codecs.register(_find)
