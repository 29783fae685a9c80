"""The tree that list_files returns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.errors import ParleyError
from parley.workspace.boundary import Boundary
from parley.workspace.listing import ENTRIES_SHOWN, list_files
from tests.workspace.trees import work_tree, write

TREE = """\
src/
  deep/
    er.py
  app.py
  empty/
README.md
away (a link)
pipe (not a file)

Left out: 2 hidden, 1 ignored by Git, 1 named like a secret"""


@pytest.fixture
def boundary(tmp_path: Path) -> Boundary:
    files = dict.fromkeys(
        ["src/app.py", "src/deep/er.py", "README.md", "id_rsa", ".x", "a.log"], ""
    )
    root = work_tree(tmp_path / "tree", {**files, ".gitignore": "*.log\n"})
    (root / "src/empty").mkdir()
    (root / "away").symlink_to("/etc")
    os.mkfifo(root / "pipe")
    return Boundary(root)


def test_the_tree_says_what_it_leaves_out(boundary: Boundary) -> None:
    assert sorted(list_files(boundary).split("\n")) == sorted(TREE.split("\n"))
    assert list_files(boundary, "src") == "app.py\ndeep/\n  er.py\nempty/"
    assert list_files(boundary, "src", depth=1) == "app.py\ndeep/\nempty/"
    assert list_files(boundary, str(boundary.root), "er.*").split("\n")[:3] == [
        *("src/", "  deep/", "    er.py")
    ]
    assert list_files(boundary, "src", "*.c") == "(no file matches)"
    assert list_files(boundary, "src/empty") == "(nothing to list)"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("gone", "gone does not exist"),
        ("README.md", "README.md is a file, not a folder"),
        ("away", "away is outside the workspace"),
        ("..", r"\.\. is outside the workspace"),
    ],
)
def test_only_a_folder_inside_is_listed(boundary: Boundary, path: str, why: str) -> None:
    with pytest.raises(ParleyError, match=why):
        list_files(boundary, path)


def test_the_nearest_names_of_a_large_folder_are_listed(boundary: Boundary) -> None:
    write(boundary.root, {f"many/{number}/deep.py": "" for number in range(ENTRIES_SHOWN)})
    lines = list_files(boundary, "many").split("\n")
    assert lines[:2] == ["0/", "1/"]
    assert len(lines) == ENTRIES_SHOWN + 2
    assert lines[-1] == f"Left out: everything beyond the {ENTRIES_SHOWN} nearest names"


def test_a_name_cannot_forge_a_line_or_command_a_terminal(boundary: Boundary) -> None:
    names = ["a\nREADME.md", "\x1b[31mred", "\u202ecod.exe", "tab\tbed", '"quoted"', "b\udcff"]
    write(boundary.root, {f"odd/{name}": "" for name in names})
    lines = list_files(boundary, "odd").split("\n")
    assert len(lines) == len(names)
    assert all(line.isprintable() and line.startswith('"') for line in lines)
    assert '"a\\nREADME.md"' in lines
