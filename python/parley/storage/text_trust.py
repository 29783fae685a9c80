"""A project's texts for the model: Parley uses a text only after the user agrees to its exact
content.

Keeps the text that the user agreed to last, so a change can be shown as a diff. Knows neither the
purpose of a text nor how it is read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from parley.frozen import frozen
from parley.storage.ledger import LedgerFile
from parley.tools.mcp_files import digest

MOST_BYTES_KEPT = 500_000
"""A longer text is trusted, but not kept: after a change, it is shown in full."""
MOST_TEXTS_KEPT = 100
"""The texts of the files that the user agreed to last; of the others, only the digests remain."""

_TRUST = "INSERT OR REPLACE INTO trusted_texts (path, digest, content, at) VALUES (?, ?, ?, ?)"
_FORGET = """
UPDATE trusted_texts SET content = NULL WHERE content IS NOT NULL AND path NOT IN (
    SELECT path FROM trusted_texts WHERE content IS NOT NULL ORDER BY at DESC, path LIMIT ?)
"""


@frozen
class OfferedText:
    """A project's text to which the user may agree.

    `name` is the file's name in the project, `noun` says what the text is ("the instructions"), and
    `effect` is a sentence about the effect of a yes.
    """

    path: Path
    name: str
    noun: str
    effect: str
    content: bytes

    @property
    def digest(self) -> str:
        """The digest of the content that a yes would cover."""
        return digest(self.content)


class TextTrust:
    """The texts that the user has agreed to; opens the `ledger` only when it is asked."""

    def __init__(self, ledger: Callable[[], LedgerFile]) -> None:
        self._ledger = ledger

    def trusts(self, path: Path, content: bytes) -> bool:
        """Whether the user has agreed to this content of the file at this path."""
        query = "SELECT 1 FROM trusted_texts WHERE path = ? AND digest = ?"
        return bool(self._ledger().read(query, (_key(path), digest(content))))

    def previous(self, path: Path) -> str | None:
        """The text of this file that the user agreed to last; None if there is none, or if it was
        not kept.
        """
        query = "SELECT content FROM trusted_texts WHERE path = ?"
        rows = self._ledger().read(query, (_key(path),))
        return next((kept.decode("utf-8", "replace") for (kept,) in rows if kept is not None), None)

    def trust(self, path: Path, content: bytes) -> None:
        """Record that the user agrees to this content of the file, and to no other content."""
        kept = content if len(content) <= MOST_BYTES_KEPT else None
        with self._ledger().transaction() as db:
            db.execute(_TRUST, (_key(path), digest(content), kept, time.time()))
            db.execute(_FORGET, (MOST_TEXTS_KEPT,))


def _key(path: Path) -> bytes:
    """A file's key: its place in the project, with the links below the project's real folder.

    With a link, one file could be a prompt, a skill and instructions: a yes counts for one of them.
    """
    return os.fsencode(os.path.abspath(path))  # noqa: PTH100 - `Path.absolute` keeps ".."
