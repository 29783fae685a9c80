"""The tools that change files: each makes exactly the change that the user approved.

Knows plans and how to carry them out. Does not know the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.tools.change_results import MadeChange
from parley.tools.file_edits import file_edits
from parley.tools.line_diff import counts, diff_rows, unified_diff
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import EditorFiles
from parley.workspace.planning import PlannedChange, plan_of
from parley.workspace.writing import ChangedError, Recorder, carry_out


@frozen
class CallOrigin:
    """The approved call that a tool runs for."""

    chat: str
    call: str
    base: str
    """The digest of what the approved changes were computed from."""

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> CallOrigin | None:
        """The origin in a request's `_meta`; None if Parley did not send the request."""
        match meta:
            case {"chat": str(chat), "call": str(call), "base": str(base)}:
                return cls(chat, call, base)
        return None


@frozen
class ChangeTools:
    """Runs the calls that change files."""

    boundary: Boundary
    editor: EditorFiles
    recorder: Callable[[CallOrigin], Recorder]

    async def run(self, tool: str, arguments: Mapping[str, Any], origin: CallOrigin | None) -> str:
        """Run one call; returns the result for the model. Raises ParleyError."""
        if origin is None or not origin.base:
            raise ParleyError("this call was not approved in Parley, so it does not run")
        edits = file_edits(tool, arguments, is_own=True)
        if not edits:
            raise ParleyError("these arguments describe no change")
        plan = await plan_of(edits, self.boundary, self.editor, {})
        if plan.base != origin.base:
            raise ChangedError(edits[0].path)
        remarks = await carry_out(plan.changes, self.boundary, self.editor, self.recorder(origin))
        return "\n".join([*map(_report, plan.changes), *remarks])


def _report(change: PlannedChange) -> str:
    """A change that was made, for the model."""
    if change.moved_to:
        return f"moved {change.place} to {change.moved_to}"
    if change.after is None:
        return MadeChange(change.place, is_deleted=True).head
    before, after = change.texts()
    if before is None:
        lines = (after or "").count("\n") + (not (after or "").endswith("\n"))
        return MadeChange(change.place, lines, is_new=True).head
    made = MadeChange(change.place, *counts(diff_rows(before, after)))
    diff = "\n".join(unified_diff(before, after, change.place))
    return f"{made.head}\n{diff}"
