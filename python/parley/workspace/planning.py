"""What a call would change, computed from the files as they are now, before anything is written.

The preview for the user and the call itself use the same plan. So the change that is made is the
change that was shown. Reads files, but writes none.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.text import size_text
from parley.tools.file_edits import FileEdit
from parley.tools.file_text import FileText, FileTextError, decoded
from parley.tools.text_edits import EditError
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import EditorFiles, OpenText

LARGEST_FILE = 10_000_000
"""The maximum number of bytes of a file that tools change."""
_NO_FILE = "-"


class PlanError(ParleyError):
    """A call cannot change its files; the text is for the model, and readable for the user."""


@frozen
class FileState:
    """A file's content at one moment, from the editor if the file is open there."""

    content: bytes | None
    """None if there is no file."""
    mode: int = 0o644
    open_text: OpenText | None = None
    """The editor's text, if the file is open."""

    @property
    def digest(self) -> str:
        """The digest of the content; `-` for no file."""
        return _NO_FILE if self.content is None else hashlib.sha256(self.content).hexdigest()

    def text(self) -> FileText:
        """The content as text; a new text for no file. Raises FileTextError."""
        return FileText() if self.content is None else decoded(self.content)


@frozen
class PlannedChange:
    """One file's change."""

    place: str
    """The path from the root."""
    before: FileState
    after: bytes | None
    """The content after; None if the file is deleted."""
    moved_to: str = ""
    """The new place, if the file is moved."""
    mode: int | None = None
    """The mode of a file that is created; None for the usual one."""

    def texts(self) -> tuple[str | None, str | None]:
        """The texts before and after, for a diff; "" stands for content that is not text."""
        return _shown_text(self.before.content), _shown_text(self.after)


@frozen
class Plan:
    """A call's changes, in their order."""

    changes: tuple[PlannedChange, ...] = ()
    base: str = ""
    """The digest of everything that the changes were computed from."""
    guards: Mapping[str, str] = field(default_factory=dict)
    """Why each guarded path is guarded."""


Overlay = Mapping[str, FileState]
"""Files, by place, as earlier calls of the same reply will leave them."""


async def plan_of(
    edits: Sequence[FileEdit], boundary: Boundary, editor: EditorFiles, earlier: Overlay
) -> Plan:
    """The changes that these edits make now. Raises PlanError."""
    states, changes, guards = dict(earlier), list[PlannedChange](), dict[str, str]()
    bases = [os.fsdecode(boundary.root)]
    try:
        for edit in edits:
            for path in filter(None, (edit.path, edit.to)):
                place = boundary.place_to_write(path)
                if place not in states:
                    states[place] = await state_of(boundary, editor, place)
                bases.append(f"{place}\0{states[place].digest}")
                if guard := await asyncio.to_thread(boundary.guard, path):
                    guards[place] = guard
            change = await asyncio.to_thread(_planned, edit, boundary, states)
            changes.append(change)
            _apply(change, states)
    except (EditError, FileTextError) as error:
        raise PlanError(f"{edit.path}: {error}") from error
    except OSError as error:
        raise PlanError(f"{edit.path} cannot be read: {error.strerror}") from error
    except PlanError:
        raise
    except ParleyError as error:
        raise PlanError(str(error)) from error
    base = hashlib.sha256("\n".join(bases).encode("utf-8", "surrogatepass")).hexdigest()
    return Plan(tuple(changes), base, guards)


def after(plan: Plan, earlier: Overlay) -> Overlay:
    """The files as a plan leaves them."""
    states = dict(earlier)
    for change in plan.changes:
        _apply(change, states)
    return states


async def state_of(boundary: Boundary, editor: EditorFiles, place: str) -> FileState:
    """A file's state now. Raises BoundaryError or OSError."""
    state = await asyncio.to_thread(_on_disk, boundary, place)
    opened = await editor.text(boundary.path(place))
    if opened is None:
        return state
    spelling = state.text()
    return replace(state, content=spelling.encoded(opened.text), open_text=opened)


def _on_disk(boundary: Boundary, place: str) -> FileState:
    try:
        descriptor = boundary.open(place)
    except (FileNotFoundError, NotADirectoryError):
        return FileState(None)
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    content = boundary.content(place, LARGEST_FILE)
    return FileState(content, stat.S_IMODE(status.st_mode))


def _planned(edit: FileEdit, boundary: Boundary, states: Overlay) -> PlannedChange:
    place = boundary.place_to_write(edit.path)
    state = states[place]
    if edit.kind in ("delete", "move"):
        return _whole_file(edit, boundary, states, place)
    if edit.kind == "create" and state.content is not None:
        raise PlanError(f"{edit.path}: the file already exists")
    old = state.text()
    new = edit.applied(None if state.content is None else old.text)
    content = old.encoded(new or "")
    if content == state.content:
        raise PlanError(f"{edit.path}: the edit changes nothing")
    if len(content) > LARGEST_FILE:
        raise PlanError(f"{edit.path}: the new text is larger than {size_text(LARGEST_FILE)}")
    return PlannedChange(place, state, content)


def _whole_file(edit: FileEdit, boundary: Boundary, states: Overlay, place: str) -> PlannedChange:
    """A file that is deleted or moved."""
    state = states[place]
    if state.content is None:
        raise PlanError(f"{edit.path}: there is no such file")
    if state.open_text and state.open_text.is_modified:
        raise PlanError(f"{edit.path} has unsaved changes in the user's editor")
    if edit.kind == "delete":
        return PlannedChange(place, state, None)
    target = boundary.place_to_write(edit.to)
    if target == place:
        raise PlanError(f"{edit.path}: the new path is the same as the old one")
    if states[target].content is not None:
        raise PlanError(f"{edit.to}: the file already exists")
    return PlannedChange(place, state, state.content, target)


def _apply(change: PlannedChange, states: dict[str, FileState]) -> None:
    state = replace(change.before, content=change.after, open_text=None)
    if change.moved_to:
        states[change.place], states[change.moved_to] = FileState(None), state
    else:
        states[change.place] = state


def _shown_text(content: bytes | None) -> str | None:
    if content is None:
        return None
    try:
        return decoded(content).text
    except FileTextError:
        return ""
