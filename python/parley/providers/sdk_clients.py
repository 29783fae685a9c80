"""Creates the official SDKs' clients, and controls the environment variables that each may use.

The SDKs read more from the environment than keys: OPENAI_CUSTOM_HEADERS, ANTHROPIC_CUSTOM_HEADERS
(with keys in them), OPENAI_ORG_ID, OPENAI_PROJECT_ID, OPENAI_ADMIN_KEY, ANTHROPIC_AUTH_TOKEN,
OPENAI_BASE_URL, ANTHROPIC_BASE_URL (openai 3.54, lib/_client_auth.py, of
github.com/openai/openai-python; anthropic 2.12, _client.py, of
github.com/anthropics/anthropic-sdk-python; read 2026-11-22).

All these variables are meant for the SDK vendors' hosts. Other hosts receive only the values from
their entries in the settings.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any

from parley.addresses import flaw
from parley.errors import ModelError
from parley.models.formats import sdk, sdks
from parley.providers.provider_errors import bounded
from parley.settings.values import ProviderSettings


def address(provider: ProviderSettings, environ: Mapping[str, str]) -> str:
    """A provider's base URL; raises ModelError if it is invalid."""
    named = environ.get(provider.base_url_env or "")
    url = named or provider.base_url or sdk(provider.kind).url
    if why := flaw(url):
        where = provider.base_url_env if named else f"providers.{provider.name}.base_url"
        name, problem = bounded(provider.name), bounded(f"{where}: {why}")
        raise ModelError(
            f"{name} cannot be used: {problem}. What to do: correct the base URL",
            reason=f"{name} has no usable base URL",
        )
    return url


def client(provider: ProviderSettings, library: ModuleType, url: str, **options: Any) -> Any:
    """A client for this URL; only a client for the SDK vendor's host uses the environment."""
    make = getattr(library, sdk(provider.kind).client)
    with nullcontext() if _is_official(provider, url) else _without_variables():
        return make(base_url=url, **options)


def _is_official(provider: ProviderSettings, url: str) -> bool:
    """Whether this is the SDK vendor's host, or the user's gateway, set with the SDK's own
    variable."""
    if provider.official and not provider.builtin and not provider.base_url:
        return True
    parts = import_module("httpx2").URL
    return bool(parts(url).host == parts(sdk(provider.kind).url).host)


@contextmanager
def _without_variables() -> Iterator[None]:
    """Remove the SDKs' variables from the environment; the SDKs read them only while a client is
    created."""
    prefixes = tuple(library.variables for library in sdks())
    variables = {name: value for name, value in os.environ.items() if name.startswith(prefixes)}
    for name in variables:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(variables)
