"""Reads a provider's API key from a variable or a command, or from a sign-in if neither has one.

Knows no provider by name. A key never appears in an error, a log or an argument list.
"""

from __future__ import annotations

from collections.abc import Mapping

from parley.providers.provider_errors import no_key
from parley.secrets import SecretError, command_secret, sound_secret
from parley.settings.values import ProviderSettings


def has_own_key(provider: ProviderSettings, environ: Mapping[str, str]) -> bool:
    """Whether the user has a key for this provider in a command or a variable."""
    return bool(provider.api_key_command or environ.get(provider.api_key_env or ""))


async def key_of(provider: ProviderSettings, environ: Mapping[str, str], login: str = "") -> str:
    """The key, or else the `login`; "" if neither a variable nor a command is set, because no key
    is needed then.
    """
    try:
        if provider.api_key_command:
            return await command_secret(provider.api_key_command, environ)
        if login:
            return login
        if not provider.api_key_env:
            return ""
        return sound_secret(environ.get(provider.api_key_env, ""), provider.api_key_env)
    except SecretError as error:
        raise no_key(provider, str(error)) from error
