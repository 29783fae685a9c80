"""Which files a tool call changes, and how: for Parley's own tools and known tools of other servers.

Knows the shapes of arguments; knows neither files nor servers. The arguments are a model's: a value
of any type may be in any place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from parley.frozen import frozen
from parley.tools.agent_calls import EXISTS
from parley.tools.patch_text import PatchedFile, patched_files
from parley.tools.text_changes import (
    ExactReplacements,
    FirstMatches,
    InsertedLines,
    NoText,
    OwnReplacements,
    OwnText,
    PatchHunks,
    SameText,
    TextChange,
    WholeText,
)
from parley.tools.text_edits import EditError, Replacement

Kind = Literal["edit", "write", "create", "insert", "delete", "move"]


@frozen
class FileEdit:
    """A change that a call makes to the file at `path`, which then is at `to` if that is not empty."""

    path: str
    kind: Kind
    change: TextChange
    to: str = ""

    def applied(self, text: str | None) -> str | None:
        """The file's text after the change, at its new path; None if the file is deleted. Raises
        EditError.
        """
        return self.change.applied(text)

    def doubt(self, text: str | None) -> str:
        """Why the server may write another text, as a clause; "" if there is no reason.

        Parley's own tools write exactly the text that `applied` returns.
        """
        try:
            return self.change.doubt(text)
        except EditError:
            return ""


def file_edits(
    tool_name: str, arguments: Mapping[str, Any], *, is_own: bool = False
) -> tuple[FileEdit, ...]:
    """The changes of files that a call makes, in their order; none if its shape is unknown.

    `is_own`: the tool belongs to Parley's own server, whose tools follow other rules.
    """
    readers = (_OWN if is_own else _FOREIGN).get(tool_name, ())
    return next((edits for reader in readers if (edits := tuple(reader(arguments)))), ())


# --- Shapes ---------------------------------------------------------------------------------------

Reader = Callable[[Any], Sequence[FileEdit]]
"""From a call's arguments to its edits; none if the arguments have another shape."""


def _replacements(edits: Sequence[Any], old: str, new: str, every: str) -> tuple[Replacement, ...]:
    """The replacements in an array of objects with these keys; none if one object is malformed."""
    replacements = tuple(_replacement(each, old, new, every) for each in edits)
    return tuple(filter(None, replacements)) if all(replacements) else ()


def _replacement(edit: Any, old: str, new: str, every: str) -> Replacement | None:
    match edit:
        case Mapping():
            values = edit.get(old), edit.get(new), edit.get(every, False)
        case _:
            return None
    match values:
        case str(old_text), str(new_text), bool(is_all):
            return Replacement(old_text, new_text, is_all)
    return None


def _own_edit(arguments: Any) -> Sequence[FileEdit]:
    match arguments:
        case {"path": str(path), "edits": [*edits]} if path:
            if replacements := _replacements(edits, "old", "new", "all"):
                return [FileEdit(path, "edit", OwnReplacements(replacements))]
    return []


def _own_write(arguments: Any) -> Sequence[FileEdit]:
    match arguments:
        case {"path": str(path), "content": str(content)} if path:
            return [FileEdit(path, "write", OwnText(content))]
    return []


def _move(arguments: Any) -> Sequence[FileEdit]:
    match arguments:
        case {"path": str(path), "to": str(to)} | {"source": str(path), "destination": str(to)}:
            if path and to:
                return [FileEdit(path, "move", SameText(), to)]
    return []


def _delete(arguments: Any) -> Sequence[FileEdit]:
    match arguments:
        case {"path": str(path)} | {"filepath": str(path)} | {"file_path": str(path)} if path:
            return [FileEdit(path, "delete", NoText())]
    return []


def _write(arguments: Any) -> Sequence[FileEdit]:
    match arguments:
        case {"path": str(path), "content": str(content)} | {
            "file_path": str(path),
            "content": str(content),
        } if path:
            return [FileEdit(path, "write", WholeText(content))]
    return []


def _create(arguments: Any) -> Sequence[FileEdit]:
    match arguments:
        case {"filepath": str(path), "content": str(content)} if path:
            return [FileEdit(path, "create", WholeText(content, is_new=True))]
    return []


def _text_editor(arguments: Any) -> Sequence[FileEdit]:
    """Claude's text editor."""
    match arguments:
        case {"command": "create", "path": str(path), "file_text": str(content)} if path:
            return [FileEdit(path, "create", WholeText(content, is_new=True))]
        case {"command": "str_replace", "path": str(path), "old_str": str(old)} if path:
            new = arguments.get("new_str", "")
            if old and isinstance(new, str):
                return [FileEdit(path, "edit", ExactReplacements((Replacement(old, new),)))]
        case {"command": "insert", "path": str(path), "insert_line": int(line)} if path:
            content = arguments.get("insert_text", arguments.get("new_str"))
            if isinstance(content, str) and not isinstance(line, bool) and line >= 0:
                return [FileEdit(path, "insert", InsertedLines(line, content))]
    return []


def _old_and_new_string(every: str) -> Reader:
    """The edit tools of Claude Code and Gemini CLI; `every` is the key for a change of all places."""

    def read(arguments: Any) -> Sequence[FileEdit]:
        replacement = _replacement(arguments, "old_string", "new_string", every)
        match arguments:
            case {"file_path": str(path)} if path and replacement:
                kind: Kind = "edit" if replacement.old else "create"
                return [FileEdit(path, kind, ExactReplacements((replacement,)))]
        return []

    return read


def _first_matches(arguments: Any) -> Sequence[FileEdit]:
    """The reference file server's edits."""
    match arguments:
        case {"dryRun": dry_run} if dry_run is not False:
            return []
        case {"path": str(path), "edits": [*edits]} if path:
            if replacements := _replacements(edits, "oldText", "newText", "all"):
                return [FileEdit(path, "edit", FirstMatches(replacements))]
    return []


def _foreign_edit(arguments: Any) -> Sequence[FileEdit]:
    """The edits of a server whose tool has the shape of Parley's."""
    return [
        FileEdit(each.path, "edit", ExactReplacements(each.change.replacements))
        for each in _own_edit(arguments)
        if isinstance(each.change, OwnReplacements)
    ]


def _code_companion(arguments: Any) -> Sequence[FileEdit]:
    """CodeCompanion's edits; it also has signs for the beginning and the end of a file."""
    match arguments:
        case {"filepath": str(path), "edits": [*edits]} if path:
            replacements = _replacements(edits, "oldText", "newText", "replaceAll")
            if arguments.get("mode") == "overwrite" and len(replacements) == 1:
                return [FileEdit(path, "write", WholeText(replacements[0].new))]
            if replacements and not {each.old for each in replacements} & {"", "^", "$"}:
                return [FileEdit(path, "edit", ExactReplacements(replacements))]
    return []


def _patch(arguments: Any) -> Sequence[FileEdit]:
    """Codex's patches."""
    match arguments:
        case {"input": str(patch)} | {"patch": str(patch)}:
            try:
                files = patched_files(patch)
            except ValueError:
                return []
            return list(map(_patched_file, files)) if all(file.path for file in files) else []
    return []


def _agent_diffs(arguments: Any) -> Sequence[FileEdit]:
    """The diffs of an agent's call; if one is malformed, none."""
    match arguments:
        case {"diffs": [*diffs]}:
            edits = list(map(_agent_diff, diffs))
            return [edit for edit in edits if edit] if all(edits) else []
    return []


def _agent_diff(diff: Any) -> FileEdit | None:
    match diff:
        case {"path": str(path), "oldText": str(old), "newText": str(new)} if path and old:
            return FileEdit(path, "edit", ExactReplacements((Replacement(old, new),)))
        case {"path": str(path), "oldText": None | "", "newText": str(new)} if path:
            return FileEdit(path, "create", WholeText(new, is_new=diff.get(EXISTS) is not True))
    return None


def _agent_deletion(arguments: Any) -> Sequence[FileEdit]:
    """The files that an agent's call deletes."""
    match arguments:
        case {"title": str(), "paths": [*paths]} if all(isinstance(path, str) for path in paths):
            return [FileEdit(path, "delete", NoText()) for path in paths if path]
    return []


def _patched_file(file: PatchedFile) -> FileEdit:
    if file.added is not None:
        return FileEdit(file.path, "create", WholeText(file.added, is_new=True))
    if not file.hunks:
        return FileEdit(file.path, "delete", NoText())
    return FileEdit(file.path, "move" if file.to else "edit", PatchHunks(file.hunks), file.to)


_OWN: Mapping[str, tuple[Reader, ...]] = {
    "edit_file": (_own_edit,),
    "write_file": (_own_write,),
    "move_file": (_move,),
    "delete_file": (_delete,),
}
_FOREIGN: Mapping[str, tuple[Reader, ...]] = {
    **dict.fromkeys(
        ("str_replace_based_edit_tool", "str_replace_editor", "text_editor"), (_text_editor,)
    ),
    "Edit": (_old_and_new_string("replace_all"),),
    "Write": (_write,),
    "replace": (_old_and_new_string("allow_multiple"),),
    "edit_file": (_first_matches, _foreign_edit),
    "write_file": (_write,),
    "move_file": (_move,),
    "delete_file": (_delete,),
    "insert_edit_into_file": (_code_companion,),
    "create_file": (_create,),
    "apply_patch": (_patch,),
    **dict.fromkeys(("edit", "move", "execute", "other"), (_agent_diffs,)),
    "delete": (_agent_diffs, _agent_deletion),
}
