"""Chats in files: edits leave other bytes unchanged, and never overwrite other programs' work."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from parley.chat import edits
from parley.chat.edits import Edit
from parley.chat.reader import parse
from parley.chat.rounds import Notice
from parley.engine import Snapshot
from parley.errors import GoneError, ParleyError
from parley.storage.chat_file import FileDocument, TextDocument, replace_content
from tests import fake_time
from tests.fake_time import FakeTimeLoop
from tests.powers import bound_by_permissions

CALL = '❓: `{"id":"c","type":"function","function":{"name":"note","arguments":"{}"}}`'
UNFINISHED = "🔒: [Interrupted: the answer was still being written]\n"
CHAT = "💬: q\n\n🤖:[A]\n\nold\n\n💬: next\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    chat = tmp_path / "chat.md"
    chat.write_text(CHAT, encoding="utf-8")
    return chat


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def save(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def answer(shot: Snapshot) -> list[Edit]:
    return [edits.start_answer(shot.lines, shot.exchange, "Demo")]


LAYOUTS = {
    "plain": (
        b"# h\n\n\xf0\x9f\x92\xac: q\n",
        b"# h\n\n\xf0\x9f\x92\xac: q\n\n\xf0\x9f\xa4\x96:[Demo]\n",
    ),
    "no final newline": ("💬: q".encode(), "💬: q\n\n🤖:[Demo]\n".encode()),
    "CRLF": ("# h\r\n\r\n💬: q\r\n".encode(), "# h\r\n\r\n💬: q\r\n\r\n🤖:[Demo]\r\n".encode()),
    "CRLF without the last": (
        "# h\r\n💬: q".encode(),
        "# h\r\n💬: q\r\n\r\n🤖:[Demo]\r\n".encode(),
    ),
    "CR as content": ("# h\r\n💬: q\nx\n".encode(), "# h\r\n💬: q\nx\n\n🤖:[Demo]\n".encode()),
    "BOM": ("\ufeff💬: q\n".encode(), "\ufeff💬: q\n\n🤖:[Demo]\n".encode()),
    "BOM and CRLF": ("\ufeff💬: q\r\n".encode(), "\ufeff💬: q\r\n\r\n🤖:[Demo]\r\n".encode()),
    "no UTF-8": (
        b"\xff\xfe\n" + "💬: q\n".encode(),
        b"\xff\xfe\n" + "💬: q\n\n🤖:[Demo]\n".encode(),
    ),
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
def test_the_last_exchange_or_an_unfinished_one_above_an_empty_question_continues(
    path: Path, text: str, line: str
) -> None:
    path.write_text(text, encoding="utf-8")
    shot = asyncio.run(FileDocument(path).read())
    assert shot.lines[shot.exchange.span.start] == line


@pytest.mark.parametrize("layout", LAYOUTS)
def test_unedited_lines_stay_byte_for_byte(path: Path, layout: str) -> None:
    before, after = LAYOUTS[layout]
    path.write_bytes(before)
    asyncio.run(FileDocument(path).change(answer))
    assert path.read_bytes() == after


async def test_a_settled_reply_is_in_the_file_and_complete_once_its_end_is_written(
    path: Path,
) -> None:
    shown = list[str]()
    document = FileDocument(path, 0, shown.append)
    await document.change(lambda s: [edits.empty_answer(s.lines, s.answer, "Demo")])
    await document.open_stream(lambda s: edits.open_tip(s.lines, s.answer))
    for piece in ("one\n", "\ntwo", ""):
        await document.append(piece)
    await document.settle()
    assert text_of(path) == f"💬: q\n\n🤖:[Demo]\n\none\n\ntwo\n{UNFINISHED}\n💬: next\n"
    await document.change(lambda s: edits.end_reply(s.lines, s.answer))
    assert text_of(path) == "💬: q\n\n🤖:[Demo]\n\none\n\ntwo\n\n💬: next\n"
    assert shown == ["one\n", "\ntwo", ""]


def test_an_endless_line_in_many_pieces_is_written_once() -> None:
    document = TextDocument("💬: q\n\n🤖:[A]\n", 0)
    asyncio.run(document.open_stream(lambda s: edits.open_tip(s.lines, s.answer)))

    before = document._lines[4]
    for piece in ["x" * 10] * 1000:
        asyncio.run(document.append(piece))
        # adding each piece to the line would copy the whole line each time
        assert document._lines[4] is before
    assert document.text == "💬: q\n\n🤖:[A]\n\n" + "x" * 10_000 + "\n" + UNFINISHED


def test_the_tip_moves_with_changes_above_it() -> None:
    document = TextDocument("💬: q\n\n🤖:[A]\n", 0)
    asyncio.run(document.open_stream(lambda s: edits.open_tip(s.lines, s.answer)))
    asyncio.run(document.append("one "))
    asyncio.run(document.change(lambda _: [Edit(0, 0, ("new", "lines"))]))
    asyncio.run(document.append("two\nthree"))
    asyncio.run(document.change(lambda _: [Edit(0, 2, ())]))
    asyncio.run(document.append(" four"))
    assert document.text == "💬: q\n\n🤖:[A]\n\none two\nthree four\n" + UNFINISHED


@pytest.mark.parametrize("line", [0, 2, 4, 5])
def test_the_current_exchange_stays_current_when_its_lines_are_removed(line: int) -> None:
    document = TextDocument(CHAT, line)
    asyncio.run(document.change(lambda s: [edits.empty_answer(s.lines, s.answer, "Demo")]))
    assert (asyncio.run(document.read())).at == 0


def test_the_mode_is_kept(path: Path) -> None:
    for mode in (0o600, 0o644, 0o664):
        path.chmod(mode)
        asyncio.run(FileDocument(path).change(answer))
        assert path.stat().st_mode & 0o777 == mode


def test_a_link_stays_a_link_to_the_written_file(path: Path, tmp_path: Path) -> None:
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


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none.md", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(ParleyError, match=f"cannot read .*: {why}"):
            FileDocument(path)


@pytest.mark.parametrize("kind", ["pipe", "device", "dangling link", "loop", "huge"])
def test_special_files_are_reported_without_waiting(tmp_path: Path, kind: str) -> None:
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
                file.truncate(10**11)  # none of it is on the disk
    with pytest.raises(ParleyError, match=f"^cannot read {path}: "):
        FileDocument(path)


def test_an_unwritable_folder_is_reported_and_nothing_is_lost(path: Path) -> None:
    """A folder replaced by a file behaves like a folder without write permission."""
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


def test_a_folder_without_write_permission_is_reported(path: Path) -> None:
    document = FileDocument(path)
    path.parent.chmod(0o500)
    message = r"cannot write .*: its folder is read-only"
    try:
        with bound_by_permissions(), pytest.raises(ParleyError, match=message):
            asyncio.run(document.change(answer))
    finally:
        path.parent.chmod(0o700)
    assert path.read_text(encoding="utf-8") == CHAT


def test_a_failed_write_leaves_only_the_old_file(path: Path) -> None:
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # like a full disk
    try:
        with pytest.raises(OSError, match="File too large"):
            replace_content(path, before, b"x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert names(path.parent) == [path.name]


def test_a_file_name_of_maximum_length_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 252 + ".md")
    path.write_text(CHAT, encoding="utf-8")
    asyncio.run(FileDocument(path).change(answer))
    assert path.read_text(encoding="utf-8").endswith("🤖:[Demo]\n")
    assert names(tmp_path) == [path.name]


def others_save_while_it_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program saves the file while Parley's write is slow."""
    write = os.fsync

    def fsync(handle: int) -> None:
        write(handle)
        path.write_text(CHAT + "saved meanwhile\n", encoding="utf-8")

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_save_by_another_program_during_the_write_is_not_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = FileDocument(path)
    others_save_while_it_is_written(path, monkeypatch)
    with pytest.raises(GoneError, match="changed by another program"):
        asyncio.run(document.change(answer))
    assert path.read_text(encoding="utf-8") == CHAT + "saved meanwhile\n"
    assert names(path.parent) == [path.name]


async def text_when(path: Path, condition: Callable[[str], bool]) -> str:
    """The file's text as soon as the condition holds."""
    for _ in range(3_000):
        if condition(text_of(path)):
            break
        await asyncio.sleep(0.01)
    return text_of(path)


async def streaming(path: Path) -> FileDocument:
    document = FileDocument(path, 0)
    await document.change(lambda s: [edits.empty_answer(s.lines, s.answer, "Demo")])
    await document.open_stream(lambda s: edits.open_tip(s.lines, s.answer))
    await document.append("one\n\ntw")
    return document


async def test_streamed_text_is_soon_on_the_disk_with_a_notice_of_more(path: Path) -> None:
    document = await streaming(path)
    text = await text_when(path, lambda text: "tw" in text)
    assert text == f"💬: q\n\n🤖:[Demo]\n\none\n\ntw\n{UNFINISHED}\n💬: next\n"
    await document.append("o\n")
    text = await text_when(path, lambda text: "two" in text)
    assert text == f"💬: q\n\n🤖:[Demo]\n\none\n\ntwo\n\n{UNFINISHED}\n💬: next\n"
    assert not parse(text).problems
    await document.settle()
    await document.change(lambda s: edits.end_reply(s.lines, s.answer))
    assert text_of(path) == "💬: q\n\n🤖:[Demo]\n\none\n\ntwo\n\n💬: next\n"


async def test_a_change_above_the_tip_does_not_end_the_reply(path: Path) -> None:
    document = await streaming(path)
    await document.change(lambda _: [Edit(0, 0, ("above",))])
    assert text_of(path).startswith("above\n")
    assert UNFINISHED in text_of(path)
    await document.change(lambda s: edits.append_notice(s.lines, s.answer, Notice("Stopped", "x")))
    assert UNFINISHED not in text_of(path)
    assert "tw\n\n🔒: [Stopped: x]\n\n💬: next\n" in text_of(path)


async def speak(document: FileDocument) -> None:
    for _ in range(3_000):
        await document.append("more ")
        await asyncio.sleep(0.01)


async def test_a_reply_ends_if_another_program_changes_its_file(path: Path) -> None:
    document = await streaming(path)
    save(path, "mine\n")
    with pytest.raises(GoneError, match="changed by another program"):
        await speak(document)
    assert text_of(path) == "mine\n"


@pytest.mark.parametrize("mode", [0o444, 0o400])
def test_a_read_only_file_is_refused_and_stays(path: Path, mode: int) -> None:
    document = FileDocument(path)
    path.chmod(mode)
    for work in (lambda: FileDocument(path), lambda: asyncio.run(document.change(answer))):
        with pytest.raises(ParleyError, match=f"^cannot write {path}: it is read-only$"):
            work()
    assert path.read_text(encoding="utf-8") == CHAT


def notes_of_a_change(path: Path) -> list[str]:
    notes = list[str]()
    document = FileDocument(path, on_note=notes.append)
    asyncio.run(document.change(answer))
    asyncio.run(document.change(answer))
    return notes


def test_a_hard_links_old_text_is_reported_once(path: Path) -> None:
    other = path.with_name("other.md")
    other.hardlink_to(path)
    (note,) = notes_of_a_change(path)
    assert note == f"{path}: it had 2 hard links; any other link still has the old content"
    assert other.read_text(encoding="utf-8") == CHAT


@pytest.mark.skipif(sys.platform != "linux", reason="Python knows no extended attributes there")
def test_extended_attributes_are_kept(path: Path) -> None:
    os.setxattr(path, "user.parley", b"mine")
    assert notes_of_a_change(path) == []
    assert os.getxattr(path, "user.parley") == b"mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of others")
def test_the_owner_is_kept_or_the_loss_is_reported() -> None:
    with tempfile.TemporaryDirectory() as folder:  # others may reach it, unlike a test's own folder
        Path(folder).chmod(0o755)
        path = Path(folder) / "chat.md"
        path.write_text(CHAT, encoding="utf-8")
        path.chmod(0o664)
        os.chown(path, 1, 2)
        assert notes_of_a_change(path) == []
        assert (path.stat().st_uid, path.stat().st_gid) == (1, 2)
        path.chmod(0o676)
        os.chown(folder, 3, 3)
        os.setegid(3)
        os.seteuid(3)
        try:
            notes = notes_of_a_change(path)
        finally:
            os.seteuid(0)
            os.setegid(0)
        assert notes == [f"{path}: it belonged to user 1, group 2, and is now yours"]
        assert (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode & 0o777) == (
            3,
            3,
            0o666,
        )


def test_a_reply_without_pauses_is_written_once_per_half_second(path: Path) -> None:
    """This holds for any number of pieces, even if no timer can fire between two of them."""

    async def written() -> list[int]:
        document, sizes = await streaming(path), list[int]()
        clock = cast(FakeTimeLoop, asyncio.get_running_loop())
        for _ in range(40):
            clock.advance(0.1)
            await document.append("x")
            sizes.append(text_of(path).count("x"))
        return sizes

    sizes = fake_time.run(written())
    assert sizes == sorted(sizes)
    assert 6 <= len(set(sizes) - {0}) <= 8, "four seconds, at most once in half a second"


def test_the_pieces_within_half_a_second_share_a_timer(path: Path) -> None:
    async def written() -> list[int]:
        document, sizes = await streaming(path), list[int]()
        for _ in range(100):
            await document.append("x")
            await asyncio.sleep(0.05)
            sizes.append(text_of(path).count("x"))
        return sizes

    sizes = fake_time.run(written())
    assert sizes == sorted(sizes)
    assert 9 <= len(set(sizes) - {0}) <= 11, "five seconds, twice a second"
