"""The changes in a working tree, as printed by `git diff`.

The folder and its git settings may come from a stranger, so Parley does not run any program that
these settings specify. It shows only content below the folder and no hidden files, and limits both
the size and the time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from parley.bounded_files import whole
from parley.errors import ParleyError
from parley.processes.git import Git
from parley.text import one_line

# Diff drivers and text converters are programs. Submodules have their own settings.
_DIFF = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules=all",
    "--relative",
)
_FILTERS = ("config", "--includes", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")
_IS_INSIDE = ("rev-parse", "--is-inside-work-tree")
"""The settings may name another folder as the working tree; its files would then be shown."""
_PLACES = (
    "rev-parse",
    "--show-toplevel",
    "--absolute-git-dir",
    "--git-path",
    "index",
    "--git-path",
    "objects",
)
_WORKTREE = ("config", "--local", "--get", "core.worktree")
"""This setting is in a submodule's repository, which is inside the outer repository."""
_ELSEWHERE = "not read: its repository is elsewhere and does not refer to this folder"
_BORROWS = "not read: its repository borrows objects from another one, which might not belong to this folder"
_MOST_BORROWED = 5
"""The longest chain of repositories that borrow objects; git does not follow longer ones."""
_OWN_SCOPES = ("system", "global", "command")
"""The scopes of settings that belong to the user, not to the folder."""
_HIDDEN = (":(exclude,glob)**/.*", ":(exclude,glob)**/.*/**")
_MOST_OF_A_PATH = 10_000
_NONE = 1
"""The exit code of a query for missing settings."""


async def working_tree_diff(
    folder: Path, most: int, seconds: float, environ: Mapping[str, str] | None = None
) -> str:
    """The unstaged changes below a folder. Raises ParleyError if there are none."""
    environ = os.environ if environ is None else environ
    run = Git(folder, most, environ)
    why = f"there is no diff: {one_line(folder.name, 60)} is not in a repository that git reads"
    try:
        async with asyncio.timeout(seconds):
            if await run(*_IS_INSIDE) != (b"true\n", 0):
                raise ParleyError(why)
            if (flaw := await _flaw(run)) is not None:
                raise ParleyError(flaw)
            filters, code = await run(*_FILTERS)
            if code not in (0, _NONE):
                raise ParleyError(why)
            if theirs := _of_the_folder(filters.decode(errors="replace")):
                raise ParleyError(
                    f"not read: the git settings of this folder run a program ({theirs})"
                )
            content, code = await run(*_DIFF, "--", ".", *_HIDDEN)
    except TimeoutError as error:
        raise ParleyError(f"git did not finish within {seconds:g} seconds") from error
    if code:
        raise ParleyError(why)
    if not content:
        raise ParleyError("there are no unstaged changes")
    return content.decode(errors="replace")


async def _flaw(run: Git) -> str | None:
    """The reason why the repository does not belong to this working tree: `.git` may name any
    repository.

    A repository outside the tree must name the tree in turn, as with `git worktree` and submodules.
    """
    output, _ = await run(*_PLACES)
    lines = output.decode(errors="surrogateescape").splitlines()
    if len(lines) != 4:  # the folder's name contains a line break
        return _ELSEWHERE
    tree, repository, index, objects = (run.folder / line for line in lines)
    is_own = await asyncio.to_thread(_is_of_tree, tree, repository, index, objects)
    if is_own is None:
        is_own = (await run(*_WORKTREE))[1] == 0
    if not is_own:
        return _ELSEWHERE
    return _BORROWS if await asyncio.to_thread(_borrows, objects, tree.resolve()) else None


def _borrows(objects: Path, tree: Path, depth: int = 0) -> bool:
    """Whether objects also come from outside the tree (gitrepository-layout(5), git 2.39)."""
    try:
        text = whole(objects / "info" / "alternates", _MOST_OF_A_PATH).decode(
            errors="surrogateescape"
        )
    except FileNotFoundError:
        text = ""
    except OSError:
        return True
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    if any(line.startswith('"') or "\0" in line for line in lines) or (
        lines and depth == _MOST_BORROWED
    ):
        return True
    more = [(objects / line).resolve() for line in lines]
    places = [*more, *(link.resolve() for link in _links(objects))]
    if not all(place.is_relative_to(tree) for place in places):
        return True
    return any(_borrows(place, tree, depth + 1) for place in more)


def _links(objects: Path) -> Iterator[Path]:
    """The links among a repository's objects, in its folders and packs."""
    for folder, folders, files in os.walk(objects):
        for name in (*folders, *files):
            if os.path.islink(place := os.path.join(folder, name)):  # noqa: PTH114, PTH118 - there are thousands
                yield Path(place)


def _is_of_tree(tree: Path, repository: Path, index: Path, objects: Path) -> bool | None:
    """Whether a repository belongs to a working tree; None if its settings must decide."""
    tree, repository = tree.resolve(), repository.resolve()
    if repository.is_relative_to(tree):
        return all(part.resolve().is_relative_to(repository) for part in (index, objects))
    try:
        name = (
            whole(repository / "gitdir", _MOST_OF_A_PATH).decode(errors="surrogateescape").strip()
        )
    except OSError:
        return None
    return Path(repository, name).resolve() == tree / ".git"


def _of_the_folder(settings: str) -> str:
    """The name of a filter in the folder's own settings; "" if there is none."""
    for line in settings.splitlines():
        scope, _, name = line.partition("\t")
        if scope not in _OWN_SCOPES:
            return one_line(name, 60)
    return ""
