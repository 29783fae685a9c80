"""Chats in files: what an edit does not name stays byte for byte, and nobody's work is written over."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

import pytest

from parley.chat import edits
from parley.chat.edits import Edit
from parley.engine import Snapshot
from parley.errors import GoneError, ParleyError
from parley.storage.chat_file import FileDocument, TextDocument, write_atomically
from tests.powers import bound_by_permissions

CALL = '❓: `{"id":"c","type":"function","function":{"name":"note","arguments":"{}"}}`'
CHAT = "💬: q\n\n🤖:[A]\n\nold\n\n💬: next\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    chat = tmp_path / "chat.md"
    chat.write_text(CHAT, encoding="utf-8")
    return chat


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def answer(shot: Snapshot) -> list[Edit]:
    return [edits.start_answer(shot.lines, shot.exchange, "Demo")]


LAYOUTS = {
    "plain": (b"# h\n\n\xf0\x9f\x92\xac: q\n", b"# h\n\n\xf0\x9f\x92\xac: q\n\n\xf0\x9f\xa4\x96:[Demo]\n"),
    "no final newline": ("💬: q".encode(), "💬: q\n\n🤖:[Demo]\n".encode()),
    "CRLF": ("# h\r\n\r\n💬: q\r\n".encode(), "# h\r\n\r\n💬: q\r\n\r\n🤖:[Demo]\r\n".encode()),
    "CRLF without the last": ("# h\r\n💬: q".encode(), "# h\r\n💬: q\r\n\r\n🤖:[Demo]\r\n".encode()),
    "CR as content": ("# h\r\n💬: q\nx\n".encode(), "# h\r\n💬: q\nx\n\n🤖:[Demo]\n".encode()),
    "BOM": ("\ufeff💬: q\n".encode(), "\ufeff💬: q\n\n🤖:[Demo]\n".encode()),
    "BOM and CRLF": ("\ufeff💬: q\r\n".encode(), "\ufeff💬: q\r\n\r\n🤖:[Demo]\r\n".encode()),
    "no UTF-8": (b"\xff\xfe\n" + "💬: q\n".encode(), b"\xff\xfe\n" + "💬: q\n\n🤖:[Demo]\n".encode()),
    "NUL": (b"a\0b\n" + "💬: q\n".encode(), b"a\0b\n" + "💬: q\n\n🤖:[Demo]\n".encode()),
    "other line ends": (
        "💬: q\u2028\x0b\x0c\x85 x\n".encode(),
        "💬: q\u2028\x0b\x0c\x85 x\n\n🤖:[Demo]\n".encode(),
    ),
}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (CHAT, "💬: next"),
        ("💬: a\n\n🤖:[A]\n\nold\n\n💬: \n", "💬: "),
        ("💬: a\n\n💬: b\n\n🤖:[A]\n\n🔒: [Interrupted: x]\n\n💬: \n", "💬: b"),
        ("💬: a\n\n🤖:[A]\n\n🔒: [Stopped: x]\n\n💬: next\n", "💬: next"),
        ("💬: a\n\n🤖:[A]\n\n🔒: mine\n\n💬: \n", "💬: "),
        (f"💬: a\n\n🤖:[A]\n\n{CALL}\n\n💬: \n", "💬: a"),
        (f"💬: a\n\n🤖:[A]\n\n{CALL}\n\n💬: next\n", "💬: next"),
        ("💬: a\n\n🤖:[A]\n\n❓: `{no call}`\n\n💬: \n", "💬: a"),
        (f"💬: a\n\n🤖:[A]\n\n{CALL}\n\n🛠️: [note][c]\n\n`ok`\n\n💬: \n", "💬: a"),
        (f"💬: a\n\n🤖:[A]\n\n{CALL}\n\n🛠️: [note][c]\n\n`ok`\n\nSo.\n\n💬: \n", "💬: "),
    ],
)
def test_what_is_moved_on_is_the_last_exchange_or_an_unfinished_one_above_an_empty_question(
    path: Path, text: str, line: str
) -> None:
    path.write_text(text, encoding="utf-8")
    shot = asyncio.run(FileDocument(path).read())
    assert shot.lines[shot.exchange.span.start] == line


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_not_named_stays_byte_for_byte(path: Path, layout: str) -> None:
    before, after = LAYOUTS[layout]
    path.write_bytes(before)
    asyncio.run(FileDocument(path).change(answer))
    assert path.read_bytes() == after


def test_a_reply_is_in_the_file_when_it_is_settled(path: Path) -> None:
    shown = list[str]()
    document = FileDocument(path, 0, shown.append)
    asyncio.run(document.change(lambda s: [edits.empty_answer(s.lines, s.answer, "Demo")]))
    asyncio.run(document.open_stream(lambda s: edits.open_tip(s.lines, s.answer)))
    for piece in ("one\n", "\ntwo", ""):
        asyncio.run(document.append(piece))
    assert "one" not in path.read_text(encoding="utf-8")
    asyncio.run(document.settle())
    assert path.read_text(encoding="utf-8") == "💬: q\n\n🤖:[Demo]\n\none\n\ntwo\n\n💬: next\n"
    assert shown == ["one\n", "\ntwo", ""]


def test_a_line_without_end_is_written_once_however_many_pieces_it_comes_in() -> None:
    document = TextDocument("💬: q\n\n🤖:[A]\n", 0)
    asyncio.run(document.open_stream(lambda s: edits.open_tip(s.lines, s.answer)))

    before = document._lines[4]
    for piece in ["x" * 10] * 1000:
        asyncio.run(document.append(piece))
        assert document._lines[4] is before  # adding each piece to the line would copy all of it each time
    assert document.text == "💬: q\n\n🤖:[A]\n\n" + "x" * 10_000 + "\n"


def test_the_tip_stays_where_it_is_when_lines_come_and_go_above_it() -> None:
    document = TextDocument("💬: q\n\n🤖:[A]\n", 0)
    asyncio.run(document.open_stream(lambda s: edits.open_tip(s.lines, s.answer)))
    asyncio.run(document.append("one "))
    asyncio.run(document.change(lambda _: [Edit(0, 0, ("new", "lines"))]))
    asyncio.run(document.append("two\nthree"))
    asyncio.run(document.change(lambda _: [Edit(0, 2, ())]))
    asyncio.run(document.append(" four"))
    assert document.text == "💬: q\n\n🤖:[A]\n\none two\nthree four\n"


@pytest.mark.parametrize("line", [0, 2, 4, 5])
def test_the_exchange_in_hand_stays_in_hand_when_its_lines_go(line: int) -> None:
    document = TextDocument(CHAT, line)
    asyncio.run(document.change(lambda s: [edits.empty_answer(s.lines, s.answer, "Demo")]))
    assert (asyncio.run(document.read())).at == 0


def test_the_mode_is_kept(path: Path) -> None:
    for mode in (0o600, 0o644, 0o664):
        path.chmod(mode)
        asyncio.run(FileDocument(path).change(answer))
        assert path.stat().st_mode & 0o777 == mode


def test_a_link_stays_a_link_to_the_file_that_is_written(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.md"
    link.symlink_to(path)
    asyncio.run(FileDocument(link).change(answer))
    assert link.is_symlink()
    assert path.read_text(encoding="utf-8").endswith("💬: next\n\n🤖:[Demo]\n")
    assert names(link.parent) == ["link.md"]


def test_a_file_that_another_program_changed_is_left_alone(path: Path) -> None:
    document = FileDocument(path)
    path.write_text(CHAT + "typed meanwhile\n", encoding="utf-8")
    with pytest.raises(GoneError, match="changed by another program"):
        asyncio.run(document.change(answer))
    assert path.read_text(encoding="utf-8") == CHAT + "typed meanwhile\n"
    assert names(path.parent) == [path.name]


def test_a_file_that_was_deleted_stays_deleted(path: Path) -> None:
    document = FileDocument(path)
    path.unlink()
    with pytest.raises(ParleyError, match="cannot write"):
        asyncio.run(document.change(answer))
    assert not path.exists()


def test_nothing_is_written_when_nothing_changes(path: Path) -> None:
    document = FileDocument(path)
    before = path.stat()
    asyncio.run(document.change(lambda _: []))
    asyncio.run(document.settle())
    assert path.stat().st_ino == before.st_ino


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none.md", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(ParleyError, match=f"cannot read .*: {why}"):
            FileDocument(path)


@pytest.mark.parametrize("kind", ["pipe", "device", "dangling link", "loop", "huge"])
def test_what_is_no_chat_is_told_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "chat.md"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "dangling link":
            path.symlink_to(tmp_path / "gone")
        case "loop":
            path.symlink_to(path)
        case _:
            with path.open("wb") as file:
                file.truncate(10**11)  # of which the disk holds nothing
    with pytest.raises(ParleyError, match=f"^cannot read {path}: "):
        FileDocument(path)


def test_a_folder_that_cannot_be_written_is_told_and_nothing_is_lost(path: Path) -> None:
    """A folder that went away and came back as a file stands for one without the right to write."""
    folder = path.parent / "folder"
    folder.mkdir()
    inside = folder / "chat.md"
    inside.write_text(CHAT, encoding="utf-8")
    document = FileDocument(inside)
    inside.unlink()
    folder.rmdir()
    folder.touch()
    with pytest.raises(ParleyError, match=r"cannot write .*: Not a directory"):
        asyncio.run(document.change(answer))


def test_a_folder_without_the_right_to_write_is_told(path: Path) -> None:
    document = FileDocument(path)
    path.parent.chmod(0o500)
    try:
        with bound_by_permissions(), pytest.raises(ParleyError, match=r"cannot write .*: Permission denied"):
            asyncio.run(document.change(answer))
    finally:
        path.parent.chmod(0o700)
    assert path.read_text(encoding="utf-8") == CHAT


def test_a_write_that_fails_half_way_leaves_the_old_file_and_no_other(path: Path) -> None:
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # as a full disk
    try:
        with pytest.raises(OSError, match="File too large"):
            write_atomically(path, b"x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert names(path.parent) == [path.name]


def test_a_name_as_long_as_names_can_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 252 + ".md")
    path.write_text(CHAT, encoding="utf-8")
    asyncio.run(FileDocument(path).change(answer))
    assert path.read_text(encoding="utf-8").endswith("🤖:[Demo]\n")
    assert names(tmp_path) == [path.name]
