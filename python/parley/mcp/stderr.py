"""The last lines a child process wrote to its stderr, read as they come: a full pipe would stop the child.

Knows nothing of what the child is.
"""

import asyncio
import codecs
import os
from collections import deque
from typing import TextIO

from parley.text import visible

LINES = 200
_CHUNK = 65_536
_LINE_LENGTH = 1000
_CHUNKS = 100  # at once; a child may write faster than we read


class StderrTail:
    """A pipe into the last lines: `open` it for each child, `detach` our copy of its end once it runs."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=LINES)
        self._reader = -1
        self._child_end: TextIO | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial = ""
        self._keeps = self._is_stale = False

    def keep(self) -> None:
        """Keep what this child wrote until the next one writes something."""
        self.close()
        self._keeps = True

    def open(self) -> TextIO:
        """The file to give a new child as its stderr; what an earlier child wrote is forgotten."""
        self.close()
        self._is_stale, self._keeps = self._keeps, False
        if not self._is_stale:
            self.lines.clear()
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        asyncio.get_running_loop().add_reader(self._reader, self._read)
        self._child_end = os.fdopen(writer, "w")
        return self._child_end

    def detach(self) -> None:
        """Leaves the writing end to the child alone, so that its end is the end of the pipe."""
        if self._child_end is not None:
            self._child_end.close()
            self._child_end = None

    def drain(self) -> None:
        """Takes in what has been written up to now."""
        for _ in range(_CHUNKS):
            if not self._read():
                break

    def close(self) -> None:
        """Takes in the rest and lets go of the pipe; the lines stay."""
        self.detach()
        self.drain()
        self._take(b"")
        self._release()

    def _read(self) -> bool:
        """Takes in one chunk; False if there is none now, or no more."""
        if self._reader < 0:
            return False
        try:
            chunk = os.read(self._reader, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        self._take(chunk)
        if not chunk:
            self._release()
        return bool(chunk)

    def _take(self, chunk: bytes) -> None:
        text = self._partial + self._decoder.decode(chunk, not chunk)
        *lines, rest = text.split("\n")
        if not chunk and rest:
            lines, rest = [*lines, rest], ""
        if lines and self._is_stale:
            self.lines.clear()
            self._is_stale = False
        self._partial = rest[:_LINE_LENGTH]  # an endless line would fill the memory
        self.lines.extend(visible(line.rstrip("\r"))[:_LINE_LENGTH] for line in lines[-LINES:])

    def _release(self) -> None:
        if self._reader >= 0:
            asyncio.get_running_loop().remove_reader(self._reader)
            os.close(self._reader)
            self._reader = -1
