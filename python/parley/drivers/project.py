"""The file of MCP servers that a project brings along: used once the user has trusted its exact content.

Whoever can write that file could otherwise start programs here. It is read once for each look, so what was
trusted and what is used are the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from parley.drivers.ledger import LedgerFile
from parley.errors import ParleyError
from parley.tools.mcp_files import PROJECT_FILE, ServersFile, below, digest, read_servers
from parley.tools.servers import ServerSettings

MOST_BYTES = 1_000_000


class Project:
    """The file in the working directory; `ledger` opens what trust is recorded in, when there is a file."""

    def __init__(self, folder: Callable[[], Path], ledger: Callable[[], LedgerFile]) -> None:
        self.untrusted: list[Path] = []
        self.trusted: list[Path] = []
        self.file = ServersFile()
        self._folder = folder
        self._ledger = ledger
        self._seen: dict[Path, bytes] = {}

    def look(self, own: Mapping[str, ServerSettings]) -> None:
        """Read the file as it is now; `own` are the user's servers, which it cannot redefine."""
        self.untrusted, self.trusted, self.file = [], [], ServersFile()
        try:
            path = self._folder() / PROJECT_FILE
            if not path.exists():
                return
            content = _content(path)
            if self._ledger().trusts(_place(path), digest(content)):
                found = read_servers(content, PROJECT_FILE, str(path.parent))
                self.trusted, self.file = [path], below(found, own, PROJECT_FILE)
            else:
                self.untrusted = [path]
                self._seen[path] = content
        except (OSError, ParleyError) as error:
            self.file = ServersFile(problems=(f"parley: {PROJECT_FILE}: {error}",))

    def seen(self, path: Path) -> bytes:
        """What the last look saw in an untrusted file."""
        return self._seen.get(path, b"")

    def trust(self, path: Path, shown: bytes | None = None) -> None:
        """The user trusts the content of a file, that of the last look if none is said to be `shown`.

        Raises ParleyError if it has changed since.
        """
        content = self._seen.get(path) if shown is None else shown
        trust(self._ledger(), path, None if content is None else digest(content))


def trust(ledger: LedgerFile, path: Path, shown: str | None = None) -> ServersFile:
    """Record trust in a file's content, which is what was `shown` by its digest; what the file says.

    Raises ParleyError.
    """
    content = _content(path)
    if shown is not None and digest(content) != shown:
        raise ParleyError(f"{path} has changed meanwhile: look at it again before you trust it")
    ledger.trust(_place(path), digest(content))
    return read_servers(content, str(path), str(path.parent))


def _content(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise ParleyError(f"{path} is no file")
        if path.stat().st_size > MOST_BYTES:
            raise ParleyError(f"{path} is too large for a list of servers")
        return path.read_bytes()
    except OSError as error:
        raise ParleyError(f"cannot read {path}: {error.strerror}") from error


def _place(path: Path) -> str:
    """By what trust knows a file: its servers run in the folder it is in, wherever a link in it may lead."""
    return str(Path(os.path.realpath(path.parent)) / path.name)
