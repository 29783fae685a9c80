"""Where the keys of providers come from: a variable, or a command that prints one.

Knows no provider by name; a key is in no error, log or argument list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from parley.drivers.failures import no_key
from parley.settings import Provider

WAIT_S = 30.0
"""A command may have to ask for a passphrase."""


async def key_of(provider: Provider, environ: Mapping[str, str]) -> str:
    """The key; "" for a provider that names neither variable nor command, since it needs none."""
    if provider.api_key_command:
        return _sound(provider, await _printed(provider))
    if not provider.api_key_env:
        return ""
    return _sound(provider, environ.get(provider.api_key_env, ""))


def _sound(provider: Provider, key: str) -> str:
    """The key without the newline that files and commands put behind it."""
    key = key.strip()
    if not key:
        raise no_key(provider)
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise no_key(provider, "what is there is no single word of ASCII characters")
    return key


async def _printed(provider: Provider) -> str:
    command = provider.api_key_command or ()
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except (OSError, ValueError) as error:
        raise no_key(provider, f"{command[0]}: {type(error).__name__}") from error
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), WAIT_S)
    except TimeoutError as error:
        raise no_key(provider, f"{command[0]} did not end within {WAIT_S:g} seconds") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode or not printed.strip():
        raise no_key(provider, f"{command[0]} printed no key")
    return printed.decode("utf-8", "replace")
