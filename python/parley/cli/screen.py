"""Standard output and standard error: escapes text from other sources, but only on a terminal.

Both may be the same terminal, so one object writes to both. It keeps the changing rows below the
output: the end of an unfinished answer, the status, or a question to the user. If the output cannot
be written, the command continues and reports the error when it ends.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import stat
import sys
import termios
import time
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from parley.cli.exits import COMPLETE, FAILED, kind_of, worst
from parley.errors import reason_of
from parley.late_patterns import late_pattern
from parley.text import VisiblePieces, one_line, visible

if TYPE_CHECKING:
    from parley.cli.answer import ShownAnswer

_FRAME_S = 0.03
"""The fewest seconds between two drawings while text arrives."""
_HALVES = late_pattern("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates, which UTF-8 cannot encode, except the range for undecodable bytes (PEP 383)."""
_FULL_SCREEN, _BACK = "\x1b[?1049h\x1b[H\x1b[2J", "\x1b[?1049l"


class Screen:
    """The output of one command."""

    def __init__(self, out: TextIO | None, err: TextIO | None, environ: Mapping[str, str]) -> None:
        self._out, self._err = out, err
        self._out_is_terminal, self._err_is_terminal = _is_terminal(out), _is_terminal(err)
        self.draws = environ.get("TERM", "dumb") != "dumb" and (
            self._out_is_terminal or self._err_is_terminal
        )
        """Whether rows on the terminal can be redrawn and have styles."""
        self.has_colours = self.draws and not environ.get("NO_COLOR")
        self._formats = self.draws and self._out_is_terminal and _is_utf_8(out)
        self._is_pipe = _is_pipe(out)
        self._is_behind_pipe = False
        """Whether another program may still write our piped output to the terminal: `| tee`."""
        self._answer: ShownAnswer | None = None
        self._pieces = VisiblePieces()
        self._at_start = True
        self._status = ""
        self._dialog = list[str]()
        self._below = list[str]()
        """The rows drawn below the output."""
        self._drawn_at = 0.0
        self._awaits_frame = False
        self._failure = ""
        self._is_cut = False
        self.as_json = False
        """Whether a program reads the output: if so, every text is JSON on standard output."""
        self.is_conversation = False
        """Whether messages use the commands of `parley chat`."""
        self.is_quiet = False
        """Whether only the requested output and errors are printed."""
        self.has_failure = False
        """Whether an error was reported, so that the command does not exit with 0."""
        _prepare(out, self._out_is_terminal)
        _prepare(err, True)

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads standard output."""
        return self._out_is_terminal and not self.as_json

    @property
    def can_ask(self) -> bool:
        """Whether a person can see a question and answer it."""
        return _is_terminal(sys.stdin) and (self._out_is_terminal or self._err_is_terminal)

    @property
    def has_shown_all(self) -> bool:
        """Whether all output was written, so a person may have read it."""
        return self._out is not None and not self._is_cut

    @property
    def shows_status(self) -> bool:
        """Whether a person or a program sees the status."""
        return self.as_json or (self.draws and self._err_is_terminal and not self.is_quiet)

    @property
    def terminal(self) -> int | None:
        """The handle of the terminal with the drawn rows; None if nothing is drawn."""
        stream = self._out if self._out_is_terminal else self._err
        return stream.fileno() if self.draws and stream is not None else None

    @property
    def width(self) -> int:
        """A row's width in cells."""
        return self._columns()

    @property
    def height(self) -> int:
        """The terminal's height in rows."""
        return self._size().lines or 24

    def say(self, text: str) -> None:
        """Write to standard output, at once."""
        if self._out_is_terminal:
            text = self._end_of_text() + visible(text)
        self._write_out(text)
        self._draw()

    def stream(self, piece: str) -> None:
        """Write a piece of a text that arrives in pieces; on a terminal, format it as Markdown."""
        if not self._out_is_terminal:
            self._write_out(piece)
            return
        piece = self._pieces.feed(piece)
        if not self._formats:
            self._write_out(piece)
            return
        if self._answer is None:
            from parley.cli.answer import ShownAnswer

            self._answer = ShownAnswer(has_colours=self.has_colours)
        if finished := self._answer.feed(piece, self.width - 1):
            self._write_out(finished)
            self._draw()
        else:
            self._draw_soon()

    def end_text(self) -> None:
        """End the text that arrived in pieces; the next output starts on a new line."""
        if self._out_is_terminal:
            self._write_out(self._end_of_text())
            self._write_out("" if self._at_start else "\n")
            self._draw()

    def record(self, rows: Sequence[str]) -> None:
        """Write styled rows of safe text, as a record of choices and calls."""
        text = "".join(f"{row}\n" for row in rows)
        if self._out_is_terminal:
            self._write_out(self._end_of_text() + text)
        else:
            self._erase()
            self._write_err(text)
        self._draw()

    def ask(self, rows: Sequence[str]) -> None:
        """Show styled rows of safe text below the output; they replace earlier rows."""
        if self._out_is_terminal:
            self._write_out(self._end_of_text())
        if self._is_behind_pipe and rows:
            self._is_behind_pipe = False
            self._live("\n")  # do not draw over late output from the pipe
        self._dialog = list(rows)
        self._draw()

    def line(self, question: str) -> str:
        """Ask for a line, and return the user's text. Discards earlier input."""
        with suppress(termios.error, OSError, ValueError):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        self._erase()
        self._live(visible(question))
        typed = sys.stdin.readline()
        self._at_start = True
        return typed.strip()

    def complain(self, text: str) -> None:
        """Write a line to standard error; on a terminal, start a new line and break at spaces."""
        self._erase()
        begin = "\n" if self._err_is_terminal and not self._at_start else ""
        line = visible(text).replace("\n", "\\n")
        width = self._columns(self._err) - 1
        if self._err_is_terminal and len(line) > width:
            from textwrap import wrap

            line = "\n".join(wrap(line, width, break_long_words=False, break_on_hyphens=False))
        self._write_err(f"{begin}{line}\n")
        self._at_start = True
        self._draw()

    def status(self, text: str) -> None:
        """Show the status on a line of its own on a terminal; "" removes it."""
        self._status = one_line(text) if self.shows_status else ""
        self._draw()

    def turn_page(self, *, is_open: bool) -> None:
        """Use the whole terminal for a page, or restore its content."""
        self._live(_FULL_SCREEN if is_open else _BACK)

    def page(self, rows: Sequence[str]) -> None:
        """Draw a page on the whole terminal."""
        self._live("\x1b[H" + "\n".join(f"{row}\x1b[K" for row in rows) + "\x1b[J")

    def give_way(self) -> None:
        """Remove the rows below the output until `go_on`, so other programs can write."""
        self._erase()

    def go_on(self) -> None:
        """Draw the rows below the output again, at the cursor, after other programs wrote there."""
        self._below = []
        if self.draws:
            self._live("\r\x1b[J")
            self._draw()

    def end(self, code: int) -> int:
        """Finish the output; returns the exit code, changed if there were errors or lost output."""
        code = code or (FAILED if self.has_failure else COMPLETE)
        self._status, self._dialog = "", []
        if self._out_is_terminal:
            self._write_out(self._end_of_text())
        self._draw()
        if self.as_json:
            self._write_out(json.dumps({"type": "end", "code": code, "kind": kind_of(code)}) + "\n")
        if not self._failure:
            return code
        self.complain(f"parley: cannot write to standard output: {self._failure}")
        return worst(code, FAILED)

    def _end_of_text(self) -> str:
        """The unwritten rest of a text that arrived in pieces."""
        rest = self._pieces.end()
        if self._answer is None:
            return rest
        return self._answer.feed(rest, self.width - 1) + self._answer.end(self.width - 1)

    def _write_out(self, text: str) -> None:
        if not text:
            return
        self._erase()
        if self._out_is_terminal:
            self._at_start = text.endswith("\n")
        else:
            text = _HALVES.sub("\ufffd", text)
        self._is_behind_pipe = self._is_pipe
        if self._out is None:
            self._failure = "it is closed"
        elif (failure := _write(self._out, text)) is not None:
            self._out, self._failure, self._is_cut = io.StringIO(), failure, True

    def _write_err(self, text: str) -> None:
        if self._err is not None and _write(self._err, text) is not None:
            self._err = None

    def _live(self, text: str) -> None:
        """Write changing rows to standard output if it is a terminal, else to standard error."""
        if self._out_is_terminal and self._out is not None:
            _write(self._out, text)
        else:
            self._write_err(text)

    def _columns(self, stream: TextIO | None = None) -> int:
        """A row's width in cells, which is at least 2 because the last cell stays free."""
        return max(self._size(stream).columns or 80, 2)

    def _size(self, stream: TextIO | None = None) -> os.terminal_size:
        stream = stream or (self._out if self._out_is_terminal else self._err)
        try:
            assert stream is not None
            return os.get_terminal_size(stream.fileno())
        except (OSError, ValueError, AssertionError):
            return os.terminal_size((80, 24))

    def _rows(self) -> list[str]:
        """The rows to draw below the output."""
        if not self._at_start or self._is_behind_pipe:
            return []
        width, height = self.width - 1, self.height - 1
        below = self._dialog or ([_cut(self._status, width)] if self._status else [])
        tail = self._answer.tail(width, max(height - len(below), 1)) if self._answer else []
        return [*tail, *below]

    def _draw(self) -> None:
        """Update the rows below the output; write only from the first changed row.

        Between drawings, the cursor stays in the last row, without a line break: otherwise the
        terminal would scroll when the rows fill it. The first row is therefore `len - 1` rows above
        the cursor.
        """
        rows, before = self._rows() if self.draws else [], self._below
        if not self.draws and self._dialog:
            self._live("\n".join(self._dialog) + "\n")  # a plain terminal: print the question
        same = next(
            (n for n, pair in enumerate(zip(rows, before, strict=False)) if pair[0] != pair[1]),
            None,
        )
        same = min(len(rows), len(before)) if same is None else same
        if same == len(rows) == len(before):
            return
        if not rows:
            self._erase()
            return
        # Start in a row that both drawings have: a line break from this row creates any added row,
        # and erasing below the last row requires the cursor to be there.
        start = min(same, len(rows) - 1, max(len(before) - 1, 0))
        up = len(before) - 1 - start
        text = (f"\x1b[{up}A" if up > 0 else "") + "\r\x1b[K"
        text += "\n".join(f"{row}\x1b[K" for row in rows[start:])
        if len(before) > len(rows):
            text += "\x1b[J"
        self._live(text)
        self._below, self._drawn_at = rows, time.monotonic()

    def _draw_soon(self) -> None:
        """Draw, at most as often as people can see."""
        wait = self._drawn_at + _FRAME_S - time.monotonic()
        if wait <= 0:
            self._draw()
        elif not self._awaits_frame:
            import asyncio

            try:
                asyncio.get_running_loop().call_later(wait, self._draw_frame)
                self._awaits_frame = True
            except RuntimeError:  # without an event loop, draw now
                self._draw()

    def _draw_frame(self) -> None:
        self._awaits_frame = False
        self._draw()

    def _erase(self) -> None:
        if not self._below:
            return
        up = len(self._below) - 1
        self._live(f"\x1b[{up}A\r\x1b[J" if up else "\r\x1b[K")
        self._below = []


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def _is_pipe(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _is_utf_8(stream: TextIO | None) -> bool:
    try:
        return codecs.lookup(getattr(stream, "encoding", "") or "").name == "utf-8"
    except LookupError:
        return False


def _prepare(stream: TextIO | None, for_people: bool) -> None:
    """For people, escape characters that are not in the encoding; for programs, keep the bytes."""
    if not isinstance(stream, io.TextIOWrapper):
        return
    if for_people:
        stream.reconfigure(errors="backslashreplace")
    else:
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def _write(stream: TextIO, text: str) -> str | None:
    """Write at once; returns None, or an error text ("" if the reader closed the pipe)."""
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError) as error:
        _discard(stream)
        is_over = isinstance(error, BrokenPipeError)
        return "" if is_over else reason_of(error)
    return None


def _discard(stream: TextIO) -> None:
    """Discard the stream's buffer; otherwise the interpreter would fail to flush it at exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        return


def _cut(text: str, cells: int) -> str:
    """The start of a text, as far as it fits into this number of cells."""
    for at, character in enumerate(text):
        if unicodedata.category(character) not in ("Mn", "Me"):
            cells -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if cells < 0:
            return text[:at]
    return text
