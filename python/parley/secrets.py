"""Secrets (keys, tokens) from variables and commands, and the list of secrets in use.

Does not know providers or servers. Secrets never appear in errors, logs or argument lists.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from parley.programs import program, program_name, search_path, working_folder

COMMAND_WAIT_S = 30.0
"""Seconds to wait for a command, which may have to ask for a passphrase."""

OUTPUT_BYTES = 65_536
"""The maximum number of bytes to read from a command: keys are shorter than this, and output may be
endless."""


HANDED_OUT = dict[str, str]()
"""Every key that this process has used, with its source; logs never contain these keys."""


class SecretError(Exception):
    """A variable or command does not yield a secret; the text gives the reason."""


async def command_secret(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Run a command in Parley's own folder; returns the secret that it prints. Raises
    SecretError.
    """
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
        raise SecretError(f"{name} did not print a key")
    return sound_secret(text.decode("utf-8", "replace"), "key")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a process, and wait for its end.

    Closes the process's pipe first, because asyncio considers a process ended only when its pipes
    have ended. A pipe never ends if Parley has stopped reading it, or if a child process keeps it
    open (Python 3.11, base_subprocess.py). No public function closes it.
    """
    process.kill()
    vars(process)["_transport"].close()
    await process.wait()


async def _output(process: asyncio.subprocess.Process, name: str) -> bytes:
    """A process's complete output. Raises SecretError if the output is longer than any key."""
    assert process.stdout
    output = bytearray()
    while piece := await process.stdout.read(OUTPUT_BYTES):
        output += piece
        if len(output) > OUTPUT_BYTES:
            raise SecretError(f"{name} printed more than {OUTPUT_BYTES} bytes")
    return bytes(output)


def sound_secret(key: str, origin: str) -> str:
    """A secret without the final newline that files and commands add. Raises SecretError."""
    key = key.strip()
    if not key:
        raise SecretError
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SecretError("it contains a space or a character outside printable ASCII")
    HANDED_OUT[key] = origin
    return key
