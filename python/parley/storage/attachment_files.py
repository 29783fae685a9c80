"""The files next to a chat, in `NAME.assets/`, each named after the SHA-256 hash of its bytes.

Anyone may have written the chat. So Parley reads only regular files directly in a folder `*.assets`
next to the chat. It does not follow links, never waits, reads a limited number of bytes, and uses
only files whose content matches their name. It does not read a file with a second name (a hard
link), which may come from elsewhere. It never overwrites or deletes anything.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

from parley.chat.attachments import attachment_of, is_name, linked
from parley.chat.transcript import Attachment, Problem, Transcript
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.media import PICTURE_BYTES, kind_of
from parley.text import one_line, size_text

MOST_TEXT = 100_000_000
"""The maximum number of bytes of a text, and of all texts that are read at once."""
_PIECE = 1_000_000
_MOST_KEPT = 64_000_000
"""The number of bytes that are kept for the next request."""

_BESIDE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = _BESIDE | os.O_DIRECTORY


_Value = TypeVar("_Value")


async def _in_thread(function: Callable[..., _Value], *arguments: object) -> _Value:
    """Run a function that waits for the disk, and return its value."""
    from asyncio import to_thread  # here, because some commands do not need it

    return await to_thread(function, *arguments)


class _NotReadError(ParleyError):
    """The reason why an attachment is not used."""


@frozen
class _Seen:
    """A file's state when it was read; another file with the same name is not trusted."""

    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, status: os.stat_result) -> _Seen:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns)


class AttachmentCache:
    """The verified contents of files that have not changed in the meantime; drops the oldest
    contents first.
    """

    def __init__(self) -> None:
        self._contents: dict[tuple[str, _Seen], bytes] = {}

    def get(self, digest: str, seen: _Seen) -> bytes | None:
        """The content of an unchanged file."""
        return self._contents.get((digest, seen))

    def put(self, digest: str, seen: _Seen, content: bytes) -> None:
        """Keep the content of a file."""
        self._contents[digest, seen] = content
        while sum(map(len, self._contents.values())) > _MOST_KEPT:
            del self._contents[next(iter(self._contents))]


class ChatAttachments:
    """Implements the engine's attachments for a chat file; "" means a chat without a file."""

    def __init__(self, chat: str, cache: AttachmentCache | None = None) -> None:
        self._path = chat
        self._cache = cache or AttachmentCache()

    @cached_property
    def _chat(self) -> Path | None:
        """The chat's real path, found when a file next to it is first needed."""
        return Path(os.path.realpath(self._path)) if self._path else None

    async def read(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        """The attachments' contents by path, each verified by its file's name, or the reason why a
        content is missing.
        """
        return await _in_thread(self.contents, attachments)

    def contents(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        """The same function, for callers that may block."""
        found, room = dict[str, bytes | str](), MOST_TEXT
        for attachment in attachments:
            content = found[attachment.path] = self._content(attachment, most_text=room)
            room -= len(content) if attachment.is_text and isinstance(content, bytes) else 0
        return found

    async def save(self, content: bytes, suffix: str) -> Attachment:
        """Write bytes next to the chat, so that a link can name them. Raises ParleyError."""
        return await _in_thread(self.put, content, suffix)

    def put(self, content: bytes, suffix: str) -> Attachment:
        """The same function, for callers that may block."""
        if self._chat is None or not self._chat.parent.is_dir():
            raise ParleyError("it needs a file next to the chat. Save the chat first")
        folder = f"{self._chat.stem}.assets"
        try:
            attachment = attachment_of(content, folder, suffix)
        except ValueError as error:
            raise ParleyError(
                f"the chat's name {self._chat.name!r} cannot be used in a link. Rename the chat"
            ) from error
        try:
            with _made_folder(self._chat.parent, folder) as handle:
                _write(handle, attachment.path.rpartition("/")[2], content)
        except OSError as error:
            raise ParleyError(
                f"cannot write {one_line(attachment.path)}: {error.strerror}"
            ) from error
        if isinstance(problem := self._content(attachment), str):
            raise ParleyError(f"{one_line(attachment.path)} already exists: {problem}")
        return attachment

    def pictures(self, transcript: Transcript) -> Mapping[str, bytes]:
        """The contents of a chat's existing pictures."""
        contents = self.contents([a for _, a in linked(transcript) if not a.is_text])
        return {path: content for path, content in contents.items() if isinstance(content, bytes)}

    async def missing(self, transcript: Transcript) -> Sequence[Problem]:
        """Attachment problems that can be found without reading the files, such as missing
        files.
        """
        links = [(holder.span.start, attachment) for holder, attachment in linked(transcript)]
        return await _in_thread(lambda: list(self._missing(links))) if links else []

    def _missing(self, links: Sequence[tuple[int, Attachment]]) -> Iterator[Problem]:
        for line, attachment in links:
            if isinstance(problem := self._content(attachment, is_proved=False), str):
                yield Problem(line, 0, "warning", f"{one_line(attachment.path)}: {problem}")

    def problems(self, transcript: Transcript) -> Iterator[Problem]:
        """All of a chat's attachment problems: files that are missing, wrong or not linked."""
        names = set[str]()
        for holder, attachment in linked(transcript):
            names.add(attachment.path)
            content = self._content(attachment)
            if isinstance(content, str):
                yield Problem(
                    holder.span.start, 0, "warning", f"{one_line(attachment.path)}: {content}"
                )
        for path in self._own_files():
            if path not in names:
                yield Problem(0, 0, "hint", f"{one_line(path)} is not linked from this chat")

    def _own_files(self) -> list[str]:
        if self._chat is None:
            return []
        folder = f"{self._chat.stem}.assets"
        try:
            with _folder(self._chat.parent, folder) as handle:
                return sorted(f"{folder}/{e.name}" for e in os.scandir(handle) if is_name(e.name))
        except (OSError, _NotReadError):
            return []

    def _content(
        self, attachment: Attachment, *, is_proved: bool = True, most_text: int | None = None
    ) -> bytes | str:
        """An attachment's bytes, or the reason why they are missing; reads no bytes unless
        `is_proved`.
        """
        if self._chat is None:
            return "this chat has no file yet"
        folder, _, name = attachment.path.partition("/")
        most_text = MOST_TEXT if most_text is None else most_text
        most = most_text if attachment.is_text else PICTURE_BYTES
        try:
            with _folder(self._chat.parent, folder) as handle:
                if not is_proved:
                    _check(os.stat(name, dir_fd=handle, follow_symlinks=False), most)
                    return b""
                content = self._file(handle, name, attachment.digest, most)
        except _NotReadError as error:
            return str(error)
        except OSError as error:
            return (
                "no such file"
                if error.errno == errno.ENOENT
                else error.strerror or "cannot be read"
            )
        except ValueError:  # a name that no file system accepts
            return "no such file"
        if not attachment.is_text and kind_of(content) != name.rpartition(".")[2]:
            return "its content does not match its name"
        return content

    def _file(self, folder: int, name: str, digest: str, most: int) -> bytes:
        """The bytes of a file that match its name. Raises OSError and _NotReadError."""
        _check(
            os.stat(name, dir_fd=folder, follow_symlinks=False), most
        )  # some devices act when they are merely opened
        with os.fdopen(os.open(name, _BESIDE, dir_fd=folder), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            _check(status, most)
            seen = _Seen.of(status)
            if (known := self._cache.get(digest, seen)) is not None:
                return known
            pieces = bytearray()
            while piece := file.read(
                min(_PIECE, most + 1 - len(pieces))
            ):  # the file may grow while it is read
                pieces += piece
        content = bytes(pieces)
        if hashlib.sha256(content).hexdigest() != digest:
            raise _NotReadError("its content does not match its name")
        self._cache.put(digest, seen, content)
        return content


@contextmanager
def _folder(parent: Path, name: str) -> Iterator[int]:
    """A folder next to the chat, but not a link. Raises OSError and _NotReadError."""
    outer = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if stat.S_ISLNK(os.stat(name, dir_fd=outer, follow_symlinks=False).st_mode):
            raise _NotReadError("its folder is a link, so not read")
        inner = os.open(name, _FOLDER, dir_fd=outer)
    finally:
        os.close(outer)
    try:
        yield inner
    finally:
        os.close(inner)


@contextmanager
def _made_folder(parent: Path, name: str) -> Iterator[int]:
    """The folder next to the chat, created if necessary and then private to the user."""
    with suppress(FileExistsError):
        (parent / name).mkdir(0o700)
    with _folder(parent, name) as handle:
        yield handle


def _write(folder: int, name: str, content: bytes) -> None:
    """Write a complete file or nothing; an existing file stays unchanged."""
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        return
    new = f".parley-{token_hex(8)}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(new, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise


def _check(status: os.stat_result, most: int) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise _NotReadError("a link, so not read")
    if not stat.S_ISREG(status.st_mode):
        raise _NotReadError("not a regular file, so not read")
    if status.st_nlink > 1:
        raise _NotReadError(
            "it has a second name (a hard link), so it is not read. Replace it with a copy"
        )
    if status.st_size > most:
        raise _NotReadError(
            f"too large ({size_text(status.st_size)}, at most {size_text(most)}), so not read"
        )
