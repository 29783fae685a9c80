"""A folder whose files calls have changed, with a real ledger, for the tests of reverts."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parley.policy.approval import CallKey
from parley.policy.facts import Approved
from parley.policy.reverts import histories, of_calls
from parley.runtime.recording import CallRecorder
from parley.runtime.reverting import Reverter, RevertOutcome
from parley.storage.changed_files import ChangedFiles
from parley.storage.checkpoints import Checkpoints
from parley.storage.ledger import LedgerFile
from parley.tools.file_edits import file_edits
from parley.workspace.boundary import Boundary
from parley.workspace.change_tools import CallOrigin, ChangeTools
from parley.workspace.planning import plan_of
from tests.ledgers import open_ledger
from tests.workspace.open_files import FakeEditor


@dataclass
class Project:
    """A folder with recorded changes."""

    root: Path
    state: Path
    ledger: LedgerFile = field(default_factory=open_ledger)
    editor: FakeEditor = field(default_factory=FakeEditor)
    chat: str = "/chat.md"

    @property
    def changes(self) -> ChangedFiles:
        return ChangedFiles(self.ledger, self.chat)

    @property
    def kept(self) -> Checkpoints:
        return Checkpoints(self.state)

    def reverter(self) -> Reverter:
        return Reverter(self.changes, self.kept, self.editor, self.ledger.chat(self.chat))

    def start(self, call: str, tool: str, arguments: str) -> None:
        """Record that the user approved a call, and that it runs."""
        key, ledger = CallKey(call, "workspace", tool, arguments, "d"), self.ledger.chat(self.chat)
        ledger.record(Approved(((key, "ya"),), "key"))
        assert ledger.start(key)

    async def run(self, call: str, tool: str, **arguments: Any) -> None:
        boundary = Boundary(self.root)
        edits = file_edits(tool, arguments, is_own=True)
        plan = await plan_of(edits, boundary, self.editor, {})
        recorder = CallRecorder(self.changes, self.kept, call)
        tools = ChangeTools(boundary, self.editor, lambda _: recorder)
        await tools.run(tool, arguments, CallOrigin(self.chat, call, plan.base))

    async def revert(self, *calls: str) -> RevertOutcome:
        every = self.changes.all()
        wanted = of_calls(every, calls) if calls else every
        numbers = {change.number for change in wanted if change.reverts is None}
        return await self.reverter().revert(
            [each for each in histories(every) if each.change.number in numbers]
        )

    def files(self) -> dict[str, tuple[bytes, int]]:
        return {
            path.relative_to(self.root).as_posix(): (
                path.read_bytes(),
                stat.S_IMODE(path.stat().st_mode),
            )
            for path in self.root.rglob("*")
            if path.is_file()
        }
