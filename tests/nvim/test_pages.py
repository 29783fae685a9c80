"""The folder of chats, whatever else lies in it: a pipe, a dangling link, a file that nobody may read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.nvim.pages import chats_in
from tests.powers import bound_by_permissions


def make(path: Path, kind: str) -> None:
    """Something with the name of a chat that is none."""
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
                file.truncate(10**11)  # of which the disk holds nothing
        case "broken front matter":
            path.write_text("---\na: !!timestamp foo\nb: !!bool maybe\nc: [\n---\n", encoding="utf-8")
        case _:
            path.write_bytes(b"\xff\x00\xfe")


@pytest.mark.parametrize(
    "kind",
    [
        *("pipe", "device", "dangling link", "loop", "folder"),
        *("huge file", "broken front matter", "no text"),
    ],
)
def test_what_is_no_chat_hides_none(tmp_path: Path, kind: str) -> None:
    (tmp_path / "chat.md").write_text("💬: hello\n", encoding="utf-8")
    make(tmp_path / "other.md", kind)
    found = chats_in(tmp_path)
    assert [(chat["path"], chat["topic"]) for chat in found] == [(str(tmp_path / "chat.md"), "hello")]


def test_a_chat_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    path = tmp_path / "chat.md"
    path.write_text("💬: hello\n", encoding="utf-8")
    path.chmod(0)
    with bound_by_permissions():
        found = chats_in(tmp_path)
    assert found[0]["topic"] == f"cannot read {path}: Permission denied"
