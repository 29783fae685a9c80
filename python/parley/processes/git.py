"""Runs git in a folder whose settings may come from a stranger, within limits of time and size.

Git then starts no monitor, no hook and no pager, and fetches nothing. Filters and diff drivers are
the caller's concern. Does not know why git runs.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from parley.errors import ParleyError
from parley.programs import program, search_path, working_folder
from parley.text import size_text

# `core.fsmonitor` names a program. Hooks are programs, too, and git runs one when it refreshes its
# index in passing.
_SAFELY = (
    "--no-optional-locks",
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
)
# Objects may be missing in a repository whose settings specify a program that fetches them.
_NO_FETCH = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}


class Git:
    """Runs git in one folder; `more` has further variables for git."""

    def __init__(
        self,
        folder: Path,
        most: int,
        environ: Mapping[str, str],
        more: Mapping[str, str] | None = None,
    ) -> None:
        """`most` is the largest output in bytes. Raises ParleyError if there is no git."""
        path = program("git", environ.get("PATH"))
        if path is None:
            raise ParleyError("git was not found")
        self._path, self.folder, self._most = path, folder, most
        self._environ = {
            **environ,
            "PATH": search_path(environ.get("PATH")),
            "LC_ALL": "C",
            **_NO_FETCH,
            **(more or {}),
        }

    async def __call__(self, *arguments: str, stdin: bytes = b"") -> tuple[bytes, int]:
        """Git's output and its exit code. Raises ParleyError."""
        try:
            process = await asyncio.create_subprocess_exec(
                self._path,
                *("-C", str(self.folder), *_SAFELY, *arguments),
                stdin=PIPE if stdin else DEVNULL,
                stdout=PIPE,
                stderr=DEVNULL,
                env=self._environ,
                cwd=working_folder(self._environ),
            )
        except (OSError, ValueError) as error:
            raise ParleyError(f"git cannot be run: {type(error).__name__}") from error
        writer = asyncio.create_task(_write(process, stdin))
        try:
            return await self._output(process), await process.wait()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            await writer

    async def _output(self, process: Process) -> bytes:
        assert process.stdout is not None, "it has a pipe"
        content = bytearray()
        while piece := await process.stdout.read(65_536):
            content += piece
            if len(content) > self._most:
                raise ParleyError(f"too large (more than {size_text(self._most)}), so not read")
        return bytes(content)


async def _write(process: Process, content: bytes) -> None:
    """Write git's input while its output is read; git may end before it has read everything."""
    if process.stdin is None:
        return
    with suppress(ConnectionError):
        process.stdin.write(content)
        await process.stdin.drain()
    process.stdin.close()
