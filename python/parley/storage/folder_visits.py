"""Visits folders one after the other, some of which may be on a disk that does not reply.

Such a folder blocks the thread that reads it, so a second thread visits the remaining folders. Does
not know what is in a folder.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Generic, TypeVar

PATIENCE_S = 2.0
"""The maximum number of seconds to wait for one file."""
MOST_SILENT = 3
"""How many folders may fail to reply before the remaining folders are left out, too."""

_Item = TypeVar("_Item")
_blocked = dict[str, Thread]()
"""The folders that have not replied, each with the thread that still waits for it."""


def visit_all(
    folders: Iterable[str],
    visit: Callable[[str], Iterator[_Item | None]],
    patience_s: float = PATIENCE_S,
) -> tuple[list[_Item], Sequence[Path]]:
    """What `visit` yields for each folder, and the folders that did not reply.

    `visit` yields after each file, and None if the file is not useful.
    """
    known = list(dict.fromkeys(folders))
    silent = [folder for folder in known if folder in _blocked and _blocked[folder].is_alive()]
    items, left = list[_Item](), deque(folder for folder in known if folder not in silent)
    while left and len(silent) < MOST_SILENT:
        visitor = _Visitor(left, visit)
        visitor.start()
        while visitor.is_alive() and time.monotonic() - visitor.since < patience_s:
            visitor.join(max(0.001, visitor.since + patience_s - time.monotonic()))
        visitor.is_given_up = visitor.is_alive()
        items += list(visitor.items)
        if visitor.error:
            raise visitor.error
        if not visitor.is_given_up:
            break
        silent.append(visitor.folder)
        _blocked[visitor.folder] = visitor
        left = deque(visitor.left)
    else:
        silent += left
    return items, [Path(folder) for folder in silent]


class _Visitor(Thread, Generic[_Item]):
    """A thread that visits folders; ends with the process even if a folder never replies."""

    def __init__(
        self, folders: Iterable[str], visit: Callable[[str], Iterator[_Item | None]]
    ) -> None:
        super().__init__(name="parley-visitor", daemon=True)
        self._visit = visit
        self.left = deque(folders)
        self.folder = ""
        self.items = list[_Item]()
        self.since = time.monotonic()
        """When the last file replied."""
        self.is_given_up = False
        self.error: Exception | None = None

    def run(self) -> None:
        """Visit the folders that are left, until given up."""
        try:
            while self.left and not self.is_given_up:
                self.folder, self.since = self.left.popleft(), time.monotonic()
                for each in self._visit(self.folder):
                    self.since = time.monotonic()
                    if each is not None:
                        self.items.append(each)
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self.error = error
