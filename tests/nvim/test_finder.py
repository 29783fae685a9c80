"""The chat folder with other entries: a pipe, a dangling link, an unreadable file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.nvim.finder import MOST_FOUND, MOST_MATCHES, PATIENCE_S, find_chats
from tests.powers import bound_by_permissions


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
    rows = find_chats(tmp_path).rows
    assert [(chat["path"], chat["topic"]) for chat in rows] == [
        (str(tmp_path / "chat.md"), "hello")
    ]


def test_an_unreadable_chat_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "chat.md"
    path.write_text("💬: hello\n", encoding="utf-8")
    path.chmod(0)
    with bound_by_permissions():
        rows = find_chats(tmp_path).rows
    assert rows[0]["topic"] == f"cannot read {path}: Permission denied"


def chat(folder: Path, name: str, text: str, changed: float = 1e9) -> Path:
    path = folder / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    os.utime(path, (changed, changed))
    return path


def names(folder: Path, words: str = "") -> list[str]:
    return [Path(row["path"]).stem for row in find_chats(folder, words).rows]


def test_the_newest_chats_come_first_and_words_select_chats_with_all_of_them(
    tmp_path: Path,
) -> None:
    chat(tmp_path, "old", "---\ntopic: Zebras\n---\n\n💬: are they striped?\n", 1e9)
    chat(tmp_path, "new", "💬: what of zebras?\n\n🤖:\n\nThey have\nSTRIPES.\n", 2e9)
    chat(tmp_path, "other", "💬: stripes\n", 1.5e9)
    assert names(tmp_path) == ["new", "other", "old"]
    assert names(tmp_path, "zebra STRIPE") == ["new", "old"]
    assert names(tmp_path, "  ") == ["new", "other", "old"]
    assert names(tmp_path, "zebra lion") == []


@pytest.mark.parametrize(
    ("words", "line", "text"),
    [
        ("stripes", 1, "about stripes"),
        ("stripes lions", 5, "lions have no stripes"),
        ("lions about", 5, "lions have no stripes"),
        ("ÄRGER", 7, "ärger"),
        ("needle", 9, "…" + "x " * 15 + "needle" + " y" * 32 + "…"),
    ],
)
def test_the_first_line_with_all_words_is_shown_or_the_first_with_any(
    tmp_path: Path, words: str, line: int, text: str
) -> None:
    long = "x " * 99 + "needle" + " y" * 99
    content = f"💬: about stripes\n\n🤖:[Demo]\n\nlions have no stripes\n\närger\n\n{long}\n"
    chat(tmp_path, "chat", content)
    (row,) = find_chats(tmp_path, words).rows
    assert (row["line"], row["text"]) == (line, text)


def test_hidden_characters_in_a_line_are_shown(tmp_path: Path) -> None:
    chat(tmp_path, "chat", "💬: hi\n\n🤖:\n\nneedle \x1b[31m\u202e x\n")
    (row,) = find_chats(tmp_path, "needle").rows
    assert row["text"] == "needle \\u001b[31m\\u202e x"


def test_a_long_list_ends_with_a_note(tmp_path: Path) -> None:
    for number in range(MOST_FOUND + 1):
        chat(tmp_path, f"{number:04}", "💬: a\n", 1e9 + number)
    everything, matches = find_chats(tmp_path), find_chats(tmp_path, "a")
    assert len(everything.rows) == MOST_FOUND
    assert everything.note == f"the newest {MOST_FOUND}; :ParleyFind {{words}} searches all"
    assert everything.rows[0]["path"].endswith(f"{MOST_FOUND:04}.md")
    assert len(matches.rows) == MOST_MATCHES
    assert matches.note == f"the newest {MOST_MATCHES}; more words narrow the list"


def test_the_search_has_a_time_limit(tmp_path: Path) -> None:
    for number in range(5):
        chat(tmp_path, str(number), "💬: a\n", 1e9 + number)
    times = iter([0.0, 1.0, 2.0, PATIENCE_S + 1])
    chats = find_chats(tmp_path, "a", now=lambda: next(times))
    assert len(chats.rows) == 2
    assert chats.note.startswith("the search took too long: chats changed at or before ")


def test_an_unreadable_file_matches_no_words(tmp_path: Path) -> None:
    chat(tmp_path, "chat", "💬: hello\n").chmod(0)
    with bound_by_permissions():
        assert find_chats(tmp_path, "hello").rows == []


def test_the_topic_of_a_chat_that_begins_with_quoted_lines_is_the_users_question(
    tmp_path: Path,
) -> None:
    quote = "`a.py:1-900` (900 lines)\n\n```python\n" + "x = 1\n" * 3000 + "```"
    (tmp_path / "a.md").write_text(f"💬: {quote}\n\nWhat is x?\n", encoding="utf-8")
    (tmp_path / "b.md").write_text(f"💬: {quote}\n", encoding="utf-8")
    topics = {Path(row["path"]).name: row["topic"] for row in find_chats(tmp_path).rows}
    assert topics["a.md"] == "What is x?"
    assert topics["b.md"].startswith("`a.py:1-900` (900 lines)")
