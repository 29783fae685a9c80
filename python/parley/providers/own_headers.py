"""A provider's own headers: their values with the environment's variables, checked before they are
sent.

Never puts a value into an error, because values may be keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from parley.errors import ModelError, SettingsError
from parley.http.request_headers import value_flaw
from parley.late_patterns import late_pattern
from parley.providers.provider_errors import bounded
from parley.settings.values import ProviderSettings
from parley.tools.server_settings import expand, placeholders

_SECRETIVE = late_pattern(
    r"key|token|secret|pass|auth|credential|cookie|bearer|sign", re.IGNORECASE
)


def own_headers(provider: ProviderSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers as they are sent. Raises ModelError if a variable is unset or its value invalid.

    Names are in lower case, so two spellings of a name are one header.
    """
    headers = dict[str, str]()
    for name, text in provider.headers.items():
        where = f"providers.{provider.name}.headers.{name}"
        try:
            value = expand(text, environ, where).strip()
        except SettingsError as error:
            raise _unusable(provider, str(error), "set the variable") from error
        if flaw := value_flaw(value):
            raise _unusable(provider, f"{where}: {flaw}", "correct the value, or its variable")
        headers[name.lower()] = value
    return headers


def header_secrets(headers: Mapping[str, str]) -> tuple[str, ...]:
    """All values, and the keys after words such as `Bearer`: no error may contain them."""
    texts = (text for value in headers.values() for text in (value, value.rpartition(" ")[2]))
    return tuple(dict.fromkeys(texts))


def reply_secrets(provider: ProviderSettings, headers: Mapping[str, str]) -> tuple[str, ...]:
    """The values that are probably keys: no reply may contain them.

    Other values, such as an application's title, may be words of a reply.
    """
    private = {
        name.lower()
        for name, text in provider.headers.items()
        if placeholders(text) or _SECRETIVE.search(name)
    }
    return header_secrets({name: headers[name] for name in private if name in headers})


def _unusable(provider: ProviderSettings, problem: str, remedy: str) -> ModelError:
    name = bounded(provider.name)
    return ModelError(
        f"{name} cannot be used: {bounded(problem)}. What to do: {remedy}",
        reason=f"{name} has an unusable header",
    )
