"""Decisions and runs on this machine: a small database that the editor and the shell share.

The real path of its file identifies a chat. Every approval is one row, which is used up in one
durable transaction before its call is sent. So an approval runs at most one call, even after an
undo, a reload, a kill or an action in another window. Knows how to store decisions; other modules
know their meaning.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
import time
import uuid
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from parley.errors import BusyError, ParleyError, reason_of
from parley.paths import private_file, private_folder, state_folder
from parley.policy.approval import CallKey, Entry, LedgerView
from parley.policy.facts import (
    Approved,
    Disowned,
    Explained,
    Fact,
    Proposed,
    Removed,
    Replied,
    Revoked,
    Unwarned,
    Warned,
)
from parley.policy.permissions import Permission
from parley.storage.locks import locked
from parley.storage.migrations import MIGRATIONS, ledger_version, migrate
from parley.storage.old_records import delete_old_records
from parley.storage.request_rows import RequestRow, packed, unpacked

T = TypeVar("T")

TRANSACTION_WAIT_S = 10.0
"""Seconds to wait for another process's transaction."""
_DAY_S = 24 * 3600.0
_PAUSE_S = 3600.0
"""The number of seconds until the next search for old records, when there are none left."""
_MOST_CHATS = 32
"""The number of chats whose last request is remembered."""

_EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"
LOST = (
    "the approval ledger {} was deleted or replaced: its records of your choices, of calls that "
    "ran and "
    "of trusted files are lost. A call without a result may have run: check before you approve it"
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
CREATE INDEX IF NOT EXISTS entries_of_arguments ON entries (call_id, substr(arguments, 1, 200));
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
CREATE TABLE IF NOT EXISTS tasks (
    chat BLOB NOT NULL, call_id BLOB NOT NULL, server BLOB NOT NULL, tool BLOB NOT NULL,
    arguments BLOB NOT NULL, digest BLOB NOT NULL, task BLOB NOT NULL,
    PRIMARY KEY (chat, call_id, server, tool, arguments, digest, task)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS warnings (
    chat BLOB NOT NULL, viewer TEXT NOT NULL, call_id BLOB NOT NULL, arguments BLOB NOT NULL,
    what TEXT NOT NULL, PRIMARY KEY (chat, viewer, call_id, arguments, what)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS confirmed (
    chat BLOB NOT NULL, wanted BLOB NOT NULL, PRIMARY KEY (chat, wanted)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS trusted (path BLOB PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS trusted_texts (
    path BLOB PRIMARY KEY, digest TEXT NOT NULL, content BLOB, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS permissions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, server BLOB NOT NULL, tool BLOB NOT NULL,
    digest BLOB NOT NULL, chat BLOB NOT NULL, root BLOB NOT NULL, arguments BLOB NOT NULL,
    given REAL NOT NULL, UNIQUE (server, tool, digest, chat, root, arguments)
);
CREATE TABLE IF NOT EXISTS log (
    number INTEGER PRIMARY KEY, chat BLOB NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, facts TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS log_of_chat ON log (chat, number);
CREATE TABLE IF NOT EXISTS headers (digest TEXT PRIMARY KEY, header TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY, chat BLOB NOT NULL, at REAL NOT NULL, digest TEXT NOT NULL,
    header TEXT NOT NULL, units TEXT NOT NULL, reply TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS changes (
    number INTEGER PRIMARY KEY, chat BLOB NOT NULL, call_id BLOB NOT NULL, kind TEXT NOT NULL,
    root BLOB NOT NULL, path BLOB NOT NULL, moved_to BLOB NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    mode INTEGER NOT NULL, reverts INTEGER, at REAL NOT NULL, state TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS changes_of_chat ON changes (chat, number);
CREATE INDEX IF NOT EXISTS requests_of_chat ON requests (chat, number);
CREATE INDEX IF NOT EXISTS requests_of_header ON requests (header);
CREATE TABLE IF NOT EXISTS deleted (chat BLOB PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS readable (
    chat BLOB NOT NULL, path BLOB NOT NULL, PRIMARY KEY (chat, path)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS headings (
    path BLOB PRIMARY KEY, changed INTEGER NOT NULL, size INTEGER NOT NULL, inode INTEGER NOT NULL,
    topic TEXT NOT NULL, agent TEXT NOT NULL, tags TEXT NOT NULL
) WITHOUT ROWID;
"""
"""The ledger's tables; existing tables stay unchanged, without columns added here.

So put new data into a table of its own, which is added to old ledgers when they are opened, and
which older versions of Parley ignore. To change a table that exists, append to `MIGRATIONS`; new
ledgers get these changes, too. From then on, older versions refuse the ledger.
"""
NEWER = (
    "the approval ledger {} was changed by a newer Parley: its version is {}, this Parley's is {}. "
    "Update Parley and restart it, or set XDG_STATE_HOME to another folder"
)
IS_KNOWN = """
SELECT 1 FROM entries WHERE chat = ? UNION ALL SELECT 1 FROM written WHERE chat = ?
UNION ALL SELECT 1 FROM proposed WHERE chat = ? UNION ALL SELECT 1 FROM warnings WHERE chat = ?
UNION ALL SELECT 1 FROM confirmed WHERE chat = ? UNION ALL SELECT 1 FROM log WHERE chat = ?
UNION ALL SELECT 1 FROM permissions WHERE chat = ? UNION ALL SELECT 1 FROM readable WHERE chat = ?
LIMIT 1
"""
REQUESTS = """
SELECT requests.number, at, requests.digest, headers.header, units, reply FROM requests
JOIN headers ON headers.digest = requests.header WHERE chat = ? ORDER BY requests.number
"""
ENTRY_ROWS = """
SELECT call_id, server, tool, arguments, digest, base, choice, rule, state FROM entries
WHERE chat = ? ORDER BY number
"""
WRITTEN_ROWS = "SELECT call_id, name, arguments FROM written WHERE chat = ?"
PROPOSED_ROWS = "SELECT call_id, server, tool, arguments, digest FROM proposed WHERE chat = ?"
WARNING_ROWS = "SELECT call_id, arguments, what FROM warnings WHERE chat = ? AND viewer = ?"
TASK_ROWS = "SELECT call_id, server, tool, arguments, digest, task FROM tasks WHERE chat = ?"
APPROVE = """
INSERT INTO entries
    (chat, call_id, server, tool, arguments, digest, choice, rule, why, decided, base)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
ALLOW = """
INSERT OR IGNORE INTO permissions (server, tool, digest, chat, root, arguments, given)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
PERMISSIONS = """
SELECT server, tool, digest, chat, root, arguments, number, given FROM permissions ORDER BY number
"""
WRITE = "INSERT INTO written (chat, call_id, name, arguments) VALUES (?, ?, ?, ?)"
REPLY = """
INSERT INTO requests (chat, at, digest, header, units, reply) VALUES (?, ?, ?, ?, ?, ?)
"""
PROPOSE = """
INSERT OR IGNORE INTO proposed (chat, call_id, server, tool, arguments, digest) VALUES (?, ?, ?, ?, ?, ?)
"""
BEGIN_TASK = """
INSERT OR IGNORE INTO tasks (chat, call_id, server, tool, arguments, digest, task)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
WARN = """
INSERT OR IGNORE INTO warnings (chat, viewer, call_id, arguments, what) VALUES (?, ?, ?, ?, ?)
"""
UNWARN = """
DELETE FROM warnings WHERE chat = ? AND viewer = ? AND call_id = ? AND arguments = ? AND what = ?
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

# Ids repeat, because a model without ids gets `call_p1` in each reply; the arguments' start is in the
# index.
ELSEWHERE = """
WITH wanted (id, text) AS (VALUES {})
SELECT entries.call_id, entries.arguments FROM wanted
CROSS JOIN entries INDEXED BY entries_of_arguments
ON entries.call_id = id AND substr(entries.arguments, 1, 200) = substr(text, 1, 200)
AND entries.arguments = text WHERE chat <> ? AND state IN ('used', 'closed')
"""
CALLS_AT_ONCE = 400
"""The number of calls in one statement, with two values each; every SQLite accepts that many."""

RULE = """
SELECT rule FROM entries WHERE chat = ? AND call_id = ? AND arguments = ? AND state = 'used'
ORDER BY number DESC LIMIT 1
"""
LAST_OF_CALL = """
SELECT kind, facts FROM log WHERE chat = ? AND instr(facts, ?) ORDER BY at DESC, number DESC LIMIT 1
"""
"""The last record of a call, which its id as JSON names; within another text, the quotes would be
escaped."""
REVOKE = "UPDATE entries SET state = 'revoked' WHERE chat = ? AND call_id = ? AND state = 'live'"
_CHANGES: Mapping[type[Fact], Collection[str]] = {
    Approved: ("entries",),
    Revoked: ("entries",),
    Removed: ("entries", "written"),
    Proposed: ("written", "proposed"),
    Disowned: ("written",),
    Warned: ("warnings",),
    Unwarned: ("warnings",),
    Explained: (),
    Replied: (),
}
"""The tables of a view that each fact changes."""
CLOSE = """
UPDATE entries SET state = 'closed' WHERE number = (
    SELECT number FROM entries WHERE chat = ? AND call_id = ? AND arguments = ? AND state = 'used'
    ORDER BY number DESC LIMIT 1)
"""


class Database:
    """A database in one file, shared by processes; reopened if the file is deleted or replaced."""

    def __init__(self, path: Path | None) -> None:
        """Open the database at `path`, or in memory if it is None."""
        self.path = path
        self._identity: tuple[int, int] | None = None
        """Device and inode of the open file."""
        self._openings = 0
        """How often a file was opened; a new file may have the inode of a deleted one."""
        self._news = list[str]()
        self._takes = self._is_synced = False
        self._cache_users = 0
        """The number of callers that need the cache: the running turns."""
        self._cache: dict[str, dict[Hashable, Any]] = {}
        """By table, what was read while the database had the state `_cached_state`."""
        self._cached_state: Hashable = None
        self._open()

    def news(self) -> list[str]:
        """Messages for the user about the file's deletion or replacement, each once."""
        news, self._news = self._news, []
        return news

    def _open(self) -> None:
        path = self.path
        try:
            if path is not None:
                private_folder(path.parent)
                private_file(path)  # a file from a backup may have other permissions
                # Before the file is opened: if it is deleted in between, the next check finds that.
                self._identity = self._place()
            self._openings += 1
            self._db = sqlite3.connect(
                path or ":memory:", timeout=TRANSACTION_WAIT_S, isolation_level=None
            )
            with ExitStack() as failing:
                failing.callback(self._db.close)
                self._refuse_newer()  # before anything is written
                self._use_wal()
                self._is_synced = True
                self._sync(is_synced=False)  # each new table would wait for the disk
                self._db.executescript(SCHEMA)
                self._migrate()
                self._sync(is_synced=True)
                failing.pop_all()
        except ParleyError:  # it is newer
            self._identity = None
            raise
        except (OSError, sqlite3.Error) as error:
            self._identity = None
            raise ParleyError(
                f"cannot open the approval ledger {path}: {reason_of(error)}. {_remedy(error)}"
            ) from error

    def _migrate(self) -> None:
        """Make the changes that a ledger of an older version lacks, all of them or none."""
        if self._version() == len(MIGRATIONS):
            return
        self._db.execute("BEGIN IMMEDIATE")
        self._refuse_newer()  # another process may have been faster
        migrate(self._db.execute)
        self._db.execute("COMMIT")

    def _version(self) -> int:
        return ledger_version(self._db.execute)

    def _refuse_newer(self) -> None:
        """Raise ParleyError if a newer Parley has changed the tables."""
        if (version := self._version()) > len(MIGRATIONS):
            raise ParleyError(NEWER.format(self.path, version, len(MIGRATIONS)))

    def _place(self) -> tuple[int, int] | None:
        """Device and inode of the file that is now at the path; None if there is no file."""
        assert self.path is not None
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _renew(self) -> bool:
        """Reopen the database if another file, or no file, is at the path; return whether that
        happened.

        Continuing with a file that no longer has a name would hide decisions and runs from other
        processes. The old file's log is emptied first, because SQLite would find it next to the new
        file and apply it there.
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
        """Switch to WAL, waiting for other processes: SQLite fails immediately if another process
        does the same.
        """
        end = time.monotonic() + TRANSACTION_WAIT_S
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.005)
            else:
                return

    def unsynced(
        self, changes: Collection[str] | None = None
    ) -> AbstractContextManager[sqlite3.Connection]:
        """One transaction without a sync: it survives the end of this process, but perhaps not a
        power loss.
        """
        return self.transaction(is_synced=False, changes=changes)

    @contextmanager
    def transaction(
        self,
        *,
        takes: bool = False,
        is_synced: bool = True,
        changes: Collection[str] | None = None,
    ) -> Iterator[sqlite3.Connection]:
        """One durable transaction; other processes wait for it. `changes` are the tables that it
        changes, for `cached`; None means that they are unknown.

        With `takes`, or if `take` was called, which is for removing approvals, the changes are
        written to the database file itself. So if that file is copied or restored without the log
        next to it (`-wal`), it does not contain an approval that was already removed. If another
        file replaces it, no log from the old file is left.
        """
        self._takes = takes
        with self._translated():
            self._renew()
            self._sync(is_synced)
            self._db.execute("BEGIN IMMEDIATE")
            while self._renew():  # replaced while this waited for another process
                self._db.execute("BEGIN IMMEDIATE")
            try:
                self._refuse_newer()  # a newer Parley may have changed it since it was opened
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            finally:
                self._forget(changes)
            if self._takes:
                self._db.execute(_EMPTY_LOG)

    def _sync(self, is_synced: bool) -> None:
        """Set whether the next transactions wait for the disk."""
        if is_synced != self._is_synced:
            self._db.execute(f"PRAGMA synchronous={'FULL' if is_synced else 'NORMAL'}")
            self._is_synced = is_synced

    def take(self) -> None:
        """The current transaction removes an approval."""
        self._takes = True

    @contextmanager
    def caching(self) -> Iterator[None]:
        """Cache what `cached` reads, until it changes."""
        self._cache_users += 1
        try:
            yield
        finally:
            self._cache_users -= 1
            self._forget()

    def look_for_changes(self) -> None:
        """Empty the cache if another process has changed the database, or the file was replaced."""
        if not self._cache_users:
            return
        with self._translated():
            self._renew()
            ((others,),) = self._db.execute("PRAGMA data_version").fetchall()
        if (state := (self._openings, others)) != self._cached_state:
            self._forget()
            self._cached_state = state

    def cached(self, table: str, key: Hashable, read: Callable[[], T]) -> T:
        """The values that `read` reads from this table; `key` says which values these are."""
        if not self._cache_users:
            return read()
        values = self._cache.setdefault(table, {})
        if key not in values:
            values[key] = read()
        return cast("T", values[key])

    def _forget(self, tables: Collection[str] | None = None) -> None:
        """Remove the values of these tables from the cache; None means all."""
        for table in list(self._cache) if tables is None else tables:
            self._cache.pop(table, None)

    def read(self, question: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._translated():
            self._renew()
            return self._db.execute(question, values).fetchall()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ParleyError(
                f"{self._name} cannot be used: {error}. Parley runs nothing without it"
            ) from error

    @property
    def _name(self) -> str:
        """The ledger's name in messages; a ledger in memory has no path."""
        return f"the approval ledger {self.path}" if self.path else "the approval ledger in memory"

    def close(self) -> None:
        """Close the file."""
        self._db.close()


MADE_HERE = "*"
"""For a chat created on this machine, this entry confirms any agent that the user types here."""


def _remedy(error: OSError | sqlite3.Error) -> str:
    """The user's remedy if the ledger cannot be opened."""
    code = getattr(error, "sqlite_errorcode", None)
    is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if is_full or code == sqlite3.SQLITE_FULL:
        return "Free some space on its disk, or set XDG_STATE_HOME to a folder on another disk"
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return "Rename the file, and Parley creates a new ledger"
    return "Make its folder writable, or set XDG_STATE_HOME to a writable folder"


def _stored(text: str) -> bytes:
    """Text as stored bytes; preserves lone surrogates, which a model or a file name may contain."""
    return text.encode("utf-8", "surrogatepass")


def _read(value: bytes) -> str:
    return value.decode("utf-8", "surrogatepass")


def default_path(environ: Mapping[str, str]) -> Path:
    """The ledger's path, the same for the editor and the shell."""
    return state_folder(environ) / "ledger.db"


class LedgerFile(Database):
    """The database of all chats. Raises ParleyError, with a remedy, if the ledger cannot be
    opened.
    """

    def __init__(self, path: Path | None, viewer: str = "") -> None:
        """Open the database at `path`, or in memory for a conversation without a file.

        `viewer` identifies the user who is warned and then decides; by default, this process's
        user.
        """
        super().__init__(path)
        self.viewer = viewer or uuid.uuid4().hex
        self.last_units: dict[str, tuple[int, tuple[str, ...]]] = {}
        """For each of the chats that asked last, the number and the units of its last request."""
        self.keep_days = 0
        """For how many days the records of the log and of requests are kept; 0 means forever."""
        self._is_swept = False
        self._next_deletion = 0.0

    @property
    def turns(self) -> Path:
        """The folder with the locks of running turns; a database in memory has no such folder."""
        assert self.path is not None
        return self.path.parent / "turns"

    def sweep(self) -> None:
        """Remove the locks of turns whose process was killed; this is done only once."""
        if not self._is_swept:
            self._is_swept = True
            for left in self.turns.glob("*"):
                with locked(left):
                    pass

    def remember_units(self, chat: str, last: tuple[int, tuple[str, ...]]) -> None:
        """Remember the number and the units of a chat's last request."""
        self.last_units.pop(chat, None)
        self.last_units[chat] = last
        if len(self.last_units) > _MOST_CHATS:
            del self.last_units[next(iter(self.last_units))]

    def delete_old(self, now: float | None = None) -> None:
        """Delete the records that are older than `keep_days`, a few at each call; `now` is in
        seconds since 1970.

        If the database is in use, the next call tries it again.
        """
        now = time.time() if now is None else now
        if not self.keep_days or now < self._next_deletion:
            return
        with suppress(ParleyError), self.unsynced() as db:
            if not delete_old_records(db.execute, now - self.keep_days * _DAY_S):
                self._next_deletion = now + _PAUSE_S

    def chat(self, path: str, project: Callable[[], str] = lambda: "") -> ChatLedger:
        """The ledger of one chat, by the path of its file.

        `project` returns the folder of the user's current project; "" if there is none.
        """
        return ChatLedger(self, path, project)

    def allow(self, permission: Permission, definition: str) -> Permission:
        """Store a permission that the user gives for the tool with this definition; returns it with
        its number.

        Only a command of the user calls this: the engine's port cannot.
        """
        key = CallKey("", permission.server, permission.tool, "", permission.digest, definition)
        with self.transaction() as db:
            _keep_definition(db, key)
            db.execute(ALLOW, (*map(_stored, _fields(permission)), time.time()))
        return next(stored for stored, _ in self.permissions() if stored == permission)

    def permissions(self) -> list[tuple[Permission, float]]:
        """All permissions, oldest first, with their times (seconds since 1970)."""
        rows = self.read(PERMISSIONS, ())
        return [(_permission(*row[:7]), row[7]) for row in rows]

    def disallow(self, number: int) -> bool:
        """Remove the permission with this number; returns whether there was one."""
        with self.transaction(takes=True) as db:
            return db.execute("DELETE FROM permissions WHERE number = ?", (number,)).rowcount == 1

    def trusts(self, path: str, digest: str) -> bool:
        """Whether the user trusts the file at this path with this digest."""
        query = "SELECT 1 FROM trusted WHERE path = ? AND digest = ?"
        return bool(self.read(query, (_stored(path), digest)))

    def trust(self, path: str, digest: str) -> None:
        """Record that the user trusts this content of the file and no other content."""
        with self.transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO trusted (path, digest) VALUES (?, ?)",
                (_stored(path), digest),
            )


def _fields(permission: Permission) -> tuple[str, ...]:
    """A permission's texts, in the order of `Permission` and of `ALLOW`."""
    return (
        permission.server,
        permission.tool,
        permission.digest,
        permission.chat,
        permission.root,
        permission.arguments,
    )


def _permission(
    server: bytes,
    tool: bytes,
    digest: bytes,
    chat: bytes,
    root: bytes,
    arguments: bytes,
    number: int,
) -> Permission:
    return Permission(
        _read(server),
        _read(tool),
        _read(digest),
        _read(chat),
        _read(root),
        _read(arguments),
        number,
    )


def _entry(*values: Any) -> Entry:
    *key, base, choice, rule, state = values
    call_id, server, tool, arguments, digest = map(_read, key)
    return Entry(CallKey(call_id, server, tool, arguments, digest, base=base), choice, rule, state)


def _texts(*values: bytes) -> Any:
    return tuple(map(_read, values))


def _call_key(*values: bytes) -> CallKey:
    return CallKey(*map(_read, values))


def _warning(call_id: bytes, arguments: bytes, what: str) -> tuple[str, str, str]:
    return _read(call_id), _read(arguments), what


def _task(*values: bytes) -> tuple[CallKey, str]:
    *key, task = map(_read, values)
    return CallKey(*key), task


def _keep_definition(db: sqlite3.Connection, key: CallKey) -> None:
    """Store a tool's definition under its digest, to show later how the definition has changed."""
    if key.definition:
        row = _stored(key.digest), _stored(key.definition)
        db.execute("INSERT OR IGNORE INTO definitions (digest, definition) VALUES (?, ?)", row)


@contextmanager
def shell_ledger(environ: Mapping[str, str]) -> Iterator[LedgerFile | None]:
    """The ledger, for commands that only read it; None if it does not exist. Never creates one."""
    path = default_path(environ)
    try:
        is_there = path.exists()
    except OSError:  # opening it reports why
        is_there = True
    if not is_there:
        yield None
        return
    with closing(LedgerFile(path, viewer="shell")) as ledger:
        yield ledger


class ChatLedger:
    """One chat's decisions; implements the engine's ledger port.

    Resolves the path when created, and again when a call starts. If a link points elsewhere by the
    time a call starts, the call does not start.
    """

    def __init__(
        self, file: LedgerFile, path: str, project: Callable[[], str] = lambda: ""
    ) -> None:
        self._file = file
        self._path = path
        self._project = project
        self._request: tuple[float, str, str, tuple[str, ...]] | None = None
        self.chat = os.path.realpath(path)

    def news(self) -> list[str]:
        """Messages for the user about the ledger's deletion or replacement, each once."""
        return self._file.news()

    @contextmanager
    def lease(self) -> Iterator[None]:
        """The right to run a turn in this chat; if this process is killed, the system releases the
        lock.
        """
        if self._file.path is None:
            with self._file.caching():
                yield
            return
        self._file.sweep()
        with locked(self._file.turns / hashlib.sha256(_stored(self.chat)).hexdigest()) as is_ours:
            if not is_ours:
                raise BusyError(
                    "another Neovim or command is running a turn in this chat. Wait for it, or "
                    "stop it there"
                )
            with self._file.caching():
                yield
        self._file.delete_old()

    def view(self, calls: Collection[tuple[str, str]] = ()) -> LedgerView:
        """The chat's entries in order, the proposals that Parley wrote, and the viewer's warnings.

        Includes the `calls` that were started for another file, of which this file may be a copy.
        """
        view = self._read_view(calls)
        return (
            replace(view, permissions=self._applying(view.permissions))
            if view.permissions
            else view
        )

    def _read_view(self, calls: Collection[tuple[str, str]]) -> LedgerView:
        """The view, with all permissions, also those for other chats and projects.

        In a turn, each table is read again only after a change: a turn needs a view at each step.
        """
        file, chat = self._file, _stored(self.chat)
        file.look_for_changes()

        def rows(table: str, query: str, row: Callable[..., T], *more: object) -> tuple[T, ...]:
            def read() -> tuple[T, ...]:
                return tuple(row(*values) for values in file.read(query, (chat, *more)))

            return file.cached(table, self.chat, read)

        return LedgerView(
            rows("entries", ENTRY_ROWS, _entry),
            rows("written", WRITTEN_ROWS, _texts),
            rows("proposed", PROPOSED_ROWS, _call_key),
            rows("warnings", WARNING_ROWS, _warning, file.viewer),
            file.cached("entries", (self.chat, *calls), lambda: tuple(self._elsewhere(calls))),
            rows("tasks", TASK_ROWS, _task),
            file.cached("permissions", "", lambda: tuple(each for each, _ in file.permissions())),
        )

    def _applying(self, permissions: Iterable[Permission]) -> tuple[Permission, ...]:
        """The permissions that apply to this chat, in the user's current project."""
        project = self._project()
        return tuple(each for each in permissions if each.applies_in(self.chat, project))

    def _elsewhere(self, calls: Collection[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        keys = list({(_stored(call_id), _stored(arguments)) for call_id, arguments in calls})
        for at in range(0, len(keys), CALLS_AT_ONCE):
            some = keys[at : at + CALLS_AT_ONCE]
            query = ELSEWHERE.format(", ".join(["(?, ?)"] * len(some)))
            values = [value for key in some for value in key]
            for call_id, arguments in self._file.read(query, (*values, _stored(self.chat))):
                yield _read(call_id), _read(arguments)

    def rule(self, call_id: str, arguments: str) -> str:
        """The rule behind the last approval that this call used up; "" if there is none."""
        rows = self._file.read(RULE, self._named(call_id, arguments))
        return next((rule for (rule,) in rows), "")

    def definition(self, digest: str) -> str:
        """The definition with this digest, as canonical JSON; "" if it was not kept."""
        query = "SELECT definition FROM definitions WHERE digest = ?"
        return next((_read(text) for (text,) in self._file.read(query, (_stored(digest),))), "")

    def record(self, *facts: Fact) -> None:  # noqa: C901  one case for each fact
        """Record facts in this order, in one transaction.

        If a power loss may undo it, the facts take nothing away: then Parley asks the user again.
        Before a call is sent, `start` makes everything durable that was recorded before.
        """
        if not facts:
            return
        last: tuple[int, tuple[str, ...]] | None = None
        with self._transaction(facts) as db:
            for fact in facts:
                match fact:
                    case Approved():
                        self._approve(db, fact)
                    case Revoked(call_ids):
                        for call_id in call_ids:
                            self._revoke(db, call_id)
                    case Disowned(calls):
                        db.executemany(UNWRITE, (self._named(*call) for call in calls))
                    case Removed(calls):
                        self._remove(db, calls)
                    case Explained():
                        self._explain(db, fact)
                    case Proposed():
                        self._propose(db, fact)
                    case Replied(units):
                        last = self._keep_reply(db, units)
                    case Warned(warnings):
                        db.executemany(WARN, (self._warned(*warning) for warning in warnings))
                    case Unwarned(warnings):
                        db.executemany(UNWARN, (self._warned(*warning) for warning in warnings))
        if last is not None:
            self._file.remember_units(self.chat, last)

    def _transaction(self, facts: Sequence[Fact]) -> AbstractContextManager[sqlite3.Connection]:
        changes = {table for fact in facts for table in _CHANGES[type(fact)]}
        if any(isinstance(fact, Revoked | Removed) for fact in facts):
            return self._file.transaction(takes=True, changes=changes)
        if any(isinstance(fact, Disowned | Unwarned) for fact in facts):
            return self._file.transaction(changes=changes)
        return self._file.unsynced(changes)

    def _approve(self, db: sqlite3.Connection, fact: Approved) -> None:
        why = fact.why.encode("utf-8", "replace").decode()
        for key, choice in fact.calls:
            self._revoke(db, key.id)
            tool = f"{key.server}/{key.tool}"
            noted = {"call": key.id, "tool": tool, "choice": choice, "rule": fact.rule}
            self._note(db, "decided", {**noted, "because": why} if why else noted)
            _keep_definition(db, key)
            db.execute(APPROVE, (*self._bound(key), choice, fact.rule, why, time.time(), key.base))

    def _remove(self, db: sqlite3.Connection, calls: Sequence[tuple[str, str]]) -> None:
        """Close one used approval for each call.

        Not every one with this id, because ids repeat: a call in another answer with the same id
        may still need its result.
        """
        for call_id, arguments in calls:
            self._revoke(db, call_id)
            for close in (CLOSE, UNWRITE):
                db.execute(close, self._named(call_id, arguments))

    def _explain(self, db: sqlite3.Connection, fact: Explained) -> None:
        for call_id, tool, why in fact.calls:
            facts = {"call": call_id, "tool": tool, "because": why}
            named = json.dumps({"call": call_id}).strip("{}")
            last = db.execute(LAST_OF_CALL, (_stored(self.chat), named)).fetchone()
            if last != (fact.what, json.dumps(facts)):
                self._note(db, fact.what, facts)

    def _propose(self, db: sqlite3.Connection, fact: Proposed) -> None:
        rows = (tuple(map(_stored, (self.chat, *proposal))) for proposal in fact.proposals)
        db.executemany(WRITE, rows)
        for key in fact.keys:
            _keep_definition(db, key)
            db.execute(PROPOSE, self._bound(key))

    def start(self, key: CallKey) -> bool:
        """Use up this call's approval; True for exactly one of several concurrent callers."""
        if os.path.realpath(self._path) != self.chat:
            return False
        with self._file.transaction(takes=True, changes=("entries", "warnings")) as db:
            used = db.execute(USE_UP, (time.time(), *self._bound(key)))
            call = self._named(key.id, key.arguments)
            db.execute(
                "DELETE FROM warnings WHERE chat = ? AND call_id = ? AND arguments = ?", call
            )
            return used.rowcount == 1

    def begin_task(self, key: CallKey, task: str) -> None:
        """Record that a call that was started runs at its server as this task."""
        with self._file.transaction(changes=("tasks",)) as db:
            db.execute(BEGIN_TASK, (*self._bound(key), _stored(task)))

    def _warned(self, call_id: str, arguments: str, what: str) -> tuple[object, ...]:
        """The row for a warning that this chat's viewer has received."""
        return (
            _stored(self.chat),
            self._file.viewer,
            _stored(call_id),
            _stored(arguments),
            what,
        )

    def may_want(self, agent: str, *, is_typed: bool = False) -> bool:
        """Whether this chat may use the agent: the agent is confirmed, or the user typed it in a
        chat created here.
        """
        query = "SELECT 1 FROM confirmed WHERE chat = ? AND wanted = ?"
        kinds = (agent, MADE_HERE) if is_typed else (agent,)
        confirmed = [
            kind for kind in kinds if self._file.read(query, (_stored(self.chat), _stored(kind)))
        ]
        if MADE_HERE in confirmed:
            self.confirm(agent)
        return bool(confirmed)

    def may_read(self, path: str) -> bool:
        """Whether the user has agreed that this chat's questions may include the hidden file."""
        query = "SELECT 1 FROM readable WHERE chat = ? AND path = ?"
        return bool(self._file.read(query, (_stored(self.chat), _stored(path))))

    def agree_to_read(self, path: str) -> None:
        """Record that the user lets this chat's questions include the hidden file."""
        with self._file.transaction() as db:
            row = (_stored(self.chat), _stored(path))
            db.execute("INSERT OR IGNORE INTO readable (chat, path) VALUES (?, ?)", row)

    def confirm(self, agent: str) -> None:
        """Record that the user lets this chat use this agent."""
        with self._file.transaction() as db:
            row = (_stored(self.chat), _stored(agent))
            db.execute("INSERT OR IGNORE INTO confirmed (chat, wanted) VALUES (?, ?)", row)

    def note(self, kind: str, facts: Mapping[str, Any], at: float | None = None) -> None:
        """Record an event that happened now, or that began at the time `at`."""
        with self._file.unsynced(changes=()) as db:
            self._note(db, kind, facts, at)

    def hold_request(self, digest: str, header: str, units: tuple[str, ...]) -> None:
        """Hold a sent request until a recorded `Replied` stores it with its reply."""
        self._request = time.time(), digest, header, units

    def _keep_reply(
        self, db: sqlite3.Connection, units: Sequence[str]
    ) -> tuple[int, tuple[str, ...]] | None:
        """Store the held request, by its digests, with the digests of its reply.

        Returns the number and the units of the request; None if none was held.
        """
        request, self._request = self._request, None
        if request is None:
            return None
        at, digest, header, request_units = request
        name = hashlib.sha256(header.encode()).hexdigest()
        pieces = packed(request_units, self._last_units(db))
        db.execute("INSERT OR IGNORE INTO headers (digest, header) VALUES (?, ?)", (name, header))
        row = (_stored(self.chat), at, digest, name, pieces, " ".join(units))
        return db.execute(REPLY, row).lastrowid or 0, request_units

    def requests(self) -> list[RequestRow]:
        """All requests that led to a reply in this chat, oldest first."""
        units, rows = tuple[str, ...](), list[RequestRow]()
        for _, at, digest, header, pieces, reply in self._file.read(
            REQUESTS, (_stored(self.chat),)
        ):
            units = unpacked(pieces, units)
            rows.append(RequestRow(at, digest, header, units, tuple(reply.split())))
        return rows

    def _last_units(self, db: sqlite3.Connection) -> tuple[str, ...]:
        """The units of this chat's last request; empty if there is none."""
        ((last,),) = db.execute(
            "SELECT max(number) FROM requests WHERE chat = ?", (_stored(self.chat),)
        )
        number, units = self._file.last_units.get(self.chat, (None, ()))
        if number != last:
            units = ()
            for *_, pieces, _ in db.execute(REQUESTS, (_stored(self.chat),)):
                units = unpacked(pieces, units)
        return units

    def is_known(self) -> bool:
        """Whether there is any record of this chat; a new file with its name would inherit it."""
        return bool(self._file.read(IS_KNOWN, [_stored(self.chat)] * IS_KNOWN.count("?")))

    def deleted_until(self) -> float | None:
        """The time (seconds since 1970) of the newest record of this chat that was deleted because
        of its age; None if none was.
        """
        query = "SELECT until FROM deleted WHERE chat = ?"
        return next((at for (at,) in self._file.read(query, (_stored(self.chat),))), None)

    def history(self) -> list[tuple[float, str, dict[str, Any]]]:
        """All records of this chat, oldest first: time (seconds since 1970), kind, facts."""
        query = "SELECT at, kind, facts FROM log WHERE chat = ? ORDER BY at, number"
        rows = self._file.read(query, (_stored(self.chat),))
        return [(at, kind, json.loads(facts)) for at, kind, facts in rows]

    def _note(
        self, db: sqlite3.Connection, kind: str, facts: Mapping[str, Any], at: float | None = None
    ) -> None:
        row = (_stored(self.chat), at or time.time(), kind, json.dumps(facts))
        db.execute("INSERT INTO log (chat, at, kind, facts) VALUES (?, ?, ?, ?)", row)

    def _named(self, call_id: str, arguments: str) -> tuple[bytes, ...]:
        return _stored(self.chat), _stored(call_id), _stored(arguments)

    def _bound(self, key: CallKey) -> tuple[bytes, ...]:
        return tuple(
            map(_stored, (self.chat, key.id, key.server, key.tool, key.arguments, key.digest))
        )

    def _revoke(self, db: sqlite3.Connection, call_id: str) -> None:
        if db.execute(REVOKE, (_stored(self.chat), _stored(call_id))).rowcount:
            self._file.take()
