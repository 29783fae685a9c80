"""What waiting calls would do to files: Parley's own tools, and edit tools of other servers.

Reads files and the editor's texts; decides nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from parley.bounded_files import whole
from parley.chat.transcript import Proposal
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.policy.approval import is_declined, written_key
from parley.policy.permissions import is_command, is_of_workspace
from parley.policy.previews import CallPreview, FilePreview, Previews
from parley.text import one_line
from parley.tools.agent_calls import (
    MOST_DIFFS,
    TOO_MANY_DIFFS,
    is_of_agent,
    path_of_url,
    paths_of,
)
from parley.tools.catalogue import Tool
from parley.tools.file_edits import FileEdit, file_edits
from parley.tools.file_text import FileTextError, decoded
from parley.tools.schema import decode_arguments
from parley.tools.text_edits import EditError
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import EditorFiles
from parley.workspace.planning import LARGEST_FILE, Overlay, Plan, PlanError, after, plan_of
from parley.workspace.root import work_tree

_UNSAVED = "{} has unsaved changes in the editor, so the edit goes into its buffer and is not saved"
_GUARDED = "{} is {}, so it needs your approval each time"
_OUTSIDE = "{} is not in {}, so it needs your approval each time"
_NO_FILE = "it names no file, so it needs your approval each time"
_MANY_FILES = "it names more than {} files, so it needs your approval each time"
_MOST_PATHS = 100
_ANNOUNCED = "the agent has announced this change, and makes it itself"


@frozen
class CallPreviews:
    """Implements the engine's source of previews."""

    boundary: Callable[[], Boundary | None]
    """Returns the workspace's current boundary; None if its tools are not offered."""
    editor: EditorFiles
    folder: Path
    """The working directory, the base of other servers' relative paths."""
    sandbox_note: Callable[[], Awaitable[str]]
    """Whether a command would run in a sandbox. Raises ParleyError if it may not run."""

    async def of(self, calls: Sequence[tuple[Proposal, Tool]]) -> Previews:
        """The previews of these waiting calls, each on top of the earlier ones."""
        found, boundary = dict[tuple[str, str, str], CallPreview](), self.boundary()
        own: Overlay = {}
        foreign = dict[Path, str | None]()
        for proposal, tool in calls:
            arguments = _decoded(proposal)
            if is_declined(proposal) or arguments is None:
                continue
            preview: CallPreview | None
            if is_of_agent(tool):
                preview = await asyncio.to_thread(self._of_agent, tool, arguments, foreign)
            elif not is_of_workspace(tool):
                edits = file_edits(tool.name, arguments)
                preview = await asyncio.to_thread(self._foreign, edits, foreign)
            elif boundary is None:
                continue
            elif is_command(tool):
                preview = await self._command()
            elif edits := file_edits(tool.name, arguments, is_own=True):
                preview, own = await self._own(boundary, edits, own)
            else:
                preview = await asyncio.to_thread(_guarded, boundary, arguments)
            if preview is not None:
                found[written_key(proposal)] = preview
        return found

    async def _command(self) -> CallPreview:
        try:
            return CallPreview(sandbox=await self.sandbox_note())
        except ParleyError as error:
            return CallPreview(is_binding=True, problem=str(error))

    async def _own(
        self, boundary: Boundary, edits: Sequence[FileEdit], earlier: Overlay
    ) -> tuple[CallPreview, Overlay]:
        try:
            plan = await plan_of(edits, boundary, self.editor, earlier)
        except PlanError as error:
            return CallPreview(is_binding=True, problem=str(error)), earlier
        return _preview_of(plan), after(plan, earlier)

    def _of_agent(
        self, tool: Tool, arguments: Mapping[str, Any], earlier: dict[Path, str | None]
    ) -> CallPreview | None:
        """The preview of the changes that an agent has announced; a yes counts only for the present
        texts. Without changes, the preview of a call that names guarded files; else None.
        """
        edits = file_edits(tool.name, arguments)
        if len(edits) > MOST_DIFFS:
            return CallPreview(is_binding=True, problem=TOO_MANY_DIFFS)
        texts = {each.path: self._text_of(each.path, earlier) for each in edits}
        preview = self._foreign(edits, earlier)
        if preview is None:
            return self._of_named_files(tool.name, arguments)
        paths = [path for each in edits for path in (each.path, each.to) if path]
        # A text in the agent's input may begin with `/`, for example a comment.
        paths += paths_of(tool.name, arguments, with_texts=False)
        return replace(
            preview,
            changes=tuple(replace(each, path=self._short(each.path)) for each in preview.changes),
            base=announced_base(texts),
            is_binding=True,
            is_announced=True,
            notes=(_ANNOUNCED, *preview.notes),
            guard=self._guards(paths),
        )

    def _of_named_files(self, kind: str, arguments: Mapping[str, Any]) -> CallPreview | None:
        """The preview of an agent's call without a diff, if Parley must ask about its files."""
        paths = paths_of(kind, arguments)
        guard = self._guards(paths) if paths else _NO_FILE if kind == "read" else ""
        if not guard:
            return None
        lines = "\n".join(f"{each}\0{self._target(each)}" for each in paths[:_MOST_PATHS])
        base = hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()
        return CallPreview(base=base, is_binding=True, guard=guard)

    def _guards(self, paths: Sequence[str]) -> str:
        """Why Parley must ask about an agent's call that names these files; "" if it need not."""
        named = dict.fromkeys(paths)
        if len(named) > _MOST_PATHS:
            return _MANY_FILES.format(_MOST_PATHS)
        return "; ".join(dict.fromkeys(filter(None, map(self._guard_of, named))))

    def _target(self, path: str) -> str:
        """The file that a path leads to now."""
        try:
            return os.path.realpath(self._place(path))
        except (OSError, ValueError, RuntimeError):
            return ""

    def _text_of(self, path: str, earlier: Mapping[Path, str | None]) -> str | None:
        """A file's text as earlier calls leave it; a mark for content that is not text."""
        try:
            place = self._place(path)
            return earlier[place] if place in earlier else _text(place)
        except (OSError, FileTextError, ValueError, RuntimeError):
            return "\0"

    def _place(self, path: str) -> Path:
        """The file that a path of another program means. Raises RuntimeError for an unknown user."""
        return Path(os.path.normpath(self.folder / Path(path_of_url(path)).expanduser()))

    def _short(self, path: str) -> str:
        """An agent's absolute path, from the project if it is there."""
        project = str(work_tree(self.folder) or self.folder)
        return os.path.relpath(path, project) if path.startswith(f"{project}/") else path

    def _guard_of(self, path: str) -> str:
        """Why Parley must ask about an agent's change of this path; "" if it need not."""
        project = work_tree(self.folder) or self.folder
        try:
            boundary = Boundary(project)
            places = [path, str(self._place(path))]  # a link's name, or `~`, may be another's
            why = next(filter(None, map(boundary.guard, places)), "")
        except (ParleyError, OSError, ValueError, RuntimeError):
            return _OUTSIDE.format(one_line(path), project)
        return _GUARDED.format(one_line(path), why) if why else ""

    def _foreign(
        self, edits: Sequence[FileEdit], earlier: dict[Path, str | None]
    ) -> CallPreview | None:
        """The preview of another server's edits; None if they cannot be shown."""
        changes, notes = list[FilePreview](), list[str]()
        for edit in edits:
            try:
                path = self._place(edit.path)
                text = earlier[path] if path in earlier else _text(path)
                new = edit.applied(text)
            except EditError as error:
                notes.append(f"{edit.path}: {error}")
                continue
            except (OSError, FileTextError, ValueError, RuntimeError):  # `~nobody` has no folder
                return None
            notes += filter(None, [edit.doubt(text)])
            changes.append(FilePreview(edit.path, text, new, edit.to))
            earlier[path] = new
        return CallPreview(tuple(changes), notes=tuple(notes)) if changes or notes else None


def announced_base(texts: Mapping[str, str | None]) -> str:
    """The digest of the texts, by path, from which an agent's announced changes were computed."""
    lines = (f"{path}\0{text}" for path, text in texts.items())
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _decoded(proposal: Proposal) -> Mapping[str, Any] | None:
    try:
        return decode_arguments(proposal.call.arguments)
    except ValueError:
        return None


def _text(path: Path) -> str | None:
    try:
        return decoded(whole(path, LARGEST_FILE)).text
    except FileNotFoundError:
        return None


def _preview_of(plan: Plan) -> CallPreview:
    changes = [
        FilePreview(change.place, *change.texts(), change.moved_to) for change in plan.changes
    ]
    modified = {
        change.place
        for change in plan.changes
        if change.before.open_text and change.before.open_text.is_modified
    }
    guards = "; ".join(_GUARDED.format(place, why) for place, why in plan.guards.items())
    notes = tuple(_UNSAVED.format(place) for place in sorted(modified))
    return CallPreview(tuple(changes), plan.base, is_binding=True, notes=notes, guard=guards)


def _guarded(boundary: Boundary, arguments: Mapping[str, Any]) -> CallPreview | None:
    """The preview of a call that reads a guarded path; None for any other path."""
    path = arguments.get("path")
    if not isinstance(path, str):
        return None
    try:
        place, why = boundary.place(path), boundary.guard(path)
    except ParleyError:  # the tool itself will report it
        return None
    if not why:
        return None
    base = hashlib.sha256(f"{boundary.root}\0{place}".encode("utf-8", "surrogatepass")).hexdigest()
    return CallPreview(base=base, is_binding=True, guard=_GUARDED.format(path, why))
