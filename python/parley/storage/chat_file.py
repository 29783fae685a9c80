"""A chat as text or as a file, without an editor.

Implements the engine's document. Writes a file completely and atomically, and keeps its line
endings, BOM, mode, owner and extended attributes. Never overwrites a file that another program has
changed. While a reply arrives, the file is written again and again.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from parley.atomic_files import folder_of, replace_file
from parley.chat.edits import Edit, apply_edits
from parley.chat.reader import parse, parse_lines, split_lines
from parley.chat.reread import difference, reread
from parley.chat.rounds import is_unfinished
from parley.chat.transcript import Exchange, Question, Transcript
from parley.engine import Change, Snapshot
from parley.errors import GoneError, ParleyError
from parley.frozen import frozen
from parley.storage.content import bytes_of, content, decoded, encoded

_SAVE_AFTER_S = 0.5
"""How many seconds streamed text waits for more text before it is written, so that waiting and
writing take less than a second.
"""


@frozen
class Spelling:
    """The properties of a file that its lines do not show: line endings, and a byte order mark."""

    newline: str
    bom: str

    @classmethod
    def of(cls, text: str) -> Spelling:
        """The spelling of a text."""
        is_crlf = text.count("\r\n") == text.count("\n") > 0
        return cls("\r\n" if is_crlf else "\n", "\ufeff" if text.startswith("\ufeff") else "")

    def text(self, lines: Iterable[str]) -> str:
        """The text of a file with these lines."""
        return self.bom + "".join(line + self.newline for line in lines)


class TextDocument:
    """A chat in memory; `on_append` receives each piece of a reply as it arrives."""

    def __init__(
        self, text: str, anchor: int, on_append: Callable[[str], None] = lambda _: None
    ) -> None:
        self._lines = split_lines(text)
        self._pieces = list[str]()
        """The pieces of the line at the tip, until it is read: appending to one string would take
        quadratic time."""
        self.anchor = anchor
        self._on_append = on_append
        self._tip = 0
        self._earlier: tuple[list[str], Transcript] | None = None
        """The last lines and transcript, so that only the new part of a long chat is parsed."""

    @property
    def lines(self) -> list[str]:
        """The chat's current lines; may be changed."""
        if len(self._pieces) > 1:
            self._lines[self._tip] = "".join(self._pieces)
        self._pieces = []
        return self._lines

    @lines.setter
    def lines(self, lines: list[str]) -> None:
        self._lines, self._pieces = lines, []

    @property
    def text(self) -> str:
        """The chat's current text."""
        return "".join(line + "\n" for line in self.lines)

    async def read(self) -> Snapshot:
        """The document's current state."""
        return self._shot()

    def _shot(self) -> Snapshot:
        return Snapshot(split_lines(self.text), self.anchor, self._transcript)

    def _transcript(self, lines: list[str]) -> Transcript:
        if self._earlier is None:
            transcript = parse_lines(lines)
        else:
            before, earlier = self._earlier
            transcript = reread(earlier, difference(before, lines), lines)
        self._earlier = lines, transcript
        return transcript

    async def change(self, change: Change) -> None:
        """Apply the edits that `change` finds."""
        self._apply(list(change(self._snapshot())))
        self._changed()

    async def begin(self, change: Change) -> None:
        """Apply the edits that `change` finds."""
        await self.change(change)

    async def open_stream(
        self, tip: Callable[[Snapshot], tuple[Edit, int]], text: str = ""
    ) -> None:
        """Apply the edit that `tip` finds, and from now on write at the line that `tip` returns,
        `text` first.
        """
        edit, line = tip(self._snapshot())
        self._apply([edit])
        self._tip = line
        if text:
            await self.append(text)

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
        """Put the appended text into the document."""
        self._changed()

    def _snapshot(self) -> Snapshot:
        """The document before a change. The exchange is anchored, because the change may remove
        lines.
        """
        shot = self._shot()
        if shot.transcript.exchanges:
            self.anchor = shot.anchor = max(shot.exchange.span.start, 0)
        return shot

    def _apply(self, edits: list[Edit]) -> None:
        self.lines = apply_edits(self.lines, edits)
        for edit in edits:
            if edit.end <= self._tip:
                self._tip += len(edit.lines) - (edit.end - edit.start)

    def _changed(self) -> None:
        """Called when the document should be saved."""


class FileDocument(TextDocument):
    """A chat file; `on_note` receives each property of the file that could not be kept.

    Raises ParleyError if the file cannot be read or written.
    """

    def __init__(
        self,
        path: Path,
        anchor: int | None = None,
        on_append: Callable[[str], None] = lambda _: None,
        on_note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self._on_disk = content(path)
        _check_writable(self.path)
        text = decoded(self._on_disk)
        super().__init__(text, 0, on_append)
        self.anchor = in_hand(text) if anchor is None else anchor
        self._spelling = Spelling.of(text)
        self._on_note = on_note
        self._timer: asyncio.TimerHandle | None = None
        """Writes the appended text; None if all text is written."""
        self._failure: ParleyError | None = None
        """The error that occurred when the file was written by the timer."""

    async def append(self, text: str) -> None:
        """Write at the tip; the text reaches the disk within a second."""
        if self._failure:
            raise self._failure
        await super().append(text)
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._timer = loop.call_later(_SAVE_AFTER_S, self._save)
        elif self._timer.when() < loop.time():  # pieces come too fast for the timer
            self._changed()

    def _save(self) -> None:
        try:
            self._changed()
        except ParleyError as error:
            self._failure = error

    def _changed(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        new = encoded(self._spelling.text(self.lines))
        if new == self._on_disk:
            return
        try:
            losses = replace_content(self.path, self._on_disk, new)
        except OSError as error:
            raise ParleyError(f"cannot write {self.path}: {error.strerror}") from error
        self._on_disk = new
        for loss in losses:
            self._on_note(f"{self.path}: {loss}")


def in_hand(text: str) -> int:
    """A line in the exchange to continue.

    The exchange is the last one, or an unfinished exchange above an empty question.
    """
    match parse(text).exchanges:
        case (*_, Exchange(answers=(*_, last), span=span), Exchange(Question() as below, ())) if (
            is_unfinished(last) and not below.text.strip()
        ):
            return span.start
    return len(split_lines(text))


def _check_writable(path: Path) -> None:
    """Raise ParleyError if the user may not change the file, or files in its folder."""
    who = {"effective_ids": os.access in os.supports_effective_ids}
    is_for_nobody = not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    if is_for_nobody or not os.access(path, os.W_OK, **who):
        raise ParleyError(f"cannot write {path}: it is read-only")
    if not os.access(path.parent, os.W_OK | os.X_OK, **who):
        raise ParleyError(
            f"cannot write {path}: its folder is read-only, and Parley saves a chat by "
            "replacing its file"
        )


def _check_content(path: Path, content: bytes) -> None:
    if bytes_of(path) != content:
        raise GoneError(
            f"{path} was changed by another program, so Parley stopped writing. "
            "Run :ParleyRespond to continue from there"
        )


def replace_content(path: Path, old: bytes, new: bytes) -> list[str]:
    """Replace a file's content atomically: even a power loss leaves the old or the new content.

    Returns the file's properties that could not be kept. Raises GoneError if the content has
    changed, ParleyError if the file has become read-only, and OSError.
    """
    _check_writable(path)
    with folder_of(path) as folder:
        return replace_file(folder, path.name, new, lambda: _check_content(path, old))
