"""The official SDKs' clients, and the environment variables that each may use.

The SDKs read more from the environment than keys: OPENAI_CUSTOM_HEADERS, ANTHROPIC_CUSTOM_HEADERS
(with keys in them), OPENAI_ORG_ID, OPENAI_PROJECT_ID, OPENAI_ADMIN_KEY, ANTHROPIC_AUTH_TOKEN,
OPENAI_BASE_URL, ANTHROPIC_BASE_URL (openai 3.54, lib/_client_auth.py, of
github.com/openai/openai-python; anthropic 2.12, _client.py, of
github.com/anthropics/anthropic-sdk-python; read 2026-11-22).

All of this is meant for the SDK makers' hosts. Other hosts get only the values of their entry in
the settings.
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
from parley.providers.errors import bounded
from parley.settings.values import ProviderSettings


def address(provider: ProviderSettings, environ: Mapping[str, str]) -> str:
    """A provider's address; raises ModelError for an invalid one."""
    named = environ.get(provider.base_url_env or "")
    url = named or provider.base_url or sdk(provider.kind).url
    if why := flaw(url):
        where = provider.base_url_env if named else f"providers.{provider.name}.base_url"
        name, problem = bounded(provider.name), bounded(f"{where}: {why}")
        raise ModelError(
            f"{name} cannot be asked: {problem}. What to do: set the base URL",
            reason=f"{name} has no usable base URL",
        )
    return url


def client(provider: ProviderSettings, library: ModuleType, url: str, **options: Any) -> Any:
    """A client for this address; only the one for the SDK maker's host uses the environment."""
    make = getattr(library, sdk(provider.kind).client)
    with nullcontext() if _is_official(provider, url) else _without_variables():
        return make(base_url=url, **options)


def _is_official(provider: ProviderSettings, url: str) -> bool:
    """Whether this is the SDK maker's host, or the user's gateway that the SDK's own variable puts
    in its place."""
    if provider.official and not provider.builtin and not provider.base_url:
        return True
    parts = import_module("httpx2").URL
    return bool(parts(url).host == parts(sdk(provider.kind).url).host)


@contextmanager
def _without_variables() -> Iterator[None]:
    """The environment without the SDKs' variables, which they read only while a client is made, at
    once."""
    prefixes = tuple(library.variables for library in sdks())
    variables = {name: value for name, value in os.environ.items() if name.startswith(prefixes)}
    for name in variables:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(variables)
