"""Which folder the workspace tools work in, and why they are not offered."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from parley.workspace.root import WorkspaceRoot, find_root
from tests.workspace.trees import work_tree

HOME = {"HOME": "/nowhere/home"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return work_tree(tmp_path / "project", {"src/deep/app.py": "", "notes/a.md": ""})


def reason(found: WorkspaceRoot) -> str:
    assert found.path is None
    return found.reason


def test_the_root_is_the_work_tree_of_the_working_directory(project: Path) -> None:
    assert find_root("project", "", project / "src/deep", HOME) == WorkspaceRoot(project)
    assert find_root(True, "", project, HOME) == WorkspaceRoot(project)


def test_the_root_is_the_folder_in_the_settings(project: Path) -> None:
    for setting in (str(project / "notes"), "../../notes"):
        root = find_root("project", setting, project / "src/deep", HOME)
        assert root == WorkspaceRoot(project / "notes")
    assert reason(find_root("project", "gone", project, HOME)) == (
        "workspace.root is not a folder: gone"
    )


def test_a_folder_without_git_counts_only_if_the_tools_are_switched_on(tmp_path: Path) -> None:
    assert reason(find_root("project", "", tmp_path, HOME)) == (
        "the working directory is not in a Git work tree"
    )
    assert find_root(True, "", tmp_path, HOME) == WorkspaceRoot(tmp_path.resolve())


def test_the_tools_can_be_switched_off(project: Path) -> None:
    off = find_root(False, str(project), project, HOME)
    assert reason(off) == "switched off by the setting `workspace.enabled`"


Enabled = Literal["project", True]


@pytest.mark.parametrize("enabled", ["project", True])
def test_a_home_directory_is_never_the_root(project: Path, enabled: Enabled) -> None:
    home = {"HOME": str(project)}
    assert reason(find_root(enabled, "", project / "src", home)) == (
        f"the folder would be your home directory, {project}"
    )
    above = {"HOME": str(project / "src")}
    assert reason(find_root(enabled, "", project, above)) == (
        f"the folder would contain your home directory, {project}"
    )
    inner = work_tree(project / "src/inner", {})
    assert find_root(enabled, "", inner, home) == WorkspaceRoot(inner)
    assert reason(find_root(enabled, "/home", project, HOME)).startswith(
        "the folder would be a home directory" if Path("/home").is_dir() else "workspace.root"
    )


def test_the_whole_file_system_is_never_the_root(project: Path) -> None:
    assert reason(find_root("project", "/", project, HOME)) == (
        "the folder would be the whole file system, /"
    )
    assert reason(find_root(True, "", Path("/"), HOME)) == (
        "the folder would be the whole file system, /"
    )


def open_to_all(folder: Path) -> None:
    """Let other users enter a folder of the tests."""
    folder = folder.resolve()
    while folder != Path(tempfile.gettempdir()).resolve():
        folder.chmod(0o755)
        folder = folder.parent


def as_another_user(check: Callable[[], object]) -> None:
    """Run a check in a process without root's rights."""
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            check()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the exit code reports it
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_folder_that_the_user_cannot_write_is_never_the_root(project: Path) -> None:
    open_to_all(project)
    (project / "notes").chmod(0o555)

    def check() -> None:
        found = find_root("project", str(project / "notes"), project, HOME)
        assert reason(found) == f"you cannot write to the folder {project / 'notes'}"

    as_another_user(check)


def test_a_strangers_git_folder_in_a_shared_folder_makes_no_work_tree(tmp_path: Path) -> None:
    open_to_all(tmp_path)
    shared = work_tree(tmp_path / "shared", {"mine/a": ""})
    shared.chmod(0o1777)
    assert find_root("project", "", shared / "mine", HOME) == WorkspaceRoot(shared.resolve())

    def check() -> None:
        found = find_root("project", "", shared / "mine", HOME)
        assert reason(found) == "the working directory is not in a Git work tree"

    if os.geteuid() == 0:  # the folder belongs to another user than the check
        as_another_user(check)


def test_a_linked_work_tree_and_a_broken_one(tmp_path: Path) -> None:
    linked = tmp_path.resolve() / "linked"
    linked.mkdir()
    (linked / ".git").write_text("gitdir: /elsewhere\n")
    assert find_root("project", "", linked, HOME) == WorkspaceRoot(linked)
    broken = tmp_path / "broken"
    (broken / ".git").mkdir(parents=True)
    assert find_root("project", "", broken, HOME).path is None
