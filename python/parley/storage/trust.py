"""A project's MCP server files: Parley uses a file only after the user trusts its exact content.

Otherwise, anyone who can write such a file could start programs here. Each check reads the file
once, so the trusted bytes and the used bytes are the same.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from parley.bounded_files import beginning, sha256
from parley.errors import ParleyError, reason_of
from parley.late_patterns import late_pattern
from parley.programs import program, start_folder
from parley.storage.ledger import LedgerFile
from parley.tools.mcp_files import (
    PROJECT_FILES,
    ServersFile,
    below,
    digest,
    project_of,
    read_servers,
)
from parley.tools.server_settings import ServerSettings

if TYPE_CHECKING:
    from parley.tools.descriptions import Findings

FILE_BYTES = 1_000_000
MOST_OF_A_PROGRAM = 200_000_000
"""The maximum number of bytes that Parley reads from a program, because a sparse file may be
practically endless.
"""
_SEPARATORS = late_pattern(r"[\s=:;,]+")
_FIRST = "another project file has"


class ProjectTrust:
    """The server files in the working directory; opens the `ledger` only if there is a file."""

    def __init__(self, folder: Callable[[], Path], ledger: Callable[[], LedgerFile]) -> None:
        self.untrusted: list[Path] = []
        self.trusted: list[Path] = []
        self.file = ServersFile()
        self._folder = folder
        self._ledger = ledger
        self._seen: dict[Path, bytes] = {}

    def look(self, own: Mapping[str, ServerSettings]) -> None:
        """Read the current files; `own` are the user's servers, which no file can redefine."""
        self.untrusted, self.trusted, self.file = [], [], ServersFile()
        folder = self._folder()
        for name in PROJECT_FILES:
            path = folder / name
            try:
                if not path.exists():
                    continue
                file = self._look_at(path, name)
            except (OSError, ParleyError) as error:
                file = ServersFile(problems=(f"parley: {name}: {reason_of(error)}",))
            file = below(
                below(file, own, "your settings have", name), self.file.servers, _FIRST, name
            )
            self.file = ServersFile(
                {**self.file.servers, **file.servers}, (*self.file.problems, *file.problems)
            )

    def _look_at(self, path: Path, name: str) -> ServersFile:
        """The trusted part of the file; a file without servers needs no trust."""
        content = _content(path)
        file = read_servers(content, name, str(project_of(path)))
        if not file.servers:
            return file
        if _trusts(self._ledger(), path, content, file):
            self.trusted.append(path)
            return file
        self.untrusted.append(path)
        self._seen[path] = content
        return ServersFile()

    def seen(self, path: Path) -> bytes:
        """An untrusted file's content when `look` last read it."""
        return self._seen.get(path, b"")

    def trust(self, path: Path, content: bytes | None = None, *, pinned: bool = False) -> None:
        """Record that the user trusts a file's content, by default as `look` last read it.

        Raises ParleyError if the file has changed in the meantime.
        """
        if content is None:
            content = self._seen.get(path) or _content(path)
        trust(self._ledger(), path, digest(content), pinned=pinned)


def offered(path: Path) -> tuple[ServersFile, str]:
    """A file's entries, to be shown before the user trusts the file, and the digest of its content.

    Raises ParleyError if there is nothing to trust.
    """
    content, place = _content(path), _absolute(path)
    file = read_servers(content, str(path), str(project_of(place)))
    if not file.servers:
        problems = (problem.removeprefix("parley: ") for problem in file.problems)
        raise ParleyError(next(problems, f"{path} has no servers, so there is nothing to trust"))
    return file, digest(content)


def trust(ledger: LedgerFile, path: Path, expected: str, *, pinned: bool = False) -> None:
    """Record trust in a file's content, whose digest was `expected` when it was shown.

    With `pinned`, also records the current content of the project's programs that the file refers
    to. Raises ParleyError.
    """
    content, place = _content(path), _absolute(path)
    if digest(content) != expected:
        raise ParleyError(
            f"{path} has changed since it was shown. Review it again before you trust it"
        )
    file = read_servers(content, str(path), str(project_of(place)))
    ledger.trust(_key(place), _pin(content, file, project_of(place)) if pinned else digest(content))


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - links stay links


def findings(
    server: ServerSettings, folder: Path, environ: Mapping[str, str] | None = None
) -> Findings:
    """The program that a server would start, and the project's files and folders that the server's
    settings mention.

    Does not include the files that these files load in turn, which Parley cannot know.
    """
    from parley.tools.descriptions import Findings  # only for a server that the user looks at

    folder = _absolute(folder)
    with suppress(ParleyError):  # an unset variable stays as written
        server = server.expanded(os.environ if environ is None else environ)
    if server.url is not None or not server.command:
        return Findings()
    base = start_folder(server.cwd or ".", folder) or folder
    start = _program(server.command, server.env.get("PATH"), base) or ""
    files, folders = list[Path](), list[Path]()
    for place in dict.fromkeys(_places((start, *_words(server)), str(base), str(folder))):
        kind = _kind(place)
        if kind in (stat.S_IFREG, stat.S_IFDIR):
            (files if kind == stat.S_IFREG else folders).append(Path(place).relative_to(folder))
    return Findings(start, tuple(files), tuple(folders))


def _places(words: Iterable[str], base: str, folder: str) -> Iterator[str]:
    """The paths in a folder that some words refer to, relative to `base`; as strings, for speed."""
    below = folder.rstrip("/") + "/"
    for word in filter(None, words):
        place = os.path.normpath(os.path.join(base, word))  # noqa: PTH118
        if place == folder or place.startswith(below):
            yield place


def _kind(place: str) -> int:
    """The kind of file at a path; 0 if there is no file, or the system rejects the name."""
    try:
        return stat.S_IFMT(os.stat(place).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return 0


def programs(
    file: ServersFile, folder: Path, environ: Mapping[str, str] | None = None
) -> tuple[Path, ...]:
    """The files in a project's folder that its servers start or mention, relative to this
    folder.
    """
    paths = (
        path for server in file.servers.values() for path in findings(server, folder, environ).files
    )
    return tuple(dict.fromkeys(paths))


def _words(server: ServerSettings) -> Iterator[str]:
    """The words in an entry that may be paths; a variable may contain several paths or options."""
    for word in (server.command or "", *server.args):
        yield word
        yield word.rpartition("=")[2]
    for value in server.env.values():
        yield value
        yield from _SEPARATORS.split(value)


def _program(command: str, path: str | None, folder: Path) -> str | None:
    with suppress(OSError, ValueError, RuntimeError):  # a name that the system rejects
        return program(command, path, folder)
    return None


def _trusts(ledger: LedgerFile, path: Path, content: bytes, file: ServersFile) -> bool:
    if ledger.trusts(_key(path), digest(content)):
        return True
    with suppress(ParleyError):
        return ledger.trusts(_key(path), _pin(content, file, project_of(path)))
    return False  # content that cannot be pinned was never pinned


def _pin(content: bytes, file: ServersFile, folder: Path) -> str:
    """The pinned digest of a server file and its programs.

    A file without programs also has a digest, because a program may be added later.
    """
    digests = [digest(content)]
    for name in programs(file, folder):
        try:
            digests.append(f"{name} {sha256(folder / name, MOST_OF_A_PROGRAM)}")
        except OSError as error:
            raise ParleyError(f"{name} cannot be pinned: {error.strerror}") from error
    return digest("\n".join(digests).encode("utf-8", "surrogateescape"))


def _content(path: Path) -> bytes:
    try:
        if not path.exists():
            raise ParleyError(f"{path}: no such file")
        if not path.is_file():
            raise ParleyError(f"{path} is not a file")
        content = beginning(path, FILE_BYTES + 1)
    except OSError as error:
        raise ParleyError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > FILE_BYTES:
        raise ParleyError(f"{path} is too large for a server file")
    return content


def _key(path: Path) -> str:
    """A file's key: its servers run in the project that contains it, even if the file is a link."""
    folder = project_of(path)
    return str(Path(os.path.realpath(folder)) / path.relative_to(folder))
