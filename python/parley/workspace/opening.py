"""Opens files below a root without following links, and reads them within bounds.

A place is a path from the root, with `/`; `boundary` makes places from models' paths.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from parley.errors import ParleyError
from parley.text import one_line

_LONGEST_SHOWN = 200
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ALWAYS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class BoundaryError(ParleyError):
    """A path that a tool does not use; the text is for the model and for the user."""


def legible_path(path: str) -> str:
    """A path for messages."""
    return one_line(path, _LONGEST_SHOWN)


@contextmanager
def folder_below(root: Path, place: str, *, create: bool = False) -> Iterator[int]:
    """An open folder, for `dir_fd`; with `create`, missing folders are created.

    Raises BoundaryError if another program has put a link into the path, else OSError.
    """
    # `place` has been resolved, so none of its names is a link. If one is a link now, another
    # program has swapped it in. Opening the path as a whole would follow such a link. So each
    # name is opened in the folder before it, with O_NOFOLLOW (openat(2)): an open folder stays
    # the same folder, whatever happens to its name.
    current = os.open(root, _FOLDER)
    try:
        for name in place.split("/") if place else ():
            with _noticing(root, place):
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=current)
                inner = os.open(name, _FOLDER, dir_fd=current)
            os.close(current)
            current = inner
        yield current
    finally:
        os.close(current)


@contextmanager
def _noticing(root: Path, place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # O_NOFOLLOW reports a link as ELOOP; with O_DIRECTORY, Linux reports it as ENOTDIR.
        is_resolved = os.path.realpath(root / place) == str(root / place)
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and not is_resolved):
            raise _swapped(place) from error
        raise


def open_below(root: Path, place: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file; returns its descriptor. Follows no link, and blocks on no pipe.

    Raises BoundaryError if a link has replaced the file, or if it is not a regular file, else
    OSError.
    """
    parent, _, name = place.rpartition("/")
    with folder_below(root, parent) as folder, _noticing(root, place):
        if not flags & os.O_CREAT:  # some devices act when they are merely opened
            _regular(os.stat(name or ".", dir_fd=folder, follow_symlinks=False), place)
        descriptor = os.open(name or ".", flags | _ALWAYS, mode, dir_fd=folder)
    try:
        _regular(os.fstat(descriptor), place)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def content_below(root: Path, place: str, most: int, *, is_cut: bool = False) -> bytes:
    """The bytes of a regular file. If it has more than `most`, raises BoundaryError, or returns
    the first bytes if `is_cut`. May raise OSError.
    """
    with os.fdopen(open_below(root, place), "rb", buffering=0) as file:
        content = bytearray()
        while piece := file.read(most + 1 - len(content)):  # the file may grow in between
            content += piece
    if len(content) > most and not is_cut:
        raise BoundaryError(f"{legible_path(place)} is larger than {most} bytes")
    return bytes(content[:most])


def _regular(status: os.stat_result, place: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise _swapped(place)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", place)
    if not stat.S_ISREG(status.st_mode):
        raise BoundaryError(f"{legible_path(place)} is a pipe or a device, not a file")


def _swapped(place: str) -> BoundaryError:
    return BoundaryError(f"{legible_path(place)}: a link has replaced part of the path")
