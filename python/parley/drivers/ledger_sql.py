"""The tables of the ledger, and those of its statements that have to be read twice.

Text is kept as bytes, since a model or a file name may hold what is no Unicode. A table is only ever added,
so that a ledger of an earlier version is opened as it is.
"""

SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY, chat BLOB NOT NULL, call_id BLOB NOT NULL, server BLOB NOT NULL,
    tool BLOB NOT NULL, arguments BLOB NOT NULL, digest BLOB NOT NULL, choice TEXT NOT NULL,
    rule TEXT NOT NULL, why TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'live',
    decided REAL NOT NULL, started REAL
);
CREATE INDEX IF NOT EXISTS entries_of_chat ON entries (chat, call_id);
CREATE TABLE IF NOT EXISTS definitions (digest BLOB PRIMARY KEY, definition BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS written (
    number INTEGER PRIMARY KEY, chat BLOB NOT NULL, call_id BLOB NOT NULL, name BLOB NOT NULL,
    arguments BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS written_in_chat ON written (chat, call_id);
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

CLOSE = """
UPDATE entries SET state = 'closed' WHERE number = (
    SELECT number FROM entries WHERE chat = ? AND call_id = ? AND arguments = ? AND state = 'used'
    ORDER BY number DESC LIMIT 1)
"""
