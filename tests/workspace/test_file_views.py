"""A file as read_file shows it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.errors import ParleyError
from parley.mock_server import PIXEL
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import EditorFiles, NoEditor, OpenText
from parley.workspace.file_views import LINES_SHOWN, TEXT_FILE_BYTES, FileView, read_file
from tests.workspace.trees import write


async def read(
    root: Path, path: str, first: int = 1, last: int = 0, editor: EditorFiles | None = None
) -> str:
    return (await read_file(Boundary(root), editor or NoEditor(), path, first, last)).text


async def test_lines_have_numbers_and_a_head(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "one\r\n\ttwo\nthree", "b": "", "c": "x\n", "d": "\n\n"})
    assert await read(tmp_path, "a.py") == "a.py, 3 lines\n1\tone\n2\t\ttwo\n3\tthree"
    assert (
        await read(tmp_path, str(tmp_path / "a.py"), 2, 2)
        == "a.py, lines 2 to 2 of 3 lines\n2\t\ttwo"
    )
    assert (
        await read(tmp_path, "a.py", 2, 99) == "a.py, lines 2 to 3 of 3 lines\n2\t\ttwo\n3\tthree"
    )
    assert await read(tmp_path, "a.py", -5, -5) == await read(tmp_path, "a.py")
    assert await read(tmp_path, "b") == "b is empty"
    assert await read(tmp_path, "c") == "c, 1 line\n1\tx"
    assert await read(tmp_path, "d") == "d, 2 lines\n1\t\n2\t"


async def test_a_long_file_says_how_to_continue(tmp_path: Path) -> None:
    write(tmp_path, {"long": "".join(f"{n}\n" for n in range(1, 5001)), "wide": "x" * 9000 + "\n"})
    first = (await read(tmp_path, "long")).split("\n")
    assert first[0] == f"long, lines 1 to {LINES_SHOWN} of 5000 lines"
    assert first[-1] == f"(continue with first_line={LINES_SHOWN + 1})"
    second = (await read(tmp_path, "long", LINES_SHOWN + 1)).split("\n")
    assert second[1] == f"{LINES_SHOWN + 1}\t{LINES_SHOWN + 1}"
    assert (await read(tmp_path, "wide")).endswith("… (7000 more characters in this line)")


async def test_all_lines_of_a_wide_file_can_be_reached(tmp_path: Path) -> None:
    write(tmp_path, {"wide": ("x" * 1900 + "\n") * 100})
    numbers, first = list[int](), 1
    while first <= 100:
        rows = (await read(tmp_path, "wide", first)).split("\n")[1:]
        numbers += [int(row.split("\t")[0]) for row in rows if "\t" in row]
        first = numbers[-1] + 1
    assert numbers == list(range(1, 101))


async def test_the_editors_text_is_read(tmp_path: Path) -> None:
    folder = Boundary(tmp_path).root

    class Editor(NoEditor):
        async def text(self, path: Path) -> OpenText | None:
            texts = {"a": OpenText("new\r\n", True), "b": OpenText("same\n", False)}
            return texts.get(path.name) if path.parent == folder else None

    write(tmp_path, {"a": "old\n", "b": "same\n", "c": "disk\n"})
    assert await read(tmp_path, "a", editor=Editor()) == (
        "a, 1 line, from the editor's buffer, with unsaved changes\n1\tnew"
    )
    assert await read(tmp_path, "./b", editor=Editor()) == (
        "b, 1 line, from the editor's buffer\n1\tsame"
    )
    assert await read(tmp_path, "c", editor=Editor()) == "c, 1 line\n1\tdisk"


async def test_pictures_are_seen_and_binary_files_are_named(tmp_path: Path) -> None:
    write(tmp_path, {"p.txt": PIXEL, "x.pdf": b"%PDF-1.7\0", "x.zip": b"PK\0", "x": b"\0" * 2000})
    picture = await read_file(Boundary(tmp_path), NoEditor(), "p.txt")
    assert picture == FileView(f"p.txt: picture, {len(PIXEL)} B", PIXEL, "png")
    assert await read(tmp_path, "x.pdf") == "x.pdf: PDF, 9 B: not text"
    assert await read(tmp_path, "x.zip") == "x.zip: application/zip, 3 B: not text"
    assert await read(tmp_path, "x") == "x: binary file, 2 kB: not text"


async def test_other_encodings_are_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "wide": "é\r\n".encode("utf-16"),
            "marked": "é\n".encode("utf-8-sig"),
            "latin": "é\n".encode("latin-1"),
        },
    )
    for name in ("wide", "marked", "latin"):
        assert await read(tmp_path, name) == f"{name}, 1 line\n1\té"


@pytest.mark.parametrize(
    ("path", "first", "last", "why"),
    [
        ("gone", 1, 0, "^gone: No such file or directory$"),
        ("gone/a", 1, 0, "^gone/a: No such file or directory$"),
        ("a/b", 1, 0, "^a/b: Not a directory$"),
        ("folder", 1, 0, "^folder is a folder; list_files lists it$"),
        (".", 1, 0, "is a folder; list_files lists it"),
        ("pipe", 1, 0, "^pipe is a pipe or a device, not a file$"),
        ("away", 1, 0, "^away is outside the workspace"),
        ("a", 5, 0, "^a has only 1 lines$"),
        ("a", 1, 0, None),
        ("b", 2, 1, "^last_line is before first_line$"),
        ("huge", 1, 0, "^huge has 4.2 MB, more than the 4.2 MB of the largest file"),
    ],
)
async def test_what_cannot_be_read_has_a_reason(
    tmp_path: Path, path: str, first: int, last: int, why: str | None
) -> None:
    write(
        tmp_path, {"a": "x\n", "b": "x\ny\n", "folder/x": "", "huge": b"x" * (TEXT_FILE_BYTES + 1)}
    )
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "away").symlink_to("/etc/passwd")
    if why is None:
        assert await read(tmp_path, path, first, last) == "a, 1 line\n1\tx"
        return
    with pytest.raises(ParleyError, match=why):
        await read(tmp_path, path, first, last)
