"""Snapshots of a work tree: exact bytes, and an untouched repository of the user."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import ParleyError
from parley.workspace import snapshots
from parley.workspace.snapshots import SnapshotChange, changes, snapshot
from tests.examples import examples
from tests.workspace.trees import git, work_tree, write

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000
FILES = {"a.py": "one\n", "sub/b.py": "b\n", "gone": "gone\n", ".gitignore": "*.log\n"}


class Tree:
    """A work tree with a commit, and the environment of its user."""

    def __init__(self, folder: Path, files: Mapping[str, str | bytes] = FILES) -> None:
        self.root = work_tree(folder / "work", files)
        self.state = folder / "state" / "parley"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "GIT_DIR": str(folder / "elsewhere"),
        }
        git(self.root, "add", "-A")
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        git(self.root, *who, "commit", "-q", "-m", "first")

    async def snapshot(self, *, is_after: bool = False) -> str:
        return await snapshot(self.root, self.environ, is_after=is_after)

    async def changes(self, before: str, after: str) -> list[SnapshotChange]:
        return await changes(self.root, before, after, self.environ)

    def repository(self) -> dict[str, bytes]:
        """The bytes of the user's repository, by path."""
        files = sorted((self.root / ".git").rglob("*"))
        return {str(path): path.read_bytes() for path in files if path.is_file()}

    def objects(self) -> list[Path]:
        """The objects that Parley stores."""
        return list(self.state.glob("snapshots/*/objects/??/*"))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


async def test_each_kind_of_change_has_its_bytes(tree: Tree) -> None:
    write(tree.root, {"new/old name": b"\xff\0old", "turns": "a file\n", "x.log": "ignored"})
    before = await tree.snapshot()
    write(tree.root, {"a.py": b"\r\n\xfe", "new/added": "", "y.log": "ignored"})
    (tree.root / "gone").unlink()
    (tree.root / "new" / "old name").rename(tree.root / "new" / "näme\n")
    (tree.root / "sub" / "b.py").chmod(0o755)
    (tree.root / "turns").unlink()
    write(tree.root, {"turns/into": "a folder"})
    (tree.root / "link").symlink_to("a.py")
    assert await tree.changes(before, await tree.snapshot(is_after=True)) == [
        SnapshotChange("a.py", b"one\n", b"\r\n\xfe", FILE, FILE),
        SnapshotChange("gone", b"gone\n", None, FILE, 0),
        SnapshotChange("link", None, b"a.py", 0, LINK),
        SnapshotChange("new/added", None, b"", 0, FILE),
        SnapshotChange("new/näme\n", None, b"\xff\0old", 0, FILE),
        SnapshotChange("new/old name", b"\xff\0old", None, FILE, 0),
        SnapshotChange("sub/b.py", b"b\n", b"b\n", FILE, PROGRAM),
        SnapshotChange("turns", b"a file\n", None, FILE, 0),
        SnapshotChange("turns/into", None, b"a folder", 0, FILE),
    ]


async def test_without_a_change_there_is_one_tree_and_the_repository_stays(tree: Tree) -> None:
    write(tree.root, {"a.py": "two\n", "new": "new\n"})
    (tree.root / "gone").unlink()
    theirs = tree.repository()
    before = await tree.snapshot()
    assert before == await tree.snapshot(is_after=True) == await tree.snapshot()
    assert await tree.changes(before, before) == []
    assert tree.repository() == theirs
    assert {
        stat.S_IMODE(path.stat().st_mode) for path in tree.state.rglob("*") if path.is_dir()
    } >= {0o700}


async def test_objects_of_the_users_repository_are_not_stored_again(tree: Tree) -> None:
    await tree.snapshot()
    assert tree.objects() == []
    write(tree.root, {"a.py": "two\n"})
    await tree.snapshot()
    assert len(tree.objects()) == 2, "the file and the tree"


async def test_a_change_of_equal_size_within_the_clocks_precision_is_noticed(tree: Tree) -> None:
    before = await tree.snapshot()
    status = (tree.root / "a.py").stat()
    write(tree.root, {"a.py": "two\n"})
    os.utime(tree.root / "a.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    (change,) = await tree.changes(before, await tree.snapshot())
    assert (change.before, change.after) == (b"one\n", b"two\n")


CONVERTED: dict[str, str | bytes] = {
    ".gitattributes": (
        "*.py text\n*.crlf text eol=crlf\n*.id ident\n*.utf16 working-tree-encoding=UTF-16LE\n"
        "*.sealed filter=theirs\n"
    ),
    "a.py": b"one\r\ntwo\r\n",
    "b.crlf": b"one\r\ntwo\n",
    "c.id": b"$Id$\n",
    "d.utf16": "grün\n".encode("utf-16-le"),
    "e.sealed": b"open\n",
}


async def test_bytes_that_git_would_convert_are_kept_and_no_filter_runs(tmp_path: Path) -> None:
    tree = Tree(tmp_path, CONVERTED)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    for name in ("filter.theirs.clean", "filter.theirs.smudge", "core.fsmonitor"):
        git(tree.root, "config", name, str(program))
    git(tree.root, "config", "filter.theirs.required", "true")
    hook = tree.root / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.symlink_to(program)
    before = await tree.snapshot()
    names = [name for name in CONVERTED if name != ".gitattributes"]
    write(tree.root, dict.fromkeys(names, b"\r\n$Id: 1 $\r"))
    found = await tree.changes(before, await tree.snapshot(is_after=True))
    assert {each.path: each.before for each in found} == {n: CONVERTED[n] for n in names}
    assert {each.after for each in found} == {b"\r\n$Id: 1 $\r"}
    assert not (tmp_path / "ran").exists()


async def test_files_that_git_is_told_to_overlook_are_seen(tree: Tree) -> None:
    git(tree.root, "update-index", "--assume-unchanged", "a.py")
    git(tree.root, "update-index", "--skip-worktree", "gone")
    git(tree.root, "update-index", "--split-index")
    write(tree.root, {"b.log": "forced\n"})
    git(tree.root, "add", "-f", "b.log")
    before = await tree.snapshot()
    write(tree.root, {"a.py": "two\n", "gone": "two\n", "b.log": "two\n"})
    found = await tree.changes(before, await tree.snapshot(is_after=True))
    assert [each.path for each in found] == ["a.py", "b.log", "gone"]


async def test_files_that_a_command_ignores_are_not_taken_for_removed(tree: Tree) -> None:
    write(tree.root, {"new": "new\n"})
    before = await tree.snapshot()
    write(tree.root, {".gitignore": "new\n*.log\n"})
    after = await tree.snapshot(is_after=True)
    assert [each.path for each in await tree.changes(before, after)] == [".gitignore"]
    later = await tree.snapshot()
    assert [each.path for each in await tree.changes(after, later)] == ["new"]


async def test_nested_repositories_links_and_pipes_do_no_harm(tree: Tree, tmp_path: Path) -> None:
    before = await tree.snapshot()
    work_tree(tree.root / "nested", {"inner": "inner\n"})
    os.mkfifo(tree.root / "pipe")
    (tmp_path / "outside").mkdir()
    write(tmp_path, {"outside/b.py": "a secret\n"})
    (tree.root / "sub" / "b.py").unlink()
    (tree.root / "sub").rmdir()
    (tree.root / "sub").symlink_to(tmp_path / "outside")
    assert await tree.changes(before, await tree.snapshot(is_after=True)) == [
        SnapshotChange("sub", None, os.fsencode(tmp_path / "outside"), 0, LINK),
        SnapshotChange("sub/b.py", b"b\n", None, FILE, 0),
    ]


async def test_a_root_below_the_work_tree_has_its_own_snapshots(tree: Tree) -> None:
    sub = tree.root / "sub"
    before = await snapshot(sub, tree.environ)
    write(tree.root, {"sub/b.py": "two\n", "a.py": "two\n", "sub/a.py": "new\n"})
    after = await snapshot(sub, tree.environ)
    assert [each.path for each in await changes(sub, before, after, tree.environ)] == [
        "a.py",
        "b.py",
    ]


async def test_large_files_are_noticed_but_not_kept(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_OF_A_FILE", 10)
    write(tree.root, {"large": "x" * 11, "grows": "small\n", "stays": "y" * 11})
    before = await tree.snapshot()
    write(tree.root, {"large": "z" * 11, "grows": "x" * 11})
    why = "its content was not kept: it is too large, or cannot be read"
    assert await tree.changes(before, await tree.snapshot(is_after=True)) == [
        SnapshotChange("grows", b"small\n", None, FILE, FILE, why),
        SnapshotChange("large", None, None, FILE, FILE, why),
    ]
    assert len(tree.objects()) == 3, "two trees and the small file"


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ("MOST_FILES", "the work tree has more than 3 files"),
        ("MOST_UNTRACKED", "more than 3 B of files are not in Git"),
    ],
)
async def test_a_work_tree_beyond_the_bounds_has_no_snapshot(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, bound: str, reason: str
) -> None:
    write(tree.root, {"new": "new\n"})
    monkeypatch.setattr(snapshots, bound, 3)
    with pytest.raises(ParleyError, match=reason):
        await tree.snapshot()


async def test_the_differences_are_bounded(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await tree.snapshot()
    write(tree.root, {f"new{number}": f"{number}\n" * 4 for number in range(3)})
    after = await tree.snapshot()
    monkeypatch.setattr(snapshots, "MOST_CONTENT", 17)
    contents = [each.after for each in await tree.changes(before, after)]
    assert contents == [b"0\n" * 4, b"1\n" * 4, None]
    monkeypatch.setattr(snapshots, "MOST_CHANGES", 2)
    with pytest.raises(ParleyError, match="more than 2 files changed"):
        await tree.changes(before, after)


async def test_a_folder_without_git_has_no_snapshot(tree: Tree, tmp_path: Path) -> None:
    for folder in (tmp_path, tree.root / ".git"):
        with pytest.raises(ParleyError, match="is not in a Git work tree"):
            await snapshot(folder, tree.environ)
    with pytest.raises(ParleyError, match="git was not found"):
        await snapshot(tree.root, {**tree.environ, "PATH": "bin"})
    with pytest.raises(ParleyError, match="took more than 0 seconds"):
        await snapshot(tree.root, tree.environ, seconds=0)


@pytest.mark.parametrize("tree_id", ["0" * 40, "--output=x", "HEAD", "f" * 64])
async def test_an_unknown_snapshot_has_no_changes(tree: Tree, tree_id: str) -> None:
    before = await tree.snapshot()
    with pytest.raises(ParleyError, match="snapshot"):
        await tree.changes(before, tree_id)


async def test_removed_objects_are_stored_again_and_a_killed_git_is_forgotten(tree: Tree) -> None:
    write(tree.root, {"a.py": "two\n"})
    before = await tree.snapshot()
    for path in tree.objects():
        path.unlink()
    (store,) = (path for path in (tree.state / "snapshots").iterdir() if path.is_dir())
    (store / "index.lock").touch()
    assert await tree.snapshot() == before
    assert len(tree.objects()) == 2
    (store / "index").write_bytes(b"damaged")
    assert await tree.snapshot() == before


async def test_snapshots_of_two_processes_wait_for_each_other(tree: Tree) -> None:
    write(tree.root, {"a.py": "two\n"})
    assert len(set(await asyncio.gather(*(tree.snapshot() for _ in range(3))))) == 1


async def test_the_repository_for_snapshots_is_created_once(tree: Tree, tmp_path: Path) -> None:
    log, script = tmp_path / "log", tmp_path / "bin" / "git"
    write(tmp_path, {"bin/git": f'#!/bin/sh\necho "$@" >>{log}\nexec {shutil.which("git")} "$@"\n'})
    script.chmod(0o755)
    tree.environ["PATH"] = f"{script.parent}:{tree.environ['PATH']}"
    assert len(set(await asyncio.gather(*(tree.snapshot() for _ in range(4))))) == 1
    assert log.read_text().count(" init ") == 1


async def test_a_forged_object_is_not_taken_for_a_file(tree: Tree) -> None:
    before = await tree.snapshot()
    blob = git(tree.root, "hash-object", "a.py").decode().strip()
    path = tree.root / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o600)
    path.write_bytes(zlib.compress(b"blob 5\0evil\n"))
    write(tree.root, {"a.py": "two\n"})
    (change,) = await tree.changes(before, await tree.snapshot())
    assert (change.before, change.after) == (None, b"two\n")
    assert change.problem


CONTENT = st.sampled_from([None, b"", b"a\n", b"a\r\n", b"\xff\0", "grün".encode(), b"b" * 9])
CONTENTS = st.dictionaries(st.sampled_from(["a", "b.txt", "c/d", "c/e f"]), CONTENT)


@examples(12)
@given(first=CONTENTS, second=CONTENTS)
async def test_the_changes_turn_one_tree_into_the_other(
    tmp_path_factory: pytest.TempPathFactory,
    first: dict[str, bytes | None],
    second: dict[str, bytes | None],
) -> None:
    tree = Tree(tmp_path_factory.mktemp("law"), {".gitattributes": "* text=auto\n", "a": "a\n"})

    def put(contents: Mapping[str, bytes | None]) -> dict[str, bytes]:
        for name, content in contents.items():
            (tree.root / name).unlink(missing_ok=True)
            write(tree.root, {} if content is None else {name: content})
        paths = [path for path in tree.root.rglob("*") if ".git" not in path.parts]
        return {str(p.relative_to(tree.root)): p.read_bytes() for p in paths if p.is_file()}

    old = put(first)
    before = await tree.snapshot()
    new = put(second)
    result = dict(old)
    for change in await tree.changes(before, await tree.snapshot(is_after=True)):
        assert result.pop(change.path, None) == change.before
        if change.after is not None:
            result[change.path] = change.after
    assert result == new
