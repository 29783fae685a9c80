"""A chat in a buffer, as the engine's document.

Edits are found for a text here and applied by Lua only if the buffer still holds that text; else they are
found anew. Knows the buffer by a handle of Lua's, whose marks move with the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from parley.chat.edits import Edit, apply_edits
from parley.engine import REMOVED, Change, Snapshot
from parley.errors import GoneError
from parley.nvim.editor import Editor
from parley.nvim.reread import reread
from parley.nvim.stream import STARTS, BufferStream
from parley.policy.choice import exchange_at

Seen: TypeAlias = tuple[int, Snapshot]
"""A text of a buffer with its changedtick."""
UNSEEN: Seen = (-1, Snapshot("", 0))


class BufferDocument:
    """The chat at one handle; `close` it when the turn is over."""

    def __init__(self, editor: Editor, handle: int, seen: Seen) -> None:
        self._editor = editor
        self._handle = handle
        self._tick, self._shot = seen
        self._pinned = False
        self._stream = BufferStream(editor, handle)

    async def read(self) -> Snapshot:
        """The document as it is now; its text crosses the border only when it has changed.

        Between two reads what was last seen is taken to be there: an edit found for anything else is refused.
        """
        reply = checked(await self._editor.ask("read", self._handle, self._tick))
        shot = self._accept(reply)
        if not self._pinned and (row := answer_row(shot)) is not None:
            self._editor.tell("pin", self._handle, self._tick, row)
        return shot

    async def change(self, change: Change) -> None:
        """Apply the edits that `change` finds, as soon as the buffer holds the text they were found for."""
        await self._stream.settle()  # a turn that was stopped had no time for it
        shot: Snapshot | None = await self.read() if self._stream.wrote() else self._shot
        while shot is not None:
            edits = trimmed(shot.lines, change(shot))
            if edits:
                shot = await self._applied("apply", shot, edits, STARTS)
            elif (now := await self.read()) is shot:
                return
            else:
                shot = now

    async def open_stream(self, tip: Callable[[Snapshot], tuple[Edit, int]]) -> None:
        """Apply an edit and let `append` write at the line it names."""
        await self._stream.settle()
        shot: Snapshot | None = await self.read() if self._stream.wrote() else self._shot
        while shot is not None:
            edit, row = tip(shot)
            self._stream.reset("\r\n" if is_crlf(shot.text) else "\n")
            shot = await self._applied("open_stream", shot, trimmed(shot.lines, [edit]), row, STARTS)

    async def append(self, text: str) -> None:
        """Write at the tip, soon."""
        self._stream.append(text)

    async def settle(self) -> None:
        """Return when all that was appended is in the buffer."""
        await self._stream.settle()

    @property
    def seen(self) -> Seen:
        """The text as it was last read or written."""
        return self._tick, self._shot

    async def move(self, row: int) -> None:
        """Take another line's exchange in hand."""
        await self._editor.ask("move", self._handle, row)

    def close(self) -> None:
        """Nothing more is written."""
        self._stream.close()
        self._editor.tell("close", self._handle)

    async def _applied(self, how: str, shot: Snapshot, edits: list[Edit], *more: Any) -> Snapshot | None:
        """None when the edits are in the buffer, else the text that it holds instead."""
        after = edited(shot, edits)
        changes = as_tuples(edits, "\r" if is_crlf(shot.text) else "")
        answer = None if self._pinned else answer_row(after)
        reply = await self._editor.ask(how, self._handle, self._tick, changes, answer, *more)
        if not checked(reply).get("applied"):
            return self._accept(reply)
        self._tick, self._shot = reply["tick"], moved(after, reply["anchor"])
        self._pinned = self._pinned or answer is not None
        return None

    def _accept(self, reply: dict[str, Any]) -> Snapshot:
        self._tick, self._pinned = reply["tick"], reply["pinned"]
        text = reply.get("text")
        shot = (
            moved(self._shot, reply["anchor"]) if text is None else reread(self._shot, text, reply["anchor"])
        )
        if self._pinned and answer_row(shot) != reply["anchor"]:
            raise GoneError(REMOVED)
        self._shot = shot
        return shot


def checked(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply of Lua's. Raises GoneError where it says that there is nothing to work with any more."""
    if "gone" in reply:
        raise GoneError(reply["gone"])
    return reply


def answer_row(shot: Snapshot) -> int | None:
    """The row of the answer in hand, None where there is none yet."""
    at = exchange_at(shot.transcript, shot.anchor)
    answers = shot.transcript.exchanges[at].answers if at is not None else ()
    return answers[-1].span.start if answers else None


def moved(shot: Snapshot, anchor: int) -> Snapshot:
    """The same text, with what was read from it, for another anchor."""
    if anchor == shot.anchor:
        return shot
    other = Snapshot(shot.text, anchor)
    known = {name: value for name, value in vars(shot).items() if name in ("lines", "transcript")}
    vars(other).update(known)
    return other


def edited(shot: Snapshot, edits: list[Edit]) -> Snapshot:
    """The text as it will be."""
    end = "\r\n" if is_crlf(shot.text) else "\n"
    lines = apply_edits(shot.lines, edits)
    shift = sum(len(e.lines) - (e.end - e.start) for e in edits if e.end <= shot.anchor)
    return reread(shot, end.join([*lines, ""]), shot.anchor + shift)


def is_crlf(text: str) -> bool:
    """Whether every line of a buffer's text ends in CR."""
    return text.endswith("\r\n") and text.count("\r\n") == text.count("\n")


def trimmed(lines: list[str], edits: Iterable[Edit]) -> list[Edit]:
    """The edits from the bottom up, without the lines that they leave as they are; marks there stay."""
    ordered = sorted(edits, key=lambda e: (e.start, e.end), reverse=True)
    return [small for edit in ordered if (small := _trimmed(lines, edit))]


def _trimmed(lines: list[str], edit: Edit) -> Edit | None:
    start, end, new = edit.start, edit.end, edit.lines
    head = 0
    while head < len(new) and start + head < end and lines[start + head] == new[head]:
        head += 1
    tail = 0
    while tail < len(new) - head and end - tail > start + head and lines[end - tail - 1] == new[-tail - 1]:
        tail += 1
    small = Edit(start + head, end - tail, new[head : len(new) - tail])
    return small if small.lines or small.end > small.start else None


def as_tuples(edits: list[Edit], line_end: str) -> list[tuple[int, int, list[str]]]:
    """Edits as Lua takes them."""
    return [(e.start, e.end, [line + line_end for line in e.lines]) for e in edits]
