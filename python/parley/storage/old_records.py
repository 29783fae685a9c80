"""Deletes the oldest records of the log and of requests, a few at a time, and records that.

The approvals and the calls that ran are never deleted: without them, a call could run twice. Knows
SQL, but opens no database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from parley.storage.request_rows import packed, unpacked

Query: TypeAlias = Callable[[str, Sequence[Any]], Iterable[tuple[Any, ...]]]
"""Runs one statement in the current transaction; returns its rows."""
MOST_DELETED = 200
"""The maximum number of rows of each table that are deleted at once, which takes a few
milliseconds."""

# The newest row stays, because SQLite would give its number to another row.
_OLDEST = """
SELECT number, chat, at{} FROM {} WHERE number < (SELECT max(number) FROM {}) ORDER BY number LIMIT ?
"""
_OLD_RECORDS = _OLDEST.format("", "log", "log")
_OLD_REQUESTS = _OLDEST.format(", header", "requests", "requests")
_REQUESTS_OF = "SELECT number, units FROM requests WHERE chat = ? ORDER BY number"
_REMEMBER = """
INSERT INTO deleted (chat, until) VALUES (?, ?)
ON CONFLICT (chat) DO UPDATE SET until = max(until, excluded.until)
"""
_UNUSED = """
DELETE FROM headers WHERE digest = ? AND NOT EXISTS (SELECT 1 FROM requests WHERE header = ?)
"""


def delete_old_records(run: Query, before: float, most: int = MOST_DELETED) -> int:
    """Delete rows from before this time (seconds since 1970), the oldest first; returns how many.

    The tables are in the order of time, so this reads only the rows that it deletes.
    """
    records = _older(run(_OLD_RECORDS, (most,)), before)
    requests = _older(run(_OLD_REQUESTS, (most,)), before)
    if records:
        run("DELETE FROM log WHERE number <= ?", (records[-1][0],))
    if requests:
        last = requests[-1][0]
        for chat in {row[1] for row in requests}:
            _unpack_next(run, chat, last)
        run("DELETE FROM requests WHERE number <= ?", (last,))
        for header in {row[3] for row in requests}:
            run(_UNUSED, (header, header))
    until = dict[bytes, float]()
    for _, chat, at, *_ in (*records, *requests):
        until[chat] = max(at, until.get(chat, at))
    for row in until.items():
        run(_REMEMBER, row)
    return len(records) + len(requests)


def _older(rows: Iterable[tuple[Any, ...]], before: float) -> list[tuple[Any, ...]]:
    """The rows at the beginning that are from before this time."""
    found = list[tuple[Any, ...]]()
    for row in rows:
        if row[2] >= before:
            break
        found.append(row)
    return found


def _unpack_next(run: Query, chat: bytes, last: int) -> None:
    """Store all units of the chat's first request after the number `last`: it has only the
    difference from a request that is about to be deleted.
    """
    units = tuple[str, ...]()
    for number, pieces in run(_REQUESTS_OF, (chat,)):
        units = unpacked(pieces, units)
        if number > last:
            run("UPDATE requests SET units = ? WHERE number = ?", (packed(units, ()), number))
            break
