"""The ledger: an approval is used up once, even by concurrent callers, and only for its own call."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.engine.ports import Ledger
from parley.errors import BusyError, ParleyError
from parley.policy.approval import CallKey, Entry, LedgerView
from parley.policy.facts import (
    Approved,
    Disowned,
    Explained,
    Proposed,
    Removed,
    Replied,
    Revoked,
    Unwarned,
    Warned,
)
from parley.policy.permissions import Permission
from parley.storage.ledger import (
    MADE_HERE,
    ChatLedger,
    LedgerFile,
    _remedy,
    default_path,
    shell_ledger,
)
from tests.ledgers import open_ledger

KEY = CallKey("call_1", "demo", "web_search", '{"query":"x"}', "digest")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[LedgerFile]:
    ledger = LedgerFile(tmp_path / "state" / "ledger.db")
    yield ledger
    ledger.close()


@pytest.fixture
def chat(file: LedgerFile, tmp_path: Path) -> ChatLedger:
    return file.chat(str(tmp_path / "chat.md"))


def states(ledger: ChatLedger) -> list[str]:
    return [entry.state for entry in ledger.view().entries]


def test_a_command_that_only_reads_creates_no_ledger(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    with shell_ledger(environ) as ledger:
        assert ledger is None
    assert list(tmp_path.iterdir()) == []
    LedgerFile(default_path(environ)).close()
    with shell_ledger(environ) as ledger:
        assert ledger is not None
        assert ledger.chat("chat.md").requests() == []


def test_an_approval_starts_its_call_once(chat: ChatLedger) -> None:
    assert not chat.start(KEY)
    chat.record(Approved(((KEY, "ya"),), "key", "ya by key"))
    assert chat.view() == LedgerView((Entry(KEY, "ya", "key"),))
    assert chat.start(KEY)
    assert not chat.start(KEY)
    assert states(chat) == ["used"]


@pytest.mark.parametrize("field", ["id", "server", "tool", "arguments", "digest"])
def test_an_approval_starts_no_other_call(chat: ChatLedger, field: str) -> None:
    chat.record(Approved(((KEY, "ya"),), "key"))
    changed: dict[str, Any] = {field: getattr(KEY, field) + " "}
    assert not chat.start(replace(KEY, **changed))
    assert chat.start(KEY)


def test_a_new_approval_replaces_the_old_one(chat: ChatLedger) -> None:
    chat.record(Approved(((KEY, "ya"),), "key"))
    chat.record(Approved(((KEY, "yA"),), "command"))
    assert states(chat) == ["revoked", "live"]
    assert chat.start(KEY)
    assert not chat.start(KEY)


def test_a_revoked_approval_starts_nothing(chat: ChatLedger) -> None:
    chat.record(Approved(((KEY, "ya"), (replace(KEY, id="call_2"), "ya")), "key"))
    chat.record(Revoked(("call_1", "call_9")))
    assert not chat.start(KEY)
    assert chat.start(replace(KEY, id="call_2"))


def test_a_used_approval_is_never_revoked(chat: ChatLedger) -> None:
    chat.record(Approved(((KEY, "ya"),), "key"))
    chat.start(KEY)
    chat.record(Revoked(("call_1",)))
    assert states(chat) == ["used"]


def test_one_use_is_closed_for_each_call_that_leaves_the_file(chat: ChatLedger) -> None:
    other = replace(KEY, arguments='{"query":"y"}')
    for key in (KEY, other, KEY):
        chat.record(Approved(((key, "ya"),), "key"))
        chat.start(key)
    chat.record(Removed(((KEY.id, KEY.arguments),)))
    assert states(chat) == ["used", "used", "closed"]
    chat.record(Removed(((KEY.id, KEY.arguments), (KEY.id, KEY.arguments))))
    assert states(chat) == ["closed", "used", "closed"]


def test_each_chat_has_its_own_approvals(file: LedgerFile, tmp_path: Path) -> None:
    one, other = file.chat(str(tmp_path / "one.md")), file.chat(str(tmp_path / "other.md"))
    one.record(Approved(((KEY, "ya"),), "key"))
    one.record(Proposed((("call_1", "web_search", "{}"),)))
    assert other.view() == LedgerView()
    assert not other.start(KEY)
    other.record(Revoked(("call_1",)))
    assert one.start(KEY)


def test_a_link_must_still_point_to_its_chat_when_the_call_starts(
    file: LedgerFile, tmp_path: Path
) -> None:
    real, other, link = tmp_path / "real.md", tmp_path / "other.md", tmp_path / "link.md"
    real.touch()
    other.touch()
    link.symlink_to(real)
    by_link = file.chat(str(link))
    by_link.record(Approved(((KEY, "ya"),), "key"))
    assert states(file.chat(str(real))) == ["live"]
    link.unlink()
    link.symlink_to(other)
    assert not by_link.start(KEY)
    assert states(file.chat(str(real))) == ["live"]


def test_written_proposals_are_known_by_id_name_and_arguments(chat: ChatLedger) -> None:
    written = ("call_1", "web_search", '{"query":"x"}')
    chat.record(Proposed((written, written)))
    chat.record(Proposed((written,)))
    assert list(chat.view().proposals) == [written] * 3


def test_a_task_is_known_only_for_its_call_in_its_chat(file: LedgerFile, chat: ChatLedger) -> None:
    for _ in range(2):
        chat.begin_task(KEY, "task-\ud83d1")
    assert chat.view().tasks == ((KEY, "task-\ud83d1"),)
    assert file.chat("other.md").view().tasks == ()


def test_any_record_makes_a_chat_known(file: LedgerFile, tmp_path: Path) -> None:
    acts: list[Callable[[ChatLedger], None]] = [
        lambda chat: chat.record(Approved(((KEY, "ya"),), "key")),
        lambda chat: chat.record(Proposed((("call_1", "web_search", "{}"),))),
        lambda chat: chat.record(Warned((("call_1", "{}", "new"),))),
        lambda chat: chat.confirm("agent: Demo"),
        lambda chat: chat.note("asked", {}),
    ]
    for number, act in enumerate(acts):
        chat = file.chat(str(tmp_path / f"{number}.md"))
        assert not chat.is_known()
        act(chat)
        assert chat.is_known()


@pytest.mark.parametrize("odd", ["\ud83d\udcff", "a\0b", "ä😀\u2028", "'; DROP TABLE entries; --"])
def test_any_text_is_stored_unchanged(file: LedgerFile, odd: str) -> None:
    key = CallKey("call_1", odd, odd, odd, "d")
    ledger = file.chat("/chat")
    ledger.record(Approved(((key, "ya"),), "key", odd))
    ledger.record(Proposed((("call_1", odd, odd),)))
    assert ledger.view() == LedgerView((Entry(key, "ya", "key"),), (("call_1", odd, odd),))
    assert ledger.start(key)


def test_a_file_name_that_is_not_utf8_is_accepted(file: LedgerFile, tmp_path: Path) -> None:
    ledger = file.chat(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md"))
    ledger.record(Approved(((KEY, "ya"),), "key"))
    with ledger.lease():
        assert ledger.start(KEY)


def test_either_all_approvals_of_a_key_are_entered_or_none(chat: ChatLedger) -> None:
    broken: Any = (replace(KEY, id="call_2"), object())
    with pytest.raises(TypeError):
        chat.record(Approved(((KEY, "ya"), broken), "key"))
    assert states(chat) == []
    chat.record(Approved(((KEY, "ya"),), "key"))
    assert chat.start(KEY)


def test_only_the_user_may_read_it(file: LedgerFile) -> None:
    file.chat("/chat").record(Approved(((KEY, "ya"),), "key"))
    assert file.path
    for path in [file.path, *file.path.parent.glob("ledger.db-*")]:
        assert path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_ledger_that_others_could_read_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch(mode=0o644)
    path.chmod(0o644)
    LedgerFile(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_ledger_is_durable(file: LedgerFile) -> None:
    assert file.read("PRAGMA synchronous", ()) == [(2,)]
    assert file.read("PRAGMA journal_mode", ()) == [("wal",)]


def test_in_a_turn_only_changed_tables_are_read_again(file: LedgerFile, chat: ChatLedger) -> None:
    assert file.path
    statements = list[str]()
    file._db.set_trace_callback(statements.append)
    call = [(KEY.id, KEY.arguments)]

    def read() -> list[str]:
        """The tables that are read for three equal views."""
        statements.clear()
        views = [ledger.view(call) for ledger in (chat, file.chat(chat.chat), chat)]
        assert views[0] == views[1] == views[2]
        texts = [text for text in statements if text.lstrip().startswith(("SELECT", "WITH"))]
        return [re.findall(r"(?:FROM|JOIN) (\w+)", text)[-1] for text in texts]

    with chat.lease():
        all_of_them = read()
        assert read() == []
        for change, tables in (
            (lambda: chat.note("call", {}), []),
            (lambda: chat.record(Explained("asked", ((KEY.id, "t", "why"),))), []),
            (lambda: chat.record(Replied(("unit",))), []),
            (
                lambda: chat.record(Proposed((("i", "t", "{}"),), (KEY,))),
                ["written", "proposed"],
            ),
            (lambda: chat.record(Approved(((KEY, "ya"),), "key")), ["entries", "entries"]),
            (lambda: chat.begin_task(KEY, "task"), ["tasks"]),
            (lambda: chat.start(KEY), ["entries", "warnings", "entries"]),
            (lambda: open_ledger(file.path).chat(chat.chat).note("call", {}), all_of_them),
            (lambda: file.allow(Permission("demo", "web_search", "digest"), ""), all_of_them),
        ):
            change()
            assert (read(), read()) == (tables, [])
        before = chat.view(call)
        rmtree(file.path.parent)
        assert chat.view(call) == LedgerView() != before
    file._db.set_trace_callback(statements.append)
    assert read() == 3 * all_of_them  # no memory is used between turns


IDS = st.sampled_from(["a", "b"])
KEYS = st.builds(CallKey, IDS, st.just("s"), st.just("t"), st.sampled_from(["{}", "[]"]), IDS)
CALLS = st.lists(st.tuples(IDS, st.sampled_from(["{}", "[]"])), max_size=2).map(tuple)
NAMED = st.lists(st.tuples(IDS, IDS, st.sampled_from(["{}", "[]"])), max_size=2).map(tuple)
FACTS = st.one_of(
    st.builds(Approved, st.tuples(st.tuples(KEYS, st.just("ya"))), st.just("key")),
    st.builds(Revoked, st.lists(IDS, max_size=2).map(tuple)),
    st.builds(Disowned, CALLS),
    st.builds(Removed, CALLS),
    st.builds(Proposed, NAMED, st.tuples(KEYS)),
    st.builds(Warned, NAMED),
    st.builds(Unwarned, NAMED),
    st.builds(Replied, st.just(("unit",))),
    st.builds(Explained, st.just("asked"), NAMED),
)
STEPS = st.lists(
    st.tuples(
        st.booleans(),
        st.one_of(FACTS, KEYS, st.tuples(KEYS, IDS)),
    ),
    max_size=12,
)


@settings(max_examples=30)
@given(steps=STEPS)
def test_a_cached_view_is_the_ledgers_present_state(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    with closing(LedgerFile(folder / "ledger.db", "one")) as file:
        chats = [file.chat(str(folder / name)) for name in ("a.md", "b.md")]
        calls = [("a", "{}"), ("b", "[]")]
        with closing(LedgerFile(folder / "ledger.db", "one")) as fresh, file.caching():
            for is_other, step in steps:
                chat = chats[is_other]
                match step:
                    case CallKey():
                        chat.start(step)
                    case (CallKey() as key, str(task)):
                        chat.begin_task(key, task)
                    case fact:
                        chat.record(fact)
                for each in chats:
                    assert each.view(calls) == fresh.chat(each.chat).view(calls)


def test_only_facts_that_take_something_away_wait_for_the_disk(
    file: LedgerFile, chat: ChatLedger
) -> None:
    statements = list[str]()
    file._db.set_trace_callback(statements.append)

    def waited() -> list[str]:
        """How the last transactions waited."""
        names = {"PRAGMA synchronous=NORMAL": "no", "PRAGMA synchronous=FULL": "yes"}
        names["PRAGMA wal_checkpoint(TRUNCATE)"] = "and left nothing in the log"
        how = [names[text] for text in statements if text in names]
        statements.clear()
        return how

    chat.record(Proposed((("i", "t", "{}"),), (KEY,)))
    chat.record(Approved(((KEY, "ya"),), "key"))
    assert waited() == ["no"]
    chat.record(Approved(((KEY, "ya"),), "key"))  # instead of the approval before
    assert waited() == ["and left nothing in the log"]
    chat.record(Disowned((("i", "{}"),)))
    chat.record(Revoked((KEY.id,)))
    assert waited() == ["yes", "and left nothing in the log"]
    chat.record(Approved(((KEY, "ya"),), "key"))
    assert chat.start(KEY)
    assert waited() == ["no", "yes", "and left nothing in the log"]


def test_an_unusable_place_is_reported_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ParleyError, match=r"ledger\.db: Not a directory\. Make its folder writ"):
        LedgerFile(tmp_path / "file" / "parley" / "ledger.db")
    (tmp_path / "ledger.db").write_bytes(b"no database at all" * 1000)
    with pytest.raises(ParleyError, match=r"ledger\.db: file is not a database\. Rename the file"):
        LedgerFile(tmp_path / "ledger.db")


def test_a_full_disk_is_reported_with_its_own_remedy() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(sqlite3.Error, match="full") as full:
            db.executescript("CREATE TABLE a (b); CREATE TABLE c (d)")
    for error in (full.value, OSError(errno.ENOSPC, "No space left on device")):
        assert _remedy(error).startswith("Free some space")


def test_a_ledger_that_fails_later_is_reported_too(file: LedgerFile) -> None:
    chat = file.chat("/chat")
    assert file.path
    with sqlite3.connect(file.path) as other:
        other.execute("DROP TABLE entries")
    other.close()
    for attempt in (
        chat.view,
        lambda: chat.start(KEY),
        lambda: chat.record(Approved(((KEY, "ya"),), "key")),
    ):
        with pytest.raises(ParleyError, match="no such table"):
            attempt()


def deleted(path: Path) -> None:
    path.unlink()


def deleted_with_its_log(path: Path) -> None:
    for each in path.parent.glob("ledger.db*"):
        each.unlink()


def deleted_with_its_folder(path: Path) -> None:
    rmtree(path.parent)


def replaced(path: Path) -> None:
    LedgerFile(path.with_name("other.db")).close()
    path.with_name("other.db").replace(path)


class SameInode(LedgerFile):
    """A ledger on a file system that gives a new file the inode of the deleted one, as many do."""

    def _place(self) -> tuple[int, int] | None:
        return super()._place() and (1, 1)


def test_in_a_turn_the_records_of_a_deleted_file_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(LedgerFile(path)) as file:
        file.allow(Permission("demo", "web_search", "digest"), "")
        file.chat("/chat").record(Approved(((KEY, "ya"),), "key"))
    with closing(SameInode(path)) as file:  # has changed nothing, like the one that follows
        chat = file.chat("/chat")
        with chat.lease():
            assert (len(chat.view().entries), len(chat.view().permissions)) == (1, 1)
            path.unlink()
            assert chat.view() == LedgerView()


@pytest.mark.parametrize("lose", [deleted, deleted_with_its_log, deleted_with_its_folder, replaced])
@pytest.mark.parametrize("is_seen_first_by_a_read", [True, False])
def test_a_file_deleted_while_open_is_reopened_and_reported_once(
    file: LedgerFile, lose: Callable[[Path], None], is_seen_first_by_a_read: bool
) -> None:
    assert file.path
    chat = file.chat("/chat")
    chat.record(Approved(((KEY, "ya"),), "key"))
    lose(file.path)
    if is_seen_first_by_a_read:
        assert states(chat) == []
    assert not chat.start(KEY)
    chat.record(Approved(((KEY, "yA"),), "key"))
    other = open_ledger(file.path)
    assert states(other.chat("/chat")) == ["live"]
    assert other.chat("/chat").start(KEY)
    assert states(chat) == ["used"]
    (words_of,) = chat.news()
    assert "was deleted or replaced" in words_of
    assert (chat.news(), other.news()) == ([], [])


def test_a_file_that_cannot_be_recreated_is_reported_until_it_can(file: LedgerFile) -> None:
    assert file.path
    rmtree(file.path.parent)
    file.path.parent.touch()
    chat = file.chat("/chat")
    for attempt in (chat.view, lambda: chat.record(Approved(((KEY, "ya"),), "key"))):
        with pytest.raises(ParleyError, match="cannot open the approval ledger"):
            attempt()
    file.path.parent.unlink()
    chat.record(Approved(((KEY, "ya"),), "key"))
    assert chat.start(KEY)
    assert len(chat.news()) == 1


def test_the_ledgers_path_follows_the_environment() -> None:
    assert default_path({"XDG_STATE_HOME": "/state", "HOME": "/home/me"}) == Path(
        "/state/parley/ledger.db"
    )
    assert default_path({"HOME": "/home/me"}) == Path("/home/me/.local/state/parley/ledger.db")


# --- Looking back ---------------------------------------------------------------------------------


def test_the_approved_definition_is_kept_with_the_approval(chat: ChatLedger) -> None:
    assert chat.definition(KEY.digest) == ""
    chat.record(Approved(((replace(KEY, definition='{"name":"web_search"}'), "ya"),), "key"))
    assert chat.definition(KEY.digest) == '{"name":"web_search"}'
    chat.record(Approved(((KEY, "ya"),), "key"))
    assert chat.definition(KEY.digest) == '{"name":"web_search"}'


def test_a_ledger_without_definitions_still_works(file: LedgerFile) -> None:
    assert file.path
    file.chat("/chat").record(Approved(((KEY, "ya"),), "key"))
    with file.transaction() as db:
        db.execute("DROP TABLE definitions")
    later = open_ledger(file.path)
    chat = later.chat("/chat")
    assert chat.definition(KEY.digest) == ""
    chat.record(Approved(((replace(KEY, id="call_2", definition="{}"), "ya"),), "key"))
    assert [chat.start(KEY), chat.definition(KEY.digest)] == [True, "{}"]
    later.close()


ODD_REASON = 'it contains "call": "call_1"'


def test_the_reason_for_waiting_is_recorded_once_per_change(chat: ChatLedger) -> None:
    for why in ("new", "new", "changed", "changed"):
        chat.record(
            Explained(
                "asked",
                (("call_1", "demo/web_search", why), ("call_2", "demo/web_search", ODD_REASON)),
            )
        )
    chat.record(Approved(((KEY, "ya"),), "memory", "it is remembered"))
    chat.record(Explained("asked", (("call_1", "demo/web_search", "changed"),)))
    assert [(kind, facts["call"], facts["because"]) for _, kind, facts in chat.history()] == [
        ("asked", "call_1", "new"),
        ("asked", "call_2", ODD_REASON),
        ("asked", "call_1", "changed"),
        ("decided", "call_1", "it is remembered"),
        ("asked", "call_1", "changed"),
    ]


# --- Races ----------------------------------------------------------------------------------------


def test_only_one_of_two_connections_with_the_same_approval_starts_it(file: LedgerFile) -> None:
    assert file.path
    other = open_ledger(file.path)
    one, two = file.chat("/chat"), other.chat("/chat")
    one.record(Approved(((KEY, "ya"),), "key"))
    assert one.view() == two.view()
    assert [two.start(KEY), one.start(KEY)] == [True, False]
    other.close()


RACER = """
import sys, pathlib
from parley.storage.ledger import LedgerFile
from parley.policy.approval import CallKey

sys.stdin.readline()
ledger = LedgerFile(pathlib.Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
print(ledger.chat("/chat").start(CallKey(*sys.argv[2:])), flush=True)
ledger.close()
"""
"""One process: opens the ledger together with all others, then tries to use the only approval."""


def test_exactly_one_of_many_processes_uses_an_approval(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    command = [sys.executable, "-c", RACER, str(path), *astuple(KEY)]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert words_of(racers, "open") == ["open"] * 4
    ledger = LedgerFile(path)
    ledger.chat("/chat").record(Approved(((KEY, "ya"),), "key"))
    assert sorted(words_of(racers, "go")) == ["False", "False", "False", "True"]
    assert [racer.communicate(timeout=30)[0] for racer in racers] == [""] * 4
    assert [racer.returncode for racer in racers] == [0] * 4
    assert states(ledger.chat("/chat")) == ["used"]
    ledger.close()


def words_of(racers: list[subprocess.Popen[str]], word: str) -> list[str]:
    """The output of processes that all receive a word."""
    for racer in racers:
        assert racer.stdin
        racer.stdin.write(word + "\n")
        racer.stdin.flush()
    return [racer.stdout.readline().strip() for racer in racers if racer.stdout]


def test_a_chat_runs_one_turn_at_a_time(file: LedgerFile) -> None:
    assert file.path
    other = open_ledger(file.path)
    with file.chat("/chat").lease():
        with (
            pytest.raises(BusyError, match="another Neovim or command"),
            other.chat("/chat").lease(),
        ):
            pass
        with other.chat("/other").lease():
            pass
    with other.chat("/chat").lease():
        pass
    other.close()


def test_a_killed_process_releases_its_turn(file: LedgerFile) -> None:
    assert file.path
    code = (
        "import sys, pathlib; from parley.storage.ledger import LedgerFile\n"
        "with LedgerFile(pathlib.Path(sys.argv[1])).chat('/chat').lease():\n"
        "    print('mine', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(file.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout
    assert holder.stdin
    assert holder.stdout.readline() == b"mine\n"
    with pytest.raises(BusyError), file.chat("/chat").lease():
        pass
    holder.kill()
    holder.wait(10)
    with file.chat("/chat").lease():
        pass
    holder.stdout.close()
    holder.stdin.close()


def locks(file: LedgerFile) -> list[Path]:
    return list(file.turns.iterdir())


def test_an_ended_or_killed_turn_leaves_no_lock(file: LedgerFile) -> None:
    with file.chat("/chat").lease():
        assert len(locks(file)) == 1
    assert locks(file) == []
    (file.turns / "of-a-process-that-was-killed").touch()
    assert file.path
    later = open_ledger(file.path)
    with file.chat("/chat").lease(), later.chat("/other").lease():
        assert len(locks(file)) == 2
    assert locks(file) == []
    later.close()


def test_a_process_waiting_at_a_removed_lock_does_not_hold_the_new_one(file: LedgerFile) -> None:
    """Processes that take and release one lock as fast as possible never hold it together."""
    held = file.turns.parent / "held"
    code = (
        "import os, pathlib, sys\n"
        "from parley.storage.locks import locked\n"
        "lock, held = map(pathlib.Path, sys.argv[1:])\n"
        "turns = 0\n"
        "while turns < 200:\n"
        "    with locked(lock) as is_ours:\n"
        "        if is_ours:\n"
        "            os.close(os.open(held, os.O_CREAT | os.O_EXCL)); turns += 1; held.unlink()\n"
    )
    arguments = [sys.executable, "-c", code, str(file.turns / "one"), str(held)]
    rivals = [subprocess.Popen(arguments) for _ in range(3)]
    assert [rival.wait(60) for rival in rivals] == [0, 0, 0]


TAKING: dict[str, Callable[[ChatLedger], object]] = {
    "used up": lambda chat: chat.start(KEY),
    "revoked": lambda chat: chat.record(Revoked(("call_1",))),
    "forgotten": lambda chat: chat.record(Removed((("call_1", KEY.arguments),))),
    "decided anew": lambda chat: chat.record(
        Approved(((replace(KEY, digest="new"), "ya"),), "key")
    ),
}


@pytest.mark.parametrize("taken", TAKING.values(), ids=TAKING)
def test_a_removed_approval_is_also_missing_in_a_copy_of_the_file_alone(
    file: LedgerFile, tmp_path: Path, taken: Callable[[ChatLedger], object]
) -> None:
    assert file.path
    chat = file.chat("/chat")
    chat.record(Approved(((KEY, "ya"),), "key"))
    taken(chat)
    restored = tmp_path / "restored.db"
    restored.write_bytes(file.path.read_bytes())
    copy = open_ledger(restored)
    assert copy.chat("/chat").view() == chat.view()
    assert not copy.chat("/chat").start(KEY)
    copy.close()


def test_an_agent_typed_in_a_local_chat_stays_confirmed(chat: ChatLedger) -> None:
    assert not chat.may_want("agent: Demo", is_typed=True)
    chat.confirm(MADE_HERE)
    assert not chat.may_want("agent: Demo")
    assert chat.may_want("agent: Demo", is_typed=True)
    assert chat.may_want("agent: Demo"), "read from the file the next time"
    assert not chat.may_want("agent: Other")


def test_asking_does_not_confirm_an_agent_typed_elsewhere(chat: ChatLedger) -> None:
    chat.confirm("agent: Demo")
    assert chat.may_want("agent: Demo", is_typed=True)
    assert not chat.may_want("agent: Other", is_typed=True)
    assert not chat.may_want("agent: Other")


# --- Permissions ----------------------------------------------------------------------------------

ALLOWED = Permission("demo", "web_search", "digest")


def test_a_permission_is_stored_once_with_the_definition_that_it_is_for(file: LedgerFile) -> None:
    given = file.allow(ALLOWED, "{}")
    assert given.number == file.allow(ALLOWED, "{}").number == 1
    assert [permission for permission, _ in file.permissions()] == [given]
    assert file.chat("chat.md").definition("digest") == "{}"


def test_the_number_of_a_removed_permission_is_not_used_again(file: LedgerFile) -> None:
    assert file.disallow(file.allow(ALLOWED, "").number)
    assert not file.disallow(1)
    assert file.permissions() == []
    assert file.allow(ALLOWED, "").number == 2


def test_a_permission_is_in_the_view_of_its_chat_and_its_project(
    file: LedgerFile, tmp_path: Path
) -> None:
    path, project = str(tmp_path / "chat.md"), "/a"
    given = [
        file.allow(each, "")
        for each in (
            ALLOWED,
            replace(ALLOWED, chat=os.path.realpath(path)),
            replace(ALLOWED, root="/a"),
            replace(ALLOWED, root="/a/b"),
        )
    ]
    chat = file.chat(path, lambda: project)
    assert list(chat.view().permissions) == given[:3]
    project = "/a/b"
    assert list(chat.view().permissions) == [*given[:2], given[3]]
    assert list(file.chat("other.md").view().permissions) == given[:1]


def test_without_permissions_nobody_looks_for_the_project(file: LedgerFile) -> None:
    def project() -> str:
        raise AssertionError

    assert file.chat("chat.md", project).view().permissions == ()


def test_a_chat_with_a_permission_of_its_own_is_known(file: LedgerFile) -> None:
    """A new file with its name would inherit the permission."""
    chat = file.chat("chat.md")
    file.allow(ALLOWED, "")
    assert not chat.is_known()
    file.allow(replace(ALLOWED, chat=chat.chat), "")
    assert chat.is_known()


def test_nothing_that_a_turn_records_creates_a_permission(chat: ChatLedger) -> None:
    chat.record(Proposed((("call_1", "web_search", "{}"),), (KEY,)))
    chat.record(Approved(((KEY, "yA"),), "key"))
    assert chat.start(KEY)
    assert chat.view().permissions == ()
    assert not [name for name in dir(Ledger) if "allow" in name]


def test_calls_of_other_chats_with_the_same_id_cost_nothing() -> None:
    file, steps = open_ledger(), 0

    def step() -> None:
        nonlocal steps
        steps += 1

    with file.unsynced() as db:
        for number in range(2_000):
            arguments = f'{{"query":"{number}"}}'.encode()
            row = (b"other.md", b"call_p1", arguments)
            db.execute(
                "INSERT INTO entries (chat, call_id, server, tool, arguments, digest, choice, rule, why,"
                " state, decided) VALUES (?, ?, '', '', ?, '', 'ya', 'key', '', 'used', 0)",
                row,
            )
    file._db.set_progress_handler(step, 100)
    calls = [("call_p1", '{"query":"7"}'), ("call_p1", '{"query":"none"}')]
    assert list(file.chat("chat.md").view(calls).elsewhere) == calls[:1]
    assert steps < 20
