"""Fills in a chat's empty topic after a turn, from the first answer's summary or from a model.

Knows when Parley may write the topic; `policy.topic` and `chat.head` know its text.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from parley.chat.edits import Edit
from parley.chat.head import height, lacks_topic, put_topic
from parley.chat.transcript import Transcript
from parley.errors import GoneError
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.document import BufferDocument
from parley.policy.topic import fill_topic


class TopicWriter:
    """Writes one chat's topic."""

    def __init__(self, buffer: ChatBuffer) -> None:
        self._buffer = buffer
        self._has_asked = False
        """Whether Parley has already asked a model for a topic."""

    async def fill(self, document: BufferDocument, handle: int) -> None:
        """Fill an empty topic from the first answer's summary."""
        if self._buffer.app.settings.fill_topic:
            await self._put(document, handle, fill_topic)

    async def find(self, tick: int, row: int, is_busy: Callable[[], bool]) -> bool:
        """If the topic is still empty after a turn, ask a model for it, once. Returns whether the
        text was changed.

        `tick` is the changedtick after the turn: if it has not changed, the topic becomes part of
        the turn's undo step. `row` is the row of the turn's answer. If the chat `is_busy` when the
        model has replied, the end of the new turn tries again.
        """
        buffer, transcript = self._buffer, self._buffer.transcript
        if self._has_asked or not buffer.app.settings.fill_topic or not lacks_topic(transcript):
            return False
        title = await buffer.app.title(transcript, buffer.path, buffer.chosen)
        if is_busy():
            return False
        self._has_asked = True
        handle = await buffer.editor.ask("open_after", buffer.buf, tick, row) if title else None
        if handle is None:
            return False

        async def work(document: BufferDocument) -> None:
            await self._put(document, handle, partial(put_topic, topic=title))
            await buffer.editor.ask("finish", handle, None)

        with suppress(GoneError):
            await buffer.at(handle, None, work)
            return True
        return False

    async def _put(
        self,
        document: BufferDocument,
        handle: int,
        edits: Callable[[list[str], Transcript], list[Edit]],
    ) -> None:
        """Apply edits to the front matter, unless the user types there."""
        shot = await document.look()
        if edits(shot.lines, shot.transcript):
            row = await self._buffer.editor.ask("typing", handle)
            if row is None or row >= height(shot.transcript):
                await document.change(lambda now: edits(now.lines, now.transcript))
