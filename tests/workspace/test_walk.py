"""Which files a walk finds, in which order, and where it stops."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.workspace.boundary import Boundary
from parley.workspace.walk import Walk, WalkBudget, nearest_first
from tests.workspace.trees import work_tree, write

FILES = {
    ".gitignore": "out/\n*.log\n",
    "z.txt": "",
    "src/app.py": "",
    "src/deep/er.py": "",
    "src/a.log": "",
    ".github/x.yml": "",
    ".github/.cache": "",
    "out/made.py": "",
    "out/.hidden": "",
    "server.key": "",
}


@pytest.fixture
def boundary(tmp_path: Path) -> Boundary:
    return Boundary(work_tree(tmp_path / "tree", FILES))


def places(walk: Walk, depth: int = 100) -> list[str]:
    return [entry.place for entry in walk.entries(depth) if entry.kind != "folder"]


def test_nearer_files_come_first_and_guarded_files_are_counted(boundary: Boundary) -> None:
    walk = Walk(boundary, "")
    assert places(walk) == ["z.txt", "src/app.py", "src/deep/er.py"]
    assert walk.omissions() == "2 hidden, 2 ignored by Git, 1 named like a secret"


def test_below_a_guarded_folder_only_the_names_below_it_count(boundary: Boundary) -> None:
    assert places(Walk(boundary, ".github")) == [".github/x.yml"]
    assert places(Walk(boundary, "out")) == ["out/made.py"]


def test_a_walk_takes_the_files_that_it_finds(boundary: Boundary) -> None:
    every = [name for name in FILES if "/" in name or "." in name]
    for start in ("", ".github", "out", "src"):
        walk = Walk(boundary, start)
        inside = [name for name in every if not start or name.startswith(f"{start}/")]
        taken = sorted(filter(walk.takes, inside), key=nearest_first)
        assert taken == places(Walk(boundary, start))


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.py", ["src/app.py", "src/deep/er.py"]),
        ("src/*.py", ["src/app.py"]),
        ("src/**/*.py", ["src/app.py", "src/deep/er.py"]),
        ("*.{txt,log}", ["z.txt"]),
        ("deep/", ["src/deep/er.py"]),
    ],
)
def test_a_glob_selects_files(boundary: Boundary, glob: str, names: list[str]) -> None:
    assert places(Walk(boundary, "", glob)) == names


def test_a_glob_is_relative_to_the_start(boundary: Boundary) -> None:
    assert places(Walk(boundary, "src", "deep/*.py")) == ["src/deep/er.py"]


def test_the_depth_is_limited(boundary: Boundary) -> None:
    assert places(Walk(boundary, ""), 2) == ["z.txt", "src/app.py"]


def test_no_link_is_followed_and_no_pipe_is_a_file(boundary: Boundary) -> None:
    (boundary.root / "round").symlink_to(".")
    (boundary.root / "away").symlink_to("/")
    os.mkfifo(boundary.root / "pipe")
    kinds = {entry.place: entry.kind for entry in Walk(boundary, "").entries()}
    assert {name: kinds[name] for name in ("round", "away", "pipe", "src", "z.txt")} == {
        **dict.fromkeys(("round", "away"), "link"),
        "pipe": "other",
        "src": "folder",
        "z.txt": "file",
    }


def test_a_walk_ends_at_its_limits(boundary: Boundary) -> None:
    write(boundary.root, {f"many/{number}.py": "" for number in range(20)})
    walk = Walk(boundary, "many", budget=WalkBudget(names=5))
    assert len(places(walk)) == 5
    assert walk.omissions() == "everything after the first 5 names; give a path to see more"
    seconds = iter(range(100))
    late = Walk(boundary, "many", budget=WalkBudget(seconds=3, now=lambda: next(seconds)))
    assert len(places(late)) < 5
    assert late.omissions() == "everything not reached within 3 seconds"
