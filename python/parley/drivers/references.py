"""The texts that questions refer to: files of the working directory, resources of MCP servers.

Of files only what is inside the working directory is read, links resolved, nothing hidden, and only text,
up to a bound: a question may have been written by somebody else. For one file outside, the user is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from parley.chat.grammar import fit
from parley.chat.references import Brought, Reference, Resource
from parley.errors import ServerError
from parley.tools.results import size_text, visible

MOST_BYTES = 262_144
MOST_FILES = 100
OUTSIDE = "outside the working directory: not read"
INSIDE = "only patterns inside the working directory are read"


async def nobody_asked(_: Path) -> bool:
    """Where there is nobody to ask, the answer is no."""
    return False


class FileReferences:
    """Implements the engine's references; `folder` says what the working directory is now.

    `resource` reads a resource of a server, by its URI; it raises ServerError. `may_read` asks the user about
    a file outside of the working directory, by its real path.
    """

    def __init__(
        self,
        folder: Callable[[], Path],
        resource: Callable[[str, str], Awaitable[str]],
        may_read: Callable[[Path], Awaitable[bool]] = nobody_asked,
    ) -> None:
        self._folder = folder
        self._resource = resource
        self._may_read = may_read

    async def bring(self, reference: Reference) -> Sequence[Brought]:
        """The text of a file, or of all files of a glob; a line that says why where there is none."""
        if isinstance(reference, Resource):
            return [await self._read(reference)]
        try:
            return await self._bring_files(reference.name)
        except (OSError, ValueError, RuntimeError):  # of a name that no file system takes
            return [_missing(reference.name, "cannot be read")]

    async def _bring_files(self, name: str) -> Sequence[Brought]:
        folder = self._folder().resolve()
        if outside := await asyncio.to_thread(_outside, folder, name):
            allowed = await self._may_read(outside)
            return [await asyncio.to_thread(_text, outside, name) if allowed else _missing(name, OUTSIDE)]
        return await asyncio.to_thread(_files, folder, name)

    async def _read(self, reference: Resource) -> Brought:
        name = f"{reference.server}:{reference.uri}"
        try:
            return Brought(name, fit(await self._resource(reference.server, reference.uri)))
        except ServerError as error:
            return _missing(name, " ".join(visible(str(error)).split()))


def _outside(folder: Path, name: str) -> Path | None:
    """The real path of a file that is outside of the folder; None for any other, and for a glob."""
    path = None if _is_glob(name) else _place(folder, name)
    return path if path and not path.is_relative_to(folder) and path.is_file() else None


def _place(folder: Path, name: str) -> Path | None:
    """The real path that a name stands for, None where it can stand for none."""
    try:
        return (folder / Path(name).expanduser()).resolve()
    except (OSError, ValueError, RuntimeError):
        return None


def _is_glob(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def _files(folder: Path, name: str) -> Sequence[Brought]:
    if not _is_glob(name):
        path = _place(folder, name)
        return [_file(folder, path, name) if path else _missing(name, "no such file")]
    if name.count("**") > 1:  # which takes time without end
        return [_missing(name, "only patterns with ** once are read")]
    if ".." in Path(name).parts:
        return [_missing(name, INSIDE)]
    try:
        found = sorted(path for path in folder.glob(name) if path.is_file() and not _is_hidden(path, folder))
    except (ValueError, NotImplementedError):
        return [_missing(name, INSIDE)]
    brought = [_file(folder, path, path.relative_to(folder).as_posix()) for path in found[:MOST_FILES]]
    if len(found) > MOST_FILES:
        brought.append(_missing(name, f"{len(found) - MOST_FILES} more files are left out"))
    return brought or [_missing(name, "no file matches")]


def _file(folder: Path, path: Path, name: str) -> Brought:
    path = path.resolve()
    if not path.is_relative_to(folder):
        return _missing(name, OUTSIDE)
    if _is_hidden(path, folder):
        return _missing(name, "hidden: not read")
    return _text(path, name)


def _text(path: Path, name: str) -> Brought:
    """The text at a real path; a link that has taken its place since is not followed."""
    try:
        if path.resolve() != path:
            return _missing(name, "it is another file now: not read")
        size = path.stat().st_size
        if not path.is_file():
            return _missing(name, "no file: not read")
        if size > MOST_BYTES:
            return _missing(name, f"too large ({size_text(size)}): not read")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return _missing(name, "no text: not read")
    except OSError as error:
        return _missing(name, error.strerror or "cannot be read")
    return _missing(name, "no text: not read") if "\0" in text else Brought(name, text)


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _missing(name: str, why: str) -> Brought:
    return Brought(name, why, "missing")
