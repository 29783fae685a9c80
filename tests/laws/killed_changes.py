"""Changes files as calls do, and reverts them, in processes that kill themselves at the given steps.

Usage: `python -m tests.laws.killed_changes FOLDER [STEP…]`. Without steps, prints the number of
steps of an undisturbed run. A step is a system call or a statement that changes a file or the
ledger.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from parley.policy.reverts import histories
from parley.storage.ledger import LedgerFile
from tests.workspace.recorded_changes import Project

FIRST = {
    "a.txt": (b"one\r\ntwo\r\nthree", 0o750),
    "gone.txt": (b"delete me\n", 0o600),
    "old/name.txt": (b"\xff\xfem\0o\0v\0e\0", 0o644),
}
EDITED, REPLACED = b"one\r\nTWO\r\nthree", b"1\r\nTWO\r\n3\r\n"
VERSIONS = {content for content, _ in FIRST.values()} | {EDITED, REPLACED, b"new\n"}
CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("c1", "edit_file", {"path": "a.txt", "edits": [{"old": "two", "new": "TWO"}]}),
    ("c2", "write_file", {"path": "sub/new.txt", "content": "new\n"}),
    ("c3", "delete_file", {"path": "gone.txt"}),
    ("c4", "move_file", {"path": "old/name.txt", "to": "sub/name.txt"}),
    ("c5", "write_file", {"path": "a.txt", "content": "1\nTWO\n3\n"}),
)
_AT_ONCE = 4
"""The number of processes that run at once."""
_EVENTS = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.chmod", "os.utime"}


class Steps:
    """Counts steps, and kills this process at one of them. CPython announces each step before it is
    taken: system calls as audit events, statements to a database's trace.
    """

    def __init__(self, last: int | None) -> None:
        self.count = 0
        self._last = last
        self._is_over = False

    def watch(self, ledger: LedgerFile) -> None:
        """Count from now on, in all threads."""
        sys.addaudithook(self._on_event)
        with ledger.transaction() as db:
            db.set_trace_callback(self._count)

    def stop(self) -> None:
        """Count no more."""
        self._is_over = True

    def _on_event(self, event: str, details: tuple[Any, ...]) -> None:
        if event in _EVENTS or (event == "open" and details[2] & (os.O_WRONLY | os.O_RDWR)):
            self._count()

    def _count(self, _: str = "") -> None:
        self.count += not self._is_over
        if self.count == self._last and not self._is_over:
            os.kill(os.getpid(), signal.SIGKILL)


def project_in(folder: Path) -> Project:
    """The project in a folder, as a new process sees it."""
    ledger = LedgerFile(folder / "state/ledger.db")
    return Project(folder / "root", folder / "state/checkpoints", ledger)


def prepare(folder: Path) -> None:
    """Write the first files."""
    for name, (content, mode) in FIRST.items():
        path = folder / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)


async def work(folder: Path, steps: Steps) -> None:
    """Make all changes, revert some, then the others, and repeat all."""
    project = project_in(folder)
    steps.watch(project.ledger)
    for call, tool, arguments in CALLS:
        await project.run(call, tool, **arguments)
    await project.revert("c4", "c5")
    await project.revert("c1", "c2", "c3")
    await project.revert()
    steps.stop()
    assert all(not history.is_reverted for history in histories(project.changes.all()))


def main(folder: Path, at: list[int]) -> None:
    """Run the work until each of these steps, each time in a new process and folder."""
    if not at:
        steps = Steps(None)
        prepare(folder / "all")
        asyncio.run(work(folder / "all", steps))
        print(steps.count)
    for first in range(0, len(at), _AT_ONCE):
        children = {_start(folder / str(step), step): step for step in at[first : first + _AT_ONCE]}
        for child, step in children.items():
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status), f"step {step} did not come"
            assert os.WTERMSIG(status) == signal.SIGKILL


def _start(folder: Path, step: int) -> int:
    """Start a process that kills itself at this step; returns its id."""
    child = os.fork()
    if child == 0:
        try:
            prepare(folder)
            asyncio.run(work(folder, Steps(step)))
        finally:
            os._exit(1)
    return child


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(word) for word in sys.argv[2:]])
