"""What a waiting call would do to files, computed before the user decides. Pure.

An approval of Parley's own edit tools is bound to the text that the diff was computed from: if the
file differs when the call runs, the approval is void. Knows texts and digests; does not know files
or how a diff is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

from parley.frozen import frozen


@frozen
class FilePreview:
    """One file, before and after a call."""

    path: str
    """The path as shown to the user."""
    before: str | None
    """The text before; None if there is no file."""
    after: str | None
    """The text after; None if the call deletes the file."""
    moved_to: str = ""
    """The new path, if the call moves the file."""
    derived: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Values derived from this change, cached for as long as it exists."""


@frozen
class CallPreview:
    """What a call would do now."""

    changes: tuple[FilePreview, ...] = ()
    base: str = ""
    """The digest of all texts that the changes were computed from."""
    is_binding: bool = False
    """Whether the call may only run on these texts. False for other servers' tools: the server
    decides what it writes."""
    problem: str = ""
    """Why the call cannot change its files, for the model; "" if it can."""
    notes: tuple[str, ...] = ()
    """Remarks for the user, such as a buffer's unsaved changes."""
    sandbox: str = ""
    """For a command: "sandboxed", or "not sandboxed: " and the reason."""
    is_announced: bool = False
    """Whether an agent of another program has only announced the changes, and makes them itself, so
    the user cannot edit them."""
    guard: str = ""
    """Why Parley must ask about these paths, even if the tool is remembered; "" if it need not."""

    @property
    def is_one_text(self) -> bool:
        """Whether a diff of one file shows everything that the call would do, so it can be edited."""
        is_whole = self.is_binding and not self.is_announced
        return is_whole and len(self.changes) == 1 and not self.changes[0].moved_to


Previews: TypeAlias = Mapping[tuple[str, str, str], CallPreview]
"""The previews of waiting calls, by id, name and arguments."""
