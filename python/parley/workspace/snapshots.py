"""Snapshots of a Git work tree: the bytes of its files before and after a command, as tree objects.

Each root has a repository of Parley's own in the state folder, so that the user's repository, with
its index, references and settings, stays as it is. It stores files byte by byte: neither filters nor
line ends are converted, so nothing that the root's settings name runs. Objects that the user's
repository has are not stored again. Ignored files, nested repositories and submodules are not part
of a snapshot. Does not know the command.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.paths import private_file, private_folder, state_folder
from parley.processes.git import Git
from parley.text import one_line, size_text
from parley.workspace.snapshot_stores import store_folder

MOST_FILES = 100_000
"""The maximum number of files of a work tree with snapshots."""
MOST_UNTRACKED = 200_000_000
"""The maximum number of bytes of files that the user's repository does not have."""
MOST_OF_A_FILE = 10_000_000
"""The maximum number of bytes of a file whose content is kept."""
MOST_CHANGES = 1_000
"""The maximum number of files that differ between two snapshots."""
MOST_CONTENT = 50_000_000
"""The maximum number of bytes of all contents that differ between two snapshots."""

_MOST_OUTPUT = 40_000_000
_MOST_OF_AN_INDEX = 200_000_000
_AT_ONCE = 5_000
"""After each batch of files the index is written, so that a snapshot that took too long is
continued by the next one.
"""
_POLL_S = 0.02
_NOT_KEPT = 0o160000
"""Git's mode for a commit of a submodule. Here it marks a file that is not kept: the id is then a
digest of the file's size and times, so the change of the file is noticed.
"""
_TREE = late_pattern(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DIGESTS = {40: "sha1", 64: "sha256"}

# gitattributes(5): $GIT_DIR/info/attributes has the highest precedence. `-text` also overrides `eol`;
# git refuses `-working-tree-encoding`.
_ATTRIBUTES = "* -text -filter -ident !working-tree-encoding\n"


@frozen
class SnapshotChange:
    """A file that differs between two snapshots. A link's content is its target.

    The modes are Git's (0o100644, 0o100755, 0o120000), and 0 if there is no file; then the content
    is None. The content is also None if it was not kept: `problem` then says why, and is else "".
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode_before: int
    mode_after: int
    problem: str = ""


@frozen
class _Trees:
    """Git for the user's repository (`theirs`), and for the repository of the snapshots (`own`)."""

    theirs: Git
    own: Git
    store: Path
    index: Path
    id_length: int

    @property
    def no_id(self) -> str:
        return "0" * self.id_length


async def snapshot(
    root: Path,
    environ: Mapping[str, str] | None = None,
    *,
    is_after: bool = False,
    seconds: float = 20.0,
) -> str:
    """The id of a tree with the files below the root. Raises ParleyError with the reason if there
    is none.

    With `is_after`, a file of the last snapshot stays in this one even if it is ignored by now: a
    command may have changed the rules.
    """
    environ = os.environ if environ is None else environ
    try:
        async with asyncio.timeout(seconds):
            trees = await _open_trees(root, environ)
            async with _locked(trees.store):
                tree = await _write_tree(trees, is_after=is_after)
                if tree is None:  # an object was removed here, or in the user's repository
                    (trees.store / "index").unlink(missing_ok=True)
                    tree = await _write_tree(trees, is_after=is_after)
                if tree is None:
                    raise ParleyError("git cannot write the snapshot")
                return tree
    except TimeoutError as error:
        raise ParleyError(f"the snapshot took more than {seconds:g} seconds") from error
    except OSError as error:
        raise ParleyError(f"the snapshot cannot be written: {error.strerror}") from error


async def changes(
    root: Path,
    before: str,
    after: str,
    environ: Mapping[str, str] | None = None,
    *,
    seconds: float = 20.0,
) -> list[SnapshotChange]:
    """The files that differ between two snapshots of a root, by path. Raises ParleyError."""
    environ = os.environ if environ is None else environ
    if not (_TREE.fullmatch(before) and _TREE.fullmatch(after)):
        raise ParleyError("there is no such snapshot")
    if before == after:
        return []
    try:
        async with asyncio.timeout(seconds):
            trees = await _open_trees(root, environ)
            output, code = await trees.own(
                *("diff-tree", "-r", "-z", "--no-renames", before, after)
            )
            if code:
                raise ParleyError("the snapshot no longer exists")
            rows = list(_rows(output))
            if len(rows) > MOST_CHANGES:
                raise ParleyError(f"more than {MOST_CHANGES:,} files changed")
            contents = await _contents(trees, rows)
    except TimeoutError as error:
        raise ParleyError(f"git did not finish within {seconds:g} seconds") from error
    except OSError as error:
        raise ParleyError(f"the snapshot cannot be read: {error.strerror}") from error
    return [_change(row, contents) for row in rows]


async def _open_trees(root: Path, environ: Mapping[str, str]) -> _Trees:
    """The two repositories of a root; creates the one for snapshots."""
    root = await asyncio.to_thread(root.resolve)
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG")
    }
    theirs = Git(root, _MOST_OUTPUT, kept)
    output, code = await theirs(
        *("rev-parse", "--is-inside-work-tree", "--show-object-format"),
        *("--git-path", "index", "--git-path", "objects"),
    )
    lines = os.fsdecode(output).splitlines()
    if code or len(lines) != 4 or lines[0] != "true":
        raise ParleyError(f"{one_line(root.name, 60)} is not in a Git work tree that git reads")
    store = await asyncio.to_thread(store_folder, state_folder(environ), root)
    objects = str(root / lines[3]).replace("\\", "\\\\").replace('"', '\\"')
    own = Git(
        root,
        _MOST_OUTPUT + MOST_CONTENT,
        kept,
        {
            "GIT_DIR": str(store),
            "GIT_WORK_TREE": str(root),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{objects}"',
        },
    )
    if not (store / "info" / "attributes").exists():
        await _create(store, Git(store, _MOST_OUTPUT, kept), f"--object-format={lines[1]}")
    return _Trees(theirs, own, store, root / lines[2], 64 if lines[1] == "sha256" else 40)


async def _create(store: Path, git: Git, object_format: str) -> None:
    async with _locked(store):
        if (store / "info" / "attributes").exists():  # another process created it
            return
        if (await git("init", "--quiet", "--bare", "--template=", object_format))[1]:
            raise ParleyError("git cannot create a repository for snapshots")
        info = private_folder(store / "info")
        new = private_file(info / "attributes.new")
        new.write_text(_ATTRIBUTES, encoding="utf-8")
        new.replace(info / "attributes")  # without the attributes, no snapshot is taken


@asynccontextmanager
async def _locked(store: Path) -> AsyncIterator[None]:
    """Wait until no other process uses the repository for the snapshots of this root."""
    with (store / "lock").open("wb") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_POLL_S)
        (store / "index.lock").unlink(missing_ok=True)  # from a git that was killed
        yield


async def _write_tree(trees: _Trees, *, is_after: bool) -> str | None:
    """Bring the index up to date, and write it as a tree; None if the index is damaged, or an
    object is missing.
    """
    output, code = await trees.theirs(
        *("ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard", "--", ".")
    )
    if code:
        raise ParleyError("git cannot list the files")
    listed = {name[2:]: name.startswith(b"? ") for name in output.split(b"\0") if name}
    if not (trees.store / "index").exists():
        await _seed(trees)
    names, code = await trees.own("ls-files", "-z")
    if code:
        return None
    known = set(_parts(names))
    if is_after:
        listed = {**dict.fromkeys(known, False), **listed}
    if len(listed) > MOST_FILES:
        raise ParleyError(f"the work tree has more than {MOST_FILES:,} files")
    files = await asyncio.to_thread(_look, trees.own.folder, listed, trees.id_length)
    if files.untracked_bytes > MOST_UNTRACKED:
        raise ParleyError(f"more than {size_text(MOST_UNTRACKED)} of files are not in Git")
    marks = [f"160000 {digest} 0\t".encode() + name for name, digest in files.marks.items()]
    gone = known - files.contents - files.marks.keys()
    await _update(trees, "--index-info", [*_removals(trees, gone), *marks])
    await _update(trees, "--stdin", sorted(files.contents))
    tree, code = await trees.own("write-tree")
    return None if code else tree.decode().strip()


async def _update(trees: _Trees, kind: str, lines: list[bytes]) -> None:
    options = ("update-index", "--add", "--remove", "--replace", "-z", kind)
    for at in range(0, len(lines), _AT_ONCE):
        stdin = b"".join(line + b"\0" for line in lines[at : at + _AT_ONCE])
        if (await trees.own(*options, stdin=stdin))[1]:
            raise ParleyError("git cannot store the files; some may have changed in the meantime")


def _removals(trees: _Trees, names: Iterable[bytes]) -> list[bytes]:
    return [f"0 {trees.no_id}\t".encode() + name for name in names]


async def _seed(trees: _Trees) -> None:
    """Begin with the user's index, because reading every file takes long in a large work tree.

    The index's times say which files are unchanged. A file whose size differs from its object's was
    converted, or has changed, and is read.
    """
    index = trees.store / "index"
    output, code = await trees.theirs("ls-files", "-z", "-s", "-v", "--", ".")
    if code or not await asyncio.to_thread(_copy, trees.index, index):
        return
    rows = [(row.split(b"\t", 1)[0].split(b" "), row.split(b"\t", 1)[1]) for row in _parts(output)]
    ids = b"".join(fields[2] + b"\n" for fields, _ in rows)
    sizes, _ = await trees.own("cat-file", "--batch-check=%(objectsize)", stdin=ids)
    lines = sizes.split(b"\n")[:-1]
    known, code = await trees.own("ls-files", "-z", "-t")  # also checks that git reads the copy
    if code or len(lines) != len(rows):
        index.unlink()
        return
    is_same = await asyncio.to_thread(_have_sizes, trees.own.folder, rows, lines)
    # A tag other than H (cached) means a conflict, or a flag that hides changes.
    trusted = {
        name
        for (fields, name), same in zip(rows, is_same, strict=True)
        if same and fields[0] == b"H"
    }
    names = {name[2:] for name in _parts(known)}
    await _update(trees, "--index-info", _removals(trees, names - trusted))


def _parts(output: bytes) -> list[bytes]:
    return output.split(b"\0")[:-1]


def _copy(index: Path, to: Path) -> bool:
    """Copy the user's index with its times: git compares them with the files' times (racy-git)."""
    try:
        if index.stat().st_size > _MOST_OF_AN_INDEX:
            return False
        shutil.copy2(index, to)
    except OSError:
        return False
    return True


def _have_sizes(
    root: Path, rows: list[tuple[list[bytes], bytes]], sizes: list[bytes]
) -> list[bool]:
    return [
        _size(os.path.join(os.fsencode(root), name)) == size  # noqa: PTH118 - bytes
        for (_, name), size in zip(rows, sizes, strict=True)
    ]


def _size(path: bytes) -> bytes:
    try:
        return b"%d" % os.lstat(path).st_size
    except OSError:
        return b""


@frozen
class _Files:
    """Files whose contents are stored, and digests of the states of the others."""

    contents: set[bytes]
    marks: Mapping[bytes, str]
    untracked_bytes: int


def _look(root: Path, listed: Mapping[bytes, bool], id_length: int) -> _Files:
    """The files among the listed paths; each path says whether the user's repository lacks it."""
    contents, marks, untracked_bytes = set[bytes](), dict[bytes, str](), 0
    real = dict[bytes, bool]()
    for name, is_untracked in listed.items():
        path = os.path.join(os.fsencode(root), name)  # noqa: PTH118 - bytes
        folder = os.path.dirname(path)  # noqa: PTH120 - bytes
        if folder not in real:  # git refuses paths through links
            real[folder] = os.path.realpath(folder) == folder
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if not real[folder] or not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            continue
        is_link = stat.S_ISLNK(status.st_mode)
        if is_link or (status.st_size <= MOST_OF_A_FILE and os.access(path, os.R_OK)):
            contents.add(name)
            untracked_bytes += status.st_size if is_untracked else 0
        else:
            facts = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
            marks[name] = hashlib.sha256(facts.encode()).hexdigest()[:id_length]
    return _Files(contents, marks, untracked_bytes)


@frozen
class _Row:
    path: str
    modes: tuple[int, int]
    ids: tuple[str, str]


def _rows(output: bytes) -> Iterator[_Row]:
    """The rows of `git diff-tree -z`: `:mode mode id id status`, then the path."""
    parts = _parts(output)
    for fields, name in zip(parts[::2], parts[1::2], strict=True):
        before, after, old, new, _ = fields.decode().lstrip(":").split(" ")
        yield _Row(os.fsdecode(name), (int(before, 8), int(after, 8)), (old, new))


async def _contents(trees: _Trees, rows: list[_Row]) -> dict[str, bytes]:
    """The contents by id, as far as there are any and they are not too large."""
    sides = ((mode, id_) for row in rows for mode, id_ in zip(row.modes, row.ids, strict=True))
    ids = list(dict.fromkeys(id_ for mode, id_ in sides if mode not in (0, _NOT_KEPT)))
    if not ids:
        return {}
    stdin = "".join(f"{id_}\n" for id_ in ids).encode()
    output, _ = await trees.own("cat-file", "--batch-check=%(objectsize)", stdin=stdin)
    chosen, room = list[str](), MOST_CONTENT
    for id_, size in zip(ids, output.decode().split("\n"), strict=False):
        if size.isdecimal() and int(size) <= min(room, MOST_OF_A_FILE):
            chosen.append(id_)
            room -= int(size)
    stdin = "".join(f"{id_}\n" for id_ in chosen).encode()
    output, _ = await trees.own("cat-file", "--batch", stdin=stdin) if chosen else (b"", 0)
    return dict(_blobs(output))


def _blobs(output: bytes) -> Iterator[tuple[str, bytes]]:
    """The objects in `git cat-file --batch`, except for forged ones: the user's repository may be a
    stranger's, and git does not compare packed objects with their ids.
    """
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        id_, kind, size = output[at:end].decode().split(" ")
        content = output[end + 1 : end + 1 + int(size)]
        at = end + int(size) + 2
        digest = hashlib.new(_DIGESTS[len(id_)], b"%s %d\0" % (kind.encode(), len(content)))
        digest.update(content)
        if digest.hexdigest() == id_:
            yield id_, content


def _change(row: _Row, contents: Mapping[str, bytes]) -> SnapshotChange:
    before, after = (contents.get(id_) for id_ in row.ids)
    mode_before, mode_after = (0o100644 if mode == _NOT_KEPT else mode for mode in row.modes)
    is_kept = (mode_before == 0) == (before is None) and (mode_after == 0) == (after is None)
    problem = "" if is_kept else "its content was not kept: it is too large, or cannot be read"
    return SnapshotChange(row.path, before, after, mode_before, mode_after, problem)
