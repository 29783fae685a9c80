"""Takes back the changes that calls made to files, next week as well as now.

A file that has changed since is not touched; the user gets what is needed for a three-way diff.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from parley.errors import ParleyError
from parley.policy.reverts import ChangeHistory, RecordedChange, reverted
from parley.runtime.recording import CallRecorder
from parley.storage.changed_files import ChangedFiles
from parley.storage.checkpoints import MOST_DAYS_KEPT, Checkpoints
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import EditorFiles
from parley.workspace.planning import FileState, PlannedChange, state_of
from parley.workspace.writing import ChangedError, carry_out


@dataclass(frozen=True, slots=True)
class RevertConflict:
    """A file that has changed since the call changed it."""

    path: Path
    left: bytes | None
    """The content that the call left; the base of a three-way diff."""
    now: bytes | None
    """The present content."""
    restored: bytes | None
    """The content that the revert would restore."""


@dataclass(slots=True)
class RevertOutcome:
    """What a revert did."""

    reverted: list[Path] = field(default_factory=list)
    conflicts: list[RevertConflict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why other files were not reverted, and remarks on reverted ones."""


@dataclass(frozen=True, slots=True)
class Reverter:
    """Reverts changes of one chat."""

    changes: ChangedFiles
    checkpoints: Checkpoints
    editor: EditorFiles

    async def revert(self, histories: Sequence[ChangeHistory]) -> RevertOutcome:
        """Take these changes back, the newest first; changes that are taken back are repeated."""
        outcome, blocked = RevertOutcome(), set[Path]()
        for history in sorted(histories, key=lambda history: -history.last.number):
            change = reverted(history.last)
            if change.path in blocked:
                continue
            try:
                if await self._make(change, outcome):
                    outcome.reverted.append(change.place)
                    continue
            except ChangedError:
                outcome.conflicts.append(await self._conflict(change))
            except ParleyError as error:
                outcome.problems.append(str(error))
            blocked |= {change.path, change.place}
        return outcome

    async def _make(self, change: RecordedChange, outcome: RevertOutcome) -> bool:
        """Make one change; False if the file already is as wanted. Raises ParleyError."""
        boundary = Boundary(change.root)
        place = boundary.place(str(change.path))
        now = await _state(boundary, self.editor, place)
        if _digest(now.content) != change.before:
            if _digest(now.content) == change.after and not change.moved_to:
                return False
            raise ChangedError(place)
        wanted = await asyncio.to_thread(self._content, change.after)
        moved_to = boundary.place(str(change.moved_to)) if change.moved_to else ""
        planned = PlannedChange(place, now, wanted, moved_to, change.mode)
        recorder = CallRecorder(
            self.changes, self.checkpoints, change.call_id, "revert", change.reverts
        )
        outcome.problems += await carry_out([planned], boundary, self.editor, recorder)
        return True

    async def _conflict(self, change: RecordedChange) -> RevertConflict:
        boundary = Boundary(change.root)
        now = await _state(boundary, self.editor, boundary.place(str(change.path)))
        left, wanted = (
            self.checkpoints.content(digest) if digest else None
            for digest in (change.before, change.after)
        )
        return RevertConflict(change.path, left, now.content, wanted)

    def _content(self, digest: str) -> bytes | None:
        if not digest:
            return None
        if (content := self.checkpoints.content(digest)) is None:
            raise ParleyError(
                f"the old content was deleted: Parley keeps it for {MOST_DAYS_KEPT} days"
            )
        return content


async def _state(boundary: Boundary, editor: EditorFiles, place: str) -> FileState:
    try:
        return await state_of(boundary, editor, place)
    except OSError as error:
        raise ParleyError(f"{place} cannot be read: {error.strerror}") from error


def _digest(content: bytes | None) -> str:
    """A content's digest as the ledger records it."""
    return "" if content is None else hashlib.sha256(content).hexdigest()
