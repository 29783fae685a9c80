"""Files that are created, replaced and moved as a whole, and never over another file."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parley.atomic_files import attributes, create_file, folder_of, move_file, replace_file


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    with folder_of(tmp_path / "a") as handle:
        yield handle


def nothing() -> None:
    pass


def test_a_new_file_has_the_usual_mode_or_the_given_one(folder: int, tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    create_file(folder, "a", b"one\r\n")
    create_file(folder, "b", b"", 0o700)
    assert (tmp_path / "a").read_bytes() == b"one\r\n"
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "usual", "b")]
    assert modes[0] == modes[1]
    assert modes[2] == 0o700


@pytest.mark.parametrize("other", ["file", "link", "folder"])
def test_nothing_is_created_or_moved_over_another_name(
    folder: int, tmp_path: Path, other: str
) -> None:
    (tmp_path / "a").write_text("mine")
    if other == "file":
        (tmp_path / "b").write_text("theirs")
    elif other == "link":
        (tmp_path / "b").symlink_to(tmp_path / "nowhere")
    else:
        (tmp_path / "b").mkdir()
    with pytest.raises(FileExistsError):
        create_file(folder, "b", b"new")
    with pytest.raises(FileExistsError):
        move_file(folder, "a", folder, "b")
    assert (tmp_path / "a").read_text() == "mine"
    assert sorted(os.listdir(folder)) == ["a", "b"]


def test_a_move_that_was_killed_half_way_is_completed_but_no_name_is_lost_to_its_own_spelling(
    folder: int, tmp_path: Path
) -> None:
    create_file(folder, "a", b"mine")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    if not (tmp_path / "A").exists():  # macOS ignores case
        (tmp_path / "A").hardlink_to(tmp_path / "a")
    for same in ("a", "A"):
        with pytest.raises(FileExistsError):
            move_file(folder, "a", folder, same)
    move_file(folder, "a", folder, "b")
    assert sorted(os.listdir(folder)) in (["A", "b"], ["b"])


def test_without_hard_links_nothing_is_moved_over_another_name_either(
    folder: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    create_file(folder, "a", b"mine")
    move_file(folder, "a", folder, "b")
    create_file(folder, "a", b"other")
    with pytest.raises(FileExistsError):
        move_file(folder, "a", folder, "b")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a": b"other", "b": b"mine"}


def test_a_replaced_file_keeps_its_mode_and_a_failed_check_keeps_the_file(
    folder: int, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o751)

    def refuse() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        replace_file(folder, "a", b"new", refuse)
    assert (path.read_text(), os.listdir(folder)) == ("old", ["a"])
    assert replace_file(folder, "a", b"new", nothing) == []
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o751)


def test_a_link_is_not_followed(folder: int, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "a").symlink_to("target")
    with pytest.raises(OSError, match="symbolic"):
        replace_file(folder, "a", b"new", nothing)
    assert (tmp_path / "target").read_text() == "old"


@pytest.mark.skipif(sys.platform != "linux", reason="Python knows no extended attributes there")
def test_unlistable_attributes_are_not_kept() -> None:
    assert attributes(-1) == []
