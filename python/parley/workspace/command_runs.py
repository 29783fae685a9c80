"""Runs commands: `/bin/sh -c` in a folder of the root, perhaps in a sandbox, and ends all of their
processes.

No process of a command outlives the command, whether it ends, is cancelled, takes too long, or its
host is killed. A process that cleared its environment and left the command's process group can, but
only outside a sandbox. Does not know who asked for the command.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from parley.errors import ParleyError, reason_of
from parley.frozen import frozen
from parley.processes.reaper import Reaper
from parley.programs import search_path, surroundings
from parley.workspace.command_output import OutputBuffer, head_and_tail
from parley.workspace.sandbox import Mode, Sandbox, Start

MOST_OUTPUT = 1_000_000
"""The maximum number of bytes of output that are kept."""
MOST_SHOWN = 16_000
"""The maximum number of characters of output that the model receives at first."""

_SHELL = "/bin/sh"
_USER = ("HOME", "LOGNAME", "SHELL", "USER")
"""Variables about the user that programs need; the MCP SDK gives servers the same."""
_CHUNK = 65_536
_CHUNKS = 100
"""The maximum number of chunks to read after the end, because a child may still be writing."""
_GRACE_S = 0.5
_POLL_S = 0.01
_SIGNALLED = 128
"""A shell adds it to the signal that ended a command."""

OnOutput = Callable[[str, float], Awaitable[None]]
"""Receives the last line and the seconds since the start."""


@frozen
class CommandResult:
    """The end of a command. `exit_code` is None if the command did not end by itself.

    `output` has its first and last lines, `whole` as much as was kept. `why_not_sandboxed` is "" if
    the command ran in a sandbox.
    """

    exit_code: int | None
    output: str
    whole: str
    seconds: float
    sandboxed: bool
    why_not_sandboxed: str
    was_timed_out: bool


class CommandWatch:
    """Lets another task see the output of a running command, and end the command."""

    def __init__(self) -> None:
        self.output = OutputBuffer(MOST_OUTPUT)
        self.begun = asyncio.Event()
        """Set when the command's process runs."""
        self.stop = asyncio.Event()
        """Ends the command when it is set."""
        self.ended = asyncio.Event()
        self.result: CommandResult | None = None
        """The end of the command; None before it, or if it never began."""


@frozen
class Commands:
    """Runs commands in one root. `environ` is the host's environment, with the user's PATH."""

    root: Path
    environ: Mapping[str, str]
    reaper: Reaper
    sandbox: Sandbox
    mode: Mode = "auto"
    has_network: bool = False

    async def run(
        self,
        command: str,
        directory: str,
        timeout_s: float,
        on_output: OnOutput | None = None,
        every_s: float = 0.5,
        watch: CommandWatch | None = None,
    ) -> CommandResult:
        """Run a command in a folder of the root, to its end, to the time limit, or until `watch`
        stops it.

        Raises ParleyError if it cannot start, or if it is stopped earlier.
        """
        watch = watch or CommandWatch()
        try:
            watch.result = await self._run(command, directory, timeout_s, on_output, every_s, watch)
        finally:
            watch.ended.set()
        return watch.result

    async def _run(
        self,
        command: str,
        directory: str,
        timeout_s: float,
        on_output: OnOutput | None,
        every_s: float,
        watch: CommandWatch,
    ) -> CommandResult:
        root = self.root.resolve()
        folder = (root / directory).resolve()
        if not folder.is_relative_to(root) or not folder.is_dir():
            raise ParleyError("directory: there is no such folder in the workspace")
        async with self.sandbox.start(
            [_SHELL, "-c", command],
            root,
            folder,
            _environment(self.environ),
            mode=self.mode,
            has_network=self.has_network,
        ) as start:
            if watch.stop.is_set():
                raise ParleyError("the command was stopped before it began")
            output, begun = watch.output, time.monotonic()
            limit = asyncio.timeout(timeout_s)
            with _pipe(output) as writer:
                process = await self._begin(start, folder, writer)
                watch.begun.set()
                was_stopped = False
                try:
                    async with limit:
                        was_stopped = not await _has_ended(
                            process, watch, begun, on_output, every_s
                        )
                except TimeoutError:
                    if not limit.expired():
                        raise
                finally:
                    await self._end(process)
            whole = output.text()
            return CommandResult(
                None if limit.expired() or was_stopped else _exit_code(process),
                head_and_tail(whole, MOST_SHOWN),
                whole,
                time.monotonic() - begun,
                start.is_sandboxed,
                start.why_not,
                limit.expired(),
            )

    async def _begin(self, start: Start, folder: Path, output: int) -> Process:
        """Start the command, and leave the end of the pipe to it."""
        program, arguments = self.reaper.launch(start.command[0], start.command[1:])
        try:
            return await asyncio.create_subprocess_exec(
                program,
                *arguments,
                stdin=DEVNULL,
                stdout=output,
                stderr=output,
                env=start.environ,
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ParleyError(f"the command cannot be run: {reason_of(error)}") from error
        finally:
            os.close(output)

    async def _end(self, process: Process) -> None:
        """End the processes that remain, politely at first; the reaper ends those that left their
        group.
        """
        try:
            if _signal(process.pid, signal.SIGTERM):
                with suppress(TimeoutError):
                    async with asyncio.timeout(_GRACE_S):
                        while _signal(process.pid, 0):  # noqa: ASYNC110 - groups have no event
                            await asyncio.sleep(_POLL_S)
        finally:
            _signal(process.pid, signal.SIGKILL)
            self.reaper.sweep(process.pid)
        with suppress(TimeoutError):  # another user's process cannot be ended, such as sudo's
            await asyncio.wait_for(process.wait(), _GRACE_S)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a command; none of them contains a provider's key."""
    return {
        **surroundings(environ),
        **{name: environ[name] for name in _USER if name in environ},
        "PATH": search_path(environ.get("PATH")),
        "TERM": "dumb",
    }


async def _has_ended(
    process: Process,
    watch: CommandWatch,
    begun: float,
    on_output: OnOutput | None,
    every_s: float,
) -> bool:
    """Wait for the end, and report the last line from time to time; False if the command must be
    stopped."""
    ending, stopping = (asyncio.create_task(each) for each in (process.wait(), watch.stop.wait()))
    try:
        while not (await _first_of(ending, stopping, every_s if on_output else None)):
            assert on_output is not None, "without it, there is no timeout"
            await on_output(watch.output.last_line(), time.monotonic() - begun)
        return ending.done()
    finally:
        ending.cancel()
        stopping.cancel()


async def _first_of(
    ending: asyncio.Task[Any], stopping: asyncio.Task[Any], within_s: float | None
) -> set[asyncio.Task[Any]]:
    done, _ = await asyncio.wait(
        {ending, stopping}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED
    )
    return done


def _exit_code(process: Process) -> int | None:
    code = process.returncode
    return code if code is None or code >= 0 else _SIGNALLED - code


def _signal(group: int, number: int) -> bool:
    """Send a signal to a process group; return whether the group exists."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS forbids it if only zombies remain
        return False
    return True


@contextmanager
def _pipe(output: OutputBuffer) -> Iterator[int]:
    """A pipe into `output`; yields the writing end, for the command to close.

    It is read at once, since a full pipe stops the command. The rest is read at the end, but not to
    the end of file: a process that escaped may keep the pipe open.
    """
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    loop = asyncio.get_running_loop()

    def read() -> bool:
        try:
            piece = os.read(reader, _CHUNK)
        except BlockingIOError:
            return False
        if not piece:
            loop.remove_reader(reader)
        output.feed(piece)
        return bool(piece)

    loop.add_reader(reader, read)
    try:
        yield writer
        for _ in range(_CHUNKS):
            if not read():
                break
    finally:
        loop.remove_reader(reader)
        os.close(reader)
