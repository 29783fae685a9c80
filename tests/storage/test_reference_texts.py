"""The content that a reference includes, and the content that needs the user's approval."""

from __future__ import annotations

import itertools
import os
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from parley.chat.attachments import attachment_of
from parley.chat.reader import parse
from parley.chat.references import IN_EDITOR, Live, ReferenceText, expansion, references
from parley.chat.references import Path as FilePath
from parley.errors import ParleyError
from parley.storage.attachment_files import ChatAttachments
from parley.storage.bounds import Bounds
from parley.storage.reference_files import NamedPicture
from parley.storage.reference_patterns import INSIDE, NO_HIDDEN
from parley.storage.reference_texts import (
    OUTSIDE,
    EditorText,
    FileReferences,
    HiddenFiles,
    named_contents,
    piped_content,
)
from parley.workspace.boundary import sealed
from tests.pictures import png
from tests.powers import bound_by_permissions


class WorkingDirectory:
    """A working folder, a file outside it, and a user who is asked."""

    def __init__(self, folder: Path, answer: bool) -> None:
        self.work, self.beside = folder / "work", folder / "beside.txt"
        self.work.mkdir()
        (self.work / "inside.txt").write_text("inside\n", encoding="utf-8")
        (self.work / "link.txt").symlink_to(self.beside)
        (self.work / ".hidden").write_text("hidden\n", encoding="utf-8")
        (self.work / "loop").symlink_to(self.work / "loop")
        (self.work / "binary").write_bytes(b"text\0")
        os.mkfifo(self.work / "pipe")
        self.beside.write_text("beside\n", encoding="utf-8")
        self.answer = answer
        self.questions = list[Path]()
        self.meanwhile: Callable[[], None] = lambda: None

    async def may_read(self, path: Path) -> bool:
        self.questions.append(path)
        self.meanwhile()
        return self.answer

    async def bring(self, name: str) -> list[ReferenceText]:
        async def resource(server: str, uri: str) -> str:
            raise AssertionError("no resource is meant")

        found = FileReferences(lambda: self.work, resource, self.may_read)
        return list(await found.bring([FilePath(name)]))


async def nowhere(server: str, uri: str) -> str:
    """Fail: servers are not used."""
    raise AssertionError("no resource is meant")


OUT = ["../beside.txt", "link.txt", "{beside}"]


@pytest.mark.parametrize("name", OUT)
@pytest.mark.parametrize("answer", [True, False])
async def test_a_file_outside_is_asked_about_by_its_real_path(
    tmp_path: Path, name: str, answer: bool
) -> None:
    directory = WorkingDirectory(tmp_path, answer)
    name = name.format(beside=directory.beside)
    (brought,) = await directory.bring(name)
    assert directory.questions == [directory.beside]
    assert brought == (
        ReferenceText(name, "beside\n") if answer else ReferenceText(name, OUTSIDE, "missing")
    )


async def test_a_link_changed_while_the_user_decides_is_not_followed(tmp_path: Path) -> None:
    directory = WorkingDirectory(tmp_path, True)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret\n", encoding="utf-8")

    def change() -> None:
        directory.beside.unlink()
        directory.beside.symlink_to(secret)

    directory.meanwhile = change
    assert await directory.bring("../beside.txt") == [
        ReferenceText(
            "../beside.txt", "another file has replaced it, so it was not read", "missing"
        )
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".hidden", "hidden, so not read"),
        ("none.txt", "No such file or directory"),
        ("../none.txt", OUTSIDE),
        ("..", OUTSIDE),
        ("../*.txt", INSIDE),
        ("a/../../*.txt", INSIDE),
        ("/etc/*", INSIDE),
        ("**/" * 20 + "*.zzz", "no file matches"),
        (".hidden*", NO_HIDDEN),
        ("./.git/**/config", NO_HIDDEN),
        (".", "a folder, so not read. A pattern such as ./* includes its files"),
        ("x" * 5000, "File name too long"),
        ("../" + "x" * 5000, "cannot be read"),
        ("loop", "no such file"),
        ("loop*", "no file matches"),
        ("~nobody-of-this-name/*", "no file matches"),
        ("pipe", "not a regular file, so not read"),
        ("binary", "it is not text"),
        ("~nobody-of-this-name/x", "no such file"),
        ("a\0b", "no such file"),
    ],
)
async def test_files_that_are_not_included_are_not_asked_about(
    tmp_path: Path, name: str, why: str
) -> None:
    directory = WorkingDirectory(tmp_path, True)
    assert {(each.text, each.kind) for each in await directory.bring(name)} == {(why, "missing")}
    assert directory.questions == []


async def test_a_pattern_deeper_than_any_folder_matches_nothing(tmp_path: Path) -> None:
    assert [
        each.kind for each in await WorkingDirectory(tmp_path, True).bring("*/" * 2000 + "x")
    ] == ["missing"]


async def test_a_file_inside_is_included_without_asking(tmp_path: Path) -> None:
    directory = WorkingDirectory(tmp_path, False)
    assert await directory.bring("inside.txt") == [ReferenceText("inside.txt", "inside\n")]
    assert directory.questions == []


# --- Patterns, in real folders --------------------------------------------------------------------


class Tree:
    """A folder with files, and the results of patterns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def file(self, name: str, content: str | bytes = "x\n") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    async def bring(
        self, *names: str, bounds: Bounds | None = None, now: Callable[[], float] = lambda: 0.0
    ) -> list[tuple[str, str]]:
        async def resource(server: str, uri: str) -> str:
            return "r" * 40

        found = FileReferences(lambda: self.folder, resource, bounds=bounds or Bounds(), now=now)
        brought = await found.bring([*map(FilePath, names)])
        return [(each.title, "" if each.kind == "text" else each.text) for each in brought]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*", ["top.py"]),
        ("**", ["src/a.py", "src/deep/er/a.py", "src/deep/er/b.txt", "top.py"]),
        ("**/*.py", ["src/a.py", "src/deep/er/a.py", "top.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/er/a.py"]),
        ("**/deep/**/a.py", ["src/deep/er/a.py"]),
        ("**/**/**/**/a.py", ["src/a.py", "src/deep/er/a.py"]),
        ("./src//*.p[yz]", ["src/a.py"]),
        ("s?c/*/er/*", ["src/deep/er/a.py", "src/deep/er/b.txt"]),
        ("*/deep/er/b.txt", ["src/deep/er/b.txt"]),
    ],
)
async def test_a_pattern_works_as_in_a_shell(tree: Tree, pattern: str, names: list[str]) -> None:
    for name in ("top.py", "src/a.py", "src/deep/er/a.py", "src/deep/er/b.txt", "src/.hidden/a.py"):
        tree.file(name)
    assert await tree.bring(pattern) == [(name, "") for name in names]


async def test_circular_and_outward_links_do_not_stop_the_search(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "work")
    tree.file("a/one.py")
    (tmp_path / "secret.py").write_text("secret", encoding="utf-8")
    for name, target in (
        ("a/up", ".."),
        ("a/self.py", "self.py"),
        ("out", str(tmp_path)),
        ("secret.py", str(tmp_path / "secret.py")),
        ("b.py", "a/one.py"),
    ):
        (tree.folder / name).symlink_to(target)
    assert await tree.bring("**/*.py", bounds=Bounds(names=20)) == [
        ("a/one.py", ""),
        ("b.py", ""),
        ("**/*.py", "left out: 1 file (outside the working directory or hidden)"),
    ]
    assert await tree.bring("out/*.py") == [
        ("out/*.py", "only patterns inside the working directory are read")
    ]


async def test_special_files_stop_nothing(tree: Tree) -> None:
    """A pipe without a writer, a socket, devices, and files that are not text or are endless."""
    os.mkfifo(tree.folder / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree.folder / "socket.py"))
    for name, device in (
        ("null.py", "/dev/null"),
        ("zero.py", "/dev/zero"),
        ("tty.py", "/dev/tty"),
    ):
        (tree.folder / name).symlink_to(device)
    tree.file("latin.py", "ä".encode("latin-1"))
    tree.file("image.py", b"\x89PNG\0\0")
    with tree.file("sparse.py").open("r+b") as sparse:
        sparse.truncate(1_000_000_000)
    tree.file("well.py")
    assert await tree.bring("*.py", "zero.py", "socket.py", "sparse.py") == [
        ("well.py", ""),
        ("*.py", "left out: 2 files (no text), 1 file (too large)"),
        ("zero.py", OUTSIDE),
        ("socket.py", "not a regular file, so not read"),
        ("sparse.py", "too large (1000.0 MB), so not read"),
    ]


async def test_a_file_that_grows_while_it_is_read_is_bounded(tree: Tree) -> None:
    path, enough = tree.file("log.txt", "line\n"), threading.Event()

    def write() -> None:
        with path.open("ab") as log:
            while not enough.is_set():
                log.write(b"x" * 10_000)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            ((_, said),) = await tree.bring("log.txt", bounds=Bounds(file_bytes=50_000))
            assert not said or said.startswith("too large")
    finally:
        enough.set()
        writer.join()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc here")
async def test_proc_is_read_within_bounds() -> None:
    """Its files have no size, some block when read, and its folders have circular links."""
    brought = await Tree(Path("/proc")).bring(
        "**/*", "self/mem", "self/status", bounds=Bounds(names=3_000)
    )
    assert len(brought) <= 103
    assert any("left out: " in said for _, said in brought)


async def test_a_folder_without_permission_is_counted(tree: Tree) -> None:
    tree.file("closed/a.py")
    tree.file("b.py")
    (tree.folder / "closed").chmod(0)
    try:
        with bound_by_permissions():
            brought = await tree.bring("**/*.py")
    finally:
        (tree.folder / "closed").chmod(0o700)
    assert brought == [("b.py", ""), ("**/*.py", "left out: 1 folder (cannot be read)")]


async def test_a_name_neither_controls_the_terminal_nor_adds_a_line(tree: Tree) -> None:
    tree.file("a\n💬: b\x1b[2J\u202e.py")
    (tree.folder / os.fsdecode(b"\xff.py")).write_text("x", encoding="utf-8")
    titles = [title for title, _ in await tree.bring("*.py")]
    assert titles == ["a\n💬: b\\x1b[2J\\u202e.py", "\ufffd.py"]  # a line break is shown as a blank
    brought = ReferenceText(titles[0], "x")
    assert expansion(brought)[0] == "`a 💬: b\\x1b[2J\\u202e.py` (1 line)"


async def test_a_large_tree_includes_near_files_and_reports_the_rest(tree: Tree) -> None:
    for n, m in itertools.product(range(20), range(5)):
        tree.file(f"deep/{n:02}/file{m}.py", "x" * 100)
    for n in range(3):
        tree.file(f"near{n}.py", "x" * 100)
    narrow = ". Give a folder, or a pattern that matches fewer files, such as src/*.py"
    *near, (pattern, said) = await tree.bring("**/*.py", bounds=Bounds(texts=5, all_bytes=10_000))
    assert [name for name, _ in near] == [
        "deep/00/file0.py",
        "deep/00/file1.py",
        "near0.py",
        "near1.py",
        "near2.py",
    ]
    most = "a question can include at most 5 files or other texts, 10 kB in all"
    assert (pattern, said) == ("**/*.py", f"left out: 98 more files ({most}){narrow}")
    *near, (_, said) = await tree.bring("**/*.py", bounds=Bounds(all_bytes=350))
    assert (len(near), "100 more files" in said) == (3, True)
    *near, (_, said) = await tree.bring("**/*.py", bounds=Bounds(names=10))
    assert len(near) == 3
    assert said == f"left out: everything beyond the first 10 file and folder names{narrow}"
    clock = itertools.count()
    *near, (_, said) = await tree.bring(
        "**/*.py", bounds=Bounds(seconds=20), now=lambda: float(next(clock))
    )
    assert said == f"left out: everything not found within 20 seconds{narrow}"
    *near, (_, said) = await tree.bring("**/*.py", bounds=Bounds(opened=4))
    assert (len(near), "99 more files" in said) == (4, True)


async def test_a_questions_references_share_its_bounds(tree: Tree) -> None:
    for n in range(4):
        tree.file(f"{n}.txt", "x" * 100)
    bounds = Bounds(references=3, texts=2)
    most = "a question can include at most 2 files or other texts, 1.0 MB in all"
    assert await tree.bring("0.txt", "1.txt", "2.txt", "3.txt", "4.txt", bounds=bounds) == [
        ("0.txt", ""),
        ("1.txt", ""),
        ("2.txt", f"left out: {most}. Ask about it in another question"),
        (
            "3.txt",
            (
                "left out, with all references after it (2 in all): a question can have at most 3 "
                "references"
            ),
        ),
    ]


async def test_a_folder_is_named_with_a_pattern_for_its_files(tree: Tree) -> None:
    tree.file("src/a.py")
    assert await tree.bring("src") == [
        ("src", "a folder, so not read. A pattern such as src/* includes its files")
    ]


async def test_other_systems_line_endings_are_recognized(tmp_path: Path) -> None:
    directory = WorkingDirectory(tmp_path, True)
    (directory.work / "dos.txt").write_bytes(b"one\r\ntwo\rthree")
    assert await directory.bring("dos.txt") == [ReferenceText("dos.txt", "one\ntwo\nthree")]


# --- Lines of a file ------------------------------------------------------------------------------

TEN = "".join(f"line {n}\n" for n in range(1, 11))


@pytest.mark.parametrize(
    ("range_", "title", "first", "last"),
    [
        ("3-5", "3-5", 3, 5),
        ("3", "3", 3, 3),
        ("3-3", "3", 3, 3),
        ("9-40", "9-10", 9, 10),
        ("0-2", "1-2", 1, 2),
        ("10-999999999", "10", 10, 10),
        ("0003-0004", "3-4", 3, 4),
    ],
)
async def test_only_existing_lines_are_included(
    tree: Tree, range_: str, title: str, first: int, last: int
) -> None:
    tree.file("ten.py", TEN)
    directory = FileReferences(lambda: tree.folder, nowhere)
    (brought,) = await directory.bring([FilePath(f"ten.py:{range_}")])
    text = "".join(f"line {n}\n" for n in range(first, last + 1))
    assert brought == ReferenceText(f"ten.py:{title}", text, language="python")
    count = last - first + 1
    assert expansion(brought)[0] == f"`ten.py:{title}` ({count} line{'s' * (count > 1)})"


NO_LINES = "it has no such lines"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ten.py:11-12", NO_LINES),
        ("ten.py:5-3", NO_LINES),
        ("ten.py:0", NO_LINES),
        ("empty.py:1-2", NO_LINES),
        ("none.py:1-2", "No such file or directory"),
        ("ten.py:1-2-3", "No such file or directory"),
        ("ten.py:1111111111-2", "No such file or directory"),
        ("ten.py:-5", "No such file or directory"),
        (".hidden:1-2", "hidden, so not read"),
        ("sub/.hidden:1", "hidden, so not read"),
        ("../beside.txt:1-2", OUTSIDE),
        ("link.txt:1-2", OUTSIDE),
        ("picture.png:1-2", "it is not text"),
        ("pipe:1-2", "not a regular file, so not read"),
        ("sub:1-2", "a folder, so not read. A pattern such as sub/* includes its files"),
        ("*.py:1-2", "no file matches"),
        ("ten.py:\u0663-\u0664", "No such file or directory"),
    ],
)
async def test_missing_lines_include_nothing(
    tree: Tree, tmp_path: Path, name: str, why: str
) -> None:
    tree.file("ten.py", TEN)
    tree.file("empty.py", "")
    tree.file(".hidden")
    tree.file("sub/.hidden")
    tree.file("picture.png", png())
    os.mkfifo(tree.folder / "pipe")
    outside = tree.folder.parent / "beside.txt"
    outside.write_text("beside\n", encoding="utf-8")
    (tree.folder / "link.txt").symlink_to(outside)
    assert await tree.bring(name) == [(name, why)]


async def test_a_file_whose_name_ends_in_numbers_is_found(tree: Tree) -> None:
    tree.file("log.10:30", "whole\n")
    tree.file("log.10", TEN * 5)
    directory = FileReferences(lambda: tree.folder, nowhere)
    assert await directory.bring([FilePath("log.10:30")]) == [ReferenceText("log.10:30", "whole\n")]


async def test_a_large_files_lines_are_included_within_the_text_limits(tree: Tree) -> None:
    tree.file("log.txt", f"{'x' * 99}\n" * 1000)
    bounds = Bounds(file_bytes=1000, all_bytes=1500)
    names = ["log.txt", "log.txt:1-10", "log.txt:1-11", "log.txt:20-29", "log.txt:900-904"]
    (whole, why), one, (more, too_large), (_, left), other = await tree.bring(*names, bounds=bounds)
    assert (whole, why) == ("log.txt", "too large (100 kB), so not read")
    assert (one, other) == (("log.txt:1-10", ""), ("log.txt:900-904", ""))
    assert (more, too_large) == ("log.txt:1-11", "too large (1 kB), so not read")
    assert left.startswith("left out: ")
    bounds = Bounds(bytes_for_lines=50_000)
    assert await tree.bring("log.txt:1-2", bounds=bounds) == [
        ("log.txt:1-2", "too large (100 kB), so not read")
    ]


async def test_an_outside_files_lines_are_asked_about(tmp_path: Path) -> None:
    directory = WorkingDirectory(tmp_path, True)
    assert await directory.bring("../beside.txt:1-4") == [
        ReferenceText("../beside.txt:1", "beside\n", language="txt")
    ]
    assert directory.questions == [directory.beside]


async def test_the_folders_changes_are_included(tree: Tree) -> None:
    (brought,) = await FileReferences(lambda: tree.folder, nowhere).bring([Live("diff")])
    assert (brought.title, brought.kind) == ("diff", "missing")
    assert "is not in a repository" in brought.text


def test_a_special_name_can_also_name_a_file() -> None:
    question = parse("💬: @@diff@@ @@./diff@@ @@Diff@@\n").exchanges[0].question
    assert question
    assert references(question) == (Live("diff"), FilePath("./diff"), FilePath("Diff"))


# --- Pictures -------------------------------------------------------------------------------------


class Album:
    """A working directory with pictures, and a chat elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.work, self.chat = folder / "work", folder / "chats" / "chat.md"
        for path in (self.work, self.chat.parent):
            path.mkdir()
        for n in range(3):
            (self.work / f"{n}.png").write_bytes(png(n))
        (self.work / "notes.txt").write_text("text\n", encoding="utf-8")
        (folder / "beside.png").write_bytes(png(9))

    async def bring(
        self, *names: str, chat: str | None = None, **bounds: int
    ) -> list[ReferenceText]:
        async def resource(server: str, uri: str) -> str:
            raise AssertionError("no resource is meant")

        attachments = ChatAttachments(str(self.chat) if chat is None else chat)
        found = FileReferences(
            lambda: self.work,
            resource,
            attachments=attachments,
            bounds=Bounds(**bounds),
        )
        return list(await found.bring([FilePath(name) for name in names]))


@pytest.fixture
def album(tmp_path: Path) -> Album:
    return Album(tmp_path)


async def test_a_picture_becomes_an_attachment_of_the_chat(album: Album) -> None:
    (brought,) = await album.bring("1.png")
    assert brought.picture == attachment_of(png(1), "chat.assets", "png")
    assert (album.chat.parent / brought.picture.path).read_bytes() == png(1)


async def test_bytes_not_names_decide_the_kind_of_a_file(album: Album) -> None:
    (album.work / "wrong.txt").write_bytes(png(7))
    (album.work / "wrong.png").write_text("text\n", encoding="utf-8")
    picture, text = await album.bring("wrong.txt", "wrong.png")
    assert picture.picture == attachment_of(png(7), "chat.assets", "png")
    assert text == ReferenceText("wrong.png", "text\n")


async def test_a_pattern_includes_pictures_only_if_it_names_them(album: Album) -> None:
    brought = await album.bring("*.png")
    assert [one.picture for one in brought] == [
        attachment_of(png(n), "chat.assets", "png") for n in range(3)
    ]
    text, left = await album.bring("*")
    assert text == ReferenceText("notes.txt", "text\n")
    assert left == ReferenceText("*", "left out: 3 files (no text)", "partial")


async def test_excess_pictures_are_left_out_and_reported(album: Album) -> None:
    one, _, left = await album.bring("0.png", "1.png", "2.png", pictures=2)
    assert one.picture
    assert left.text == (
        "left out: a question can include at most 2 pictures. Ask about it in another question"
    )
    *_, left = await album.bring("*.png", pictures=2)
    assert left.text == "left out: 1 file (too many pictures)"


async def test_an_oversized_picture_is_reported(album: Album) -> None:
    (large,) = await album.bring("0.png", picture_bytes=10)
    assert large == ReferenceText("0.png", "too large (69 B), so not read", "missing")


async def test_a_picture_outside_is_not_read_without_approval(album: Album) -> None:
    (brought,) = await album.bring("../beside.png")
    assert brought == ReferenceText("../beside.png", OUTSIDE, "missing")
    (album.work / "link.png").symlink_to("../beside.png")
    assert await album.bring("link.png") == [ReferenceText("link.png", OUTSIDE, "missing")]


async def test_without_a_chat_file_a_missing_picture_is_explained(album: Album) -> None:
    (brought,) = await album.bring("0.png", chat="")
    assert brought.kind == "missing"
    assert "Save the chat first" in brought.text


class FileInEditor:
    """An editor that has one file open."""

    def __init__(self, path: Path | str, text: str = "as it is there\n") -> None:
        self.content = EditorText(str(path), "the title", text, "python")
        self.most = 0

    async def text(self, name: str, most: int) -> EditorText:
        self.most = most
        return self.content


async def in_editor(
    directory: WorkingDirectory, editor: FileInEditor, name: str = "buffer"
) -> ReferenceText:
    brought = FileReferences(
        lambda: directory.work, nowhere, directory.may_read, editor=editor.text
    )
    (text,) = await brought.bring([Live(name)])
    return text


@pytest.mark.parametrize("name", IN_EDITOR)
async def test_an_editors_text_for_a_file_inside_is_included_unchanged(
    tmp_path: Path, name: str
) -> None:
    directory = WorkingDirectory(tmp_path, False)
    for path in (directory.work / "inside.txt", directory.work / "not yet written.txt", ""):
        editor = FileInEditor(path)
        content = ReferenceText("the title", "as it is there\n", language="python")
        assert await in_editor(directory, editor, name) == content
        assert editor.most == Bounds().file_bytes
    assert directory.questions == []


@pytest.mark.parametrize("name", IN_EDITOR)
@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("place", ["../beside.txt", "link.txt", "../not yet.txt"])
async def test_an_editors_text_for_a_file_outside_is_asked_about(
    tmp_path: Path, place: str, answer: bool, name: str
) -> None:
    directory = WorkingDirectory(tmp_path, answer)
    path = directory.work / place
    text = await in_editor(directory, FileInEditor(path), name)
    assert directory.questions == [path.resolve()]
    assert (text.kind, text.text) == (
        ("text", "as it is there\n") if answer else ("missing", OUTSIDE)
    )


@pytest.mark.parametrize("place", [".hidden", ".git/config", "a/.ssh/key"])
async def test_an_editors_text_for_a_hidden_file_is_not_read(tmp_path: Path, place: str) -> None:
    directory = WorkingDirectory(tmp_path, True)
    text = await in_editor(directory, FileInEditor(directory.work / place))
    assert text == ReferenceText("buffer", "hidden, so not read", "missing")
    assert directory.questions == []


HIDDEN = {".github/ci.yml": "on: push\n", "src/.editorconfig": "root = true\n"}
SEALED = {
    **dict.fromkeys((".env", ".env.local", "a/.id_rsa.key", ".ssh/id_rsa"), "named like a secret"),
    **dict.fromkeys((".git/config", "sub/.GIT/config"), "part of Git's own data"),
}


async def hidden(directory: WorkingDirectory, *names: str) -> list[ReferenceText]:
    """What these references bring if the user is asked about hidden files."""
    found = FileReferences(
        lambda: directory.work, nowhere, hidden=HiddenFiles(sealed, directory.may_read)
    )
    return list(await found.bring([FilePath(name) for name in names]))


def furnished(folder: Path, answer: bool) -> WorkingDirectory:
    directory = WorkingDirectory(folder, answer)
    for name in (*HIDDEN, *SEALED):
        (directory.work / name).parent.mkdir(parents=True, exist_ok=True)
        (directory.work / name).write_text(HIDDEN.get(name, "SECRET\n"), encoding="utf-8")
    (directory.work / "plain.txt").symlink_to(directory.work / ".github/ci.yml")
    return directory


@pytest.mark.parametrize("answer", [True, False])
async def test_a_hidden_file_is_asked_about_by_its_real_path(tmp_path: Path, answer: bool) -> None:
    directory = furnished(tmp_path, answer)
    names = [*HIDDEN, "plain.txt", ".github/ci.yml:1"]
    texts = await hidden(directory, *names)
    assert directory.questions == [
        (directory.work / name.split(":")[0]).resolve() for name in names
    ]
    contents = (
        [*HIDDEN.values(), "on: push\n", "on: push\n"] if answer else ["hidden, so not read"] * 4
    )
    assert [text.text for text in texts] == contents


@pytest.mark.parametrize("name", SEALED)
async def test_a_secret_and_gits_data_are_refused_without_a_question(
    tmp_path: Path, name: str
) -> None:
    directory = furnished(tmp_path, True)
    assert await hidden(directory, name) == [
        ReferenceText(name, f"{SEALED[name]}, so not read", "missing")
    ]
    assert directory.questions == []


async def test_hidden_folders_and_patterns_ask_nothing(tmp_path: Path) -> None:
    directory = furnished(tmp_path, True)
    texts = await hidden(directory, ".github", ".github/*", ".none", "**/*.yml")
    assert [text.kind for text in texts] == ["missing"] * 4
    assert directory.questions == []


async def test_a_hidden_file_in_the_editor_is_asked_about(tmp_path: Path) -> None:
    directory = furnished(tmp_path, True)

    async def editor(name: str, most: int) -> EditorText:
        return EditorText(str(directory.work / ".github/ci.yml"), "ci.yml", "as it is there\n", "")

    found = FileReferences(
        lambda: directory.work,
        nowhere,
        editor=editor,
        hidden=HiddenFiles(sealed, directory.may_read),
    )
    (text,) = await found.bring([Live("buffer")])
    assert (text.kind, text.text) == ("text", "as it is there\n")
    assert directory.questions == [directory.work / ".github/ci.yml"]


async def test_an_editors_text_is_bounded_like_a_file(tmp_path: Path) -> None:
    directory = WorkingDirectory(tmp_path, True)
    text = await in_editor(directory, FileInEditor("", "é" * 200_000))
    assert text == ReferenceText("buffer", "too large (400 kB), so not read", "missing")


@pytest.mark.parametrize("name", IN_EDITOR)
async def test_a_missing_editor_is_reported(tmp_path: Path, name: str) -> None:
    (text,) = await FileReferences(lambda: tmp_path, nowhere).bring([Live(name)])
    why = "this reference needs an editor. Ask in Neovim, or name a file"
    assert text == ReferenceText(name, why, "missing")


# --- Files that the user names at a prompt ------------------------------------------------------


def test_a_file_that_the_user_names_is_included_from_anywhere(tmp_path: Path) -> None:
    directory = WorkingDirectory(tmp_path, False)
    (directory.work / "a.png").write_bytes(png())
    (directory.work / "large.txt").write_text("x" * 1_000_000)
    (directory.work / "[1].txt").write_text("odd\n")
    names = ["../beside.txt", ".hidden", "inside.txt:1", "a.png", "ins*.txt", "[1].txt", "link.txt"]
    contents = named_contents(directory.work, names)
    assert [
        content.text if isinstance(content, ReferenceText) else content.kind for content in contents
    ] == [*("beside\n", "hidden\n", "inside\n", "png", "inside\n", "odd\n", "beside\n")]
    (large,) = named_contents(directory.work, ["large.txt"])
    assert isinstance(large, ReferenceText)
    assert len(large.text) == 1_000_000


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none.txt", "none.txt: No such file or directory"),
        ("inside.txt:7", "inside.txt:7: it has no such lines"),
        ("loop", "loop: no such file"),
        ("socket", "socket: not a regular file, so not read"),
        ("binary", "binary: it is not text"),
        ("none*", "none*: no file matches"),
        ("a\0b", r"a\x00b: no such file"),
        (".", ".: a folder, so not read. A pattern such as ./* includes its files"),
    ],
)
def test_a_named_file_that_cannot_be_included_is_an_error(
    tmp_path: Path, name: str, problem: str
) -> None:
    directory = WorkingDirectory(tmp_path, False)
    os.mknod(directory.work / "socket", stat.S_IFSOCK | 0o600)
    with pytest.raises(ParleyError) as error:
        named_contents(directory.work, ["inside.txt", name])
    assert str(error.value) == problem


def test_a_pipe_that_the_user_names_is_read_to_its_end(tmp_path: Path) -> None:
    directory = WorkingDirectory(tmp_path, False)
    pipe = directory.work / "pipe"
    writer = threading.Thread(target=pipe.write_text, args=("from\na command\n",))
    writer.start()
    contents = named_contents(directory.work, ["pipe"])
    writer.join()
    assert contents == [ReferenceText("pipe", "from\na command\n")]


def test_piped_content_is_a_text_or_a_picture() -> None:
    assert piped_content(b"a\r\nb") == ReferenceText("standard input", "a\nb")
    assert piped_content(png()) == NamedPicture("standard input", png(), "png")
    for content, why in (
        (b"\xff", "it is not text"),
        (b"\0", "it is not text"),
        (b"x" * 2_000_000, "too large (2.0 MB), so not read"),
    ):
        with pytest.raises(ParleyError) as error:
            piped_content(content)
        assert str(error.value) == f"standard input: {why}"
