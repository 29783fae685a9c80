"""What a reference in a question brings in, and what it never does without being asked about."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from parley.chat.references import Brought
from parley.chat.references import Path as FilePath
from parley.drivers.references import INSIDE, OUTSIDE, FileReferences


class Home:
    """A folder to work in, a file beside it, and a user who is asked."""

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
        self.asked = list[Path]()
        self.meanwhile: Callable[[], None] = lambda: None

    async def may_read(self, path: Path) -> bool:
        self.asked.append(path)
        self.meanwhile()
        return self.answer

    async def bring(self, name: str) -> list[Brought]:
        async def resource(server: str, uri: str) -> str:
            raise AssertionError("no resource is meant")

        found = FileReferences(lambda: self.work, resource, self.may_read)
        return list(await found.bring(FilePath(name)))


OUT = ["../beside.txt", "link.txt", "{beside}"]


@pytest.mark.parametrize("name", OUT)
@pytest.mark.parametrize("answer", [True, False])
async def test_a_file_outside_is_asked_about_by_its_real_path(
    tmp_path: Path, name: str, answer: bool
) -> None:
    home = Home(tmp_path, answer)
    name = name.format(beside=home.beside)
    (brought,) = await home.bring(name)
    assert home.asked == [home.beside]
    assert brought == (Brought(name, "beside\n") if answer else Brought(name, OUTSIDE, "missing"))


async def test_a_link_that_is_changed_while_the_user_is_asked_is_not_followed(tmp_path: Path) -> None:
    home = Home(tmp_path, True)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret\n", encoding="utf-8")

    def change() -> None:
        home.beside.unlink()
        home.beside.symlink_to(secret)

    home.meanwhile = change
    assert await home.bring("../beside.txt") == [
        Brought("../beside.txt", "it is another file now: not read", "missing")
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".hidden", "hidden: not read"),
        ("none.txt", "No such file or directory"),
        ("../none.txt", OUTSIDE),
        ("..", OUTSIDE),
        ("../*.txt", INSIDE),
        ("a/../../*.txt", INSIDE),
        ("/etc/*", INSIDE),
        ("**/" * 20 + "*.zzz", "only patterns with ** once are read"),
        ("x" * 5000, "File name too long"),
        ("../" + "x" * 5000, "cannot be read"),
        ("loop", "no such file"),
        ("loop*", "no file matches"),
        ("~nobody-of-this-name/*", "no file matches"),
        ("pipe", "no file: not read"),
        ("binary", "no text: not read"),
        ("~nobody-of-this-name/x", "no such file"),
        ("a\0b", "no such file"),
    ],
)
async def test_what_is_not_brought_in_is_not_asked_about(tmp_path: Path, name: str, why: str) -> None:
    home = Home(tmp_path, True)
    assert {(each.text, each.kind) for each in await home.bring(name)} == {(why, "missing")}
    assert home.asked == []


async def test_a_pattern_deeper_than_any_folder_is_only_missing(tmp_path: Path) -> None:
    assert [each.kind for each in await Home(tmp_path, True).bring("*/" * 2000 + "x")] == ["missing"]


async def test_a_file_inside_is_brought_in_without_a_question(tmp_path: Path) -> None:
    home = Home(tmp_path, False)
    assert await home.bring("inside.txt") == [Brought("inside.txt", "inside\n")]
    assert home.asked == []
