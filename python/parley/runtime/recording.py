"""Records the changes that a call makes, so that they can be reverted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from parley.policy.reverts import ChangeKind, RecordedChange
from parley.storage.changed_files import ChangedFiles
from parley.storage.checkpoints import Checkpoints
from parley.workspace.boundary import Boundary
from parley.workspace.planning import PlannedChange


@dataclass(frozen=True, slots=True)
class CallRecorder:
    """Implements the workspace's recorder for one call."""

    changes: ChangedFiles
    checkpoints: Checkpoints
    call_id: str
    kind: ChangeKind = "edit"
    reverts: int | None = None
    """The number of the change that is taken back."""

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

    def end(self, number: int, *, is_done: bool) -> None:
        """Record the outcome."""
        self.changes.end([number], is_done=is_done)
