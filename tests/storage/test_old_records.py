"""Old records are deleted a few at a time; newer requests stay readable, and approvals stay."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.policy.approval import CallKey
from parley.policy.facts import Approved, Proposed, Replied
from parley.storage.ledger import ChatLedger, LedgerFile
from parley.storage.old_records import MOST_DELETED, delete_old_records
from parley.storage.request_rows import RequestRow
from tests.ledgers import open_ledger

DAY_S = 24 * 3600.0
KEY = CallKey("call_1", "demo", "web_search", '{"query":"x"}', "digest")
CHATS = "ab"
SENT = st.tuples(st.sampled_from(CHATS), st.lists(st.sampled_from("xyz"), max_size=6).map(tuple))
STEP = 20


def send(ledger: ChatLedger, at: float, header: str, units: tuple[str, ...]) -> None:
    ledger.hold_request("digest", header, units)
    ledger.record(Replied(("t1",)))
    ledger.note("request", {"header": header}, at)


def date_requests(file: LedgerFile) -> None:
    """Give each request the time of the record with its number."""
    with file.unsynced() as db:
        db.execute("UPDATE requests SET at = (SELECT at FROM log WHERE number = requests.number)")


@given(st.lists(SENT, min_size=1, max_size=12), st.integers(1, 13), st.integers(1, 5))
def test_every_newer_request_reads_as_before(
    sent: list[tuple[str, tuple[str, ...]]], cut: int, most: int
) -> None:
    file = open_ledger()
    for at, (chat, units) in enumerate(sent, 1):
        send(file.chat(chat), at, f"{{{at % 3}}}", units)
    date_requests(file)
    before = {chat: file.chat(chat).requests() for chat in CHATS}
    with file.unsynced() as db:
        while delete_old_records(db.execute, cut, most):
            pass
    least = min(cut, len(sent))  # the newest stays
    for chat in CHATS:
        kept = [row for row in before[chat] if row.at >= least]
        assert file.chat(chat).requests() == kept
        assert [at for at, *_ in file.chat(chat).history()] == [row.at for row in kept]
        gone = [row.at for row in before[chat] if row.at < least]
        assert file.chat(chat).deleted_until() == max(gone, default=None)
        send(file.chat(chat), 99, "{}", ("x",))
        assert file.chat(chat).requests()[-1].units == ("x",)
    used = {row.header for chat in CHATS for row in file.chat(chat).requests()}
    assert {header for (header,) in file.read("SELECT header FROM headers", ())} == used


def test_a_turn_deletes_old_records_at_its_end_and_no_approval(tmp_path: Path) -> None:
    with closing(LedgerFile(tmp_path / "ledger.db")) as file:
        chat = file.chat(str(tmp_path / "chat.md"))
        chat.record(
            Proposed((("call_1", "web_search", KEY.arguments),), (KEY,)),
            Approved(((KEY, "ya"),), "key"),
        )
        assert chat.start(KEY)
        with file.unsynced() as db:
            db.execute("UPDATE log SET at = 1.0")
        chat.note("request", {})
        view = chat.view()
        with chat.lease():
            assert len(chat.history()) == 2
        assert len(chat.history()) == 2  # no age is set
        file.keep_days = 365
        with pytest.raises(KeyError), chat.lease():
            raise KeyError
        assert len(chat.history()) == 2
        with chat.lease():
            pass
        assert [kind for _, kind, _ in chat.history()] == ["request"]
        assert chat.deleted_until() == 1.0
        assert chat.view() == view
        assert view.entries[0].state == "used"


def steps(file: Path, run: float) -> int:
    """The work of SQLite's machine for the deletion of records from before `run`."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.set_progress_handler(step, STEP)
        delete_old_records(db.execute, run)
    return count


def test_the_work_grows_only_with_the_rows_that_are_deleted(tmp_path: Path) -> None:
    def filled(rows: int) -> Path:
        path = tmp_path / f"{rows}.db"
        with closing(LedgerFile(path)) as file, file.unsynced() as db:
            values = [(b"chat %d" % (n % 50), float(n), "{}") for n in range(rows)]
            db.executemany(
                "INSERT INTO log (chat, at, kind, facts) VALUES (?, ?, 'call', ?)", values
            )
            db.executemany(
                "INSERT INTO requests (chat, at, digest, header, units, reply)"
                " VALUES (?, ?, '', ?, '[]', '')",
                values,
            )
        return path

    few, many = filled(1_000), filled(10_000)
    assert steps(few, 0) == steps(many, 0) < 20
    hundred = steps(few, 100)
    assert steps(many, 100) < hundred * 1.5
    assert steps(many, 10**9) < hundred * 1.5 * MOST_DELETED / 100


def test_after_a_look_without_old_records_the_next_look_is_in_an_hour() -> None:
    file = open_ledger()
    file.keep_days = 1
    chat = file.chat("chat.md")
    for at in (DAY_S, DAY_S * 1.01, DAY_S * 3):
        chat.note("call", {}, at)
    file.delete_old(DAY_S * 2)
    assert [at for at, *_ in chat.history()] == [DAY_S, DAY_S * 1.01, DAY_S * 3]
    file.delete_old(DAY_S * 2.01)
    assert len(chat.history()) == 3
    file.delete_old(DAY_S * 2.05)
    assert [at for at, *_ in chat.history()] == [DAY_S * 3]


def test_a_ledger_in_use_does_not_end_a_turn(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(LedgerFile(path)) as file, closing(sqlite3.connect(path)) as other:
        file.keep_days = 1
        file.chat("chat.md").note("call", {}, 1.0)
        file.chat("chat.md").note("call", {})
        file._db.execute("PRAGMA busy_timeout=0")
        other.execute("BEGIN IMMEDIATE")
        file.delete_old()
        other.rollback()
        file.delete_old()
        assert len(file.chat("chat.md").history()) == 1


def test_only_the_last_chats_are_remembered() -> None:
    file = open_ledger()
    for number in range(100):
        chat = file.chat(f"{number}.md")
        send(chat, 1.0, "{}", ("x",))
        send(chat, 2.0, "{}", ("x", "y"))
    assert len(file.last_units) <= 32
    assert file.chat("0.md").requests()[1] == RequestRow(
        file.chat("0.md").requests()[1].at, "digest", "{}", ("x", "y"), ("t1",)
    )
