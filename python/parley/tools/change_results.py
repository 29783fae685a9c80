"""The first line of a result of Parley's own file tools, which says what a call changed. Pure.

The tools write the line for the model; the screen reads it from the file.
"""

from __future__ import annotations

from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.text import counted

_HEADS = (
    late_pattern(r"changed (?P<path>.+): \+(?P<added>\d+) −(?P<removed>\d+)"),
    late_pattern(r"created (?P<path>.+) with (?P<added>\d+) lines?(?P<new>)"),
    late_pattern(r"deleted (?P<path>.+)"),
)
_LINES = 2
"""The first line may say that the user edited the change."""


@frozen
class MadeChange:
    """A file's change that a call has made."""

    path: str
    added: int = 0
    removed: int = 0
    is_new: bool = False
    is_deleted: bool = False

    @property
    def head(self) -> str:
        """The line for the model."""
        if self.is_deleted:
            return f"deleted {self.path}"
        if self.is_new:
            return f"created {self.path} with {counted(self.added, 'line')}"
        return f"changed {self.path}: +{self.added} −{self.removed}"


def made_change(text: str) -> MadeChange | None:
    """The change that a result reports; None if this is another result."""
    for line in text.split("\n", _LINES)[:_LINES]:
        for head in _HEADS:
            if match := head.fullmatch(line):
                facts = match.groupdict()
                added, removed = int(facts.get("added", 0)), int(facts.get("removed", 0))
                return MadeChange(
                    facts["path"], added, removed, "new" in facts, "added" not in facts
                )
    return None
