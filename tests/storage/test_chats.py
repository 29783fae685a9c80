"""The chat folder: its place, and a new chat's file in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.errors import ParleyError
from parley.storage.chats import chat_folder, new_chat, newest_first
from tests.powers import bound_by_permissions


def test_the_folder_is_the_configured_one_or_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.setenv("PLACE", "/p")
    monkeypatch.chdir(tmp_path)
    assert chat_folder("~/mine", {}) == Path("/h/mine")
    assert chat_folder("$PLACE/mine", {}) == Path("/p/mine")
    assert chat_folder("mine", {}) == tmp_path / "mine"
    assert chat_folder(None, {"HOME": "/h"}) == Path("/h/.local/share/parley/chats")
    assert chat_folder("", {"HOME": "/h", "XDG_DATA_HOME": "/d"}) == Path("/d/parley/chats")


def test_each_new_chat_has_its_own_private_file(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    paths = {new_chat(folder, f"chat {n}\n") for n in range(3)}
    assert sorted(path.read_text() for path in paths) == ["chat 0\n", "chat 1\n", "chat 2\n"]
    assert {path.stat().st_mode & 0o777 for path in paths} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.parent for path in paths} == {folder}


def test_chats_in_the_same_second_are_numbered_from_2(tmp_path: Path) -> None:
    names = [new_chat(tmp_path, "").name for _ in range(30)]
    first, *_ = stems = [name.removesuffix(".md") for name in names]
    mine = [stem for stem in stems if stem.startswith(first)]
    assert len(set(names)) == 30
    assert mine == [first, *(f"{first}-{number}" for number in range(2, len(mine) + 1))]


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ParleyError, match=r"cannot create the chat folder .*/file/chats: Not a directory"
    ):
        new_chat(tmp_path / "file" / "chats", "")


def test_a_folder_that_refuses_a_new_chat_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with (
        bound_by_permissions(),
        pytest.raises(ParleyError, match=f"^{tmp_path}: cannot write .*: Permission denied$"),
    ):
        new_chat(tmp_path, "")


def test_the_newest_chat_comes_first_and_only_files_are_chats(tmp_path: Path) -> None:
    for name, at in (("first.md", 0), ("old.md", 5), ("new.md", 9), ("notes.txt", 20)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (at, at))
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "gone.md").symlink_to("nowhere")
    dated = [(9.0, "new.md"), (5.0, "old.md"), (0.0, "first.md")]
    assert [(at, path.name) for at, path in newest_first(tmp_path)] == dated
    assert list(newest_first(tmp_path / "none")) == []
