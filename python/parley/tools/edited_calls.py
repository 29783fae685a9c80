"""The arguments of an edit whose result the user has changed before approving it. Pure.

Knows Parley's own tools; does not know who edited the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parley.tools.file_edits import file_edits
from parley.tools.line_diff import changed_lines, lines_of
from parley.tools.text_edits import EditError, Replacement, apply


def edited_arguments(
    tool_name: str, arguments: Mapping[str, Any], before: str | None, after: str
) -> Mapping[str, Any] | None:
    """The arguments with which a tool turns the text before into the text after.

    None if the texts are the same, or if the tool cannot do that.
    """
    edited: Mapping[str, Any]
    if tool_name == "write_file":
        edited = {**arguments, "content": after}
    elif tool_name == "edit_file":
        parts = _replacements(before, after) if before else [("", after)]
        edited = {**arguments, "edits": [{"old": old, "new": new} for old, new in parts]}
    else:
        return None
    try:
        made = [edit.applied(before) for edit in file_edits(tool_name, edited, is_own=True)]
    except EditError:
        return None
    return edited if before != after and made == [after] else None


def _replacements(before: str, after: str) -> list[tuple[str, str]]:
    """Old and new parts that turn one text into the other, with as many lines around each change as
    the old part needs to be unique."""
    old, new = lines_of(before), lines_of(after)
    parts, done = list[tuple[str, str]](), 0
    for a, b, c, d in changed_lines(old, new):
        above = below = 0
        while before.count("".join(old[a - above : b + below])) != 1 or a - above == b + below:
            if a - above <= done and b + below >= len(old):
                break
            above += a - above > done
            below += b + below < len(old)
        done = b + below
        part = "".join(old[a - above : b + below])
        parts.append((part, "".join([*old[a - above : a], *new[c:d], *old[b : b + below]])))
    try:
        if apply(before, [Replacement(*part) for part in parts]) == after:
            return parts
    except EditError:
        pass
    return [(before, after)]
