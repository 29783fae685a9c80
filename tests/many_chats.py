"""Many chats in many folders, all of which the ledger knows, for tests and `make bench`."""

from __future__ import annotations

import os
from pathlib import Path

from parley.storage.ledger import LedgerFile

NOW = 1_790_000_000


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
