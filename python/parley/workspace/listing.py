"""The tool list_files: a folder's files as a tree."""

from __future__ import annotations

import json
from itertools import islice

from parley.text import legible, visible
from parley.workspace.boundary import Boundary
from parley.workspace.opening import BoundaryError, legible_path
from parley.workspace.walk import Walk, WalkBudget, WalkEntry

ENTRIES_SHOWN = 500
_NOTES = {"link": " (a link)", "other": " (not a file)"}


def list_files(
    boundary: Boundary,
    path: str = ".",
    glob: str = "",
    depth: int = 0,
    budget: WalkBudget | None = None,
) -> str:
    """The tree below a path; `depth` limits its levels, 0 does not. Raises ParleyError."""
    start = boundary.place(path)
    folder = boundary.path(start)
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise BoundaryError(f"{legible_path(path)} {what}")
    walk = Walk(boundary, start, glob, budget)
    found = walk.entries(depth) if depth > 0 else walk.entries()
    if glob:
        found = (entry for entry in found if entry.kind != "folder")
    entries = list(islice(found, ENTRIES_SHOWN + 1))
    lines = _tree(entries[:ENTRIES_SHOWN])
    if len(entries) > ENTRIES_SHOWN:
        walk.budget.ended = f"everything beyond the {ENTRIES_SHOWN} nearest names"
    if not lines:
        lines = ["(no file matches)" if glob else "(nothing to list)"]
    if omissions := walk.omissions():
        lines += ["", f"Left out: {omissions}"]
    return "\n".join(lines)


def name_of(name: str) -> str:
    """A name on one line; as JSON if it contains hidden characters or begins like JSON."""
    is_plain = visible(name) == name and not set("\n\t") & set(name) and not name.startswith('"')
    return name if is_plain else legible(json.dumps(name, ensure_ascii=False))


def _tree(entries: list[WalkEntry]) -> list[str]:
    """The lines of a tree; a folder that is not listed itself is there because of its files."""
    kinds = {entry.inner: entry.kind for entry in entries}
    for inner in list(kinds):
        names = inner.split("/")
        for end in range(1, len(names)):
            kinds.setdefault("/".join(names[:end]), "folder")
    return [
        f"{'  ' * inner.count('/')}{name_of(inner.rpartition('/')[2])}"
        f"{'/' if kinds[inner] == 'folder' else _NOTES.get(kinds[inner], '')}"
        for inner in sorted(kinds, key=lambda inner: inner.split("/"))
    ]
