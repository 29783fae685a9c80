"""Secrets (keys, tokens) from variables and commands, and all secrets of this process.

Knows no provider and no server. A secret never appears in an error, a log or an argument list.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from parley.programs import program, program_name, search_path, working_folder

COMMAND_WAIT_S = 30.0
"""A command may have to ask for a passphrase."""

OUTPUT_BYTES = 65_536
"""No key is longer, and a command may print endlessly."""


HANDED_OUT = dict[str, str]()
"""Every key of this process, with its source: logs contain none of them."""


class SecretError(Exception):
    """A variable or command yields no secret; the text says why."""


async def command_secret(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """The secret that a command prints; it starts in Parley's own folder. Raises SecretError."""
    path, name = program(command[0]), program_name(command)
    if path is None:
        raise SecretError(f"{name}: program not found. Give its full path, or add it to the PATH")
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            *command[1:],
            env={**os.environ, "PATH": search_path()},
            cwd=working_folder(environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except (OSError, ValueError) as error:
        raise SecretError(f"{name}: {type(error).__name__}") from error
    try:
        async with asyncio.timeout(COMMAND_WAIT_S):
            text = await _output(process, name)
            await process.wait()
    except TimeoutError as error:
        raise SecretError(f"{name} did not finish within {COMMAND_WAIT_S:g} seconds") from error
    finally:
        if process.returncode is None:
            await _end(process)
    if process.returncode or not text.strip():
        raise SecretError(f"{name} printed no key")
    return sound_secret(text.decode("utf-8", "replace"), "key")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a process, and wait for its end.

    First closes its pipe: asyncio considers a process ended only when its pipes have ended. A pipe
    that nobody reads, or that a child process holds, never ends (Python 3.11, base_subprocess.py).
    No public call closes it.
    """
    process.kill()
    vars(process)["_transport"].close()
    await process.wait()


async def _output(process: asyncio.subprocess.Process, name: str) -> bytes:
    """All output of a process. Raises SecretError if it is longer than any key."""
    assert process.stdout
    output = bytearray()
    while piece := await process.stdout.read(OUTPUT_BYTES):
        output += piece
        if len(output) > OUTPUT_BYTES:
            raise SecretError(f"{name} printed more than {OUTPUT_BYTES} bytes")
    return bytes(output)


def sound_secret(key: str, origin: str) -> str:
    """The secret without the final newline of files and commands. Raises SecretError."""
    key = key.strip()
    if not key:
        raise SecretError
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SecretError("expected one word of ASCII characters")
    HANDED_OUT[key] = origin
    return key
