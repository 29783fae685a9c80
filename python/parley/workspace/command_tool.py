"""The tool that runs commands: its result for the model, and the records of what it changed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.text import counted
from parley.tools.command_results import command_head
from parley.workspace.command_runs import CommandResult, Commands, CommandWatch, OnOutput
from parley.workspace.snapshots import SnapshotChange, changes, snapshot

MOST_TIMEOUT_S = 3600.0
TIMEOUT_S = 120.0
"""The time limit of a command whose call names none."""
_MOST_NAMED = 20
_CLOSE_S = 3.0
"""How long the end of a process waits for the records of commands."""


class CommandRecorder(Protocol):
    """Keeps what is needed to revert the changes of a command."""

    async def record(self, root: Path, changes: Sequence[SnapshotChange]) -> None:
        """Record changes that were made. Raises ParleyError."""
        ...


class RunningCommands:
    """The commands that run in a process. A caller that was cancelled does not wait for the end of
    its command, nor for the record of the command's changes."""

    def __init__(self) -> None:
        self._watches = dict[asyncio.Task[tuple[str, str]], CommandWatch]()

    def start(
        self, work: Coroutine[Any, Any, tuple[str, str]], watch: CommandWatch
    ) -> asyncio.Task[tuple[str, str]]:
        """Start the work of a command, which `watch` can end."""
        running = asyncio.ensure_future(work)
        self._watches[running] = watch
        running.add_done_callback(self._forget)
        return running

    def _forget(self, running: asyncio.Task[tuple[str, str]]) -> None:
        del self._watches[running]
        if not running.cancelled():
            running.exception()  # the caller reports it, unless it was cancelled

    async def close(self) -> None:
        """End all commands, and wait, for a limited time, until their changes are recorded."""
        for watch in self._watches.values():
            watch.stop.set()
        if self._watches:
            await asyncio.wait(list(self._watches), timeout=_CLOSE_S)


@frozen
class CommandTool:
    """Runs commands in one root."""

    commands: Commands
    environ: Mapping[str, str]
    running: RunningCommands = field(default_factory=RunningCommands)

    async def run(
        self,
        command: str,
        directory: str,
        timeout_s: float,
        recorder: CommandRecorder,
        on_output: OnOutput | None,
        watch: CommandWatch | None = None,
    ) -> tuple[str, str]:
        """Run a command; returns the text for the model, and the whole output if it was cut.

        `watch` sees the output earlier, and can stop the command. If the caller is cancelled, the
        command ends, and its changes are recorded soon. Raises ParleyError if the command cannot
        start.
        """
        watch = watch or CommandWatch()
        work = self._run(command, directory, timeout_s, recorder, on_output, watch)
        try:
            return await asyncio.shield(self.running.start(work, watch))
        except asyncio.CancelledError:
            watch.stop.set()
            raise

    async def _run(
        self,
        command: str,
        directory: str,
        timeout_s: float,
        recorder: CommandRecorder,
        on_output: OnOutput | None,
        watch: CommandWatch,
    ) -> tuple[str, str]:
        root = self.commands.root
        limit = min(max(timeout_s or TIMEOUT_S, 1.0), MOST_TIMEOUT_S)
        before, untracked = await self._snapshot(root, is_after=False)
        result = await self.commands.run(command, directory, limit, on_output, watch=watch)
        changed = "" if untracked else await self._changes(root, before, recorder)
        untracked = untracked or changed
        lines = [_head(result, limit), result.output.rstrip("\n"), untracked]
        whole = result.whole if result.whole != result.output else ""
        return "\n".join(filter(None, lines)), whole

    async def sandbox_note(self) -> str:
        """Whether a command would run in a sandbox, for the user. Raises ParleyError if it must,
        and cannot.
        """
        async with self.commands.sandbox.start(
            ["/bin/sh"],
            self.commands.root,
            self.commands.root,
            self.environ,
            mode=self.commands.mode,
            has_network=self.commands.has_network,
        ) as start:
            return "sandboxed" if start.is_sandboxed else f"not sandboxed: {start.why_not}"

    async def _snapshot(self, root: Path, *, is_after: bool) -> tuple[str, str]:
        """The id of the work tree's state, and why there is none."""
        try:
            return await snapshot(root, self.environ, is_after=is_after), ""
        except ParleyError as error:
            return "", f"(changes by commands are not tracked here: {error})"

    async def _changes(self, root: Path, before: str, recorder: CommandRecorder) -> str:
        """Record the changes since a snapshot; returns a line that names them."""
        after, untracked = await self._snapshot(root, is_after=True)
        if untracked:
            return untracked
        try:
            made = [] if after == before else await changes(root, before, after, self.environ)
            await recorder.record(root, made)
        except ParleyError as error:
            return f"(the changes by this command are not tracked: {error})"
        names = ", ".join(change.path for change in made[:_MOST_NAMED])
        more = f" and {len(made) - _MOST_NAMED} more" if len(made) > _MOST_NAMED else ""
        return f"(it changed {counted(len(made), 'file')}: {names}{more})" if made else ""


def _head(result: CommandResult, limit: float) -> str:
    """The first line of a result: how the command ended."""
    late_s = limit if result.was_timed_out else None
    return command_head(result.exit_code, late_s, result.seconds, is_sandboxed=result.sandboxed)
