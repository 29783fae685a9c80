"""What the commands share: reading settings and files, and saying things on a terminal."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.config import load_settings
from parley.errors import ParleyError
from parley.settings import Settings

if TYPE_CHECKING:
    from parley.drivers.home import Home


def say(text: str, end: str = "\n") -> None:
    """Write to standard output, at once."""
    sys.stdout.write(text + end)
    sys.stdout.flush()


def complain(text: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"parley: {text.removeprefix('parley: ')}\n")


def settings() -> Settings:
    """The shell's settings; what is wrong with them is said."""
    loaded, problems = load_settings(os.environ)
    for problem in problems:
        complain(problem)
    return loaded


def warn_of_project(home: Home) -> None:
    """Say what is wrong with the project's file of servers, or that nobody has trusted it."""
    for path in home.untrusted():
        complain(f"its servers are not used: look at {path}, then say: parley trust {shlex.quote(str(path))}")
    for problem in home.problems():
        complain(problem)


def read(path: str) -> str:
    """The text of a file, `-` for standard input. Raises ParleyError."""
    try:
        written = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ParleyError(f"cannot read {path}: {error.strerror}") from error
    return written.decode("utf-8", "surrogateescape")


def plain(value: Any) -> Any:
    """A value of Parley's as plain JSON: its fields by name, without positions and spellings."""
    if is_dataclass(value):
        kept = [f.name for f in fields(value) if f.compare]
        return {name: plain(getattr(value, name)) for name in kept}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return dict(value) if hasattr(value, "items") else value
