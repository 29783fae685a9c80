"""The chats that the ledger and the chat folder know, and the work that a list takes."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from parley.storage.known_chats import ChatCensus, known_chats
from parley.storage.ledger import LedgerFile
from tests.ledgers import open_ledger
from tests.many_chats import many_chats
from tests.powers import bound_by_permissions

CHATS, FOLDERS = 40, 8


class Home:
    """A home with a ledger and a chat folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chats = folder / "chats"
        self.chats.mkdir()
        self.ledger = open_ledger(folder / "state" / "ledger.db")

    def record(self, path: Path) -> Path:
        self.ledger.chat(str(path)).note("request", {})
        return path

    def chat(self, name: str, text: str = "💬: hello\n", *, is_known: bool = True) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return self.record(path) if is_known else path

    def census(self) -> ChatCensus:
        return known_chats(self.ledger, self.chats)

    def names(self) -> list[str]:
        return [str(chat.path.relative_to(self.folder)) for chat in self.census().chats]

    def rows(self, table: str) -> int:
        ((count,),) = self.ledger.read(f"SELECT count(*) FROM {table}", ())
        return int(count)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_list_opens_only_files_that_changed_and_examines_each_file_once(home: Home) -> None:
    paths = many_chats(home.folder, home.ledger, CHATS, FOLDERS)
    first = home.census()
    assert [chat.path for chat in first.chats] == paths[::-1]  # newest first
    assert (first.examined, first.opened) == (CHATS, CHATS)
    again = home.census()
    assert again.chats == first.chats
    assert (again.examined, again.opened) == (CHATS, 0)
    paths[3].write_text("---\ntopic: Another\n---\n\n💬: a\n", encoding="utf-8")
    changed = home.census()
    assert (changed.examined, changed.opened) == (CHATS, 1)
    assert (changed.chats[0].path, changed.chats[0].heading.topic) == (paths[3], "Another")


def test_a_chat_in_another_folder_is_known_only_after_parley_has_recorded_something(
    home: Home,
) -> None:
    elsewhere = home.chat("project/chat.md", is_known=False)
    home.chat("chats/mine.md", is_known=False)
    home.ledger.chat(str(elsewhere)).view()  # it was only opened
    assert home.names() == ["chats/mine.md"]
    home.ledger.chat(str(elsewhere)).confirm("Demo")
    assert set(home.names()) == {"chats/mine.md", "project/chat.md"}


def test_a_missing_file_is_forgotten_but_not_one_on_a_missing_disk(home: Home) -> None:
    deleted, unmounted = home.chat("a/deleted.md"), home.chat("disk/chat.md")
    assert (len(home.names()), home.rows("headings"), home.rows("chats")) == (2, 2, 2)
    deleted.unlink()
    unmounted.parent.rename(home.folder / "elsewhere")
    assert home.names() == []
    assert (home.rows("headings"), home.rows("chats")) == (0, 1)
    (home.folder / "elsewhere").rename(unmounted.parent)
    assert home.names() == ["disk/chat.md"]


def test_nothing_is_kept_of_a_chat_that_leaves_the_chat_folder(home: Home) -> None:
    chats = [home.chat(f"chats/{name}.md", is_known=name == "a") for name in "ab"]
    assert len(home.names()) == 2
    for chat in chats:
        chat.unlink()
    assert home.names() == []
    assert (home.rows("headings"), home.rows("chats")) == (0, 0)
    home.chat("chats/c.md", is_known=False)
    assert len(home.names()) == 1
    home.chats = home.folder / "another"  # the setting chat_dir has changed
    assert home.names() == []
    assert home.rows("headings") == 0


def test_a_renamed_chat_is_known_again_after_its_next_record(home: Home) -> None:
    path = home.chat("a/old.md")
    path.rename(path.with_name("new.md"))
    assert home.names() == []
    home.record(path.with_name("new.md"))
    assert home.names() == ["a/new.md"]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device", "no question"])
def test_another_kind_of_file_at_a_chats_path_is_left_out(home: Home, kind: str) -> None:
    path, other = home.chat("a/chat.md"), home.chat("a/other.md")
    path.unlink()
    match kind:
        case "link":
            path.symlink_to(home.chat("secret.md", "💬: secret\n", is_known=False))
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.write_text("# A page\n", encoding="utf-8")
    census = home.census()
    assert [chat.path for chat in census.chats] == [other]
    assert census.opened == (2 if kind == "no question" else 1)


def test_an_unreadable_chat_is_listed_with_the_reason(home: Home) -> None:
    path = home.chat("a/chat.md")
    path.chmod(0)
    with bound_by_permissions():
        (chat,) = home.census().chats
    assert (chat.path, chat.problem) == (path, "Permission denied")
    path.chmod(0o600)
    assert [chat.heading.topic for chat in home.census().chats] == ["hello"]


def test_a_file_with_two_paths_is_listed_once(home: Home) -> None:
    path = home.chat("a/chat.md")
    (home.chats / "link.md").symlink_to(path)
    assert home.names() == ["chats/link.md"]
    home.chat("chats/mine.md")
    assert sorted(home.names()) == ["chats/link.md", "chats/mine.md"]


def test_a_folder_on_a_disk_that_does_not_reply_is_left_out(home: Home) -> None:
    release = threading.Event()
    chat, hung = home.chat("a/chat.md"), home.chat("hung/chat.md")
    home.chat("hung/another.md")  # it may reply, but a search must not open it

    def look(path: str) -> os.stat_result:
        if path == str(hung):
            release.wait(20)
        return os.lstat(path)

    census = known_chats(home.ledger, home.chats, look, 0.1)
    release.set()
    assert [each.path for each in census.chats] == [chat]
    assert census.silent == [hung.parent]
    assert home.rows("chats") == 3


def test_an_inode_larger_than_any_number_in_the_ledger_is_kept(home: Home) -> None:
    home.chat("a/chat.md")

    def look(path: str) -> os.stat_result:
        status = os.lstat(path)
        mode, _, *others = status
        exact = {"st_mtime_ns": status.st_mtime_ns}
        return os.stat_result((mode, 2**64 - 1, *others), exact)

    assert [known_chats(home.ledger, home.chats, look).opened for _ in range(2)] == [1, 0]


def test_the_agent_at_the_end_of_a_long_chat_is_the_one_that_answered_last(home: Home) -> None:
    answer = "\n🤖:[{}]\n\n" + "A long answer.\n" * 20_000
    home.chat("a/chat.md", f"💬: hello\n{answer.format('First')}\n💬: b\n\n🤖:[Last]\n\nYes.\n")
    (chat,) = home.census().chats
    assert (chat.heading.topic, chat.heading.agent) == ("hello", "Last")


def test_without_a_ledger_the_chat_folder_is_listed(home: Home) -> None:
    path = home.chat("chats/mine.md", is_known=False)
    assert [chat.path for chat in known_chats(None, home.chats).chats] == [path]


def test_paths_that_are_not_utf_8_are_listed(home: Home) -> None:
    path = home.record(Path(os.fsdecode(os.fsencode(home.folder) + b"/a\xff.md")))
    path.write_text("💬: hello\n", encoding="utf-8")
    for _ in range(2):
        assert [chat.path for chat in home.census().chats] == [path]


def test_an_older_ledgers_chats_are_known_even_those_that_an_older_version_adds(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.db"
    ledger = open_ledger(path)
    chat = tmp_path / "chat.md"
    ledger.chat(str(chat)).note("request", {})
    for statement in ("TRIGGER chat_of_log", "TRIGGER chat_of_confirmed", "TABLE chats"):
        with ledger.transaction() as db:
            db.execute(f"DROP {statement}")
            db.execute("PRAGMA user_version = 0")
    running = sqlite3.connect(path, isolation_level=None)  # an older version that runs meanwhile
    new = LedgerFile(path)
    running.execute("INSERT INTO log (chat, at, kind, facts) VALUES (x'61', 0, 'request', '{}')")
    running.close()
    assert set(new.read("SELECT chat FROM chats", ())) == {(os.fsencode(chat),), (b"a",)}
    new.close()
