"""Folders with texts for models: lists and reads their files within bounds.

A file of a project counts only if it is really inside the project: a link may lead anywhere.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from parley.bounded_files import whole
from parley.errors import ParleyError

MOST_ENTRIES = 1_000
"""The most entries of a folder; a folder with more is not used, because no order would be fair."""


def names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted; none if there is no folder. Raises ParleyError."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, MOST_ENTRIES + 1)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ParleyError(f"{error.strerror}: not read") from error
    if len(names) > MOST_ENTRIES:
        raise ParleyError(f"it has more than {MOST_ENTRIES} entries: not read")
    return sorted(names)


def content_of(path: Path, most: int, root: Path | None = None) -> bytes:
    """The bytes of a regular file, which must really be inside `root`, if given.

    Raises ParleyError.
    """
    try:
        if root is not None and not is_inside(path, root):
            raise ParleyError("it is a link that leads elsewhere: not read")
        return whole(path, most)
    except OSError as error:
        raise ParleyError(f"{error.strerror or error}: not read") from error


def is_inside(path: Path, root: Path) -> bool:
    """Whether a path, with all links followed, is inside a folder, or is this folder."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
