"""Finds flaws in a provider's or server's address before anything is sent there."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit

from parley.late_patterns import late_pattern
from parley.text import one_line

MASK = "…"
"""Replaces a secret in displayed text."""

_MOST_SHOWN = 60
_LOGIN = late_pattern(r"(?<=//)[^/?#]*@")
_SECRET_FIELD = late_pattern(
    r"([?&;#][^=&;#]*(?:key|token|secret|password|passwd|auth|sig|signature|code)=)[^&;#]+",
    re.IGNORECASE,
)


def shown_address(url: str) -> str:
    """An address for display, without the login and without secrets in the query."""
    return _SECRET_FIELD.sub(rf"\1{MASK}", _LOGIN.sub(f"{MASK}@", url))


@lru_cache(maxsize=64)
def flaw(url: str) -> str:
    """Why this address cannot be reached; "" if it may be reachable."""
    address = one_line(shown_address(url))[:_MOST_SHOWN]
    try:
        parts = urlsplit(url)
        port = parts.port  # raises ValueError for 99999, and for text that is not a number
        host = parts.hostname
    except ValueError as error:
        return f"{address} is not an address: {one_line(str(error))}"
    if parts.scheme not in ("http", "https"):
        return f"{address} must begin with http:// or https://"
    if not host or port == 0:
        return f"{address} has no host" if not host else f"{address} cannot have port 0"
    if not url.isprintable() or " " in url:
        return f"{address} contains a space or an invisible character"
    return ""
