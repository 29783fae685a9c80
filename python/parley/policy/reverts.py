"""The changes that calls made to files, and which of them a revert takes back. Pure.

A revert is a change, too: it is recorded, and can be reverted. Knows digests; does not know files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from parley.frozen import frozen

ChangeKind: TypeAlias = Literal["edit", "command", "revert"]
ChangeState: TypeAlias = Literal["begun", "done", "failed"]
"""`begun`: the process ended before it could record the outcome; the file tells."""


@frozen
class RecordedChange:
    """One change of one file, as the ledger records it before the file is written."""

    call_id: str
    kind: ChangeKind
    root: Path
    """The workspace's root at that time, which contains the file."""
    path: Path
    before: str
    """The digest of the content before; "" if there was no file."""
    after: str
    """The digest of the content after; "" if there is no file."""
    mode: int = 0o644
    """The file's mode before, or after if there was no file."""
    moved_to: Path | None = None
    reverts: int | None = None
    """The number of the change that this one reverts."""
    number: int = 0
    at: float = 0.0
    """Seconds since 1970."""
    state: ChangeState = "begun"

    @property
    def place(self) -> Path:
        """Where the file is after the change."""
        return self.moved_to or self.path


@frozen
class ChangeHistory:
    """A change by a call, and what was done to it since."""

    change: RecordedChange
    last: RecordedChange
    """The change itself, or the last revert of it or of an earlier revert. Its content after is what
    the file should have."""
    is_reverted: bool = False


def histories(changes: Iterable[RecordedChange]) -> list[ChangeHistory]:
    """Each call's changes, in their order, with what the given reverts did to them."""
    found, roots = dict[int, ChangeHistory](), dict[int, int]()
    for change in changes:
        if change.reverts is None:
            roots[change.number] = change.number
            found[change.number] = ChangeHistory(change, change)
        elif change.reverts in roots:
            root = roots[change.number] = roots[change.reverts]
            before = found[root]
            found[root] = ChangeHistory(before.change, change, not before.is_reverted)
    return list(found.values())


def of_calls(changes: Iterable[RecordedChange], calls: Collection[str]) -> list[RecordedChange]:
    """The changes that these calls made."""
    return [change for change in changes if change.call_id in calls]


def of_file(changes: Iterable[RecordedChange], path: Path) -> list[RecordedChange]:
    """The changes that concern a file under one of its names."""
    return [change for change in changes if path in (change.path, change.moved_to)]


def reverted(change: RecordedChange) -> RecordedChange:
    """The change that takes a change back."""
    return RecordedChange(
        change.call_id,
        "revert",
        change.root,
        change.place,
        change.after,
        change.before,
        change.mode,
        change.path if change.moved_to else None,
        change.number,
    )
