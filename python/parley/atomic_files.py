"""Creates and replaces files as a whole: even a power loss leaves the old or the new content.

A file is named by an open folder and a name in it, so a link that another program swaps into the
path has no effect. Does not know the content.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def folder_of(path: Path) -> Iterator[int]:
    """The open folder that contains a file."""
    folder = os.open(path.parent, _FOLDER)
    try:
        yield folder
    finally:
        os.close(folder)


def replace_file(folder: int, name: str, content: bytes, check: Callable[[], None]) -> list[str]:
    """Replace a file's content, and keep its mode, owner and extended attributes.

    Calls `check` at the last moment, because writing may take a long time; if it raises an error,
    the file stays. Returns the properties that could not be kept. Raises OSError.
    """
    with _temporary(folder, content) as (new, handle):
        old = os.open(name, _OLD, dir_fd=folder)
        try:
            losses = _keep(old, handle)
        finally:
            os.close(old)
        os.fsync(handle)
        check()
        os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    _sync(folder)
    return losses


def create_file(folder: int, name: str, content: bytes, mode: int | None = None) -> None:
    """Create a file, by default with the usual mode. Raises FileExistsError if there is one, and
    OSError.
    """
    with _temporary(folder, content, 0o666 if mode is None else 0o600) as (new, handle):
        if mode is not None:
            os.fchmod(handle, mode)
        os.fsync(handle)
        move_file(folder, new, folder, name)
    _sync(folder)


def move_file(folder: int, name: str, target: int, new: str) -> None:
    """Give a file another name, perhaps in another folder. Raises FileExistsError if there is a
    file with that name, and OSError.
    """
    try:
        os.link(name, new, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
    except FileExistsError:
        # A process that was killed in the middle of a move leaves the file with both names.
        if not _is_same(folder, name, target, new):
            raise
    except OSError:  # the file system knows no hard links
        with suppress(FileNotFoundError):
            os.stat(new, dir_fd=target, follow_symlinks=False)
            raise FileExistsError(new) from None
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=target)
        return
    os.unlink(name, dir_fd=folder)
    _sync(target)


def _is_same(folder: int, name: str, target: int, new: str) -> bool:
    """Whether a file has both names as hard links.

    Two spellings of one name are not two links: some file systems ignore case and the form of
    accents.
    """
    one = os.stat(name, dir_fd=folder, follow_symlinks=False)
    other = os.stat(new, dir_fd=target, follow_symlinks=False)
    is_one_folder = os.path.samestat(os.fstat(folder), os.fstat(target))
    if is_one_folder and _plain(name) == _plain(new):
        return False
    return os.path.samestat(one, other) and one.st_nlink > 1


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


@contextmanager
def _temporary(folder: int, content: bytes, mode: int = 0o600) -> Iterator[tuple[str, int]]:
    """The name and descriptor of a new file with this content, which is removed if it still has its
    name at the end.
    """
    name = f".parley-{secrets.token_hex(8)}.new"
    handle = os.open(name, _NEW, mode, dir_fd=folder)
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(content)
        yield name, handle
    finally:
        os.close(handle)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def _sync(folder: int) -> None:
    """Make a change of names durable, if the file system supports that."""
    with suppress(OSError):
        os.fsync(folder)


def _keep(old: int, new: int) -> list[str]:
    """Copy a file's properties, except its content, to the file that will replace it.

    Returns the properties that could not be copied, with a clause for each.
    """
    before, losses = os.fstat(old), list[str]()
    mode = stat.S_IMODE(before.st_mode)
    if before.st_nlink > 1:
        links = before.st_nlink
        losses.append(f"it had {links} hard links; any other link still has the old content")
    after = os.fstat(new)
    owner = before.st_uid, before.st_gid
    if (after.st_uid, after.st_gid) != owner:
        try:
            os.fchown(new, *owner)
        except OSError:
            losses.append(f"it belonged to user {owner[0]}, group {owner[1]}, and is now yours")
            mode &= (
                ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
            )  # the new group is given no more permissions than other users had
    os.fchmod(new, mode)
    missing = [name for name in attributes(old) if not _copy_attribute(old, new, name)]
    if missing:
        losses.append(f"these attributes could not be kept: {', '.join(missing)}")
    return losses


def attributes(handle: int) -> list[str]:
    """The names of a file's extended attributes, if the system supports them."""
    try:
        return os.listxattr(handle) if sys.platform == "linux" else []
    except OSError:
        return []


def _copy_attribute(old: int, new: int, name: str) -> bool:
    """Copy an extended attribute to a file; return whether the file now has it."""
    if sys.platform != "linux":
        return False
    value = b""
    try:
        value = os.getxattr(old, name)
        os.setxattr(new, name, value)
    except OSError:  # the system controls some attributes
        with suppress(OSError):
            return os.getxattr(new, name) == value
        return False
    return True
