"""Secrets from variables and commands: a key, a token; and all that this process was given.

Knows no provider and no server; a secret is in no error, log or argument list.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from parley.programs import program, program_name, search_path, working_folder

WAIT_S = 30.0
"""A command may have to ask for a passphrase."""

MOST_BYTES = 65_536
"""No key is longer, and a command may print for ever."""


HANDED_OUT = dict[str, str]()
"""Every key that this process was given, with where it came from: what is logged holds none of them."""


class SecretError(Exception):
    """No secret is to be had from a variable or command; the text says why."""


async def command_secret(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """The secret that a command prints, which starts in Parley's own folder. Raises SecretError for none."""
    path, name = program(command[0]), program_name(command)
    if path is None:
        raise SecretError(f"{name}: there is no such program, by its whole path or on the PATH")
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
        async with asyncio.timeout(WAIT_S):
            text = await _output(process, name)
            await process.wait()
    except TimeoutError as error:
        raise SecretError(f"{name} did not end within {WAIT_S:g} seconds") from error
    finally:
        if process.returncode is None:
            await _end(process)
    if process.returncode or not text.strip():
        raise SecretError(f"{name} printed no key")
    return sound_secret(text.decode("utf-8", "replace"), "key")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a process, and wait for its end.

    Its pipe is closed first: asyncio takes a process for ended when its pipes are, and one that nobody reads,
    or that a child of the process holds, never is (Python 3.11, base_subprocess.py). No public call does it.
    """
    process.kill()
    vars(process)["_transport"].close()
    await process.wait()


async def _output(process: asyncio.subprocess.Process, name: str) -> bytes:
    """All that a process prints; raises SecretError where that is more than any key."""
    assert process.stdout
    output = bytearray()
    while piece := await process.stdout.read(MOST_BYTES):
        output += piece
        if len(output) > MOST_BYTES:
            raise SecretError(f"{name} printed more than {MOST_BYTES} bytes")
    return bytes(output)


def sound_secret(key: str, origin: str) -> str:
    """The secret without the newline that files and commands put behind it. Raises SecretError."""
    key = key.strip()
    if not key:
        raise SecretError
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SecretError("what is there is no single word of ASCII characters")
    HANDED_OUT[key] = origin
    return key
