"""A long life: many questions leave nothing open, and cost no more in a large ledger.

`make endurance` does the same for longer, in a real Neovim.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from parley import engine
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.read import read_settings
from parley.storage.chat_file import FileDocument
from parley.storage.ledger import LedgerFile
from tests.many_chats import NOW, fill

QUESTIONS, CHATS = 20, 5
SMALL = {"permissions", "wanted"}
"""A table that only the user's commands fill, and the waiting calls."""


def open_things() -> tuple[int, int, int, int]:
    """The numbers of this process's descriptors, tasks, threads and child processes."""
    gc.collect()
    fds = Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    below = children.read_text(encoding="ascii").split() if children.exists() else []
    tasks = len(asyncio.all_tasks())
    return len(list(fds.iterdir())), tasks, threading.active_count(), len(below)


@asynccontextmanager
async def living(folder: Path, rows: int) -> AsyncIterator[Life]:
    """A life that ends, even if a test fails."""
    life = Life(folder, rows)
    try:
        yield life
    finally:
        await life.app.close()


class Life:
    """An app that answers one question after another, with a tool call in each."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.ledger = LedgerFile(folder / "ledger.db")
        self._folder = folder
        chats = [folder / f"{number}.md" for number in range(CHATS)]
        fill(self.ledger, chats, rows, NOW)
        settings, problems = read_settings(
            {
                "agent": "Demo",
                "approval": {"auto": ["mock/*"]},
                "safety": {"rate_limit_per_minute": 100_000},
            }
        )
        assert problems == ()
        environ = {"PARLEY_DEMO_PACE": "0", "HOME": str(folder)}
        self.app = App(settings, environ, self.ledger, folder=lambda: folder)
        self._statements = list[str]()
        self.ledger._db.set_trace_callback(self._statements.append)

    async def ask(self, number: int) -> list[str]:
        """Ask a question; returns the ledger's statements for it."""
        self._statements.clear()
        path = self._folder / f"{number % CHATS}.md"
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        before = before.removesuffix("💬: \n")
        path.write_text(f'{before}💬: call web_search {{"query":"{number}"}}\n', encoding="utf-8")
        ports = self.app.ports(FileDocument(path, 10**6), str(path), Callbacks())
        end = await engine.run_turn(ports, self.app.resolve(None))
        assert end == engine.End("complete"), path.read_text(encoding="utf-8")
        return list(self._statements)

    def scanned(self, statement: str) -> list[str]:
        """The tables that a statement reads as a whole."""
        if statement.split()[0] in ("BEGIN", "COMMIT", "PRAGMA", "ROLLBACK") or "--" in statement:
            return []
        plan = self.ledger.read(f"EXPLAIN QUERY PLAN {statement}", ())
        steps = (detail.split() for *_, detail in plan)
        return [words[1] for words in steps if words[0] == "SCAN" and words[1] != "CONSTANT"]


async def test_many_questions_leave_nothing_open(tmp_path: Path) -> None:
    async with living(tmp_path, 0) as life:
        for number in range(CHATS):
            await life.ask(number)
        before = open_things()
        for number in range(QUESTIONS):
            await life.ask(number)
        assert open_things() == before


async def test_no_statement_of_a_question_reads_a_large_table(tmp_path: Path) -> None:
    counts, plans = list[Counter[str]](), set[str]()
    for rows in (100, 4_000):
        folder = tmp_path / str(rows)
        folder.mkdir()
        async with living(folder, rows) as life:
            for number in range(CHATS):
                await life.ask(number)
            statements = await life.ask(0)
            counts.append(Counter(statement.split()[0] for statement in statements))
            plans |= {table for each in statements for table in life.scanned(each)}
    assert counts[0] == counts[1]
    assert counts[0]["SELECT"] > 5
    assert plans <= SMALL
