"""The files that are open in Neovim, for the workspace's tools.

Knows which requests to send, and how Neovim's answers become values; Lua changes the buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from parley.errors import ParleyError
from parley.nvim.editor import Editor
from parley.workspace.editor_files import Applied, OpenText

_MOST_BYTES = 16_000_000
"""The maximum size of a buffer's text: a larger text would stop the editor for too long."""


class BufferFiles:
    """Implements the workspace's editor port."""

    def __init__(
        self, editor: Editor, saves: Callable[[], bool], on_change: Callable[[Path], None]
    ) -> None:
        """`saves` returns whether an edit may write a buffer that had no unsaved changes;
        `on_change` receives the path of each open file before and after its text changes.
        """
        self._editor = editor
        self._saves = saves
        self._on_change = on_change

    async def text(self, path: Path) -> OpenText | None:
        """The text of an open file."""
        reply = await self._ask("file_text", path, _MOST_BYTES)
        if not reply or not _is_unicode(reply["text"]):
            return None
        return OpenText(reply["text"], reply["modified"])

    async def apply(self, path: Path, before: str, text: str) -> Applied:
        """Change an open file."""
        self._on_change(path)
        reply = await self._ask("file_apply", path, before, text, self._saves())
        self._on_change(path)
        state: Applied = reply["state"] if reply else "changed"
        return state

    async def move(self, path: Path, target: Path) -> None:
        """Give an open file its new name."""
        await self._ask("file_move", path, str(target))

    async def _ask(self, name: str, path: Path, *arguments: Any) -> Any:
        """Neovim's answer about a file; None if the file is not open. Raises ParleyError."""
        if not _is_unicode(str(path)):
            return None
        reply = await self._editor.ask(name, str(path), *arguments)
        if reply and (problem := reply.get("problem")):
            raise ParleyError(f"{path.name} is open in Neovim: {problem}")
        return reply


def _is_unicode(text: str) -> bool:
    """Whether no byte of a text is invalid in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
