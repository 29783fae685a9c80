"""The files that calls have changed, in the ledger's database: what is needed to revert a change.

A change is recorded before the file is written. So after a crash, the file has either the content
before or the content after, and the record says which is which. Does not know the contents.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from parley.policy.file_changes import ChangingCall
from parley.policy.reverts import RecordedChange
from parley.storage.ledger import LedgerFile

_RECORD = """
INSERT INTO changes (chat, call_id, kind, root, path, moved_to, before, after, mode, reverts, at, state)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ALL = """
SELECT call_id, kind, root, path, before, after, mode, moved_to, reverts, number, at, state FROM changes
WHERE chat = ? AND state <> 'failed' ORDER BY number
"""
_CALLS = """
SELECT changes.number, run.server, run.tool, run.arguments, (
    SELECT count(*) FROM entries WHERE chat = run.chat AND call_id = run.call_id
    AND arguments = run.arguments AND started <= run.started)
FROM changes JOIN entries AS run ON run.number = (
    SELECT number FROM entries WHERE chat = ? AND call_id = changes.call_id
    AND started <= changes.at ORDER BY started DESC, number DESC LIMIT 1)
WHERE changes.chat = ? AND reverts IS NULL
"""


class ChangedFiles:
    """The changes that one chat's calls have made."""

    def __init__(self, file: LedgerFile, chat: str) -> None:
        self._file = file
        path = os.path.realpath(chat)
        self._chat, self._of_ledger = os.fsencode(path), _stored(path)

    def begin(self, change: RecordedChange) -> int:
        """Record a change durably, before the file is written; returns its number."""
        with self._file.transaction() as db:
            return db.execute(_RECORD, (*self._row(change), "begun")).lastrowid or 0

    def add(self, changes: Iterable[RecordedChange]) -> None:
        """Record changes that were made already, all of them or none."""
        rows = [(*self._row(change), "done") for change in changes]
        with self._file.transaction() as db:
            db.executemany(_RECORD, rows)

    def _row(self, change: RecordedChange) -> tuple[Any, ...]:
        return (
            *(self._chat, _stored(change.call_id), change.kind),
            *map(os.fsencode, (change.root, change.path, change.moved_to or "")),
            *(change.before, change.after, change.mode, change.reverts, time.time()),
        )

    def end(self, numbers: Iterable[int], *, is_done: bool) -> None:
        """Record the outcome of changes."""
        state = "done" if is_done else "failed"
        with self._file.transaction() as db:
            db.executemany(
                "UPDATE changes SET state = ? WHERE number = ?", ((state, n) for n in numbers)
            )

    def all(self) -> list[RecordedChange]:
        """The changes in their order, without those that failed."""
        return [_read(row) for row in self._file.read(_ALL, (self._chat,))]

    def calls(self) -> dict[int, ChangingCall]:
        """The call that made each change, by the change's number."""
        rows = self._file.read(_CALLS, (self._of_ledger, self._chat))
        return {
            number: ChangingCall(_text(server), _text(tool), _text(arguments), run)
            for number, server, tool, arguments, run in rows
        }


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")


def _stored(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _read(row: tuple[Any, ...]) -> RecordedChange:
    call_id, kind, root, path, before, after, mode, moved_to, *rest = row
    return RecordedChange(
        _text(call_id),
        kind,
        Path(os.fsdecode(root)),
        Path(os.fsdecode(path)),
        before,
        after,
        mode,
        Path(os.fsdecode(moved_to)) if moved_to else None,
        *rest,
    )
