"""The texts that questions include: files, the editor's texts, MCP servers' resources.

A stranger may have written the question. So it may include only text and pictures inside the
working directory, with links resolved, and no hidden files. Before a question includes a single
file from outside, Parley asks the user; this also applies to the editor's text of a file. The size
of the included content and the time of the search are limited; for a pattern, a line lists the
files left out.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from parley.bounded_files import beginning
from parley.chat.grammar import fit
from parley.chat.references import (
    IN_EDITOR,
    Lines,
    Live,
    Reference,
    ReferenceText,
    ResourceReference,
    language_of,
    lines_of,
    name_of,
)
from parley.errors import ParleyError, ServerError
from parley.media import PICTURE_BYTES, TYPES, kind_of
from parley.storage.attachment_files import ChatAttachments
from parley.storage.diff import working_tree_diff
from parley.storage.patterns import SearchBudget, files, is_dotted, is_pattern
from parley.text import counted, one_line, size_text, visible

OUTSIDE = "outside the working directory: not read"
INSIDE = "only patterns inside the working directory are read"
_HIDDEN = "hidden: not read"
_NO_TEXT = "it is not text"
_PICTURES = (*(f".{kind}" for kind in TYPES), ".jpeg")
_BEGINNING = 16
_READ_ONLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits for one question: on references, texts and bytes, and on the files examined."""

    references: int = 100
    texts: int = 100
    file_bytes: int = 262_144
    bytes_for_lines: int = 4_194_304
    """For a file from which only some lines are included."""
    all_bytes: int = 1_048_576
    opened: int = 1_000
    names: int = 20_000
    seconds: float = 5.0
    pictures: int = 20
    picture_bytes: int = PICTURE_BYTES


async def nobody_asked(_: Path) -> bool:
    """Refuse, because there is no user to ask."""
    return False


@dataclass(frozen=True, slots=True)
class EditorText:
    """A file's text in the editor: its path ("" if it has none yet), its title and the text."""

    path: str
    title: str
    text: str
    language: str
    """The info word of its fence."""


@dataclass(frozen=True, slots=True)
class NamedPicture:
    """A picture or a PDF to attach."""

    name: str
    content: bytes
    kind: str


EditorTexts: TypeAlias = Callable[[str, int], Awaitable[EditorText]]
"""Returns the text for a name in `IN_EDITOR`, of at most so many bytes. Raises ParleyError."""


async def no_editor(name: str, most: int) -> EditorText:
    """Raise the error for a reference that needs an editor."""
    raise ParleyError("only an editor has it. Ask in Neovim, or name a file")


class FileReferences:
    """Implements the engine's references; `folder` returns the current working directory.

    `resource` reads a server's resource by its URI, and raises ServerError. `may_read` asks the
    user about a file outside the working directory, by its real path. `attachments` stores
    pictures. `editor` returns an editor's texts. `now` is a clock in seconds.
    """

    def __init__(
        self,
        folder: Callable[[], Path],
        resource: Callable[[str, str], Awaitable[str]],
        may_read: Callable[[Path], Awaitable[bool]] = nobody_asked,
        attachments: ChatAttachments | None = None,
        editor: EditorTexts = no_editor,
        *,
        bounds: Bounds | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._resource = resource
        self._may_read = may_read
        self._attachments = attachments or ChatAttachments("")
        self._editor = editor
        self._bounds = bounds or Bounds()
        self._now = now

    async def bring(self, references: Sequence[Reference]) -> Sequence[ReferenceText]:
        """The texts of a question's references in order, or why a text is missing."""
        room, most = _Room(self._bounds, self._now), self._bounds.references
        texts = [
            text for reference in references[:most] for text in await self._bring(reference, room)
        ]
        if more := references[most:]:
            left = f"left out, with all references after it ({len(more)} in all)"
            why = f"{left}: a question has at most {most} references"
            texts.append(_missing(name_of(more[0]), why))
        return texts

    async def _bring(self, reference: Reference, room: _Room) -> Sequence[ReferenceText]:
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
            return [_missing(reference.name, "cannot be read")]

    async def _attached(self, picture: NamedPicture) -> ReferenceText:
        try:
            attachment = await self._attachments.save(picture.content, picture.kind)
        except ParleyError as error:
            return _missing(picture.name, f"not attached: {error}")
        return ReferenceText(visible(picture.name), "", picture=attachment)

    async def _bring_files(self, name: str, room: _Room) -> Sequence[ReferenceText | NamedPicture]:
        folder = self._folder().resolve()
        if is_pattern(name):
            return await asyncio.to_thread(_all, folder, name, room)
        lines = await asyncio.to_thread(_lines, folder, name)
        place = lines.path if lines else name
        if outside := await asyncio.to_thread(_outside, folder, place):
            if not await self._may_read(outside):
                return [_missing(name, OUTSIDE)]
            return [await asyncio.to_thread(_one, outside, name, room, lines)]
        return [await asyncio.to_thread(_inside, folder, name, room, lines)]

    async def _live(self, name: str, room: _Room) -> ReferenceText:
        try:
            content = await (self._of_editor if name in IN_EDITOR else self._diff)(
                name, room.bounds
            )
            room.take(len(content.text.encode()))
        except ParleyError as error:
            return _missing(name, one_line(str(error)))
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
            raise _too_large(size)
        return ReferenceText(visible(content.title), text, language=content.language)

    async def _check(self, name: str) -> None:
        """Raise _LeftOutError unless a question may include this file, which need not exist."""
        folder = self._folder().resolve()
        path = await asyncio.to_thread(_place, folder, name)
        if path is None:
            raise _LeftOutError("no such file")
        if not path.is_relative_to(folder):
            if not await self._may_read(path):
                raise _LeftOutError(OUTSIDE)
        elif is_dotted(path.relative_to(folder).as_posix()):
            raise _LeftOutError(_HIDDEN)

    async def _read(self, reference: ResourceReference, room: _Room) -> ReferenceText:
        name = name_of(reference)
        try:
            text = fit(await self._resource(reference.server, reference.uri))
            room.take(len(text.encode()))
        except (ServerError, _LeftOutError) as error:
            return _missing(name, one_line(str(error)))
        return ReferenceText(visible(name), text)


class _LeftOutError(ParleyError):
    """Why a file is not included, and the kind of this reason, for a summary of many files."""

    def __init__(self, why: str, kind: str = "cannot be read") -> None:
        super().__init__(why)
        self.kind = kind


class _Room:
    """The remaining room for included content, and for the search."""

    def __init__(self, bounds: Bounds, now: Callable[[], float]) -> None:
        until = now() + bounds.seconds
        self.bounds = bounds
        self.looks = SearchBudget(bounds.names, lambda: now() > until)
        self._texts, self._bytes, self._opened = bounds.texts, bounds.all_bytes, bounds.opened
        self._pictures = bounds.pictures

    def open(self) -> bool:
        """Whether one more file that matches a pattern may be opened; if so, counts it."""
        self._opened -= 1
        return self._texts > 0 and self._bytes > 0 and self._opened >= 0

    def take(self, size: int) -> None:
        """Use room for a text, or raise _LeftOutError."""
        if self._texts <= 0 or size > self._bytes:
            raise _LeftOutError(f"left out: {self.most()}. Ask about it in another question", _MORE)
        self._texts -= 1
        self._bytes -= size

    def take_picture(self) -> None:
        """Use room for a picture, or raise _LeftOutError."""
        if self._pictures <= 0:
            most = f"a question includes at most {self.bounds.pictures} pictures"
            raise _LeftOutError(
                f"left out: {most}. Ask about it in another question", _MORE_PICTURES
            )
        self._pictures -= 1

    def most(self) -> str:
        """The limits in words."""
        size = size_text(self.bounds.all_bytes)
        return f"a question includes at most {self.bounds.texts} texts and {size} in all"


def named_contents(folder: Path, names: Sequence[str]) -> list[ReferenceText | NamedPicture]:
    """The texts and pictures in files that the user names, wherever they are.

    Raises ParleyError if a file cannot be included. A text lists the files that a pattern leaves
    out.
    """
    room = _named_room()
    contents = [content for name in names for content in _named(folder.resolve(), name, room)]
    for content in contents:
        if isinstance(content, ReferenceText) and content.kind == "missing":
            raise ParleyError(f"{content.title}: {content.text}")
    return contents


def piped_content(content: bytes, name: str = "standard input") -> ReferenceText | NamedPicture:
    """The text or picture from a pipe. Raises ParleyError for anything else."""
    room = _named_room()
    try:
        kind, size = kind_of(content), len(content)
        if size > (room.bounds.picture_bytes if kind else room.bounds.file_bytes):
            raise _too_large(size)
        return (
            NamedPicture(name, content, kind)
            if kind
            else ReferenceText(visible(name), _text_of(content))
        )
    except _LeftOutError as error:
        raise ParleyError(f"{visible(name)}: {error}") from error


def _named_room() -> _Room:
    """The room for files that the user names: one file may use all of it."""
    return _Room(Bounds(file_bytes=Bounds().all_bytes), time.monotonic)


def _named(folder: Path, name: str, room: _Room) -> Sequence[ReferenceText | NamedPicture]:
    try:
        if (pipe := folder / name).is_fifo():  # a shell's `<(command)`
            with pipe.open("rb") as file:
                return [piped_content(file.read(PICTURE_BYTES + 1), name)]
        lines = _lines(folder, name)
        path = _place(folder, lines.path if lines else name)
        if is_pattern(name) and not (path and path.exists()):
            return _all(folder, name, room)
        return [_one(path, name, room, lines) if path else _missing(name, "no such file")]
    except (OSError, ValueError, RuntimeError):  # a name that no file system accepts
        return [_missing(name, "cannot be read")]


_MORE, _MORE_PICTURES = "more", "too many pictures"


def _outside(folder: Path, name: str) -> Path | None:
    """The real path of a file outside the folder; None for any other file."""
    path = _place(folder, name)
    return path if path and not path.is_relative_to(folder) and _is_file(path) else None


def _lines(folder: Path, name: str) -> Lines | None:
    """The line numbers in a name; None if a file has the whole name."""
    lines = lines_of(name)
    whole = _place(folder, name)
    return None if lines and whole and whole.exists() else lines


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)  # is_file() of 3.14 returns False for any error
    except (FileNotFoundError, NotADirectoryError):
        return False


def _place(folder: Path, name: str) -> Path | None:
    """The real path for a name; None if there cannot be one."""
    try:
        return (folder / Path(name).expanduser()).resolve()
    except (OSError, ValueError, RuntimeError):
        return None


def _inside(
    folder: Path, name: str, room: _Room, lines: Lines | None
) -> ReferenceText | NamedPicture:
    path = _place(folder, lines.path if lines else name)
    if path is None:
        return _missing(name, "no such file")
    if not path.is_relative_to(folder):
        return _missing(name, OUTSIDE)
    if is_dotted(path.relative_to(folder).as_posix()):
        return _missing(name, _HIDDEN)
    return _one(path, name, room, lines)


def _one(path: Path, name: str, room: _Room, lines: Lines | None) -> ReferenceText | NamedPicture:
    try:
        return _of_lines(path, room, lines) if lines else _text_or_picture(path, name, room)
    except _LeftOutError as error:
        return _missing(name, str(error))


def _text_or_picture(path: Path, name: str, room: _Room) -> ReferenceText | NamedPicture:
    """A file's content as a model sees it. Raises _LeftOutError."""
    return _picture(path, name, room) or ReferenceText(visible(name), _text(path, name, room))


def _of_lines(path: Path, room: _Room, lines: Lines) -> ReferenceText:
    """Lines of the text at a real path. Raises _LeftOutError."""
    brought = lines.of(_decoded(path, lines.path, room.bounds.bytes_for_lines))
    if brought is None:
        raise _LeftOutError("there are no such lines")
    text, title = brought
    if (size := len(text.encode())) > room.bounds.file_bytes:
        raise _too_large(size)
    room.take(size)
    return ReferenceText(visible(title), text, language=language_of(lines.path))


def _all(folder: Path, pattern: str, room: _Room) -> Sequence[ReferenceText | NamedPicture]:
    """The texts that match a pattern, and a line that lists the files left out.

    Pictures match only if the pattern ends like their names, because they are large and `src/*`
    means text.
    """
    texts, left = list[ReferenceText | NamedPicture](), Counter[str]()
    read = _text_or_picture if pattern.lower().endswith(_PICTURES) else _text_only
    if is_dotted("/".join(part for part in pattern.split("/") if part not in (".", ".."))):
        return [_missing(pattern, _HIDDEN)]
    try:
        for name in files(folder, pattern, room.looks):
            path = (folder / name).resolve()
            if not path.is_relative_to(folder) or is_dotted(path.relative_to(folder).as_posix()):
                left["outside the working directory or hidden"] += 1
            elif not room.open():
                left[_MORE] += 1
            else:
                try:
                    texts.append(read(path, name, room))
                except _LeftOutError as error:
                    left[error.kind] += 1
    except ValueError:
        return [_missing(pattern, INSIDE)]
    texts.sort(key=lambda text: text.title if isinstance(text, ReferenceText) else text.name)
    if reasons := list(_left_out(left, room)):
        kind: Literal["partial", "missing"] = "partial" if texts else "missing"
        why = f"left out: {', '.join(reasons)}{_how_to_narrow(left, room)}"
        texts.append(ReferenceText(visible(pattern), visible(why), kind))
    return texts or [_missing(pattern, "no file matches")]


def _left_out(left: Counter[str], room: _Room) -> Iterator[str]:
    for kind, count in sorted(left.items()):
        if kind != _MORE:
            yield f"{counted(count, 'file')} ({kind})"
    if room.looks.closed:
        yield f"{counted(room.looks.closed, 'folder')} (cannot be read)"
    if count := left[_MORE]:
        yield f"{counted(count, 'more file')} ({room.most()})"
    if room.looks.ended == "names":
        yield f"everything beyond the first {room.bounds.names} file and folder names"
    if room.looks.ended == "time":
        yield f"everything not found within {room.bounds.seconds:g} seconds"


def _how_to_narrow(left: Counter[str], room: _Room) -> str:
    if not (left[_MORE] or room.looks.ended):
        return ""
    return ". Name a folder, or a pattern that matches fewer files, such as src/*.py"


def _text_only(path: Path, name: str, room: _Room) -> ReferenceText:
    return ReferenceText(visible(name), _text(path, name, room))


def _picture(path: Path, name: str, room: _Room) -> NamedPicture | None:
    """The picture at a real path; None for anything else. Raises _LeftOutError."""
    try:
        kind = kind_of(beginning(path, _BEGINNING)) if path.resolve() == path else None
        if kind is None:
            return None
        room.take_picture()
        return NamedPicture(name, _content(path, name, room.bounds.picture_bytes), kind)
    except OSError:
        return None  # reading it as text reports the reason


def _text(path: Path, name: str, room: _Room) -> str:
    """The text at a real path."""
    text = _decoded(path, name, room.bounds.file_bytes)
    room.take(len(text.encode()))
    return text


def _decoded(path: Path, name: str, most: int) -> str:
    """The text at a real path; does not follow a link that has replaced the file."""
    if path.resolve() != path:
        raise _LeftOutError("another file has replaced it: not read")
    try:
        content = _content(path, name, most)
    except OSError as error:
        raise _LeftOutError(error.strerror or "cannot be read") from error
    return _text_of(content)


def _text_of(content: bytes) -> str:
    """The text of bytes, with Unix line ends. Raises ParleyError if they are not text."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise _LeftOutError(_NO_TEXT, "no text") from error
    if "\0" in text:
        raise _LeftOutError(_NO_TEXT, "no text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(path: Path, name: str, most: int) -> bytes:
    """The bytes of a regular file, at most `most`: other files may be endless, or block."""
    _regular(os.lstat(path), name, most)  # first: some devices act when they are merely opened
    with os.fdopen(os.open(path, _READ_ONLY), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        _regular(status, name, most)
        content = bytearray()
        while piece := file.read(
            most + 1 - len(content)
        ):  # the file may grow while it is read, and /proc reports no sizes
            content += piece
    if len(content) > most:
        raise _too_large(len(content), "more than ")
    return bytes(content)


def _regular(status: os.stat_result, name: str, most: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise _LeftOutError(
            f"a folder: not read. A pattern such as {name.rstrip('/')}/* includes its files"
        )
    if stat.S_ISLNK(status.st_mode):  # a circular link, which Python 3.13 resolves to itself
        raise _LeftOutError("no such file")
    if not stat.S_ISREG(status.st_mode):
        raise _LeftOutError("not a regular file: not read")
    if status.st_size > most:
        raise _too_large(status.st_size)


def _too_large(size: int, about: str = "") -> _LeftOutError:
    return _LeftOutError(f"too large ({about}{size_text(size)}): not read", "too large")


def _missing(name: str, why: str) -> ReferenceText:
    return ReferenceText(visible(name), visible(why), "missing")
