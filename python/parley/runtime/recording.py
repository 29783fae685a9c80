"""Records the changes that a call makes, or a command has made, so that they can be reverted."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Sequence
from pathlib import Path

from parley.frozen import frozen
from parley.policy.reverts import ChangeKind, RecordedChange
from parley.storage.changed_files import ChangedFiles
from parley.storage.checkpoints import Checkpoints
from parley.workspace.boundary import Boundary
from parley.workspace.planning import PlannedChange
from parley.workspace.snapshots import SnapshotChange


@frozen
class CallRecorder:
    """Implements the workspace's recorder for one call."""

    changes: ChangedFiles
    checkpoints: Checkpoints
    call_id: str
    kind: ChangeKind = "edit"
    reverts: int | None = None
    """The number of the change that is reverted."""

    async def begin(self, boundary: Boundary, change: PlannedChange) -> int:
        """Keep both contents, and record the change. Raises ParleyError."""
        keep = self.checkpoints.keep
        before = await asyncio.to_thread(keep, change.before.content)
        after = await asyncio.to_thread(keep, change.after)
        return self.changes.begin(
            RecordedChange(
                self.call_id,
                self.kind,
                boundary.root,
                boundary.path(change.place),
                before,
                after,
                change.before.mode,
                boundary.path(change.moved_to) if change.moved_to else None,
                self.reverts,
            )
        )

    async def record(
        self, root: Path, changes: Sequence[SnapshotChange], kind: ChangeKind = "command"
    ) -> None:
        """Record the changes that a command or an agent made, except for links and for contents that
        were not kept. Raises ParleyError.
        """
        made = list[RecordedChange]()
        for change in changes:
            modes = change.mode_before, change.mode_after
            if change.problem or stat.S_IFLNK in map(stat.S_IFMT, modes):
                continue
            before = await asyncio.to_thread(self.checkpoints.keep, change.before)
            after = await asyncio.to_thread(self.checkpoints.keep, change.after)
            mode = stat.S_IMODE(change.mode_before or change.mode_after)
            path = root / change.path
            made.append(RecordedChange(self.call_id, kind, root, path, before, after, mode))
        if made:
            self.changes.add(made)

    def end(self, number: int, *, is_done: bool) -> None:
        """Record the outcome."""
        self.changes.end([number], is_done=is_done)
