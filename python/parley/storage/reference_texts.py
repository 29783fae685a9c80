"""The texts that questions include: files, the editor's texts, MCP servers' resources.

A stranger may have written the question. So a question may include only text and pictures from the
working directory, with links resolved. Before a question includes even one file from outside, or a
hidden file, Parley asks the user; this also applies to a file's text in the editor. It never
includes guarded files, such as files named like secrets. The size of the included content and the
time of the search are limited; for a pattern, a line lists the files left out.
"""

from __future__ import annotations

import asyncio
import stat
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from parley.chat.grammar import fit
from parley.chat.references import (
    IN_EDITOR,
    Lines,
    Live,
    Reference,
    ReferenceText,
    ResourceReference,
    lines_of,
    name_of,
)
from parley.errors import ParleyError, ServerError
from parley.frozen import frozen
from parley.media import PICTURE_BYTES, kind_of
from parley.storage.attachment_files import ChatAttachments
from parley.storage.bounds import Bounds, LeftOutError, RoomLeft, too_large
from parley.storage.diff import working_tree_diff
from parley.storage.patterns import is_dotted, is_pattern
from parley.storage.reference_files import (
    NamedPicture,
    lines_at,
    text_of,
    text_or_picture,
)
from parley.storage.reference_patterns import IS_HIDDEN, matching, missing
from parley.text import one_line, visible

OUTSIDE = "outside the working directory, so not read"


async def nobody_asked(_: Path) -> bool:
    """Refuse, because there is no user to ask."""
    return False


def all_guarded(_: str) -> str:
    """The reason for refusing any hidden file."""
    return "hidden"


@frozen
class HiddenFiles:
    """Which hidden files a question may include. `guard` returns why a path below the working
    directory must never be included, as an adjective, or "". `may_read` asks the user about any
    other hidden file, by its real path.
    """

    guard: Callable[[str], str] = all_guarded
    may_read: Callable[[Path], Awaitable[bool]] = nobody_asked

    async def refusal(self, folder: Path, path: Path) -> str:
        """Why a question may not include a hidden file below the working directory; "" if it may."""
        if why := self.guard(path.relative_to(folder).as_posix()):
            return f"{why}, so not read"
        return "" if await self.may_read(path) else IS_HIDDEN


@frozen
class EditorText:
    """A file's text in the editor: its path ("" if it has none yet), its title and the text."""

    path: str
    title: str
    text: str
    language: str
    """The info word of the text's fence."""


EditorTexts: TypeAlias = Callable[[str, int], Awaitable[EditorText]]
"""Returns the text for a name in `IN_EDITOR`, of at most so many bytes. Raises ParleyError."""


async def no_editor(name: str, most: int) -> EditorText:
    """Raise the error for a reference that needs an editor."""
    raise ParleyError("this reference needs an editor. Ask in Neovim, or name a file")


class FileReferences:
    """Implements the engine's references; `folder` returns the current working directory.

    `resource` reads a server's resource by its URI, and raises ServerError. `may_read` asks the
    user about a file outside the working directory, by its real path; `hidden` does so about hidden
    files. `attachments` stores pictures. `editor` returns an editor's texts. `now` is a clock in seconds.
    """

    def __init__(
        self,
        folder: Callable[[], Path],
        resource: Callable[[str, str], Awaitable[str]],
        may_read: Callable[[Path], Awaitable[bool]] = nobody_asked,
        attachments: ChatAttachments | None = None,
        editor: EditorTexts = no_editor,
        *,
        hidden: HiddenFiles | None = None,
        bounds: Bounds | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._resource = resource
        self._may_read = may_read
        self._attachments = attachments or ChatAttachments("")
        self._editor = editor
        self._hidden = hidden or HiddenFiles()
        self._bounds = bounds or Bounds()
        self._now = now

    async def bring(self, references: Sequence[Reference]) -> Sequence[ReferenceText]:
        """The texts of a question's references in order, each possibly replaced by the reason why
        it is missing.
        """
        room, most = RoomLeft(self._bounds, self._now), self._bounds.references
        texts = [
            text for reference in references[:most] for text in await self._bring(reference, room)
        ]
        if more := references[most:]:
            left = f"left out, with all references after it ({len(more)} in all)"
            why = f"{left}: a question can have at most {most} references"
            texts.append(missing(name_of(more[0]), why))
        return texts

    async def _bring(self, reference: Reference, room: RoomLeft) -> Sequence[ReferenceText]:
        if isinstance(reference, ResourceReference):
            return [await self._read(reference, room)]
        if isinstance(reference, Live):
            return [await self._live(reference.name, room)]
        try:
            contents = await self._bring_files(reference.name, room)
            return [
                c if isinstance(c, ReferenceText) else await self._attached(c) for c in contents
            ]
        except (OSError, ValueError, RuntimeError):  # a name that no file system accepts
            return [missing(reference.name, "cannot be read")]

    async def _attached(self, picture: NamedPicture) -> ReferenceText:
        try:
            attachment = await self._attachments.save(picture.content, picture.kind)
        except ParleyError as error:
            return missing(picture.name, f"not attached: {error}")
        return ReferenceText(visible(picture.name), "", picture=attachment)

    async def _bring_files(
        self, name: str, room: RoomLeft
    ) -> Sequence[ReferenceText | NamedPicture]:
        folder = self._folder().resolve()
        if is_pattern(name):
            return await asyncio.to_thread(matching, folder, name, room)
        lines = await asyncio.to_thread(_lines, folder, name)
        place = lines.path if lines else name
        if outside := await asyncio.to_thread(_outside, folder, place):
            if not await self._may_read(outside):
                return [missing(name, OUTSIDE)]
            return [await asyncio.to_thread(_one, outside, name, room, lines)]
        if hidden := await asyncio.to_thread(_hidden, folder, place):
            if why := await self._hidden.refusal(folder, hidden):
                return [missing(name, why)]
            return [await asyncio.to_thread(_one, hidden, name, room, lines)]
        return [await asyncio.to_thread(_inside, folder, name, room, lines)]

    async def _live(self, name: str, room: RoomLeft) -> ReferenceText:
        try:
            content = await (self._of_editor if name in IN_EDITOR else self._diff)(
                name, room.bounds
            )
            room.take(len(content.text.encode()))
        except ParleyError as error:
            return missing(name, one_line(str(error)))
        return content

    async def _diff(self, name: str, bounds: Bounds) -> ReferenceText:
        text = await working_tree_diff(self._folder(), bounds.file_bytes, bounds.seconds)
        return ReferenceText(name, fit(text), language="diff")

    async def _of_editor(self, name: str, bounds: Bounds) -> ReferenceText:
        """The editor's text of a file, if the question may include the file. Raises ParleyError."""
        content = await self._editor(name, bounds.file_bytes)
        if content.path:
            await self._check(content.path)
        text = fit(content.text)
        if (size := len(text.encode())) > bounds.file_bytes:
            raise too_large(size)
        return ReferenceText(visible(content.title), text, language=content.language)

    async def _check(self, name: str) -> None:
        """Raise LeftOutError unless a question may include this file, which need not exist."""
        folder = self._folder().resolve()
        path = await asyncio.to_thread(_place, folder, name)
        if path is None:
            raise LeftOutError("no such file")
        if not path.is_relative_to(folder):
            if not await self._may_read(path):
                raise LeftOutError(OUTSIDE)
        elif is_dotted(path.relative_to(folder).as_posix()) and (
            why := await self._hidden.refusal(folder, path)
        ):
            raise LeftOutError(why)

    async def _read(self, reference: ResourceReference, room: RoomLeft) -> ReferenceText:
        name = name_of(reference)
        try:
            text = fit(await self._resource(reference.server, reference.uri))
            room.take(len(text.encode()))
        except (ServerError, LeftOutError) as error:
            return missing(name, one_line(str(error)))
        return ReferenceText(visible(name), text)


def named_contents(folder: Path, names: Sequence[str]) -> list[ReferenceText | NamedPicture]:
    """The texts and pictures in files that the user names, wherever they are.

    Raises ParleyError if a file cannot be included. If a pattern leaves files out, one of
    the texts lists them.
    """
    room = _named_room()
    contents = [content for name in names for content in _named(folder.resolve(), name, room)]
    for content in contents:
        if isinstance(content, ReferenceText) and content.kind == "missing":
            raise ParleyError(f"{content.title}: {content.text}")
    return contents


def piped_content(content: bytes, name: str = "standard input") -> ReferenceText | NamedPicture:
    """The text or the picture that is read from a pipe. Raises ParleyError for anything else."""
    room = _named_room()
    try:
        kind, size = kind_of(content), len(content)
        if size > (room.bounds.picture_bytes if kind else room.bounds.file_bytes):
            raise too_large(size)
        return (
            NamedPicture(name, content, kind)
            if kind
            else ReferenceText(visible(name), text_of(content))
        )
    except LeftOutError as error:
        raise ParleyError(f"{visible(name)}: {error}") from error


def _named_room() -> RoomLeft:
    """The room for files that the user names: one file may use all of it."""
    return RoomLeft(Bounds(file_bytes=Bounds().all_bytes), time.monotonic)


def _named(folder: Path, name: str, room: RoomLeft) -> Sequence[ReferenceText | NamedPicture]:
    try:
        if (pipe := folder / name).is_fifo():  # a shell's `<(command)`
            with pipe.open("rb") as file:
                return [piped_content(file.read(PICTURE_BYTES + 1), name)]
        lines = _lines(folder, name)
        path = _place(folder, lines.path if lines else name)
        if is_pattern(name) and not (path and path.exists()):
            return matching(folder, name, room)
        return [_one(path, name, room, lines) if path else missing(name, "no such file")]
    except (OSError, ValueError, RuntimeError):  # a name that no file system accepts
        return [missing(name, "cannot be read")]


def _outside(folder: Path, name: str) -> Path | None:
    """The real path of a file outside the folder; None for any other file."""
    path = _place(folder, name)
    return path if path and not path.is_relative_to(folder) and _is_file(path) else None


def _hidden(folder: Path, name: str) -> Path | None:
    """The real path of a hidden file in the folder; None for any other file."""
    path = _place(folder, name)
    if path is None or not path.is_relative_to(folder):
        return None
    is_hidden = is_dotted(path.relative_to(folder).as_posix())
    return path if is_hidden and _is_file(path) else None


def _lines(folder: Path, name: str) -> Lines | None:
    """The line numbers in a name; None if a file with the whole name exists."""
    lines = lines_of(name)
    whole = _place(folder, name)
    return None if lines and whole and whole.exists() else lines


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)  # is_file() of 3.14 returns False for any error
    except (FileNotFoundError, NotADirectoryError):
        return False


def _place(folder: Path, name: str) -> Path | None:
    """The real path for a name; None if such a path cannot exist."""
    try:
        return (folder / Path(name).expanduser()).resolve()
    except (OSError, ValueError, RuntimeError):
        return None


def _inside(
    folder: Path, name: str, room: RoomLeft, lines: Lines | None
) -> ReferenceText | NamedPicture:
    path = _place(folder, lines.path if lines else name)
    if path is None:
        return missing(name, "no such file")
    if not path.is_relative_to(folder):
        return missing(name, OUTSIDE)
    if is_dotted(path.relative_to(folder).as_posix()):
        return missing(name, IS_HIDDEN)
    return _one(path, name, room, lines)


def _one(
    path: Path, name: str, room: RoomLeft, lines: Lines | None
) -> ReferenceText | NamedPicture:
    try:
        return lines_at(path, room, lines) if lines else text_or_picture(path, name, room)
    except LeftOutError as error:
        return missing(name, str(error))
