"""A unified diff as rows for a screen. Pure.

No line can hide: hidden characters, right-to-left text, carriage returns and excessive marks become
visible escapes, and a cut line is marked.
"""

from __future__ import annotations

from parley.chat.transcript import Proposal
from parley.display.summary import ChangedFile, Chunks, shown_line
from parley.policy.previews import CallPreview, FilePreview
from parley.tools.agent_calls import KINDS, AnnouncedDiff, diffs_of
from parley.tools.change_results import made_change
from parley.tools.line_diff import CONTEXT, Comparison, DiffRow, Sign, counts

_GROUPS: dict[Sign, str] = {
    " ": "ParleyContext",
    "-": "ParleyRemoved",
    "+": "ParleyAdded",
    "@": "ParleyHint",
    "\\": "ParleyHint",
}

_MOST_COMPARED = 200_000
"""The maximum number of characters of an agent's call whose changed lines are counted again."""
_FILE_TOOLS = ("edit_file", "write_file", "delete_file")


def rows_of(change: FilePreview, context: int = CONTEXT) -> list[DiffRow]:
    """The rows of a file's diff. The file is compared once."""
    if "comparison" not in change.derived:
        change.derived["comparison"] = Comparison.of(change.before, change.after)
    comparison: Comparison = change.derived["comparison"]
    return comparison.rows(context)


def changed_files(preview: CallPreview | None) -> tuple[tuple[ChangedFile, ...], bool]:
    """The files that a call would change, for its row, and whether that is all that it does."""
    if preview is None:
        return (), False
    return tuple(map(changed_file, preview.changes)), preview.is_binding


def changed_file(change: FilePreview) -> ChangedFile:
    """A file's change as a call's row shows it."""
    added, removed = counts(rows_of(change))
    kind = (
        "new file" if change.before is None else "deletes the file" if change.after is None else ""
    )
    return ChangedFile(change.path, added, removed, kind, change.moved_to)


def made_files(call: Proposal) -> tuple[ChangedFile, ...]:
    """The file that a call of Parley's own tools has changed, as its result says, or the files that
    an agent's call has changed, as its diffs say; none for other calls, or for calls that others
    ran.
    """
    if call.ran_by is None and (diffs := _announced_diffs(call)):
        return diffs
    is_own = call.call.name in _FILE_TOOLS and not call.ran_by
    if not is_own or call.result is None or call.result.status != "ok":
        return ()
    made = made_change(call.result.body)
    kind = "new file" if made and made.is_new else ""
    return (ChangedFile(made.path, made.added, made.removed, kind),) if made else ()


def _announced_diffs(call: Proposal) -> tuple[ChangedFile, ...]:
    """The files in the diffs of an agent's call that has worked."""
    worked = call.result is not None and call.result.status == "ok"
    if not worked or call.call.name not in KINDS or len(call.call.arguments) > _MOST_COMPARED:
        return ()
    return tuple(map(_announced, diffs_of(call.call.arguments)))


def _announced(diff: AnnouncedDiff) -> ChangedFile:
    if diff.is_over:  # its old lines are unknown
        return ChangedFile(diff.path, kind="overwrites the file")
    return changed_file(FilePreview(diff.path, diff.old, diff.new))


def diff_chunks(row: DiffRow, most: int | None = None) -> Chunks:
    """A row for the screen; the text is cut to `most` characters if that is not None."""
    group = _GROUPS[row.sign]
    if row.sign in "@\\":
        return [(f"  {row.text}", group)]
    return [(f"  {row.sign} ", group), (shown_line(row.text, most), group, "")]
