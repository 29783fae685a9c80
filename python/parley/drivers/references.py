"""The texts that questions refer to: files of the working directory, resources of MCP servers.

Of files only what is inside the working directory is read, links resolved, nothing hidden, and only text,
up to a bound: a question may have been written by somebody else.
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


class FileReferences:
    """Implements the engine's references; `folder` says what the working directory is now.

    `resource` reads a resource of a server, by its URI; it raises ServerError.
    """

    def __init__(self, folder: Callable[[], Path], resource: Callable[[str, str], Awaitable[str]]) -> None:
        self._folder = folder
        self._resource = resource

    async def bring(self, reference: Reference) -> Sequence[Brought]:
        """The text of a file, or of all files of a glob; a line that says why where there is none."""
        if isinstance(reference, Resource):
            return [await self._read(reference)]
        return await asyncio.to_thread(_files, self._folder().resolve(), reference.name)

    async def _read(self, reference: Resource) -> Brought:
        name = f"{reference.server}:{reference.uri}"
        try:
            return Brought(name, fit(await self._resource(reference.server, reference.uri)))
        except ServerError as error:
            return _missing(name, " ".join(visible(str(error)).split()))


def _files(folder: Path, name: str) -> Sequence[Brought]:
    if not any(sign in name for sign in "*?["):
        return [_file(folder, folder / Path(name).expanduser(), name)]
    try:
        found = sorted(path for path in folder.glob(name) if path.is_file() and not _is_hidden(path, folder))
    except (ValueError, NotImplementedError):
        return [_missing(name, "only patterns inside the working directory are read")]
    brought = [_file(folder, path, path.relative_to(folder).as_posix()) for path in found[:MOST_FILES]]
    if len(found) > MOST_FILES:
        brought.append(_missing(name, f"{len(found) - MOST_FILES} more files are left out"))
    return brought or [_missing(name, "no file matches")]


def _file(folder: Path, path: Path, name: str) -> Brought:
    path = path.resolve()
    if not path.is_relative_to(folder):
        return _missing(name, "outside the working directory: not read")
    if _is_hidden(path, folder):
        return _missing(name, "hidden: not read")
    try:
        if path.stat().st_size > MOST_BYTES:
            return _missing(name, f"too large ({size_text(path.stat().st_size)}): not read")
        return Brought(name, fit(path.read_text(encoding="utf-8")))
    except UnicodeDecodeError:
        return _missing(name, "no text: not read")
    except OSError as error:
        return _missing(name, error.strerror or "cannot be read")


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _missing(name: str, why: str) -> Brought:
    return Brought(name, why, "missing")
