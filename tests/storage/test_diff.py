"""A working tree's changes, in the user's own folders and in strangers' folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from parley.errors import ParleyError
from parley.storage.diff import working_tree_diff

MOST = 20_000


class Repository:
    """A repository, and the path of a file that a program in the repository's settings would
    create.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.trace = folder / "work", folder / "ran"
        self.program = folder / "program"
        self.program.write_text(f"#!/bin/sh\ntouch {self.trace}\ncat\n", encoding="utf-8")
        self.program.chmod(0o755)
        self.folder.mkdir()
        home = {name: str(folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
        self.environ = {**os.environ, **home}
        self.git("init", "-q")
        self.git("config", "user.email", "a@example.org")
        self.git("config", "user.name", "A")
        for name in ("a.py", "sub/b.py", ".env", "sub/.hidden/c.py"):
            self.write(name, "one\n")
        self.git("add", "-f", ".")
        self.git("commit", "-qm", "first")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, env=self.environ, check=True)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    async def diff(self, folder: str = ".", most: int = MOST, seconds: float = 30.0) -> str:
        return await working_tree_diff(self.folder / folder, most, seconds, self.environ)


@pytest.fixture
def tree(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


async def test_changes_are_shown_except_in_hidden_files(tree: Repository) -> None:
    for name in ("a.py", "sub/b.py", ".env", "sub/.hidden/c.py"):
        tree.write(name, "two\n")
    text = await tree.diff()
    assert "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n" in text
    assert [line for line in text.split("\n") if line.startswith("+++")] == [
        "+++ b/a.py",
        "+++ b/sub/b.py",
    ]


async def test_only_changes_below_the_folder_are_shown(tree: Repository) -> None:
    for name in ("a.py", "sub/b.py"):
        tree.write(name, "two\n")
    text = await tree.diff("sub")
    assert [line for line in text.split("\n") if line.startswith("+++")] == ["+++ b/b.py"]


@pytest.mark.parametrize("content", ["one\n", "two\n"])
async def test_a_tree_without_changes_says_so(tree: Repository, content: str) -> None:
    tree.write("a.py", content)
    tree.git("add", "a.py")
    with pytest.raises(ParleyError, match="there are no unstaged changes"):
        await tree.diff()


async def test_a_folder_without_a_repository_has_no_diff(tree: Repository, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(ParleyError, match="plain is not in a repository"):
        await working_tree_diff(tmp_path / "plain", MOST, 30.0, tree.environ)
    with pytest.raises(ParleyError, match="git was not found"):
        await working_tree_diff(tmp_path, MOST, 30.0, {**tree.environ, "PATH": "bin:."})


async def test_a_diff_that_is_too_large_is_not_read(tree: Repository) -> None:
    tree.write("a.py", "two\n" * 100_000)
    with pytest.raises(ParleyError, match=r"too large \(more than 20 kB\), so not read"):
        await tree.diff()


async def test_text_in_other_encodings_is_text(tree: Repository) -> None:
    (tree.folder / "a.py").write_bytes("grün\n".encode("latin-1"))
    assert "+gr\ufffdn\n" in await tree.diff()


async def test_no_program_from_the_folder_is_run(tree: Repository) -> None:
    program = str(tree.program)
    for name in ("core.fsmonitor", "diff.external", "diff.theirs.textconv", "diff.theirs.command"):
        tree.git("config", name, program)
    for name in ("core.pager", "pager.diff", "core.sshCommand"):
        tree.git("config", name, program)
    (tree.folder / ".git" / "hooks").mkdir(exist_ok=True)
    (tree.folder / ".git" / "hooks" / "post-index-change").symlink_to(tree.program)
    tree.write(".gitattributes", "*.py diff=theirs\n")
    tree.write("a.py", "two\n")
    (tree.folder / "sub" / "b.py").touch()
    tree.trace.unlink(missing_ok=True)
    assert "+two" in await tree.diff()
    assert not tree.trace.exists()


@pytest.mark.parametrize(
    "name", ["filter.theirs.clean", "filter.theirs.process", "filter.Th=e i.clean"]
)
async def test_a_folder_with_filters_is_not_read(tree: Repository, name: str) -> None:
    tree.git("config", name, str(tree.program))
    tree.write(".gitattributes", "*.py filter=theirs\n")
    tree.write("a.py", "two\n")
    with pytest.raises(ParleyError, match=r"run a program \(filter\."):
        await tree.diff()
    assert not tree.trace.exists()


async def test_a_filter_in_included_settings_is_found(tree: Repository) -> None:
    included = tree.folder / "included"
    included.write_text(f'[filter "theirs"]\n\tclean = {tree.program}\n', encoding="utf-8")
    tree.git("config", "include.path", str(included))
    tree.write(".gitattributes", "*.py filter=theirs\n")
    tree.write("a.py", "two\n")
    with pytest.raises(ParleyError, match="run a program"):
        await tree.diff()
    assert not tree.trace.exists()


async def test_the_users_own_filters_are_used(tree: Repository) -> None:
    tree.git("config", "--global", "filter.own.clean", "tr a-z A-Z")
    tree.write(".gitattributes", "*.py filter=own\n")
    tree.write("a.py", "two\n")
    assert "+TWO" in await tree.diff()


async def test_missing_objects_are_not_fetched(tree: Repository, tmp_path: Path) -> None:
    settings = {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "theirs",
        "remote.theirs.url": str(tmp_path / "elsewhere"),
        "remote.theirs.promisor": "true",
        "remote.theirs.uploadpack": str(tree.program),
        "protocol.file.allow": "always",
    }
    for name, value in settings.items():
        tree.git("config", name, value)
    tree.write("a.py", "two\n")
    for path in (tree.folder / ".git" / "objects").glob("??/*"):
        if zlib.decompress(path.read_bytes()).startswith(b"blob "):
            path.unlink()
    tree.trace.unlink(missing_ok=True)
    with pytest.raises(ParleyError):
        await tree.diff()
    assert not tree.trace.exists()


async def test_a_diff_that_takes_too_long_is_ended(tree: Repository, tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "git").write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 1000\n", encoding="utf-8"
    )
    (bin_ / "git").chmod(0o755)
    path = f"{bin_}{os.pathsep}{tree.environ['PATH']}"
    with pytest.raises(ParleyError, match=r"git did not finish within 0\.5 seconds"):
        await working_tree_diff(tree.folder, MOST, 0.5, {**tree.environ, "PATH": path})
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("place", ["../elsewhere", "sub"])
async def test_settings_that_name_another_folder_reveal_nothing_of_it(
    tree: Repository, place: str
) -> None:
    tree.write(f"{place}/a.py", "a secret\n")
    tree.git("config", "core.worktree", str(tree.folder / place))
    with pytest.raises(ParleyError, match="not in a repository"):
        await tree.diff()


@pytest.mark.parametrize("way", ["a file", "a link", "links in it"])
async def test_a_folder_that_names_another_repository_reveals_nothing_of_it(
    tree: Repository, tmp_path: Path, way: str
) -> None:
    theirs, secret = tmp_path / "theirs", tree.folder / ".git"
    theirs.mkdir()
    if way == "a file":
        (theirs / ".git").write_text(f"gitdir: {secret}\n", encoding="utf-8")
    elif way == "a link":
        (theirs / ".git").symlink_to(secret)
    else:
        tree.git("init", "-q", str(theirs))
        tree.git("-C", str(theirs), "config", "core.worktree", str(theirs))
        shutil.rmtree(theirs / ".git" / "objects")
        for name in ("index", "objects"):
            (theirs / ".git" / name).symlink_to(secret / name)
    with pytest.raises(ParleyError, match="its repository is elsewhere"):
        await tree.diff("../theirs")


@pytest.mark.parametrize(
    "way", ["alternates", "twice", "a quoted path", "packs", "a folder", "an object"]
)
async def test_borrowed_objects_reveal_nothing_of_their_repository(
    tree: Repository, tmp_path: Path, way: str
) -> None:
    theirs, secret = tmp_path / "theirs", tree.folder / ".git" / "objects"
    tree.git("init", "-q", str(theirs))
    shutil.copy(tree.folder / ".git" / "index", theirs / ".git" / "index")
    objects, inner = theirs / ".git" / "objects", theirs / "inner"
    blob = next(path for path in secret.glob("??/*"))
    match way:
        case "alternates":
            (objects / "info" / "alternates").write_text(
                f"# a comment\n{secret}\n", encoding="utf-8"
            )
        case "twice":
            (objects / "info" / "alternates").write_text("../../inner\n", encoding="utf-8")
            (inner / "info").mkdir(parents=True)
            (inner / "info" / "alternates").write_text(f"{secret}\n", encoding="utf-8")
        case "a quoted path":
            (objects / "info" / "alternates").write_text(f'"{secret}"\n', encoding="utf-8")
        case "packs":
            shutil.rmtree(objects / "pack")
            (objects / "pack").symlink_to(secret / "pack")
        case "a folder":
            (objects / blob.parent.name).symlink_to(blob.parent)
        case _:
            (objects / blob.parent.name).mkdir()
            (objects / blob.parent.name / blob.name).symlink_to(blob)
    with pytest.raises(ParleyError, match="borrows objects from another one"):
        await tree.diff("../theirs")


async def test_objects_within_the_folder_are_its_own(tree: Repository) -> None:
    objects = tree.folder / ".git" / "objects"
    shutil.copytree(objects, tree.folder / "more", dirs_exist_ok=True)
    (objects / "info" / "alternates").write_text("../../more\n", encoding="utf-8")
    tree.write("a.py", "two\n")
    assert "+two\n" in await tree.diff()


async def test_a_linked_working_tree_and_a_submodule_show_their_changes(
    tree: Repository, tmp_path: Path
) -> None:
    tree.git("worktree", "add", "-q", str(tmp_path / "linked"))
    tree.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tree.folder), "inner"
    )
    for folder in ("../linked", "inner", "../linked/sub"):
        tree.write(f"{folder.removesuffix('/sub')}/sub/b.py", "two\n")
        assert "+two\n" in await tree.diff(folder)
