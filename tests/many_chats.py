"""Many chats in many folders, all of which the ledger knows, for tests and `make bench`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from parley.storage.ledger import LedgerFile

NOW = 1_790_000_000
DIGEST, ARGUMENTS = "d" * 64, json.dumps({"path": "src/parley/some_file.py", "text": "word " * 10})


def many_chats(folder: Path, ledger: LedgerFile, chats: int, folders: int) -> list[Path]:
    """Write chats, the newest last, and record something for each; returns their paths."""
    paths = list[Path]()
    for number in range(chats):
        place = folder / "src" / f"project-{number % folders}" / "notes"
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"chat-{number}.md"
        path.write_text(
            f"---\ntopic: Topic {number}\ntags: [tag-{number % 7}, work]\n---\n\n"
            f"💬: What of {number}?\n\n🤖:[Demo]\n\nIt is a number.\n",
            encoding="utf-8",
        )
        os.utime(path, (NOW + number, NOW + number))
        paths.append(path)
    with ledger.unsynced() as db:
        rows = ((os.fsencode(path), NOW, "request", "{}") for path in paths)
        db.executemany("INSERT INTO log (chat, at, kind, facts) VALUES (?, ?, ?, ?)", rows)
    return paths


def fill(ledger: LedgerFile, chats: Sequence[Path], rows: int, since: float) -> None:
    """Add rows to the ledger's large tables, a quarter each, one each second from `since` on."""
    stored = [os.fsencode(path) for path in chats]
    arguments, quarter = ARGUMENTS.encode(), rows // 4
    tables: dict[str, Callable[[int], tuple[object, ...]]] = {
        "INSERT INTO log (chat, at, kind, facts) VALUES (?, ?, 'decided', ?)": lambda n: (
            *(stored[n % len(stored)], since + n),
            json.dumps({"call": f"c{n % 1000}", "tool": "s0/look", "choice": "ya", "rule": "key"}),
        ),
        "INSERT INTO written (chat, call_id, name, arguments) VALUES (?, ?, ?, ?)": lambda n: (
            *(stored[n % len(stored)], f"c{n % 1000}".encode(), b"look", arguments),
        ),
        "INSERT INTO entries (chat, call_id, server, tool, arguments, digest, choice, rule, why,"
        " state, decided) VALUES (?, ?, ?, ?, ?, ?, 'ya', 'key', '', 'used', ?)": lambda n: (
            *(stored[n % len(stored)], f"c{n % 1000}".encode(), b"s0", b"look", arguments),
            *(DIGEST.encode(), since + n),
        ),
        "INSERT INTO requests (chat, at, digest, header, units, reply)"
        " VALUES (?, ?, ?, ?, ?, ?)": lambda n: (
            *(stored[n % len(stored)], since + n, DIGEST, DIGEST, '[[0,5],"q"]', DIGEST),
        ),
    }
    with ledger.unsynced() as db:
        for statement, row in tables.items():
            db.executemany(statement, map(row, range(quarter)))
