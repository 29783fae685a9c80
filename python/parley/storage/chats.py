"""The chat folder: its chats, newest first, and the file for a new chat.

Knows file names and how to create a file; `chat` knows the content.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

from parley.errors import ParleyError
from parley.paths import chats_folder
from parley.storage.content import encoded
from parley.storage.forks import write_new

_NAME = "%Y-%m-%d.%H-%M-%S"


def chat_folder(setting: str | None, environ: Mapping[str, str]) -> Path:
    """The folder in the setting `chat_dir`, interpreted as in the editor, or else the default
    folder.
    """
    if not setting:
        return chats_folder(environ)
    # Unlike `Path`, `os.path` does not raise if the home folder is unknown.
    return Path(os.path.expanduser(os.path.expandvars(setting))).absolute()  # noqa: PTH111


def newest_first(folder: Path) -> Iterator[tuple[float, Path]]:
    """The chats in a folder, each with the time of its last change (seconds since 1970)."""
    dated = (
        (changed, path) for path in folder.glob("*.md") if (changed := _changed(path)) is not None
    )
    yield from sorted(dated, reverse=True)


def _changed(path: Path) -> float | None:
    """The time of a regular file's last change; None if there is no such file."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime if stat.S_ISREG(status.st_mode) else None
    return None


def new_chat(folder: Path, text: str) -> Path:
    """Write a chat into a new file, named by date and time and private to the user.

    Raises ParleyError.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ParleyError(f"cannot create the chat folder {folder}: {error.strerror}") from error
    content, stem = encoded(text), time.strftime(_NAME)
    paths = (folder / f"{stem}{f'-{n}' if n > 1 else ''}.md" for n in count(1))
    try:
        return next(path for path in paths if write_new(path, content))
    except ParleyError as error:  # it names only the file
        raise ParleyError(f"{folder}: {error}") from error


def remove_unchanged(path: Path, text: str) -> None:
    """Remove a new chat that is still unchanged."""
    with suppress(OSError):
        if path.read_bytes() == encoded(text):
            path.unlink()
