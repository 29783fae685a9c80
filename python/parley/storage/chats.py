"""The folder of chats: which of its files are chats, newest first, and the file of a new one.

Knows names of files and how one is made; what stands in a chat, `chat` knows.
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
    """The folder that the setting `chat_dir` names, as the editor reads it; else that of all chats."""
    if not setting:
        return chats_folder(environ)
    return Path(os.path.expanduser(os.path.expandvars(setting))).absolute()  # noqa: PTH111 - no home is no error


def newest_first(folder: Path) -> Iterator[tuple[float, Path]]:
    """The chats of a folder with the time (seconds since 1970) at which each changed."""
    dated = ((changed, path) for path in folder.glob("*.md") if (changed := _changed(path)) is not None)
    yield from sorted(dated, reverse=True)


def _changed(path: Path) -> float | None:
    """The time at which a regular file changed; None for any other, or none."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime if stat.S_ISREG(status.st_mode) else None
    return None


def new_chat(folder: Path, text: str) -> Path:
    """Write a chat into a file of its own that is named by date and time, for nobody but the user.

    Raises ParleyError.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ParleyError(f"cannot create the chat folder {folder}: {error.strerror}") from error
    content, stem = encoded(text), time.strftime(_NAME)
    paths = (folder / f"{stem}{f'-{n}' if n > 1 else ''}.md" for n in count(1))
    return next(path for path in paths if write_new(path, content))


def remove_unchanged(path: Path, text: str) -> None:
    """Take away a new chat in which nothing was written since."""
    with suppress(OSError):
        if path.read_bytes() == encoded(text):
            path.unlink()
