"""A chat as a text or a file, moved on without an editor.

Implements the engine's document. A file is written whole and atomically, keeps its line ends, BOM and mode,
and is never written over when something else changed it meanwhile.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from parley.chat.edits import Edit, apply_edits
from parley.chat.reader import parse, split_lines
from parley.chat.rounds import is_unfinished
from parley.chat.transcript import Exchange, Question
from parley.engine import Change, Snapshot
from parley.errors import GoneError, ParleyError
from parley.regular import beginning
from parley.text import size_text

MOST_BYTES = 100_000_000


class TextDocument:
    """A chat in memory; `on_append` is called with each piece of a reply as it comes."""

    def __init__(self, text: str, anchor: int, on_append: Callable[[str], None] = lambda _: None) -> None:
        self._lines = split_lines(text)
        self._pieces = list[str]()
        """The line at the tip, as long as nobody has looked: adding to one string were quadratic."""
        self.anchor = anchor
        self._on_append = on_append
        self._tip = 0

    @property
    def lines(self) -> list[str]:
        """The chat's lines as they stand; may be changed."""
        if len(self._pieces) > 1:
            self._lines[self._tip] = "".join(self._pieces)
        self._pieces = []
        return self._lines

    @lines.setter
    def lines(self, lines: list[str]) -> None:
        self._lines, self._pieces = lines, []

    @property
    def text(self) -> str:
        """The chat as it stands."""
        return "".join(line + "\n" for line in self.lines)

    async def read(self) -> Snapshot:
        """The document as it is now."""
        return Snapshot.of(self.text, self.anchor)

    async def change(self, change: Change) -> None:
        """Apply the edits that `change` finds."""
        self._apply(list(change(self._snapshot())))
        self._changed()

    async def begin(self, change: Change) -> None:
        """Apply the edits that `change` finds."""
        await self.change(change)

    async def open_stream(self, tip: Callable[[Snapshot], tuple[Edit, int]]) -> None:
        """Apply an edit and write at the line it names from now on."""
        edit, line = tip(self._snapshot())
        self._apply([edit])
        self._tip = line

    async def append(self, text: str) -> None:
        """Write at the tip."""
        first, *rest = text.split("\n")
        self._pieces = self._pieces or [self._lines[self._tip]]
        self._pieces.append(first)
        if rest:
            self.lines[self._tip + 1 : self._tip + 1] = rest
            self._tip += len(rest)
        self._on_append(text)

    async def settle(self) -> None:
        """Put what was appended into the document."""
        self._changed()

    def _snapshot(self) -> Snapshot:
        """The document before a change, which may take lines away: the exchange is held by its first one."""
        shot = Snapshot.of(self.text, self.anchor)
        if shot.transcript.exchanges:
            self.anchor = shot.anchor = max(shot.exchange.span.start, 0)
        return shot

    def _apply(self, edits: list[Edit]) -> None:
        self.lines = apply_edits(self.lines, edits)
        for edit in edits:
            if edit.end <= self._tip:
                self._tip += len(edit.lines) - (edit.end - edit.start)

    def _changed(self) -> None:
        """Called when the document is worth keeping."""


class FileDocument(TextDocument):
    """A chat file. Raises ParleyError where it cannot be read or written."""

    def __init__(
        self, path: Path, anchor: int | None = None, on_append: Callable[[str], None] = lambda _: None
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self._on_disk = content(path)
        text = self._on_disk.decode("utf-8", "surrogateescape")
        super().__init__(text, 0, on_append)
        self.anchor = _in_hand(text) if anchor is None else anchor
        self._bom = "\ufeff" if text.startswith("\ufeff") else ""
        self._newline = "\r\n" if text.count("\r\n") == text.count("\n") > 0 else "\n"

    def _changed(self) -> None:
        text = self._bom + "".join(line + self._newline for line in self.lines)
        new = text.encode("utf-8", "surrogateescape")
        if new == self._on_disk:
            return
        try:
            if _content(self.path) != self._on_disk:
                raise GoneError(
                    f"{self.path} was changed by another program, so nothing more is written to it: "
                    ":ParleyRespond goes on from what is there now"
                )
            write_atomically(self.path, new)
        except OSError as error:
            raise ParleyError(f"cannot write {self.path}: {error.strerror}") from error
        self._on_disk = new


def _in_hand(text: str) -> int:
    """A line of the exchange to move on: the last one, or an unfinished one above an empty question."""
    match parse(text).exchanges:
        case (*_, Exchange(answers=(*_, last), span=span), Exchange(Question() as below, ())) if (
            is_unfinished(last) and not below.text.strip()
        ):
            return span.start
    return len(split_lines(text))


def content(path: Path) -> bytes:
    """The bytes of a regular file of bounded size: others have no end, or wait for somebody who writes.

    Raises ParleyError.
    """
    try:
        return _content(path)
    except (OSError, ValueError) as error:
        raise ParleyError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def opening(path: Path, size: int) -> bytes:
    """The first bytes of a regular file, however large. Raises ParleyError."""
    try:
        return beginning(path, size)
    except (OSError, ValueError) as error:
        raise ParleyError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def _content(path: Path) -> bytes:
    data = beginning(path, MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise too_large(path)
    return data


def too_large(what: object) -> ParleyError:
    """The error for more than any chat has."""
    return ParleyError(f"cannot read {what}: it has more than {size_text(MOST_BYTES)}, too much for a chat")


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content at once: whoever reads it, or loses power, has the old or the new one."""
    mode = path.stat().st_mode & 0o7777 if path.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".parley-", suffix=".new")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
