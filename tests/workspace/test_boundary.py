"""The boundary: no path leads out of the root, and guarded paths are known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import ParleyError
from parley.workspace.boundary import (
    DEEPEST,
    GIT,
    HIDDEN,
    IGNORED,
    SECRET,
    Boundary,
)
from parley.workspace.opening import BoundaryError
from tests.workspace.trees import work_tree, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, {"outside/secret": "secret", "rooted/x": ""})
    root = work_tree(
        tmp_path.resolve() / "root",
        {"src/app.py": "x = 1\n", ".hidden/a": "", "out/log": "", ".gitignore": "out/\n"},
    )
    (root / "away").symlink_to(tmp_path / "outside")
    (root / "away.txt").symlink_to("../outside/secret")
    (root / "inner").symlink_to("src")
    (root / "alias.txt").symlink_to(".hidden/a")
    (root / "loop").symlink_to("loop")
    (root / "round").symlink_to(".")
    return root


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("src/app.py", "src/app.py"),
        ("./src//app.py", "src/app.py"),
        ("src/../src/app.py", "src/app.py"),
        ("inner/app.py", "src/app.py"),
        ("round/round/src", "src"),
        ("src/new/file.py", "src/new/file.py"),
        (".", ""),
        ("", ""),
        ("~/x", "~/x"),
    ],
)
def test_a_path_inside_becomes_a_place(root: Path, path: str, place: str) -> None:
    assert Boundary(root).place(path) == place
    assert Boundary(root).place(str(root / path)) == place


@pytest.mark.parametrize(
    "path",
    [
        *("..", "../outside/secret", "src/../../outside", "/", "/etc/passwd", "../rooted/x"),
        *("away", "away/secret", "away.txt", "away/new", "new/../../x"),
    ],
)
def test_a_path_that_leads_out_is_refused(root: Path, path: str) -> None:
    with pytest.raises(BoundaryError, match="is outside the workspace"):
        Boundary(root).place(path)
    with pytest.raises(BoundaryError, match="is outside the workspace"):
        Boundary(root).guard(path)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a\0b", "is not a path"),
        ("\ud800", "is not a path"),
        ("a" * 5000, "is not a path"),
        ("loop", "contains a link that leads to itself"),
        ("a/" * DEEPEST + "b", f"more than {DEEPEST} folders"),
    ],
)
def test_what_is_not_a_path_is_refused(root: Path, path: str, why: str) -> None:
    with pytest.raises(BoundaryError, match=why):
        Boundary(root).place(path)


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("maze").resolve()
    (root / "src").mkdir()
    for name, target in (("away", "/"), ("round", "."), ("loop", "loop")):
        (root / name).symlink_to(target)
    return root


@given(parts=st.lists(st.sampled_from(["..", ".", "src", "away", "round", "loop", "x", "", "/"])))
def test_no_path_leads_out(maze: Path, parts: list[str]) -> None:
    try:
        place = Boundary(maze).place("/".join(parts))
    except BoundaryError:
        return
    assert os.path.realpath(maze / place) == os.path.normpath(maze / place)
    assert ".." not in place.split("/")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        *((path, "") for path in (".", "src", "src/app.py", "src/new.py", "keys/a.txt")),
        *((path, HIDDEN) for path in (".hidden/a", ".github/x.yml", "src/.cache", "alias.txt")),
        *((path, IGNORED) for path in ("out", "out/log", "out/new")),
        *((path, SECRET) for path in (".env", "a/.env.local", "a.PEM", "id_rsa", "x/server.key")),
        *((path, GIT) for path in (".git", ".git/config", "a/.GIT/hooks", ".g\u200cit/x", "git~1")),
    ],
)
def test_a_guarded_path_has_a_reason(root: Path, path: str, why: str) -> None:
    assert Boundary(root).guard(path) == why
    assert Boundary(root).guard(f"{root}/{path}") == why


def test_a_link_is_guarded_by_its_own_name_too(root: Path) -> None:
    (root / ".shown").symlink_to("src/app.py")
    assert Boundary(root).guard(".shown") == HIDDEN


def test_gits_own_data_can_never_be_written(root: Path) -> None:
    (root / "git").symlink_to(".git")
    for path in (".git/hooks/post-commit", ".GIT/config", "git/config", "sub/.git", "git~1/x"):
        with pytest.raises(BoundaryError, match="no tool may change"):
            Boundary(root).place_to_write(path)
    with pytest.raises(BoundaryError, match="the workspace itself"):
        Boundary(root).place_to_write(".")
    assert Boundary(root).place_to_write("src/app.py") == "src/app.py"


def test_a_file_is_opened_and_read(root: Path) -> None:
    boundary = Boundary(root)
    assert boundary.content(boundary.place("inner/app.py"), 100) == b"x = 1\n"
    assert boundary.content("src/app.py", 3, is_cut=True) == b"x ="
    with pytest.raises(BoundaryError, match="is larger than 3 bytes"):
        boundary.content("src/app.py", 3)
    with boundary.folder("src") as folder:
        assert os.stat("app.py", dir_fd=folder).st_size == len("x = 1\n")


def test_a_link_that_was_put_into_the_path_later_is_noticed(root: Path) -> None:
    boundary = Boundary(root)
    file, folder = boundary.place("src/app.py"), boundary.place("src/new/a.py")
    (root / "src/app.py").unlink()
    (root / "src/app.py").symlink_to(root.parent / "outside/secret")
    with pytest.raises(BoundaryError, match="a link has replaced part of the path"):
        boundary.content(file, 100)
    (root / "src/new").symlink_to(root.parent / "outside")
    for create in (False, True):
        with (
            pytest.raises(BoundaryError, match="a link has replaced"),
            boundary.folder(folder.rpartition("/")[0], create=create),
        ):
            pass
    with pytest.raises(BoundaryError, match="a link has replaced"):
        boundary.open(folder, os.O_WRONLY | os.O_CREAT)
    assert [path.name for path in (root.parent / "outside").iterdir()] == ["secret"]


def test_missing_folders_can_be_created(root: Path) -> None:
    with Boundary(root).folder("a/b/c", create=True):
        assert (root / "a/b/c").is_dir()
    with pytest.raises(FileNotFoundError), Boundary(root).folder("gone"):
        pass


def test_pipes_devices_and_folders_are_not_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")
    for path in ("src", "."):
        with pytest.raises(IsADirectoryError):
            Boundary(root).content(Boundary(root).place(path), 10)
    with pytest.raises(BoundaryError, match="a pipe or a device"):
        Boundary(root).content("pipe", 10)
    with pytest.raises(BoundaryError, match="a pipe or a device"):
        Boundary(root).open("pipe", os.O_RDWR | os.O_CREAT)


def test_messages_show_no_hidden_characters(root: Path) -> None:
    with pytest.raises(ParleyError) as raised:
        Boundary(root).place("../\x1b[31m\u202e\nx")
    assert str(raised.value).isprintable()
