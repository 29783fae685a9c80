"""Records the changes that a permitted call of an agent makes to files, so they can be reverted.

The agent itself writes the files, so Parley compares files before and after the call: the files
that the call names, or else the whole Git work tree. Decides nothing.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.policy.approval import CallKey
from parley.runtime.recording import CallRecorder
from parley.tools.file_edits import file_edits
from parley.tools.schema import decode_arguments
from parley.workspace.boundary import Boundary
from parley.workspace.planning import LARGEST_FILE
from parley.workspace.root import work_tree
from parley.workspace.snapshots import SnapshotChange, changes, snapshot

_MAY_CHANGE_ANY = ("edit", "delete", "move", "execute", "other")
_NO_FILE = SnapshotChange("", None, None, 0, 0)


@frozen
class AgentChanges:
    """Watches the files of one call."""

    recorder: CallRecorder
    project: Path
    environ: Mapping[str, str]

    @asynccontextmanager
    async def recorded(self, key: CallKey) -> AsyncIterator[Callable[[Path], Awaitable[None]]]:
        """Record the changes that are made inside this context, except those that Parley itself has
        made and recorded: the yielded function receives their paths.
        """
        named = await asyncio.to_thread(self._named, key)
        tree = "" if named or key.tool not in _MAY_CHANGE_ANY else await self._tree(is_after=False)

        async def note(path: Path) -> None:
            now = await asyncio.to_thread(self._state, str(path))
            named[:] = [now if now and each.path == now.path else each for each in named]

        try:
            yield note
        finally:
            with suppress(ParleyError):  # without a record, the call still has its result
                await self._record(key, named, tree)

    async def _record(self, key: CallKey, named: Sequence[SnapshotChange], tree: str) -> None:
        if named:
            compared = await asyncio.to_thread(self._compared, named)
            await self.recorder.record(self.project, compared, "edit")
        elif tree and (after := await self._tree(is_after=True)) not in ("", tree):
            made = await changes(self.project, tree, after, self.environ)
            await self.recorder.record(self.project, made, "command")

    async def _tree(self, *, is_after: bool) -> str:
        """The id of the work tree's state; "" if there is none."""
        if work_tree(self.project) is None:
            return ""
        with suppress(ParleyError):
            return await snapshot(self.project, self.environ, is_after=is_after)
        return ""

    def _named(self, key: CallKey) -> list[SnapshotChange]:
        """The files that a call says it changes, as they are now."""
        try:
            edits = file_edits(key.tool, decode_arguments(key.arguments))
        except ValueError:
            return []
        paths = dict.fromkeys(path for each in edits for path in (each.path, each.to) if path)
        return [state for path in paths if (state := self._state(path))]

    def _state(self, path: str) -> SnapshotChange | None:
        """A file's present content as the content before; None if it is not in the project."""
        with suppress(ParleyError, OSError):
            boundary = Boundary(self.project)
            place = boundary.place_to_write(path)
            try:
                content = boundary.content(place, LARGEST_FILE)
            except (FileNotFoundError, NotADirectoryError):
                return replace(_NO_FILE, path=place)
            mode = os.stat(boundary.path(place), follow_symlinks=False).st_mode  # noqa: PTH116
            return SnapshotChange(place, content, None, stat.S_IFREG | stat.S_IMODE(mode), 0)
        return None

    def _compared(self, named: Sequence[SnapshotChange]) -> list[SnapshotChange]:
        """The files that differ from their earlier states."""
        made = list[SnapshotChange]()
        for before in named:
            now = self._state(before.path)
            if now and now.before != before.before:
                made.append(replace(before, after=now.before, mode_after=now.mode_before))
        return made
