"""Makes planned changes: through the editor if the file is open there, else on disk.

Each change is recorded before it is made, and only made if the file still has the content that the
plan was computed from. Does not know who approved it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Protocol

from parley.atomic_files import create_file, move_file, replace_file
from parley.errors import ParleyError
from parley.tools.file_text import FileText
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import EditorFiles, OpenText
from parley.workspace.planning import LARGEST_FILE, FileState, PlannedChange, state_of


class ChangedError(ParleyError):
    """A file has changed since the plan was made, so nothing was written to it."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} has changed since the diff was shown, so it was left alone")


class Recorder(Protocol):
    """Keeps what is needed to revert changes."""

    async def begin(self, boundary: Boundary, change: PlannedChange) -> int:
        """Record a change before it is made; returns its number. Raises ParleyError."""
        ...

    def end(self, number: int, *, is_done: bool) -> None:
        """Record whether the change was made."""
        ...


async def carry_out(
    changes: Sequence[PlannedChange], boundary: Boundary, editor: EditorFiles, recorder: Recorder
) -> list[str]:
    """Make the changes in their order; returns remarks for the user and the model.

    Raises ParleyError at the first change that cannot be made; the earlier changes stay. If the
    caller is cancelled, a thread may still make the change, so its record stays without an outcome.
    """
    remarks = list[str]()
    for change in changes:
        number = await recorder.begin(boundary, change)
        try:
            remarks += await _make(change, boundary, editor)
        except OSError as error:
            recorder.end(number, is_done=False)
            raise ParleyError(f"{change.place} cannot be written: {error.strerror}") from error
        except ParleyError:
            recorder.end(number, is_done=False)
            raise
        recorder.end(number, is_done=True)
    return remarks


async def _make(change: PlannedChange, boundary: Boundary, editor: EditorFiles) -> list[str]:
    path = boundary.path(change.place)
    now = await state_of(boundary, editor, change.place)
    if now.content != change.before.content:
        raise ChangedError(change.place)
    if change.moved_to:
        await asyncio.to_thread(_move, boundary, change)
        await editor.move(path, boundary.path(change.moved_to))
        return []
    if now.open_text is not None and change.after is not None:
        return await _in_editor(change, now.text(), now.open_text, boundary, editor)
    remarks = await asyncio.to_thread(_on_disk, boundary, change)
    return [f"{change.place}: {remark}" for remark in remarks]


async def _in_editor(
    change: PlannedChange,
    text: FileText,
    opened: OpenText,
    boundary: Boundary,
    editor: EditorFiles,
) -> list[str]:
    before = hashlib.sha256(text.text.encode("utf-8", "surrogatepass")).hexdigest()
    after = FileState(change.after).text().text
    state = await editor.apply(boundary.path(change.place), before, after)
    if state == "changed":
        raise ChangedError(change.place)
    if state == "unsaved":
        return [
            f"{change.place}: changed in the editor, but not saved"
            + (", because its buffer has other unsaved changes" if opened.is_modified else "")
        ]
    return []


def _on_disk(boundary: Boundary, change: PlannedChange) -> list[str]:
    """Write, create or delete a file; returns its properties that could not be kept."""
    folder, _, name = change.place.rpartition("/")

    def check() -> None:
        if _content(boundary, change.place) != change.before.content:
            raise ChangedError(change.place)

    with boundary.folder(folder, create=change.before.content is None) as handle:
        if change.after is None:
            check()
            os.unlink(name, dir_fd=handle)
        elif change.before.content is not None:
            return replace_file(handle, name, change.after, check)
        else:
            try:
                create_file(handle, name, change.after, change.mode)
            except FileExistsError as error:
                raise ChangedError(change.place) from error
    return []


def _content(boundary: Boundary, place: str) -> bytes | None:
    return boundary.content(place, LARGEST_FILE)


def _move(boundary: Boundary, change: PlannedChange) -> None:
    """Give a file its new place; missing folders are created."""
    folder, _, name = change.place.rpartition("/")
    target, _, new = change.moved_to.rpartition("/")
    with ExitStack() as open_folders:
        source = open_folders.enter_context(boundary.folder(folder))
        goal = open_folders.enter_context(boundary.folder(target, create=True))
        if _content(boundary, change.place) != change.before.content:
            raise ChangedError(change.place)
        try:
            move_file(source, name, goal, new)
        except FileExistsError as error:
            raise ChangedError(change.moved_to) from error
