"""Where keys come from: a variable, or a command that prints one.

Knows no provider by name; a key is in no error, log or argument list.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from parley.programs import program, search_path, working_folder
from parley.providers.errors import no_key
from parley.settings.values import Provider

WAIT_S = 30.0
"""A command may have to ask for a passphrase."""

MOST_BYTES = 65_536
"""No key is longer, and a command may print for ever."""


HANDED_OUT = dict[str, str]()
"""Every key that this process was given, with where it came from: what is logged holds none of them."""


class SilentError(Exception):
    """No key is to be had from a variable or command; the text says why."""


async def key_of(provider: Provider, environ: Mapping[str, str]) -> str:
    """The key; "" for a provider that names neither variable nor command, since it needs none."""
    try:
        if provider.api_key_command:
            return await printed(provider.api_key_command, environ)
        if not provider.api_key_env:
            return ""
        return _sound(environ.get(provider.api_key_env, ""), provider.api_key_env)
    except SilentError as error:
        raise no_key(provider, str(error)) from error


async def printed(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """The key that a command prints, which starts in Parley's own folder. Raises SilentError for none."""
    path = program(command[0])
    if path is None:
        raise SilentError(f"{command[0]}: there is no such program, by its whole path or on the PATH")
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
        raise SilentError(f"{command[0]}: {type(error).__name__}") from error
    try:
        async with asyncio.timeout(WAIT_S):
            text = await _output(process, command[0])
            await process.wait()
    except TimeoutError as error:
        raise SilentError(f"{command[0]} did not end within {WAIT_S:g} seconds") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode or not text.strip():
        raise SilentError(f"{command[0]} printed no key")
    return _sound(text.decode("utf-8", "replace"), "key")


async def _output(process: asyncio.subprocess.Process, name: str) -> bytes:
    """All that a process prints; raises SilentError where that is more than any key."""
    assert process.stdout
    output = bytearray()
    while piece := await process.stdout.read(MOST_BYTES):
        output += piece
        if len(output) > MOST_BYTES:
            raise SilentError(f"{name} printed more than {MOST_BYTES} bytes")
    return bytes(output)


def _sound(key: str, origin: str) -> str:
    """The key without the newline that files and commands put behind it."""
    key = key.strip()
    if not key:
        raise SilentError
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SilentError("what is there is no single word of ASCII characters")
    HANDED_OUT[key] = origin
    return key
