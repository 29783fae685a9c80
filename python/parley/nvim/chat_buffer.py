"""One chat in the editor: its buffer, its file, its text, and the agent that answers.

Knows the text and how to change it; does not know turns or drawing.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from parley.chat.rounds import has_begun
from parley.chat.transcript import Transcript
from parley.engine import Change, Resolve, Snapshot
from parley.nvim.document import BufferDocument, checked
from parley.nvim.editor import Editor
from parley.nvim.mirror import UNKNOWN_TICK, Mirror
from parley.runtime.app import App
from parley.runtime.app_instructions import ProjectInstructions
from parley.settings.resolve import ListedAgent


class ChatBuffer:
    """A buffer that contains a chat."""

    def __init__(self, editor: Editor, app: App, buf: int, name: str) -> None:
        self.editor = editor
        self.app = app
        """The current app; `setup` replaces it."""
        self.buf = buf
        self.name = name
        """The path of the file; "" if the chat has no file yet."""
        self.folder = Path.cwd()
        """The user's working directory when the user last ran a command in this chat."""
        self.chosen: str | None = None
        """The agent that the user chose for this chat; None for the file's agent or the default
        agent.
        """
        self.once: str | None = None
        """The agent that the user chose for one answer, instead of the chat's agent."""
        self._answering: ListedAgent | None = None
        """The agent, with its model, of the last answer that began in this process."""
        self.mirror = Mirror(editor.loop.time)
        """The text as Neovim last reported it."""

    @property
    def path(self) -> str:
        """The chat's key in the ledger; if there is no file, only this process uses the key."""
        return self.name or f"/unsaved/{os.getpid()}/{self.buf}"

    @property
    def transcript(self) -> Transcript:
        """The chat, from the text that Neovim last reported."""
        return self.mirror.text.transcript

    @property
    def agent(self) -> ListedAgent:
        """The chat's agent, from the text that Neovim last reported."""
        return self.app.agent(self.transcript, self.chosen)

    @property
    def resolve(self) -> Resolve:
        """The settings for drawing this chat."""
        return self.app.resolve_to_draw(self.chosen)

    def chosen_for(self, shot: Snapshot) -> str | None:
        """The agent that the user chose for the current answer, or else for this chat."""
        exchanges = shot.transcript.exchanges
        answers = shot.exchange.answers if exchanges else ()
        is_once = self.once and answers and answers[-1].agent == self.once
        return self.once if is_once else self.chosen

    def resolve_for(
        self,
        shot: Snapshot,
        chosen: str | None,
        project: ProjectInstructions | None = None,
        *,
        is_new: bool = False,
    ) -> Resolve:
        """A turn's settings: the agent accepted at the start answers until the end, with the
        instructions that the `project` had then.

        An answer keeps its agent's model also in later turns, although a new list may arrive;
        `is_new` means that the turn begins another answer instead.
        """
        agent, last = self.app.agent(shot.transcript, chosen), self._answering
        is_same = last is not None and (last.name, last.provider, last.newest) == (
            *(agent.name, agent.provider, agent.newest),
        )
        if is_new or not (last and is_same and agent.newest and has_begun(shot.exchange)):
            self._answering = last = agent
        return self.app.resolve(chosen, last, lambda: self.folder, project)

    @property
    def resolve_to_ask(self) -> Resolve:
        """The settings for the request that would be sent now."""
        return self.app.resolve(self.chosen, folder=lambda: self.folder)

    async def look(self) -> Transcript:
        """The buffer's text as it is now. Raises GoneError if the buffer is gone."""
        for tick in () if self.mirror.is_current else (self.mirror.tick, UNKNOWN_TICK):
            checked(await self.editor.ask("look", self.buf, tick, on_reply=self.mirror.receive))
            if self.mirror.is_known:
                break
        return self.transcript

    async def at(
        self, handle: int, row: int | None, work: Callable[[BufferDocument], Awaitable[None]]
    ) -> None:
        """Work on the document at a handle in this row (None if unknown), and close the handle."""
        document = BufferDocument(self.editor, self.mirror, handle, row)
        try:
            await work(document)
        finally:
            document.close()

    async def change(
        self, handle: int, change: Change, then: Callable[[], None] = lambda: None
    ) -> None:
        """Change the text, even during a turn, as one undo step; `then` still has the handle."""

        async def work(document: BufferDocument) -> None:
            await document.change(change)
            then()

        await self.at(handle, None, work)
