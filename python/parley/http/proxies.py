"""Uses the proxies from the environment, except for addresses on this machine; reports unusable
proxies.

Knows variables and addresses; `httpx2` decides which proxy is used for a remote host.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any
from urllib.request import getproxies, proxy_bypass

from parley.errors import ParleyError
from parley.http.certificates import LateContext

_KINDS = ("http", "https", "all")
"""The relevant variables: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, in upper or lower case."""


MOST_CONNECTIONS = 1000
MOST_IDLE = 100
KEEP_ALIVE_S = 300.0
"""How long an idle connection is kept for the next request; the server may close it earlier."""


class ProxyError(ParleyError):
    """Raised for an unusable proxy in the environment; the text contains the variable and the
    remedy.
    """


def client_options(url: str) -> dict[str, Any]:
    """Options for a client for this address, which reads the environment itself if possible.

    A client with its own transport does not look for proxies. `trust_env=False` is not enough, as
    anthropic 2.12's client still reads them ("if 'transport' not in kwargs: ... proxy_map =
    ... get_environment_proxies()", anthropic/_base_client.py, 2026-11-22).
    """
    if is_here(url):
        return _through(None)
    proxies = {kind: proxy for kind, proxy in getproxies().items() if kind in _KINDS and proxy}
    if not any(map(_flaw, proxies.values())):
        return {"limits": _limits(), "verify": LateContext()}
    # By default, httpx2 sets up every proxy in the environment, and fails if any of them is
    # invalid. So each client is given only the proxy that it needs.
    parts = import_module("httpx2").URL(url)
    kind = parts.scheme or "https"  # an SDK's default address is https
    kind = kind if kind in proxies else "all"
    if kind not in proxies or proxy_bypass(parts.host):
        return _through(None)
    if flaw := _flaw(proxies[kind]):
        raise ProxyError(_complaint(kind, flaw))
    return _through(proxies[kind])


def is_here(url: str) -> bool:
    """Whether an address is on this machine."""
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
    transport = import_module("httpx2").AsyncHTTPTransport(
        verify=LateContext(), proxy=proxy, limits=_limits()
    )
    return {"trust_env": False, "transport": transport}


def _limits() -> Any:
    """A pool's limits: `httpx2` closes idle connections after 5 s, but users pause for longer."""
    return import_module("httpx2").Limits(
        max_connections=MOST_CONNECTIONS,
        max_keepalive_connections=MOST_IDLE,
        keepalive_expiry=KEEP_ALIVE_S,
    )


def _flaw(proxy: str) -> str:
    """Why a proxy is unusable; "" if it is usable. For SOCKS, `httpx2` needs another package."""
    httpx2 = import_module("httpx2")
    kind, colon, _ = proxy.partition("://")
    kind = kind.lower() if colon else "http"
    if kind.startswith("socks5") and find_spec("socksio") is None:
        return "it is a SOCKS proxy, but only http:// and https:// proxies can be used"
    try:
        httpx2.Proxy(proxy if colon else f"http://{proxy}")
    except (httpx2.InvalidURL, ValueError):  # this is not an address, or an unknown kind of proxy
        return "it is not the address of an http:// or https:// proxy"
    return ""


def _complaint(kind: str, flaw: str) -> str:
    name = next(
        (name for name in os.environ if name.lower() == f"{kind}_proxy"), f"{kind.upper()}_PROXY"
    )
    return (
        f"{name} is set to a proxy that cannot be used: {flaw}. What to do: set HTTPS_PROXY to an "
        f"http:// or https:// proxy, add the host to NO_PROXY, or unset {name}"
    )
