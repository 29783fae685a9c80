"""Reading instruction files: every import once, nothing from outside, and nothing read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.instructions.project import DEEPEST_IMPORT, MOST_BYTES, MOST_IMPORTS
from parley.storage.instruction_files import InstructionFile, InstructionFiles
from parley.workspace.opening import content_below


class CountedReads:
    """Reads files, and counts the reads."""

    def __init__(self) -> None:
        self.places = list[str]()

    def __call__(self, root: Path, place: str, most: int) -> bytes:
        self.places.append(place)
        return content_below(root, place, most)


def written(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def read(folder: Path, top: Path | None = None) -> InstructionFile:
    names = ["AGENTS.md", "CLAUDE.md"]
    file = InstructionFiles(CountedReads()).first(folder, names, top or folder)
    assert file
    return file


def names(file: InstructionFile) -> list[str]:
    return [text.name for text in file.texts]


def test_the_first_name_that_is_there_is_read(tmp_path: Path) -> None:
    files = InstructionFiles(CountedReads())
    assert files.first(tmp_path, ["AGENTS.md", "CLAUDE.md"], tmp_path) is None
    written(tmp_path, CLAUDE="of Claude\n")
    assert [t.text for t in read(tmp_path).texts] == ["of Claude"]
    written(tmp_path, AGENTS="\ufeff\nof agents\r\nall\n")
    assert [t.text for t in read(tmp_path).texts] == ["of agents\nall"]


def test_imports_follow_the_file_that_names_them_each_once(tmp_path: Path) -> None:
    written(tmp_path, AGENTS="@a.md and @b.md", a="@b.md @AGENTS.md", b="@a.md end")
    assert names(read(tmp_path)) == ["AGENTS.md", "a.md", "b.md"]
    assert read(tmp_path).content.count(b"end") == 1
    assert not read(tmp_path).problems


def test_imports_are_relative_to_their_file_and_named_from_the_top(tmp_path: Path) -> None:
    inner = written(tmp_path / "web", AGENTS="@docs/style.md")
    written(inner / "docs", style="@./more.md @../AGENTS.md", more="more")
    assert names(read(inner, tmp_path)) == [
        "web/AGENTS.md",
        "web/docs/style.md",
        "web/docs/more.md",
    ]


def test_a_chain_of_imports_ends_at_the_third_level(tmp_path: Path) -> None:
    written(tmp_path, AGENTS="@1.md", **{str(n): f"@{n + 1}.md" for n in range(1, 6)})
    file = read(tmp_path)
    assert len(file.texts) == 1 + DEEPEST_IMPORT
    assert file.problems == ("@4.md is not used: it is imported too deeply",)


def test_words_that_name_no_file_are_only_words(tmp_path: Path) -> None:
    written(tmp_path, AGENTS=f"ask @ada or @{'x' * 5000}, see @docs/none.md @docs")
    (tmp_path / "docs").mkdir()
    file = read(tmp_path)
    assert (len(file.texts), file.problems) == (1, ())


@pytest.mark.parametrize("line", ["@../secret.md", "@{secret}", "@link.md", "@dir/secret.md"])
def test_nothing_outside_of_the_folder_is_read(tmp_path: Path, line: str) -> None:
    written(tmp_path, secret="SECRET")
    project = written(tmp_path / "project", AGENTS=line.format(secret=tmp_path / "secret.md"))
    (project / "link.md").symlink_to("../secret.md")
    (project / "dir").symlink_to("..")
    file = read(project)
    assert b"SECRET" not in file.content
    assert names(file) == ["AGENTS.md"]
    (problem,) = file.problems
    assert "it is outside of" in problem


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "huge", "binary", "nul", "loop"])
def test_an_unusable_file_is_a_problem_and_nothing_more(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "project" / "AGENTS.md"
    path.parent.mkdir()
    (tmp_path / "key.md").write_text("KEY", encoding="utf-8")
    match kind:
        case "link":
            path.symlink_to(tmp_path / "key.md")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "huge":
            with path.open("wb") as file:
                file.truncate(1_000_000_000)
        case "binary":
            path.write_bytes(b"\xff\xfe\x00")
        case "nul":
            path.write_bytes(b"a\0b")
        case "loop":
            path.symlink_to("AGENTS.md")
    unusable = read(path.parent)
    assert (unusable.texts, unusable.content) == ((), b"")
    assert len(unusable.problems) == 1
    assert unusable.problems[0].startswith("AGENTS.md is not used: ")


def test_a_link_inside_of_the_folder_is_followed(tmp_path: Path) -> None:
    written(tmp_path, CLAUDE="both")
    (tmp_path / "AGENTS.md").symlink_to("CLAUDE.md")
    assert [(t.name, t.text) for t in read(tmp_path).texts] == [("AGENTS.md", "both")]


def test_all_files_together_are_bounded(tmp_path: Path) -> None:
    half = "x" * (MOST_BYTES // 2)
    written(tmp_path, AGENTS="@a.md @b.md @c.md", a=half, b=half, c="small")
    file = read(tmp_path)
    assert names(file) == ["AGENTS.md", "a.md", "c.md"]
    assert "b.md is not used" in file.problems[0]
    many = " ".join(f"@n{n}.md" for n in range(10 * MOST_IMPORTS))
    written(tmp_path, AGENTS=many, **{f"n{n}": str(n) for n in range(2 * MOST_IMPORTS)})
    file = read(tmp_path)
    assert len(file.texts) == 1 + MOST_IMPORTS
    assert file.problems == ("AGENTS.md is used without some imports: there are too many",)


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    written(tmp_path, AGENTS="@a.md @later.md", a="one")
    reads = CountedReads()
    files = InstructionFiles(reads)

    def look() -> list[str]:
        file = files.first(tmp_path, ["AGENTS.md"], tmp_path)
        return [text.text for text in file.texts] if file else []

    first = look()
    assert reads.places == ["AGENTS.md", "a.md"]
    assert look() == first
    assert len(reads.places) == 2
    written(tmp_path, a="two")
    assert look()[1] == "two"
    written(tmp_path, later="three")
    assert look()[1:] == ["two", "three"]
    (tmp_path / "AGENTS.md").unlink()
    assert look() == []


def test_the_users_own_file_may_be_a_link_to_anywhere(tmp_path: Path) -> None:
    written(tmp_path / "dotfiles", mine="@style.md mine")
    config = written(tmp_path / "config", style="style")
    files = InstructionFiles(CountedReads())
    assert files.own(config / "AGENTS.md") is None
    (config / "AGENTS.md").symlink_to("../dotfiles/mine.md")
    file = files.own(config / "AGENTS.md")
    assert file
    assert names(file) == ["the user's own AGENTS.md", "the user's own style.md"]
