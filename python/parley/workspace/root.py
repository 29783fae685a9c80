"""The folder in which the workspace tools work, or the reason why they are not offered.

Finds a Git work tree by a few looks at the file system, and runs no program, because a stranger may
have written the folder's files.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from parley.frozen import frozen
from parley.programs import start_folder
from parley.text import one_line

_PARENTS_OF_HOMES = (Path("/home"), Path("/Users"))


@frozen
class WorkspaceRoot:
    """The root, as a real path; or None, with the reason why the tools are not offered."""

    path: Path | None
    reason: str = ""


def find_root(
    enabled: Literal["project", True, False],
    setting: str,
    folder: Path,
    environ: Mapping[str, str],
) -> WorkspaceRoot:
    """The root for these settings and this working directory."""
    if enabled is False:
        return WorkspaceRoot(None, "switched off by the setting `workspace.enabled`")
    if setting:
        named = start_folder(setting, folder)
        if named is None or not named.is_dir():
            return WorkspaceRoot(None, f"workspace.root is not a folder: {one_line(setting)}")
        return _checked(named, environ)
    place = Path(os.path.realpath(folder))
    tree = work_tree(place)
    if tree is None and enabled == "project":
        return WorkspaceRoot(None, "the working directory is not in a Git work tree")
    return _checked(tree or place, environ)


def work_tree(folder: Path) -> Path | None:
    """The nearest folder with `.git`, from this real path upwards; None if there is none."""
    place = str(folder)  # strings, for speed: before each question
    while not _has_git(place):
        place, below = place.rpartition("/")[0] or "/", place
        if place == below:
            return None
    return Path(place)


def _has_git(folder: str) -> bool:
    """Whether a folder has a `.git` that Git would use.

    Anyone can create `.git` in a folder such as /tmp, so there it counts only if the user owns it.
    """
    try:
        status = os.lstat(f"{folder}/.git")
        if os.lstat(folder).st_mode & stat.S_IWOTH and status.st_uid != os.geteuid():
            return False
        if stat.S_ISDIR(status.st_mode):
            return Path(folder, ".git", "HEAD").exists()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode)  # a linked work tree or a submodule


def _checked(folder: Path, environ: Mapping[str, str]) -> WorkspaceRoot:
    root = Path(os.path.realpath(folder))
    shown = one_line(str(root))
    if root == root.parent:
        return WorkspaceRoot(None, "the folder would be the whole file system, /")
    if root.parent in _PARENTS_OF_HOMES or root in _PARENTS_OF_HOMES:
        return WorkspaceRoot(None, f"the folder would be a home directory, {shown}")
    for home in _homes(environ):
        if home == root:
            return WorkspaceRoot(None, f"the folder would be your home directory, {shown}")
        if home.is_relative_to(root):
            return WorkspaceRoot(None, f"the folder would contain your home directory, {shown}")
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return WorkspaceRoot(None, f"you cannot write to the folder {shown}")
    return WorkspaceRoot(root)


def _homes(environ: Mapping[str, str]) -> Iterator[Path]:
    """The user's home directories: the one in HOME, and the account's."""
    if home := environ.get("HOME"):
        yield Path(os.path.realpath(home))
    with suppress(KeyError):  # the account may be missing in a container
        yield Path(os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir))
