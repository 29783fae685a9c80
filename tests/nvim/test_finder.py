"""The list for `:ParleyFind`: other entries in the folder, and the note about chats left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.nvim.finder import MOST_FOUND, MOST_MATCHES, ChatList, find_chats
from parley.storage.ledger import default_path
from tests.ledgers import open_ledger
from tests.many_chats import many_chats


def found(folder: Path, words: str = "") -> ChatList:
    environ = {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}
    return find_chats(folder, words, environ, folder)


def make(path: Path, kind: str) -> None:
    """An entry that has a chat's name but is not a chat."""
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "dangling link":
            path.symlink_to(path.with_name("gone"))
        case "loop":
            path.symlink_to(path)
        case "folder":
            path.mkdir()
        case "huge file":
            with path.open("wb") as file:
                file.truncate(10**11)  # a sparse file
        case "broken front matter":
            path.write_text(
                "---\na: !!timestamp foo\nb: !!bool maybe\nc: [\n---\n", encoding="utf-8"
            )
        case _:
            path.write_bytes(b"\xff\x00\xfe")


@pytest.mark.parametrize(
    "kind",
    [
        *("pipe", "device", "dangling link", "loop", "folder"),
        *("huge file", "broken front matter", "no text"),
    ],
)
def test_entries_that_are_not_chats_hide_no_chat(tmp_path: Path, kind: str) -> None:
    (tmp_path / "chat.md").write_text("💬: hello\n", encoding="utf-8")
    make(tmp_path / "other.md", kind)
    rows = found(tmp_path).rows
    assert [(chat["path"], chat["topic"]) for chat in rows] == [
        (str(tmp_path / "chat.md"), "hello")
    ]


def test_chats_elsewhere_show_their_folder(tmp_path: Path) -> None:
    ledger = open_ledger(default_path({"XDG_STATE_HOME": str(tmp_path / "state")}))
    many_chats(tmp_path, ledger, 2, 2)
    (tmp_path / "chat.md").write_text("💬: hello\n", encoding="utf-8")
    os.utime(tmp_path / "chat.md", (1, 1))
    assert [chat["details"] for chat in found(tmp_path).rows] == [
        "~/src/project-1/notes  #tag-1 #work  Demo",
        "~/src/project-0/notes  #tag-0 #work  Demo",
        "",
    ]
    assert [chat["topic"] for chat in found(tmp_path, "#tag-1").rows] == ["Topic 1"]


def test_hidden_characters_in_a_line_are_shown(tmp_path: Path) -> None:
    text = "💬: hi\n\n🤖:\n\nneedle \x1b[31m\u202e x\n"
    (tmp_path / "chat.md").write_text(text, encoding="utf-8")
    (row,) = found(tmp_path, "needle").rows
    assert (row["line"], row["text"]) == (5, "needle \\u001b[31m\\u202e x")


def test_a_long_list_ends_with_a_note(tmp_path: Path) -> None:
    for number in range(MOST_FOUND + 1):
        path = tmp_path / f"{number:04}.md"
        path.write_text("💬: a\n", encoding="utf-8")
        os.utime(path, (1e9 + number, 1e9 + number))
    everything, matches = found(tmp_path), found(tmp_path, "a")
    assert len(everything.rows) == MOST_FOUND
    assert everything.note == f"the newest {MOST_FOUND}; :ParleyFind {{words}} searches all"
    assert everything.rows[0]["path"].endswith(f"{MOST_FOUND:04}.md")
    assert len(matches.rows) == MOST_MATCHES
    assert matches.note == f"the newest {MOST_MATCHES}; more words narrow the list"
