"""What is wrong with the address of a provider or a server, before anything is sent to it."""

from __future__ import annotations

from urllib.parse import urlsplit

from parley.text import one_line

_SHOWN = 60


def flaw(url: str) -> str:
    """Why nothing can be reached at this address, "" where something may be."""
    shown = one_line(url)[:_SHOWN]
    try:
        parts = urlsplit(url)
        port = parts.port  # raises ValueError for 99999 and for what is no number
        host = parts.hostname
    except ValueError as error:
        return f"{shown} is no address: {one_line(str(error))}"
    if parts.scheme not in ("http", "https"):
        return f"{shown} has to begin with http:// or https://"
    if not host or port == 0:
        return f"{shown} names no host" if not host else f"{shown} has no port 0"
    if not url.isprintable() or " " in url:
        return f"{shown} has a blank or a character that does not show"
    return ""
