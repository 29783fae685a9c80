"""Takes back the changes that calls made to files, next week as well as now, and lists them.

A file that has changed since is not touched; the user gets what is needed for a three-way diff.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.paths import state_folder
from parley.policy.file_changes import ChangingCall, FileChanges, not_made
from parley.policy.reverts import ChangeHistory, RecordedChange, histories, reverted
from parley.runtime.recording import CallRecorder
from parley.storage.changed_files import ChangedFiles
from parley.storage.checkpoints import MOST_DAYS_KEPT, Checkpoints
from parley.storage.ledger import ChatLedger, LedgerFile
from parley.text import one_line
from parley.tools.file_text import decoded
from parley.tools.line_diff import unified_diff
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import EditorFiles, NoEditor
from parley.workspace.planning import FileState, PlannedChange, state_of
from parley.workspace.writing import ChangedError, carry_out


@frozen
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
    """The files with reverted changes, under their new names."""
    conflicts: list[RevertConflict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why other files were not reverted."""
    remarks: list[str] = field(default_factory=list)
    """Remarks on reverted files."""


@frozen
class Reverter:
    """Reverts changes of one chat."""

    changes: ChangedFiles
    checkpoints: Checkpoints
    editor: EditorFiles
    ledger: ChatLedger | None = None
    """The chat's ledger, whose log lists the reverts."""

    async def histories(self) -> list[ChangeHistory]:
        """The changes of all calls in the chat, with what was done to them since."""
        changes = self.changes.all()
        paths = {p for c in changes if c.state == "begun" for p in (c.path, c.place)}
        roots = {path: change.root for change in changes for path in (change.path, change.place)}
        now = {path: await self._digest_now(roots[path], path) for path in paths}
        out = not_made(changes, now)
        return histories(change for change in changes if change.number not in out)

    async def _digest_now(self, root: Path, path: Path) -> str:
        """The digest of a file's content; `?` if it cannot be read."""
        try:
            boundary = Boundary(root)
            return _digest((await _state(boundary, self.editor, _place(boundary, path))).content)
        except ParleyError:
            return "?"

    async def texts(self, file: FileChanges) -> tuple[str | None, str | None]:
        """A file's texts before its first standing change and after its last change; None stands
        for no file. Raises ParleyError.
        """
        return await asyncio.to_thread(self._texts, file)

    def _texts(self, file: FileChanges) -> tuple[str | None, str | None]:
        before, after = (self._content(digest) for digest in (file.first.before, file.after))
        return _text(before), _text(after)

    async def diff(self, file: FileChanges) -> str:
        """The unified diff of a file's standing changes; "" if a content is not text, or was
        deleted.
        """
        names = _from_root(file.first.path, file), _from_root(file.place, file)
        try:
            return "\n".join(unified_diff(*await self.texts(file), *names))
        except ParleyError:
            return ""

    async def text_now(self, file: FileChanges) -> str | None:
        """A file's present text; None if there is no file. Raises ParleyError."""
        boundary = Boundary(file.last.root)
        state = await _state(boundary, self.editor, _place(boundary, file.place))
        return _text(state.content)

    async def revert(self, histories: Sequence[ChangeHistory]) -> RevertOutcome:
        """Revert these changes, the newest first; changes that are already reverted are
        repeated."""
        outcome, blocked = RevertOutcome(), set[Path]()
        calls = self.changes.calls() if self.ledger else {}
        for history in sorted(histories, key=lambda history: -history.last.number):
            change = reverted(history.last)
            if change.path in blocked:
                continue
            try:
                if await self._make(change, history.last, outcome):
                    others = (path for path in outcome.reverted if path != change.path)
                    outcome.reverted = [*others, change.place]
                    self._note(history, calls)
                else:
                    self.changes.end([history.last.number], is_done=False)
                continue
            except ChangedError:
                outcome.conflicts.append(await self._conflict(change))
            except ParleyError as error:
                outcome.problems.append(str(error))
            blocked |= {change.path, change.place}
        return outcome

    def _note(self, history: ChangeHistory, calls: Mapping[int, ChangingCall]) -> None:
        """List a revert in the chat's log."""
        if self.ledger:
            change = history.change
            call = calls.get(change.number)
            tool = f"{call.server}/{call.tool}" if call else ""
            path = os.path.relpath(history.last.place, change.root)
            kind = "repeated" if history.is_reverted else "reverted"
            self.ledger.note(kind, {"call": change.call_id, "tool": tool, "path": path})

    async def _make(
        self, change: RecordedChange, last: RecordedChange, outcome: RevertOutcome
    ) -> bool:
        """Make one change; False if the change that it reverts was recorded, but never made. Raises
        ParleyError.
        """
        boundary = Boundary(change.root)
        place = _place(boundary, change.path)
        now = await _state(boundary, self.editor, place)
        if _digest(now.content) != change.before:
            if _digest(now.content) != change.after or change.moved_to:
                raise ChangedError(place)
            if last.state == "begun":
                return False
            self.changes.end([self.changes.begin(change)], is_done=True)  # it was restored by hand
            return True
        try:
            wanted = await asyncio.to_thread(self._content, change.after)
        except ParleyError as error:
            raise ParleyError(f"{place}: {error}") from error
        moved_to = _place(boundary, change.moved_to) if change.moved_to else ""
        planned = PlannedChange(place, now, wanted, moved_to, change.mode)
        recorder = CallRecorder(
            self.changes, self.checkpoints, change.call_id, "revert", change.reverts
        )
        outcome.remarks += await carry_out([planned], boundary, self.editor, recorder)
        return True

    async def _conflict(self, change: RecordedChange) -> RevertConflict:
        boundary = Boundary(change.root)
        now = await _state(boundary, self.editor, _place(boundary, change.path))
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
                f"the old content was deleted: Parley keeps old content for at most {MOST_DAYS_KEPT} days"
            )
        return content


def _place(boundary: Boundary, path: Path) -> str:
    """The place of a path that was recorded without links. Raises ParleyError if tools may not write
    there, or if a part of the path is a link now.
    """
    place = boundary.place_to_write(str(path))
    if boundary.path(place) != path:
        raise ParleyError(f"{one_line(str(path))}: a link has replaced part of the path")
    return place


async def _state(boundary: Boundary, editor: EditorFiles, place: str) -> FileState:
    try:
        return await state_of(boundary, editor, place)
    except OSError as error:
        raise ParleyError(f"{place} cannot be read: {error.strerror}") from error


def _digest(content: bytes | None) -> str:
    """A content's digest as the ledger records it."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _from_root(path: Path, file: FileChanges) -> str:
    return os.path.relpath(path, file.last.root)


def _text(content: bytes | None) -> str | None:
    """A content as text; None for no file. Raises FileTextError."""
    return None if content is None else decoded(content).text


def reverter(
    file: LedgerFile, environ: Mapping[str, str], chat: str, editor: EditorFiles | None = None
) -> Reverter:
    """The reverter for the chat at this path."""
    kept = Checkpoints(state_folder(environ) / "checkpoints")
    return Reverter(ChangedFiles(file, chat), kept, editor or NoEditor(), file.chat(chat))
