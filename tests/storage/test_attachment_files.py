"""Files next to a chat: Parley reads only files that match their name, and opens nothing else."""

from __future__ import annotations

import os
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from parley.chat.attachments import attachment_of, link
from parley.chat.reader import parse
from parley.chat.transcript import Attachment
from parley.errors import ParleyError
from parley.models.picture_limits import short_name
from parley.storage import attachment_files
from parley.storage.attachment_files import AttachmentCache, ChatAttachments
from tests.pictures import PDF, beside, png, question, sha256
from tests.powers import bound_by_permissions
from tests.test_transcripts import corpus

PICTURE = png()
NAME = f"{sha256(PICTURE)}.png"
OPENED = set[str]()
_watches = False


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _watches and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        OPENED.add(os.fsdecode(arguments[0]))


sys.addaudithook(_note)


@pytest.fixture
def opened() -> Iterator[set[str]]:
    """The names of the files and folders that are opened during the test."""
    global _watches
    OPENED.clear()
    _watches = True
    yield OPENED
    _watches = False


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """A chat in a folder, with a picture, and an identical picture outside the folder."""
    (tmp_path / "elsewhere.assets").mkdir()
    (tmp_path / "elsewhere.assets" / NAME).write_bytes(PICTURE)
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "stocks.md"


def content(chat: Path, attachment: Attachment) -> bytes | str:
    return ChatAttachments(str(chat)).contents([attachment])[attachment.path]


def test_bytes_that_match_their_name_are_read(chat: Path) -> None:
    for each in (PICTURE, png(1), PDF, b"GIF89a", b"\xff\xd8\xff\xe0", b"RIFF\0\0\0\0WEBPVP8 "):
        assert content(chat, beside(chat, each)) == each
    assert content(chat, beside(chat, b"a long text\n", "txt")) == b"a long text\n"
    (chat.parent / "link.md").symlink_to(chat)
    assert content(chat.parent / "link.md", beside(chat, PICTURE)) == PICTURE


def test_attachments_of_another_chat_in_the_same_folder_are_read(chat: Path) -> None:
    assert content(chat, beside(chat.with_name("other.md"), PICTURE)) == PICTURE


ATTACHMENT = Attachment("image/png 69 B", f"stocks.assets/{NAME}")


def _wrong_bytes(chat: Path, place: Path) -> None:
    place.write_bytes(png(1))


def _cut_short(chat: Path, place: Path) -> None:
    place.write_bytes(PICTURE[:-1])


def _link_out(chat: Path, place: Path) -> None:
    place.symlink_to(chat.parent.parent / "elsewhere.assets" / NAME)


def _link_within(chat: Path, place: Path) -> None:
    (place.parent / "real.png").write_bytes(PICTURE)
    place.symlink_to("real.png")


def _link_in_a_circle(chat: Path, place: Path) -> None:
    place.symlink_to(place)


def _hard_link_out(chat: Path, place: Path) -> None:
    place.hardlink_to(chat.parent.parent / "elsewhere.assets" / NAME)


def _linked_folder(chat: Path, place: Path) -> None:
    place.parent.rmdir()
    place.parent.symlink_to(chat.parent.parent / "elsewhere.assets")


def _file_for_a_folder(chat: Path, place: Path) -> None:
    place.parent.rmdir()
    place.parent.write_bytes(PICTURE)


def _pipe_for_a_folder(chat: Path, place: Path) -> None:
    place.parent.rmdir()
    os.mkfifo(place.parent)


def _pipe(chat: Path, place: Path) -> None:
    os.mkfifo(place)


def _folder(chat: Path, place: Path) -> None:
    place.mkdir()


def _socket(chat: Path, place: Path) -> None:
    here = Path.cwd()
    os.chdir(place.parent)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place.name)
    finally:
        os.chdir(here)


def _huge(chat: Path, place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1_000_000_000)


def _nothing(chat: Path, place: Path) -> None:
    pass


def _other_case(chat: Path, place: Path) -> None:
    (place.parent / NAME.upper()).write_bytes(PICTURE)
    (place.parent / f"{sha256(PICTURE)}.PNG").write_bytes(PICTURE)
    (chat.parent / "Stocks.assets").mkdir()
    (chat.parent / "Stocks.assets" / NAME).write_bytes(PICTURE)


TRAPS = {
    _wrong_bytes: "its content does not match its name",
    _cut_short: "its content does not match its name",
    _link_out: "a link, so not read",
    _link_within: "a link, so not read",
    _link_in_a_circle: "a link, so not read",
    _hard_link_out: "it has a second name (a hard link), so it is not read. Replace it with a copy",
    _linked_folder: "its folder is a link, so not read",
    _file_for_a_folder: "Not a directory",
    _pipe_for_a_folder: "Not a directory",
    _pipe: "not a regular file, so not read",
    _folder: "not a regular file, so not read",
    _socket: "not a regular file, so not read",
    _huge: "too large (1000.0 MB, at most 32.0 MB), so not read",
    _nothing: "no such file",
    _other_case: "no such file",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__.strip("_"))
def test_only_plain_files_in_the_folder_are_read(
    chat: Path, trap: object, opened: set[str]
) -> None:
    folder = chat.parent / "stocks.assets"
    folder.mkdir()
    assert callable(trap)
    trap(chat, folder / NAME)
    opened.clear()
    assert content(chat, ATTACHMENT) == TRAPS[trap]
    assert opened <= {str(chat.parent), "stocks.assets", NAME}
    if trap not in (_wrong_bytes, _cut_short):
        assert NAME not in opened


ESCAPES = [
    "../elsewhere.assets",
    "stocks.assets/../../elsewhere.assets",
    "/etc/stocks.assets",
    "./stocks.assets",
    "stocks.assets/inner.assets",
    "stocks.assets/.",
]


@pytest.mark.parametrize("folder", ESCAPES)
def test_a_path_outside_the_folder_is_never_an_attachment(folder: str) -> None:
    with pytest.raises(ValueError, match="invalid attachment path"):
        Attachment("", f"{folder}/{NAME}")
    (exchange,) = parse(f"💬: q\n![image/png 12 kB]({folder}/{NAME})\n").exchanges
    assert exchange.question
    assert not any(isinstance(part, Attachment) for part in exchange.question.parts)


@pytest.mark.parametrize(
    "name", ["...assets", " .assets", "a\x01.assets", "~.assets", "é" * 200 + ".assets"]
)
def test_an_odd_folder_name_means_a_folder_next_to_the_chat_or_none(chat: Path, name: str) -> None:
    assert content(chat, Attachment("", f"{name}/{NAME}")) in ("no such file", "File name too long")


def test_bytes_of_another_kind_than_their_name_are_not_used(chat: Path) -> None:
    problem = "its content does not match its name"
    assert content(chat, beside(chat, b"<svg/>", "png")) == problem
    assert content(chat, beside(chat, PICTURE, "jpg")) == problem
    assert content(chat, beside(chat, PDF, "webp")) == problem


def test_a_file_that_may_not_be_read_says_so(chat: Path) -> None:
    attachment = beside(chat, PICTURE)
    (chat.parent / attachment.path).chmod(0)
    with bound_by_permissions():
        assert content(chat, attachment) == "Permission denied"


def test_a_chat_without_a_file_has_no_attachments(tmp_path: Path) -> None:
    assert ChatAttachments("").contents([ATTACHMENT]) == {
        ATTACHMENT.path: "this chat has no file yet"
    }
    assert ChatAttachments("/unsaved/1/2").contents([ATTACHMENT]) == {
        ATTACHMENT.path: "no such file"
    }


def test_a_picture_is_read_once_and_again_after_a_change(chat: Path, opened: set[str]) -> None:
    cache, attachment = AttachmentCache(), beside(chat, PICTURE)
    beside_chat = ChatAttachments(str(chat), cache)
    (first,) = beside_chat.contents([attachment]).values()
    (second,) = beside_chat.contents([attachment]).values()
    assert first is second
    place = chat.parent / attachment.path
    place.write_bytes(png(1))
    assert beside_chat.contents([attachment]) == {
        attachment.path: "its content does not match its name"
    }
    place.unlink()
    assert beside_chat.contents([attachment]) == {attachment.path: "no such file"}
    place.write_bytes(PICTURE)
    assert beside_chat.contents([attachment]) == {attachment.path: PICTURE}


# --- Writing --------------------------------------------------------------------------------------


async def test_written_bytes_are_private_to_the_user(chat: Path) -> None:
    attachment = await ChatAttachments(str(chat)).save(PICTURE, "png")
    assert attachment == attachment_of(PICTURE, "stocks.assets", "png")
    assert attachment.label == f"image/png {len(PICTURE)} B"
    place = chat.parent / attachment.path
    assert place.read_bytes() == PICTURE
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert content(chat, attachment) == PICTURE


async def test_an_existing_file_stays_unchanged(chat: Path) -> None:
    attachments = ChatAttachments(str(chat))
    attachment = await attachments.save(PICTURE, "png")
    place = chat.parent / attachment.path
    before = place.stat()
    assert await attachments.save(PICTURE, "png") == attachment
    assert (place.stat().st_ino, place.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    place.write_bytes(b"mine")
    with pytest.raises(ParleyError, match="already exists: its content does not match its name"):
        await attachments.save(PICTURE, "png")
    assert place.read_bytes() == b"mine"
    assert os.listdir(place.parent) == [place.name]  # noqa: PTH208


async def test_nothing_is_written_through_a_link(chat: Path) -> None:
    (chat.parent / "stocks.assets").symlink_to(chat.parent.parent / "elsewhere.assets")
    with pytest.raises(ParleyError, match="its folder is a link"):
        await ChatAttachments(str(chat)).save(png(1), "png")
    assert os.listdir(chat.parent.parent / "elsewhere.assets") == [NAME]  # noqa: PTH208


async def test_concurrent_writers_of_the_same_bytes_leave_one_complete_file(chat: Path) -> None:
    large, failures = png(2, more=2_000_000), list[BaseException]()

    def save() -> None:
        try:
            ChatAttachments(str(chat)).put(large, "png")
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=save) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    (name,) = os.listdir(chat.parent / "stocks.assets")  # noqa: PTH208
    assert (chat.parent / "stocks.assets" / name).read_bytes() == large


@pytest.mark.parametrize("name", ["", "/unsaved/1/2", "/nowhere/at/all/chat.md"])
async def test_nothing_is_written_for_a_chat_without_a_file(name: str) -> None:
    with pytest.raises(ParleyError, match="Save the chat first"):
        await ChatAttachments(name).save(PICTURE, "png")


async def test_a_name_that_no_link_can_hold_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ParleyError, match="Rename the chat"):
        await ChatAttachments(str(tmp_path / "a\nb.md")).save(PICTURE, "png")


# --- Problems of a chat ---------------------------------------------------------------------------


def test_missing_wrong_and_unlinked_files_are_problems(chat: Path) -> None:
    good, wrong, lonely = beside(chat, PICTURE), beside(chat, png(1)), beside(chat, png(2))
    missing = attachment_of(png(3), "stocks.assets", "png")
    (chat.parent / wrong.path).write_bytes(b"no")
    (chat.parent / "stocks.assets" / "notes.txt").write_text("mine", encoding="utf-8")
    problems = ChatAttachments(str(chat)).problems(parse(question(good, wrong, missing)))
    assert [(p.line, p.severity, p.message) for p in problems] == [
        (4, "warning", f"{wrong.path}: its content does not match its name"),
        (6, "warning", f"{missing.path}: no such file"),
        (0, "hint", f"{lonely.path} is not linked from this chat"),
    ]


def test_all_results_link_to_their_attachments_even_orphans(chat: Path) -> None:
    linked, missing = beside(chat, PICTURE), attachment_of(b"long", "stocks.assets", "txt")
    text = f"💬: q\n\n🤖:\n\n🛠️: [plot][call_1] {link(linked)} {link(missing)}\n\n`x`\n"
    (problem,) = ChatAttachments(str(chat)).problems(parse(text))
    assert (problem.line, problem.message) == (4, f"{missing.path}: no such file")


async def test_a_name_that_reorders_text_is_shown_escaped(chat: Path) -> None:
    strange = attachment_of(PICTURE, "a\u202eb.assets", "png")
    transcript = parse(question(strange))
    (seen,), (checked,) = (
        await ChatAttachments(str(chat)).missing(transcript),
        list(ChatAttachments(str(chat)).problems(transcript)),
    )
    assert seen == checked
    assert seen.message == f"a\\u202eb.assets/{NAME}: no such file"
    assert short_name(strange.path) == f"a\\u202eb.assets/{NAME[:8]}….png"


def test_the_missing_parts_of_a_call_that_a_provider_ran_are_a_problem(chat: Path) -> None:
    (problem,) = ChatAttachments(str(chat)).problems(corpus("provider_search"))
    assert (problem.line, problem.severity) == (8, "warning")
    assert problem.message.endswith(".txt: no such file")


def test_the_texts_for_one_request_are_not_too_large_together(
    chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachment_files, "MOST_TEXT", 10)
    texts = [beside(chat, content, "txt") for content in (b"123456", b"abcdef", b"xyz")]
    read = ChatAttachments(str(chat)).contents([*texts, beside(chat, PICTURE)])
    assert [isinstance(content, bytes) for content in read.values()] == [True, False, True, True]


def test_files_in_another_chats_folder_are_not_reported(chat: Path) -> None:
    beside(chat.with_name("other.md"), PICTURE)
    assert list(ChatAttachments(str(chat)).problems(parse("💬: q\n"))) == []
