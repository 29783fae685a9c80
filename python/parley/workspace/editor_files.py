"""The editor that may have the workspace's files open: what the tools ask it, and the answer without
an editor.

Knows texts and paths; does not know Neovim.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from parley.frozen import frozen

Applied: TypeAlias = Literal["saved", "unsaved", "changed"]
"""Where an edit of an open file is now: in the buffer and the file, only in the buffer, or nowhere,
because the buffer no longer has the text for which the edit was computed.
"""


@frozen
class OpenText:
    """The text of a file that is open in the editor, without a byte order mark, and with the line
    endings of the file.
    """

    text: str
    is_modified: bool = False
    """Whether the text has unsaved changes."""


class EditorFiles(Protocol):
    """The files that are open in an editor. Each path is absolute."""

    async def text(self, path: Path) -> OpenText | None:
        """The text of an open file; None if the file is not open. Raises ParleyError if it is open,
        but its text cannot be given.
        """

    async def apply(self, path: Path, before: str, text: str) -> Applied:
        """Change an open file to this text, in one undo step. Raises ParleyError if the buffer or
        its file cannot be changed; then neither has changed.

        `before` is the SHA-256 digest, in hex, of the text that the change was computed for, in
        UTF-8. The editor's own commands may change a text that is written, such as a formatter:
        `text` returns the result.
        """

    async def move(self, path: Path, target: Path) -> None:
        """A file was moved: if it is open, it stays open with its new name."""


class NoEditor:
    """No file is open, because there is no editor."""

    async def text(self, path: Path) -> OpenText | None:
        """Always None."""
        return None

    async def apply(self, path: Path, before: str, text: str) -> Applied:
        """Always `changed`, because the file is not open any more."""
        return "changed"

    async def move(self, path: Path, target: Path) -> None:
        """Does nothing."""
