"""Ledgers of older versions, stored in `ledgers/` as these versions wrote them.

`python -m tests.storage.stored_ledgers NAME` stores a ledger of the current version. Do this before
you append to `MIGRATIONS`, so that the new change is tried with a ledger that lacks it.
"""

from __future__ import annotations

import gzip
import sqlite3
import sys
import tempfile
from pathlib import Path

from parley.policy.approval import CallKey
from parley.policy.facts import Approved, Explained, Proposed, Replied, Revoked, Warned
from parley.storage.ledger import LedgerFile

STORED = {
    path.name.removesuffix(".db.gz"): path
    for path in sorted((Path(__file__).parent / "ledgers").glob("*.db.gz"))
}
"""The stored ledgers by name, which begins with the version."""
CHAT = "/home/someone/chats/old.md"
VIEWER = "someone"
DEFINITION = '{"name":"web_search"}'
HEADER = '{"model":"demo"}'
UNITS = ("a1", "b2")


def key(call_id: str) -> CallKey:
    """The key of one of the stored calls."""
    return CallKey(call_id, "demo", "web_search", '{"query":"x"}', "digest", DEFINITION)


USED, LIVE, VOID = key("used"), key("live"), key("void")


def fill(ledger: LedgerFile) -> None:
    """Record what a user's ledger has. Uses only what every version has had."""
    chat = ledger.chat(CHAT)
    chat.confirm("Demo")
    proposals = tuple((each.id, each.tool, each.arguments) for each in (USED, LIVE, VOID))
    chat.record(Proposed(proposals, (USED, LIVE, VOID)))
    chat.record(Approved(((USED, "yA"), (LIVE, "ya"), (VOID, "ya")), "key"))
    chat.record(Revoked((VOID.id,)))
    assert chat.start(USED)
    chat.begin_task(USED, "task-7")
    chat.record(Warned(((LIVE.id, LIVE.arguments, "it is long"),)))
    chat.record(Explained("asked", ((LIVE.id, "demo/web_search", "no rule"),)))
    chat.hold_request("digest of the request", HEADER, UNITS)
    chat.record(Replied(("c3",)))
    chat.note("request", {"model": "demo"}, 1_800_000_000.0)
    ledger.trust("/project/.mcp.json", "digest of the file")


def restore(name: str, path: Path) -> None:
    """Write a stored ledger to a path."""
    path.write_bytes(gzip.decompress(STORED[name].read_bytes()))


def store(name: str) -> None:
    """Store a ledger of the current version under this name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.db")
        ledger = LedgerFile(path, VIEWER)
        fill(ledger)
        ledger.close()
        with sqlite3.connect(path) as db:  # empties the log, so one file has everything
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        target = Path(__file__).parent / "ledgers" / f"{name}.db.gz"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


if __name__ == "__main__":
    store(sys.argv[1])
