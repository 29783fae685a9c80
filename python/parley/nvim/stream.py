"""Writes a stream of text into a buffer, no faster than the editor can draw it.

The reply to each piece reports how long it took. Text is then collected for three times as long, so
a slow screen receives larger pieces, and most of the editor's time remains for the user.

On average, there is at most one piece for each frame. Text that may be written is written at once.
Text that may not is written with the next text, so at a model's usual pace most text does not wait
for a timer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from parley.chat.grammar import MARKERS, PROMPT
from parley.errors import GoneError
from parley.nvim.editor import Editor
from parley.nvim.mirror import Mirror

FRAME_S = 0.017
"""At 100 tokens a second, nearly six of ten tokens need not wait."""
GATHER_S = 0.012
"""How long text that may be written waits for more text, which may be 10 ms away."""
UNANSWERED = 7
"""How many pieces may follow each other without an answer, which costs this process as much as a
piece.
"""
FAST_MS = 3.0
SMALL = 2_000
"""Only a piece of at most this many characters needs no answer, if the last ones took Neovim at most
`FAST_MS`."""
DUTY = 3
MOST_AT_ONCE = 1 << 18
"""The maximum number of characters in a request, because 5 MB at once would block the editor for
over a second.
"""
MOST_OF_A_LINE = 1 << 20
"""Cut only lines longer than this, because each piece makes the editor draw the whole line."""

STARTS = sorted(
    {PROMPT, *MARKERS.values(), *(m.replace("\ufe0f", "") for m in MARKERS.values())}
) + [f"{marker[0]}\ufe0f{marker[1:]}" for marker in MARKERS.values() if "\ufe0f" not in marker]
"""All character sequences that can start a structural line."""


class BufferStream:
    """Writes the text of one turn to the end of its answer."""

    def __init__(self, editor: Editor, handle: int, mirror: Mirror) -> None:
        self._editor = editor
        self._handle = handle
        self._mirror = mirror
        self._pending = deque[str]()
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None
        self._next = 0.0
        """When the next piece may be written."""
        self._cost_ms = 0.0
        """What the last answer said."""
        self._unanswered = 0
        self._most_unanswered = 1
        """The first text is in a hurry; the second asks, and more is known from then on."""
        self._newline = "\n"
        self._fresh = True
        self._place: Callable[[], Awaitable[None]] | None = None

    def reset(self, newline: str, *, is_fresh: bool) -> None:
        """Start a new reply, on an empty line if it `is_fresh`. Its first text need not wait."""
        self._newline, self._fresh, self._next = newline, is_fresh, 0.0

    def append(self, text: str) -> None:
        """Accept text to write. Raises GoneError if the place for the reply is gone."""
        if self._failure:
            raise self._failure
        self._pending += pieces(text)
        self._write_soon()

    async def settle(self) -> None:
        """Return when all text is in the buffer."""
        async with self._turn:
            await self._flush()
            while self._pending:
                await self._pause()
                await self._flush()
            if self._unanswered:
                await self._ask("")
        if self._failure:
            raise self._failure

    def wait_for(self, place: Callable[[], Awaitable[None]]) -> None:
        """Write only after `place`, which creates the place for the text, has finished."""
        self._place = place

    def begin(self) -> None:
        """The place for the text is there."""
        self._place = None

    def take(self) -> str:
        """The first unwritten text, which the caller writes together with its place."""
        return self._batch()

    def close(self) -> None:
        """Stop writing; discard unwritten text."""
        self._failure = self._failure or GoneError("the turn has ended")
        self._pending.clear()
        self._wait_no_longer()
        if self._task:
            self._task.cancel()

    def _write_soon(self) -> None:
        """Write now if that is allowed; otherwise, write with the next text, or after a wait."""
        if self._task is None or self._task.done():
            if self._next <= self._editor.loop.time():
                self._write()
            else:
                self._write_later()

    def _write_later(self) -> None:
        if self._timer is None:
            self._timer = self._editor.loop.call_at(self._next + GATHER_S, self._write)

    def _write(self) -> None:
        self._wait_no_longer()
        if self._needs_answer():
            self._task = self._editor.loop.create_task(self._run())
        elif self._pending:  # otherwise `settle` has written it, and the text may have a new tick
            self._send(self._batch())

    def _needs_answer(self) -> bool:
        return (
            self._unanswered >= self._most_unanswered
            or self._cost_ms > FAST_MS
            or self._place is not None
            or self._turn.locked()
            or sum(map(len, self._pending)) > SMALL
        )

    def _wait_no_longer(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None

    async def _run(self) -> None:
        try:
            async with self._turn:
                await self._flush()
        except Exception as error:  # noqa: BLE001 - raised in the caller of `append`
            self._failure = error
        else:
            if self._pending:
                self._write_later()

    async def _pause(self) -> None:
        if (seconds := self._next - self._editor.loop.time()) > 0:
            await asyncio.sleep(seconds)

    async def _flush(self) -> None:
        if self._place:
            await self._place()
            self._place = None
        text = self._batch()
        if not text:
            return
        await self._ask(text)

    async def _ask(self, text: str) -> None:
        """Write a piece, and wait until it and the ones before it are in the buffer."""
        start = self._editor.loop.time()
        reply = await self._editor.ask(
            "append", *self._piece(text), on_reply=lambda _: self._mirror.expire()
        )
        if isinstance(reply, dict):
            raise GoneError(reply["gone"])
        self._cost_ms, self._unanswered = reply, 0
        self._most_unanswered = UNANSWERED
        self._plan_next(text, start)

    def _send(self, text: str) -> None:
        """Write a piece without waiting."""
        self._mirror.expire()
        self._editor.send("write", *self._piece(text))
        self._unanswered += 1
        self._plan_next(text, self._editor.loop.time())

    def _piece(self, text: str) -> tuple[int, str, bool]:
        return self._handle, text.replace("\n", self._newline), self._fresh

    def _plan_next(self, text: str, start: float) -> None:
        """Decide when the next piece may be written."""
        self._fresh = text.endswith("\n") if text else self._fresh
        # A frame without a piece may be made up for, but only one.
        frame = max(self._next, start - FRAME_S) + FRAME_S
        self._next = max(frame, self._editor.loop.time() + DUTY * self._cost_ms / 1000)

    def _batch(self) -> str:
        """The text of the next request."""
        taken, size = list[str](), 0
        while self._pending and (not taken or size + len(self._pending[0]) <= MOST_AT_ONCE):
            taken.append(self._pending.popleft())
            size += len(taken[-1])
        return "".join(taken)


def pieces(text: str) -> list[str]:
    """A text in pieces, one for each write; a text with several lines is cut after lines.

    Never cuts near a marker, because Lua escapes text that looks like a marker at the start of a
    continued line.
    """
    cut, start = list[str](), 0
    while len(text) - start > MOST_AT_ONCE:
        stop = text.rfind("\n", start, start + MOST_AT_ONCE) + 1
        if not stop:
            stop = text.find("\n", start, start + MOST_OF_A_LINE) + 1 or start + MOST_OF_A_LINE
        if text[start:stop].strip("\\") == "":
            break
        cut.append(text[start:stop])
        start = stop
    return [*cut, text[start:]] if start < len(text) else cut
