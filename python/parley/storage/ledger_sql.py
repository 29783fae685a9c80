"""The database of the ledger: its tables, its transactions, and those statements that have to be read twice.

Text is kept as bytes, since a model or a file name may hold what is no Unicode. A table is only ever added,
so that a ledger of an earlier version is opened as it is.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from parley.errors import ParleyError
from parley.paths import private_file, private_folder

WAIT_S = 10.0
"""How long another process's transaction is waited for."""

_EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"
LOST = (
    "the ledger of approvals {} was deleted or replaced: what it knew of your choices, of calls that ran and "
    "of what you trust is gone with it. A call without result may have run: look before you say yes to it"
)

SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY, chat BLOB NOT NULL, call_id BLOB NOT NULL, server BLOB NOT NULL,
    tool BLOB NOT NULL, arguments BLOB NOT NULL, digest BLOB NOT NULL, choice TEXT NOT NULL,
    rule TEXT NOT NULL, why TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'live',
    decided REAL NOT NULL, started REAL
);
CREATE INDEX IF NOT EXISTS entries_of_chat ON entries (chat, call_id);
CREATE INDEX IF NOT EXISTS entries_of_call ON entries (call_id);
CREATE TABLE IF NOT EXISTS definitions (digest BLOB PRIMARY KEY, definition BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS written (
    number INTEGER PRIMARY KEY, chat BLOB NOT NULL, call_id BLOB NOT NULL, name BLOB NOT NULL,
    arguments BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS written_in_chat ON written (chat, call_id);
CREATE TABLE IF NOT EXISTS proposed (
    chat BLOB NOT NULL, call_id BLOB NOT NULL, server BLOB NOT NULL, tool BLOB NOT NULL,
    arguments BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (chat, call_id, server, tool, arguments, digest)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS warnings (
    chat BLOB NOT NULL, viewer TEXT NOT NULL, call_id BLOB NOT NULL, arguments BLOB NOT NULL,
    what TEXT NOT NULL, PRIMARY KEY (chat, viewer, call_id, arguments, what)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS confirmed (
    chat BLOB NOT NULL, wanted BLOB NOT NULL, PRIMARY KEY (chat, wanted)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS trusted (path BLOB PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (
    number INTEGER PRIMARY KEY, chat BLOB NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, facts TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS log_of_chat ON log (chat, number);
"""
UNWRITE = """
DELETE FROM written WHERE number = (
    SELECT number FROM written WHERE chat = ? AND call_id = ? AND arguments = ? LIMIT 1)
"""
USE_UP = """
UPDATE entries SET state = 'used', started = ? WHERE number = (
    SELECT number FROM entries WHERE chat = ? AND call_id = ? AND server = ? AND tool = ?
    AND arguments = ? AND digest = ? AND state = 'live' ORDER BY number LIMIT 1)
"""

ELSEWHERE = """
SELECT call_id, arguments FROM entries WHERE chat <> ? AND state IN ('used', 'closed') AND call_id IN ({})
"""
AT_ONCE = 500
"""So many values a statement may have in every SQLite, and some more."""

CLOSE = """
UPDATE entries SET state = 'closed' WHERE number = (
    SELECT number FROM entries WHERE chat = ? AND call_id = ? AND arguments = ? AND state = 'used'
    ORDER BY number DESC LIMIT 1)
"""


class Database:
    """A database of one file, shared by processes; one that is deleted or replaced is opened anew."""

    def __init__(self, path: Path | None) -> None:
        """The database at `path`; None is one in memory."""
        self.path = path
        self._identity: tuple[int, int] | None = None
        """Device and inode of the open file."""
        self._news = list[str]()
        self._open()

    def news(self) -> list[str]:
        """What befell the file, for the user, who was not told yet."""
        news, self._news = self._news, []
        return news

    def _open(self) -> None:
        path = self.path
        try:
            if path is not None:
                private_folder(path.parent)
                private_file(path)  # it may have come out of a backup
                self._identity = self._place()  # if it goes before it is open, the next look says so
            self._db = sqlite3.connect(path or ":memory:", timeout=WAIT_S, isolation_level=None)
            with ExitStack() as failing:
                failing.callback(self._db.close)
                self._use_wal()
                self._db.execute("PRAGMA synchronous=FULL")
                self._db.executescript(SCHEMA)
                failing.pop_all()
        except (OSError, sqlite3.Error) as error:
            self._identity = None
            raise ParleyError(
                f"cannot open the ledger of approvals {path}: {error}. "
                "Make its folder writable, or set XDG_STATE_HOME to one that is"
            ) from error

    def _place(self) -> tuple[int, int] | None:
        """Device and inode of what is at the path now; None of nothing."""
        assert self.path is not None
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _renew(self) -> bool:
        """Whether the open file was no longer the one at the path, which is open now.

        Who would go on with a file without a name would hide what is decided and run from everybody else.
        Its log is emptied first: SQLite would find it beside the new file and take it for that one's.
        """
        if self.path is None or (self._identity is not None and self._place() == self._identity):
            return False
        if self._identity is not None:
            self._news.append(LOST.format(self.path))
        with suppress(sqlite3.Error):
            self._db.execute(_EMPTY_LOG)
        self._db.close()
        self._open()
        return True

    def _use_wal(self) -> None:
        """Who finds another process at the very same change is told at once: SQLite does not wait here."""
        end = time.monotonic() + WAIT_S
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.005)
            else:
                return

    @contextmanager
    def transaction(self, *, takes: bool = False) -> Iterator[sqlite3.Connection]:
        """One durable transaction; another process waits for it.

        One that `takes` yeses away is brought into the database file itself: who copies or restores that
        file without the log beside it (`-wal`) shall find no yes in it that is none any more, and who puts
        another file in its place no log that speaks of the old one.
        """
        with self._translated():
            self._renew()
            self._db.execute("BEGIN IMMEDIATE")
            while self._renew():  # it went while another process was waited for
                self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            if takes:
                self._db.execute(_EMPTY_LOG)

    def read(self, question: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows that answer a question."""
        with self._translated():
            self._renew()
            return self._db.execute(question, values).fetchall()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ParleyError(
                f"the ledger of approvals {self.path} cannot be used: {error}. Nothing runs without it"
            ) from error

    def close(self) -> None:
        """Give the file back."""
        self._db.close()
