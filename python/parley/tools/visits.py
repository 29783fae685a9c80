"""Pages that servers want the user to open in a browser: which addresses may be shown and opened.

A server may specify any address, and the user decides on the basis of the text that is shown. So
the address that is shown is the address that opens, in unmistakable characters, and its host is the
host that a browser would use.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.text import one_line, visible
from parley.tools.results import cut

MOST_VISITS = 5
"""The maximum number of pages that one call may require at once."""
VISIT_ID_LENGTH = 1_000
_LONGEST = 8_000
_MOST_SAID = 2_000
_LONGEST_HOST = 253
_PORT = late_pattern(r":[0-9]{1,5}")
_HOST = late_pattern(r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]")
_SAFE = "%/?:@!$&'()*+,;=~-._"


@frozen
class Visit:
    """A page to open: `url` is printable ASCII; the server reports its completion by `id`."""

    url: str
    message: str
    id: str = ""

    @property
    def host(self) -> str:
        """The host that the browser visits, with the port if the address contains one."""
        return urlsplit(self.url).netloc

    @property
    def is_open(self) -> bool:
        """Whether others could read data sent to the page."""
        return self.url.startswith("http:") and not _is_here(urlsplit(self.url).hostname or "")


def visit(url: str, message: str, id: str = "") -> Visit:  # noqa: A002 - its name in the protocol
    """The visit to an address. Raises ValueError, with text to show, for a forbidden address."""
    where = one_line(url, 60)
    if len(url) > _LONGEST:
        raise ValueError(f"{where} has more than {_LONGEST} characters")
    if not url.isprintable() or " " in url or "\\" in url:
        raise ValueError(f"{where} has a space, a backslash or an invisible character")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        name = host if ":" in host else host.encode("idna").decode("ascii")
        port = f":{parts.port}" if parts.port is not None else ""
    except (ValueError, UnicodeError) as error:
        raise ValueError(f"{where} is not an address: {one_line(str(error), 100)}") from error
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{where} does not begin with https:// or http://")
    if "@" in parts.netloc:
        raise ValueError(f"{where} has a user name before its host")
    shown = f"[{name}]" if ":" in name else name
    if (
        not _HOST.fullmatch(shown)
        or len(shown) > _LONGEST_HOST
        or (port and not _PORT.fullmatch(port))
    ):
        raise ValueError(f"{where} has no host")
    rest = (quote(part, safe=_SAFE) for part in (parts.path, parts.query, parts.fragment))
    address = urlunsplit((parts.scheme, f"{shown}{port}", *rest))
    return Visit(
        address, cut(visible(message), _MOST_SAID), id if len(id) <= VISIT_ID_LENGTH else ""
    )


def _is_here(host: str) -> bool:
    """Whether data sent to a host stays on this machine; 127.example.org may be anywhere."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.removesuffix(".") == "localhost"


def required_visits(details: object) -> tuple[Visit, ...]:
    """The visits that a call's error requires. Raises ValueError for forbidden addresses."""
    match details:
        case {"elicitations": [_, *_] as wishes}:
            return tuple(_visit_of(wish) for wish in wishes[:MOST_VISITS])
        case _:
            raise ValueError("no page was given")


def _visit_of(wish: object) -> Visit:
    match wish:
        case {"url": str(url), "message": str(message), **rest}:
            return visit(url, message, _id(rest))
        case _:
            raise ValueError("a page has no address")


def _id(rest: Mapping[Any, Any]) -> str:
    value = rest.get("elicitationId")
    return value if isinstance(value, str) else ""
