"""Standard output and standard error: on a terminal nothing of others commands it, into a pipe goes what is.

Both may be one terminal, so one object writes to both: it knows whether a line has begun, and takes the
status away before anything else is written. Where output cannot be written the command goes on, and says so
at its end.
"""

from __future__ import annotations

import io
import json
import os
import unicodedata
from collections.abc import Mapping
from typing import TextIO

from parley.cli.exits import COMPLETE, FAILED, kind_of
from parley.text import VisiblePieces, one_line, visible

_CLEAR = "\r\x1b[K"


class Screen:
    """Where a command writes; made once for each."""

    def __init__(self, out: TextIO | None, err: TextIO | None, environ: Mapping[str, str]) -> None:
        self._out, self._err = out, err
        self._out_is_terminal, self._err_is_terminal = _is_terminal(out), _is_terminal(err)
        self._draws = self._err_is_terminal and environ.get("TERM", "dumb") != "dumb"
        self._pieces = VisiblePieces()
        self._at_start = True
        self._status, self._is_drawn = "", False
        self._failure = ""
        self.needs_output = True
        """Whether it is a failure that standard output is closed from the start."""
        self.as_json = False
        """Whether a program reads: then all that is said is a line of JSON on standard output."""
        self.has_failure = False
        """Whether something went wrong: then the command does not end with 0."""
        _prepare(out, self._out_is_terminal)
        _prepare(err, True)

    def say(self, text: str) -> None:
        """Write to standard output, at once."""
        if self._out_is_terminal:
            text = self._pieces.end() + visible(text)
        self._write_out(text)
        if self._at_start:
            self._draw()

    def stream(self, piece: str) -> None:
        """Write a piece of a text that comes in many."""
        self._write_out(self._pieces.feed(piece) if self._out_is_terminal else piece)

    def complain(self, text: str) -> None:
        """Write a line to standard error, below what stands on the same terminal."""
        self._erase()
        begin = "\n" if self._err_is_terminal and not self._at_start else ""
        self._write_err(begin + visible(text).replace("\n", "\\n") + "\n")
        self._at_start = True
        self._draw()

    def status(self, text: str) -> None:
        """Say what is being done, on a terminal and while no line has begun there; "" for nothing."""
        self._erase()
        self._status = one_line(text)
        if self._at_start:
            self._draw()

    def end(self, code: int) -> int:
        """The exit code; where something went wrong, or output was lost, it says so."""
        code = code or (FAILED if self.has_failure else COMPLETE)
        self.status("")
        if self._out_is_terminal:
            self._write_out(self._pieces.end())
        if self.as_json:
            self._write_out(json.dumps({"type": "end", "code": code, "kind": kind_of(code)}) + "\n")
        if not self._failure:
            return code
        self.complain(f"parley: cannot write to standard output: {self._failure}")
        return code or FAILED

    def _write_out(self, text: str) -> None:
        if not text:
            return
        self._erase()
        if self._out_is_terminal:
            self._at_start = text.endswith("\n")
        if self._out is None:
            self._failure = "it is closed" if self.needs_output else ""
        elif (failure := _write(self._out, text)) is not None:
            self._out, self._failure = io.StringIO(), failure

    def _write_err(self, text: str) -> None:
        if self._err is not None and _write(self._err, text) is not None:
            self._err = None

    def _draw(self) -> None:
        if self._draws and self._status and not self._is_drawn:
            self._write_err(_CLEAR + _cut(self._status, _width(self._err) - 1))
            self._is_drawn = True

    def _erase(self) -> None:
        if self._is_drawn:
            self._write_err(_CLEAR)
            self._is_drawn = False


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def _prepare(stream: TextIO | None, for_people: bool) -> None:
    """A terminal of any encoding takes all text, what it lacks as escapes; programs get the very bytes."""
    if not isinstance(stream, io.TextIOWrapper):
        return
    if for_people:
        stream.reconfigure(errors="backslashreplace")
    else:
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def _write(stream: TextIO, text: str) -> str | None:
    """Write at once; None, or why it failed, "" where whoever read it has seen enough."""
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError) as error:
        _discard(stream)
        is_over = isinstance(error, BrokenPipeError)
        return "" if is_over else getattr(error, "strerror", None) or str(error)
    return None


def _discard(stream: TextIO) -> None:
    """Have what waits in the stream's buffer go nowhere, or the interpreter would fail on it at its end."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        return


def _width(stream: TextIO | None) -> int:
    try:
        assert stream is not None
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AssertionError):
        return 80


def _cut(text: str, cells: int) -> str:
    """The start of a text that fits into so many cells of a terminal."""
    for at, character in enumerate(text):
        if unicodedata.category(character) not in ("Mn", "Me"):
            cells -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if cells < 0:
            return text[:at]
    return text
