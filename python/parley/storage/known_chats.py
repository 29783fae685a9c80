"""All chats that this machine knows: the chats in the ledger, in any folder, and the chat folder.

The ledger keeps each heading with the state of its file, so a list of thousands of chats opens only
the files that changed. A folder that does not reply is left out after a moment. Knows paths and
headings; other modules search and show them.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from parley.bounded_files import both_ends
from parley.chat.heading import ChatHeading, heading_of
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.storage.folder_visits import PATIENCE_S, visit_all
from parley.storage.ledger import Database

_FIRST = 8192
_LONG_FIRST = 262_144
"""The maximum number of bytes in which to look for a question's first words, because quoted lines
may precede the question.
"""
_LAST = 65_536
"""The bytes at the end of a chat in which to look for the agent that answered last."""

_LARGEST = 2**63 - 1
"""SQLite's largest number; some file systems have larger inodes."""
_FileState: TypeAlias = tuple[int, int, int]
"""A file's time of change (in nanoseconds), size and inode when its heading was read; the heading
is valid while they are the same.
"""
_KNOWN = """
SELECT chat, path IS NOT NULL, changed, size, inode, topic, agent, tags
FROM chats LEFT JOIN headings ON path = chat
"""
_OTHERS = """
SELECT path, 1, changed, size, inode, topic, agent, tags
FROM headings WHERE path NOT IN (SELECT chat FROM chats)
"""
_FORGET = "DELETE FROM headings WHERE path = ?"
_LOSE = "DELETE FROM chats WHERE chat = ?"
Look: TypeAlias = Callable[[str], os.stat_result]
"""Returns the state of a file, without following a link. Raises OSError."""


@frozen
class KnownChat:
    """A chat in a list."""

    file: str
    """The path of its file."""
    changed: float
    """The time of its last change, in seconds since 1970."""
    heading: ChatHeading
    problem: str = ""
    """Why the file cannot be read; "" if it can."""
    identity: tuple[int, int] = (0, 0)
    """Device and inode: two paths may lead to the same file."""

    @property
    def path(self) -> Path:
        """The path of its file."""
        return Path(self.file)


@frozen
class ChatCensus:
    """All known chats, newest first, and the folders that did not reply. Also counts the work: the
    files that were examined, and those that were opened.
    """

    chats: Sequence[KnownChat]
    silent: Sequence[Path] = ()
    examined: int = 0
    opened: int = 0


def known_chats(
    ledger: Database | None,
    folder: Path,
    look: Look = os.lstat,
    patience_s: float = PATIENCE_S,
) -> ChatCensus:
    """All chats in the ledger (None if there is no ledger) and in the chat folder.

    Leaves out deleted files, and files without a question.
    """
    shelf = _Shelf(ledger)
    rounds = _Rounds(folder, shelf, look)
    listed, silent = visit_all(rounds.folders(), rounds.visit, patience_s)
    with suppress(ParleyError):  # a list without the ledger's help is still a list
        shelf.keep(rounds.read, rounds.without_file(silent), rounds.gone)
    unique = list({chat.identity: chat for chat in reversed(listed)}.values())  # the first wins
    if silent:  # a search would wait for their files
        places = {str(folder) for folder in silent}
        unique = [chat for chat in unique if chat.file.rpartition("/")[0] not in places]
    chats = sorted(unique, key=lambda chat: (chat.changed, chat.file), reverse=True)
    return ChatCensus(chats, silent, len(rounds.examined), rounds.opened)


class _Shelf:
    """The known paths and the kept headings in the ledger."""

    def __init__(self, ledger: Database | None) -> None:
        self._ledger = ledger
        self.paths = list[str]()
        self.headings = dict[str, tuple[_FileState, ChatHeading]]()
        if ledger is None:
            return
        self.paths = [self._take(row) for row in ledger.read(_KNOWN, ())]
        for row in ledger.read(_OTHERS, ()):
            self._take(row)

    def _take(self, row: tuple[Any, ...]) -> str:
        stored, has_heading, changed, size, inode, topic, agent, tags = row
        path: str = stored.decode("utf-8", "surrogatepass")
        if has_heading:
            heading = ChatHeading(topic, agent, tuple(tags.split("\n")) if tags else ())
            self.headings[path] = (changed, size, inode), heading
        return path

    def keep(
        self,
        read: Mapping[str, tuple[_FileState, ChatHeading]],
        without_file: Collection[str],
        gone: Collection[str],
    ) -> None:
        """Keep the headings that were read, and forget those without a file, and the paths that are
        gone.
        """
        if self._ledger is None or not (read or without_file or gone):
            return
        rows = [
            (_stored(path), *state, heading.topic, heading.agent, "\n".join(heading.tags))
            for path, (state, heading) in list(read.items())
        ]
        with self._ledger.unsynced() as db:
            db.executemany("INSERT OR REPLACE INTO headings VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            for query, paths in ((_FORGET, without_file), (_LOSE, gone)):
                db.executemany(query, ((_stored(path),) for path in paths))


class _Rounds:
    """Visits folders, and reads the headings that the ledger does not have yet."""

    def __init__(self, folder: Path, shelf: _Shelf, look: Look) -> None:
        self._folder = str(folder)
        self._real = ""
        """The chat folder without links, where all files are found already; "" until its visit."""
        self._shelf = shelf
        self._look = look
        self._names = defaultdict[str, list[str]](list)
        for path in shelf.paths:
            place, _, name = path.rpartition("/")
            self._names[place].append(name)
        self.read = dict[str, tuple[_FileState, ChatHeading]]()
        self.gone = set[str]()
        """The files that are missing from an existing folder; if the folder is missing, too, it may
        be on a disk that will be mounted again.
        """
        self.examined = set[str]()
        self.opened = 0

    def folders(self) -> list[str]:
        """The folders to visit, the chat folder first."""
        return [self._folder, *self._names]

    def without_file(self, silent: Collection[Path]) -> list[str]:
        """The paths whose headings are of no use, unless their folder did not reply."""
        silent_folders = {str(folder) for folder in silent}
        return [
            path
            for path in self._shelf.headings
            if path not in self.examined and path.rpartition("/")[0] not in silent_folders
        ]

    def visit(self, folder: str) -> Iterator[KnownChat | None]:
        """The chats in a folder; yields after each file."""
        if folder == self._folder and not self._real:
            yield from self._visit_chat_folder()
            return
        for name in self._names[folder]:
            if folder != self._real or not name.endswith(".md"):
                yield self._known(folder, f"{folder}/{name}")

    def _visit_chat_folder(self) -> Iterator[KnownChat | None]:
        self._real = os.path.realpath(self._folder)
        names = set[str]()
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.endswith(".md"):
                    names.add(entry.name)
                    with suppress(OSError):
                        status = self._state(entry.path)
                        if stat.S_ISLNK(status.st_mode):
                            status = Path(entry.path).stat()
                        yield self._chat(entry.path, status)
        for name in self._names.get(self._real, ()):
            if name not in names and (self._real == self._folder or name.endswith(".md")):
                yield self._known(self._real, f"{self._real}/{name}")

    def _state(self, path: str) -> os.stat_result:
        status = self._look(path)
        self.examined.add(path)
        return status

    def _known(self, folder: str, path: str) -> KnownChat | None:
        """A chat in the ledger, whose path has no links; None if another kind of file is there."""
        try:
            return self._chat(path, self._state(path))
        except (FileNotFoundError, NotADirectoryError):
            if os.path.isdir(folder):  # noqa: PTH112 - unlike `Path.is_dir`, never raises
                self.gone.add(path)
        except (OSError, ValueError):
            pass
        return None

    def _chat(self, path: str, status: os.stat_result) -> KnownChat | None:
        if not stat.S_ISREG(status.st_mode):
            return None
        state = status.st_mtime_ns, status.st_size, status.st_ino & _LARGEST
        problem = ""
        kept = self._shelf.headings.get(path)
        if kept and kept[0] == state:
            heading = kept[1]
        else:
            try:
                self.opened += 1
                heading = _heading(Path(path))
                self.read[path] = state, heading
            except OSError as error:
                heading, problem = ChatHeading(""), error.strerror or "it cannot be read"
        if not (heading.topic or problem):
            return None
        identity = status.st_dev, status.st_ino
        return KnownChat(path, status.st_mtime, heading, problem, identity)


def _heading(path: Path) -> ChatHeading:
    """Read a chat's heading. Raises OSError."""
    for size in (_FIRST, _LONG_FIRST):
        first, last = both_ends(path, size, _LAST)
        heading = heading_of(*(part.decode("utf-8", "replace") for part in (first, last)))
        if heading.is_own or not last:
            break
    return heading


def _stored(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
