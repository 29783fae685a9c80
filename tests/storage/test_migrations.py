"""An older version's ledger keeps its records; a newer version's ledger is refused and unchanged."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from parley.errors import ParleyError
from parley.policy.approval import CallKey
from parley.policy.facts import Approved
from parley.storage.ledger import LedgerFile
from parley.storage.migrations import MIGRATIONS, Run, ledger_version, migrate
from tests.ledgers import open_ledger
from tests.storage.stored_ledgers import (
    CHAT,
    DEFINITION,
    HEADER,
    LIVE,
    STORED,
    UNITS,
    USED,
    VIEWER,
    VOID,
    fill,
    restore,
)

NEWEST = len(MIGRATIONS)


@pytest.fixture(params=STORED)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Each stored ledger in turn."""
    path = tmp_path / "ledger.db"
    restore(request.param, path)
    return path


def shape(ledger: LedgerFile) -> dict[str, Any]:
    """The columns of each table, and the texts of indexes and triggers."""
    rows = ledger.read("SELECT type, name, sql FROM sqlite_master", ())
    columns = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)'
    return {
        name: sorted(ledger.read(columns, (name,))) if kind == "table" else sql
        for kind, name, sql in rows
    }


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return ledger_version(db.execute)


def test_an_older_ledger_keeps_every_record(old: Path) -> None:
    ledger = LedgerFile(old, VIEWER)
    chat = ledger.chat(CHAT)
    view = chat.view()
    assert [(entry.key, entry.choice, entry.state) for entry in view.entries] == [
        (USED, "yA", "used"),
        (LIVE, "ya", "live"),
        (VOID, "ya", "revoked"),
    ]
    assert {entry.key.base for entry in view.entries} == {""}
    assert sorted(name for name, *_ in view.proposals) == ["live", "used", "void"]
    assert set(view.proposed) == {USED, LIVE, VOID}
    assert list(view.warnings) == [(LIVE.id, LIVE.arguments, "it is long")]
    assert list(view.tasks) == [(USED, "task-7")]
    assert chat.definition("digest") == DEFINITION
    (request,) = chat.requests()
    assert (request.header, request.units, request.reply) == (HEADER, UNITS, ("c3",))
    assert {kind for _, kind, _ in chat.history()} == {"asked", "decided", "request"}
    assert chat.may_want("Demo")
    assert ledger.trusts("/project/.mcp.json", "digest of the file")
    assert ledger.read("SELECT chat FROM chats", ()) == [(CHAT.encode(),)]
    ledger.close()


def test_a_call_that_ran_never_runs_again_after_an_update(old: Path) -> None:
    ledger = LedgerFile(old, VIEWER)
    chat = ledger.chat(CHAT)
    assert [chat.start(each) for each in (USED, VOID, LIVE, LIVE)] == [False, False, True, False]
    ledger.close()


def test_an_older_ledger_gets_the_tables_of_a_new_ledger_and_new_records(old: Path) -> None:
    ledger = LedgerFile(old, VIEWER)
    assert shape(ledger) == shape(open_ledger())
    key = CallKey("new", "demo", "edit", "{}", "digest", base="of the diff")
    chat = ledger.chat("/home/someone/chats/new.md")
    chat.record(Approved(((key, "ya"),), "key"))
    assert [entry.key.base for entry in chat.view().entries] == ["of the diff"]
    ledger.close()
    assert version(old) == NEWEST


def test_each_older_version_and_the_newest_have_a_stored_ledger(tmp_path: Path) -> None:
    versions = set()
    for name in STORED:
        restore(name, tmp_path / name)
        versions.add(version(tmp_path / name))
        assert int(name.split("-")[0]) == version(tmp_path / name)
    assert versions == set(range(NEWEST + 1))


def test_a_new_ledger_has_the_newest_version(tmp_path: Path) -> None:
    ledger = LedgerFile(tmp_path / "ledger.db", VIEWER)
    fill(ledger)
    ledger.close()
    assert version(tmp_path / "ledger.db") == NEWEST


def test_several_processes_may_update_a_ledger_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    restore("0-first", path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: LedgerFile(path).close(), range(8)))
    assert version(path) == NEWEST


def test_a_newer_ledger_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE of_the_future (a)")
        db.execute(f"PRAGMA user_version = {NEWEST + 1}")
    content = path.read_bytes()
    with pytest.raises(ParleyError) as refusal:
        LedgerFile(path)
    assert str(refusal.value) == (
        f"the approval ledger {path} was changed by a newer Parley: its version is {NEWEST + 1}, "
        f"this Parley's is {NEWEST}. Update Parley and restart it, or set XDG_STATE_HOME to another "
        "folder"
    )
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_ledger_that_a_newer_parley_changes_while_it_is_open_is_not_written(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.db"
    ledger = open_ledger(path)
    chat = ledger.chat(CHAT)
    chat.record(Approved(((LIVE, "ya"),), "key"))
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {NEWEST + 1}")
    for write in (lambda: chat.start(LIVE), lambda: chat.note("request", {})):
        with pytest.raises(ParleyError, match="changed by a newer Parley"):
            write()
    assert [entry.state for entry in chat.view().entries] == ["live"]


def test_a_newer_ledger_that_replaces_an_open_one_is_refused_until_it_is_gone(
    tmp_path: Path,
) -> None:
    path, newer = tmp_path / "ledger.db", tmp_path / "newer.db"
    chat = open_ledger(path).chat(CHAT)
    with closing(sqlite3.connect(newer)) as db:
        db.execute(f"PRAGMA user_version = {NEWEST + 1}")
    newer.replace(path)
    for _ in range(2):
        with pytest.raises(ParleyError, match="changed by a newer Parley"):
            chat.view()
    path.unlink()
    assert not chat.view().entries


def test_a_change_that_fails_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    restore("0-first", path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE x (a)")
        db.execute("CREATE TRIGGER chat_of_log AFTER INSERT ON x BEGIN DELETE FROM x; END")
    with pytest.raises(ParleyError, match="chat_of_log already exists"):
        LedgerFile(path)
    with closing(sqlite3.connect(path)) as db:
        assert not any(row[1] == "base" for row in db.execute("PRAGMA table_info(entries)"))
        assert ledger_version(db.execute) == 0


def test_only_missing_changes_are_made_in_order() -> None:
    made = list[int]()

    def change(number: int) -> Any:
        def record(run: Run) -> None:
            made.append(number)

        return record

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("PRAGMA user_version = 1")
        for _ in range(2):
            migrate(db.execute, [change(1), change(2), change(3)])
        assert ledger_version(db.execute) == 3
    assert made == [2, 3]
