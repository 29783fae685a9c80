"""The file of a fork: a new file next to the original chat.

Knows file names and how to create a file; `chat/fork.py` knows the content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from parley.errors import ParleyError
from parley.late_patterns import late_pattern
from parley.text import one_line

_NUMBER = late_pattern(r"-fork(-[0-9]+)?$")
_LONGEST = 40
"""The maximum number of characters of an agent's name in a file name."""


def own_path(chat: str) -> Path:
    """The path of the chat itself, not of a link to it, because the chat's other files are next to
    the chat.
    """
    return Path(os.path.realpath(chat))


def fork_paths(chat: Path, agent: str = "") -> Iterator[Path]:
    """The possible paths for a fork of a chat, or for its fork for this agent, best first."""
    name = re.sub(r"[^\w.+-]+", "_", agent)[:_LONGEST]
    stem = f"{_NUMBER.sub('', chat.stem)}-fork{f'-{name}' if name else ''}"
    return (chat.with_name(f"{stem}{f'-{n}' if n > 1 else ''}{chat.suffix}") for n in count(1))


def write_new(path: Path, content: bytes) -> bool:
    """Write a private file; return False if the path already exists. Raises ParleyError."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise ParleyError(f"cannot write {one_line(path.name)}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise ParleyError(f"cannot write {one_line(path.name)}: {error.strerror}") from error
    return True
