"""The page with the files that a chat's calls changed, and their hunks for the quickfix list. Pure.

Knows texts; does not know windows or files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.display.file_changes_text import (
    calls_text,
    counts_text,
    old_path,
    shown_path,
    state_text,
)
from parley.display.summary import page_line
from parley.frozen import frozen
from parley.policy.file_changes import CallPlace, FileChanges
from parley.tools.line_diff import changed_lines, counts, diff_rows, lines_of, new_line

_KEYS = "<CR>: diff   u: revert, or repeat   gq: hunks to the quickfix list   q: close"
_PATH = 38
"""The maximum number of characters of a path: a longer one keeps its end."""


@frozen
class ChangedTexts:
    """A changed file with its texts before its standing changes, after them, and now."""

    file: FileChanges
    before: str | None = None
    after: str | None = None
    now: str | None = None
    problem: str = ""
    """Why the texts are unknown."""


def changes_page(
    chat: str, files: Sequence[ChangedTexts], where: Mapping[int, CallPlace]
) -> dict[str, Any]:
    """The page for Lua: its lines, and the row and number of each file."""
    lines = [f"# Changes by {page_line(chat)}", "", _KEYS, ""]
    if not files:
        return {"lines": [*lines, "No changes yet."], "marks": []}
    rows = [_row(each, where) for each in files]
    widths = [max(len(cells[column]) for cells in rows) for column in range(3)]
    marks = list[dict[str, int]]()
    for each, cells in zip(files, rows, strict=True):
        marks.append({"row": len(lines), "number": each.file.number})
        padded = (f"{cell:<{w}}" for cell, w in zip(cells, widths, strict=False) if w)
        lines.append("  ".join([*padded, cells[3]]).rstrip())
        if each.problem:
            lines.append(f"  ! {page_line(each.problem)}")
    return {"lines": lines, "marks": marks}


def _row(texts: ChangedTexts, where: Mapping[int, CallPlace]) -> tuple[str, str, str, str]:
    file = texts.file
    counted = ""
    if file.standing and not texts.problem:
        counted = counts_text(*counts(diff_rows(texts.before, texts.after)))
    path = page_line(shown_path(file))
    path = path if len(path) <= _PATH else f"…{path[1 - _PATH :]}"
    return path, counted, page_line(state_text(file)), page_line(calls_text(file, where))


def quickfix_items(files: Sequence[ChangedTexts]) -> list[dict[str, Any]]:
    """The hunks of the standing changes, with the line numbers of the present files."""
    return [item for each in files if each.file.standing for item in _items(each)]


def _items(texts: ChangedTexts) -> Iterator[dict[str, Any]]:
    file = {"filename": str(texts.file.place)}
    if texts.problem:
        yield {**file, "lnum": 1, "text": page_line(texts.problem)}
        return
    if texts.now is None:
        yield {"text": f"{page_line(shown_path(texts.file))}: deleted"}
        return
    old, new, now = map(lines_of, (texts.before, texts.after, texts.now))
    changes, since = changed_lines(old, new), changed_lines(new, now)
    if not changes:
        text = f"moved from {old_path(texts.file)}" if old_path(texts.file) else "changed"
        yield {**file, "lnum": 1, "text": page_line(text)}
    for a, b, c, d in changes:
        line = min(new_line(since, c), max(len(now) - 1, 0))
        words = (new[c:d] or old[a:b])[0].strip()
        text = f"{counts_text(d - c, b - a)}  {page_line(words)}"
        yield {**file, "lnum": line + 1, "text": text}
