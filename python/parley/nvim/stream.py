"""Brings a stream of text into a buffer no faster than the editor can draw it.

Each piece is a request whose answer says what it cost; until three times that has passed, and at least one
frame, text is gathered. So a slow screen gets larger pieces, and the user always has most of the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from parley.chat.grammar import MARKERS, PROMPT
from parley.errors import GoneError
from parley.nvim.editor import Editor
from parley.nvim.mirror import Mirror

FRAME_S = 0.016
PARSED_FRAME_S = 0.033
"""Where Treesitter highlights, each piece has it parse, and that is most of what a piece costs."""
SLOWEST_S = 0.25
PER_LINE_S = 0.00005
"""A longer buffer takes longer to be highlighted; pieces that come faster would never be."""
DUTY = 3

STARTS = sorted({PROMPT, *MARKERS.values(), *(m.replace("\ufe0f", "") for m in MARKERS.values())}) + [
    f"{marker[0]}\ufe0f{marker[1:]}" for marker in MARKERS.values() if "\ufe0f" not in marker
]
"""All that a line of structure may start with."""


class BufferStream:
    """The text of one turn on its way to the tip of its answer."""

    def __init__(self, editor: Editor, handle: int, mirror: Mirror) -> None:
        self._editor = editor
        self._handle = handle
        self._mirror = mirror
        self._pending = list[str]()
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._next = 0.0
        self._newline = "\n"
        self._fresh = True
        self._place: Callable[[], Awaitable[None]] | None = None

    def reset(self, newline: str) -> None:
        """A new reply begins, on an empty line."""
        self._newline, self._fresh = newline, True

    def append(self, text: str) -> None:
        """Take text. Raises GoneError once there is no place for it."""
        if self._failure:
            raise self._failure
        self._pending.append(text)
        if self._task is None or self._task.done():
            self._task = self._editor.loop.create_task(self._run())

    async def settle(self) -> None:
        """Return when all is in the buffer."""
        async with self._turn:
            await self._flush()
        if self._failure:
            raise self._failure

    def wait_for(self, place: Callable[[], Awaitable[None]]) -> None:
        """Write nothing before this is done, which makes the place for it."""
        self._place = place

    def close(self) -> None:
        """Nothing more is written."""
        self._failure = self._failure or GoneError("the turn is over")
        self._pending.clear()
        if self._task:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._pending:
                await asyncio.sleep(max(0.0, self._next - self._editor.loop.time()))
                async with self._turn:
                    await self._flush()
        except Exception as error:  # noqa: BLE001 - it is raised where the text comes from
            self._failure = error

    async def _flush(self) -> None:
        if self._place:
            await self._place()
            self._place = None
        text = "".join(self._pending)
        self._pending.clear()
        if not text:
            return
        start = self._editor.loop.time()
        piece = text.replace("\n", self._newline)
        reply = await self._editor.ask(
            "append", self._handle, piece, self._fresh, STARTS, heed=lambda _: self._mirror.expire()
        )
        if "gone" in reply:
            raise GoneError(reply["gone"])
        self._fresh = text.endswith("\n")
        frame = PARSED_FRAME_S if reply["parsed"] else FRAME_S
        interval = min(max(frame, reply["lines"] * PER_LINE_S), SLOWEST_S)
        self._next = max(start + interval, self._editor.loop.time() + DUTY * reply["cost"] / 1000)
