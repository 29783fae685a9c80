"""The proxies of the environment: never for what runs on this machine, and named where one cannot be used.

Knows variables and addresses; which of them a host elsewhere is asked through, `httpx2` decides.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any
from urllib.request import getproxies, proxy_bypass

from parley.errors import ParleyError

_KINDS = ("http", "https", "all")
"""The variables that count: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, in capitals or not."""


MOST_CONNECTIONS = 1000
MOST_IDLE = 100
IDLE_S = 300.0
"""How long a connection is kept for the next request; a server that closes it earlier costs nothing."""


class ProxyError(ParleyError):
    """A proxy that the environment names cannot be used; the text says which variable, and what to do."""


def client_options(url: str) -> dict[str, Any]:
    """Options of a client for this address; its own reading of the environment stays where that will do.

    With a transport of its own, a client looks for no proxies. `trust_env=False` is not enough: the
    client of anthropic 2.12 reads them nevertheless ("if 'transport' not in kwargs: ... proxy_map = ...
    get_environment_proxies()", anthropic/_base_client.py, 2026-11-22).
    """
    if is_here(url):
        return _through(None)
    proxies = {kind: proxy for kind, proxy in getproxies().items() if kind in _KINDS and proxy}
    if not any(map(_flaw, proxies.values())):
        return {"limits": _limits()}
    # A client makes all proxies of the environment, and fails with any: this one gets what it needs.
    parts = import_module("httpx2").URL(url)
    kind = parts.scheme or "https"  # an SDK's own address is one
    kind = kind if kind in proxies else "all"
    if kind not in proxies or proxy_bypass(parts.host):
        return _through(None)
    if flaw := _flaw(proxies[kind]):
        raise ProxyError(_complaint(kind, flaw))
    return _through(proxies[kind])


def is_here(url: str) -> bool:
    """Whether an address is on this machine: its name or number is one that never leaves it."""
    host = import_module("httpx2").URL(url).host.rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _through(proxy: str | None) -> dict[str, Any]:
    proxy = f"http://{proxy}" if proxy and "://" not in proxy else proxy
    transport = import_module("httpx2").AsyncHTTPTransport(proxy=proxy, limits=_limits())
    return {"trust_env": False, "transport": transport}


def _limits() -> Any:
    """Limits of a pool: `httpx2` closes an idle connection after 5 seconds, and people think longer."""
    return import_module("httpx2").Limits(
        max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_IDLE, keepalive_expiry=IDLE_S
    )


def _flaw(proxy: str) -> str:
    """The flaw of a proxy that no client can use, "" for others; `httpx2` wants another package for SOCKS."""
    httpx2 = import_module("httpx2")
    kind, colon, _ = proxy.partition("://")
    kind = kind.lower() if colon else "http"
    if kind.startswith("socks5") and find_spec("socksio") is None:
        return "it is a SOCKS proxy, and only http:// and https:// ones can be used"
    try:
        httpx2.Proxy(proxy if colon else f"http://{proxy}")
    except (httpx2.InvalidURL, ValueError):  # no address, or of no known kind
        return "it is no address of an http:// or https:// proxy"
    return ""


def _complaint(kind: str, flaw: str) -> str:
    name = next((name for name in os.environ if name.lower() == f"{kind}_proxy"), f"{kind.upper()}_PROXY")
    return (
        f"{name} names a proxy that cannot be used: {flaw}. What to do: set HTTPS_PROXY to one of those, "
        f"name the host in NO_PROXY, or unset {name}"
    )
