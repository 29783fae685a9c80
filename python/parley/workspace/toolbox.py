"""What the workspace's tools work with: the files, the editor, the records and the commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from parley.frozen import frozen
from parley.workspace.boundary import Boundary
from parley.workspace.change_tools import CallOrigin
from parley.workspace.command_tool import CommandRecorder, CommandTool
from parley.workspace.editor_code import EditorCode
from parley.workspace.editor_files import EditorFiles, NoEditor
from parley.workspace.planning import PlannedChange
from parley.workspace.snapshots import SnapshotChange
from parley.workspace.writing import Recorder


class CallRecords(Recorder, CommandRecorder, Protocol):
    """Keeps what is needed to revert the changes of one call."""


class NoRecords:
    """Keeps nothing, so changes cannot be reverted."""

    async def begin(self, boundary: Boundary, change: PlannedChange) -> int:
        """Always 0."""
        return 0

    def end(self, number: int, *, is_done: bool) -> None:
        """Does nothing."""

    async def record(self, root: Path, changes: Sequence[SnapshotChange]) -> None:
        """Does nothing."""


def _no_records(_: CallOrigin) -> CallRecords:
    return NoRecords()


@frozen
class Workspace:
    """One workspace."""

    boundary: Boundary
    editor: EditorFiles = field(default_factory=NoEditor)
    recorder: Callable[[CallOrigin], CallRecords] = _no_records
    command: CommandTool | None = None
    """Runs commands; None if the settings do not allow them."""
    code: EditorCode | None = None
    """The editor's language servers; None without an editor."""
