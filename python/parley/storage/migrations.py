"""Changes to the ledger's existing tables, in order, for ledgers that an older version made.

A ledger's version is the number of changes that it has; `PRAGMA user_version` keeps it. Parley
refuses a ledger with more changes than it knows. Knows SQL, but opens no database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

Run: TypeAlias = Callable[[str], Iterable[tuple[Any, ...]]]
"""Runs one statement in the current transaction; returns its rows."""
Migration: TypeAlias = Callable[[Run], None]

_TRIGGER = """
CREATE TRIGGER chat_of_{0} AFTER INSERT ON {0}
BEGIN INSERT OR IGNORE INTO chats VALUES (NEW.chat); END
"""
_KNOWN_CHATS = (
    "CREATE TABLE chats (chat BLOB PRIMARY KEY) WITHOUT ROWID",
    _TRIGGER.format("log"),
    _TRIGGER.format("confirmed"),
    "INSERT INTO chats SELECT chat FROM log UNION SELECT chat FROM confirmed",
)
"""The paths of all chats with a record. Triggers fill the table."""


def _add_unnumbered_changes(run: Run) -> None:
    """Add the changes from before ledgers had versions; a ledger may have some of them."""
    if not any(row[1] == "base" for row in run("PRAGMA table_info(entries)")):
        run("ALTER TABLE entries ADD COLUMN base TEXT NOT NULL DEFAULT ''")
    if not list(run("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'chats'")):
        for statement in _KNOWN_CHATS:
            run(statement)


MIGRATIONS: tuple[Migration, ...] = (_add_unnumbered_changes,)
"""Every change, oldest first. Never edit a change that was released; append another change.

Store a ledger of the newest version first: see `tests/storage/stored_ledgers.py`.
"""


def ledger_version(run: Run) -> int:
    """The number of changes that a ledger has."""
    ((number,),) = run("PRAGMA user_version")
    return int(number)


def migrate(run: Run, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Make the changes that a ledger lacks, and count them in its version. The caller has begun a
    transaction."""
    for number, change in enumerate(migrations[ledger_version(run) :], ledger_version(run) + 1):
        change(run)
        run(f"PRAGMA user_version = {number}")
