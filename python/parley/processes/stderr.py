"""The last lines of a child process's stderr, read immediately: a full pipe blocks the child.

Knows nothing about the child.
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
_CHUNKS = 100  # in one go, because a child may write faster than we read


class StderrTail:
    """A pipe that keeps the last lines: `open` the pipe for each child, then `detach` our copy."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=LINES)
        self._reader = -1
        self._child_end: TextIO | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial = ""
        self._keeps = self._is_stale = False

    def keep(self) -> None:
        """Keep this child's lines until the next child writes something."""
        self.close()
        self._keeps = True

    def open(self) -> TextIO:
        """The file to pass to a new child as its stderr; forgets an earlier child's lines."""
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
        """Close our copy of the writing end, so that the pipe ends with the child."""
        if self._child_end is not None:
            self._child_end.close()
            self._child_end = None

    def drain(self) -> None:
        """Read everything that has been written so far."""
        for _ in range(_CHUNKS):
            if not self._read():
                break

    def close(self) -> None:
        """Read the rest and close the pipe; the lines are kept."""
        self.detach()
        self.drain()
        self._take(b"")
        self._release()

    def _read(self) -> bool:
        """Read one chunk; return whether there was a chunk to read."""
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
