"""The file of MCP servers that a project brings along: used once the user has trusted its exact content.

Whoever can write that file could otherwise start programs here. It is read once for each look, so what was
trusted and what is used are the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from parley.errors import ParleyError
from parley.regular import beginning, sha256
from parley.storage.ledger import LedgerFile
from parley.tools.mcp_files import PROJECT_FILE, ServersFile, below, digest, read_servers
from parley.tools.servers import ServerSettings

MOST_BYTES = 1_000_000
MOST_OF_A_PROGRAM = 200_000_000
"""A sparse file takes no room and has no end to speak of: more than this of a program is not read."""


class ProjectTrust:
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
            file = read_servers(content, PROJECT_FILE, str(path.parent))
            if _trusts(self._ledger(), path, content, file):
                self.trusted, self.file = [path], below(file, own, PROJECT_FILE)
            else:
                self.untrusted = [path]
                self._seen[path] = content
        except (OSError, ParleyError) as error:
            self.file = ServersFile(problems=(f"parley: {PROJECT_FILE}: {error}",))

    def seen(self, path: Path) -> bytes:
        """The content of an untrusted file as the last look saw it."""
        return self._seen.get(path, b"")

    def trust(self, path: Path, content: bytes | None = None, *, pinned: bool = False) -> None:
        """The user trusts the content of a file, by default that of the last look.

        Raises ParleyError if it has changed since.
        """
        content = self._seen.get(path) if content is None else content
        trust(self._ledger(), path, None if content is None else digest(content), pinned=pinned)


def trust(
    ledger: LedgerFile, path: Path, expected: str | None = None, *, pinned: bool = False
) -> ServersFile:
    """Record trust in a file's content, whose digest is `expected` if any is; returns what the file says.

    `pinned`: in the programs of the project that it names as well, as they are now. Raises ParleyError.
    """
    content = _content(path)
    if expected is not None and digest(content) != expected:
        raise ParleyError(f"{path} has changed meanwhile: look at it again before you trust it")
    file = read_servers(content, str(path), str(path.parent))
    ledger.trust(_place(path), _pin(content, file, path.parent) if pinned else digest(content))
    return file


def programs(file: ServersFile, folder: Path) -> tuple[Path, ...]:
    """The files in a project's folder that commands and arguments of its servers name, relative to it.

    Not what those load in turn: nobody can tell from here.
    """
    paths, folder = dict[Path, None](), Path(os.path.abspath(folder))  # noqa: PTH100 - links stay links
    for server in file.servers.values():
        base = folder / (server.cwd or ".")
        for word in (server.command or "", *server.args):
            place = Path(os.path.normpath(base / word.rpartition("=")[2]))
            if place.is_relative_to(folder) and place.is_file():
                paths[place.relative_to(folder)] = None
    return tuple(paths)


def _trusts(ledger: LedgerFile, path: Path, content: bytes, file: ServersFile) -> bool:
    if ledger.trusts(_place(path), digest(content)):
        return True
    if not programs(file, path.parent):
        return False
    with suppress(ParleyError):
        return ledger.trusts(_place(path), _pin(content, file, path.parent))
    return False  # nothing that cannot be pinned was


def _pin(content: bytes, file: ServersFile, folder: Path) -> str:
    """The digest of a file of servers and of the programs that it names."""
    digests = [digest(content)]
    for name in programs(file, folder):
        try:
            digests.append(f"{name} {sha256(folder / name, MOST_OF_A_PROGRAM)}")
        except OSError as error:
            raise ParleyError(f"{name} cannot be pinned: {error.strerror}") from error
    return digest("\n".join(digests).encode("utf-8", "surrogateescape"))


def _content(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise ParleyError(f"{path} is no file")
        content = beginning(path, MOST_BYTES + 1)
    except OSError as error:
        raise ParleyError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise ParleyError(f"{path} is too large for a list of servers")
    return content


def _place(path: Path) -> str:
    """The key of a file: its servers run in the folder that it is in, wherever a link in it may lead."""
    return str(Path(os.path.realpath(path.parent)) / path.name)
