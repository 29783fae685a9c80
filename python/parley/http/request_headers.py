"""Finds flaws in the headers that a user adds to requests, before anything is sent.

Never shows a value, because it may be a key.
"""

from __future__ import annotations

from parley.late_patterns import late_pattern

# RFC 9110, 5.6.2 (token) and 5.5 (field values), read 2026-11-25. The RFC allows tabs and bytes
# outside of ASCII, but calls the latter opaque, and HTTP clients differ in their encoding.
_NAME = late_pattern(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_VALUE = late_pattern(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_OF_THE_CLIENT = frozenset(
    {
        *("host", "connection", "content-length", "content-type", "content-encoding", "expect"),
        *("transfer-encoding", "accept-encoding", "te", "trailer", "upgrade", "keep-alive"),
    }
)
"""Headers that describe the body and the connection."""


def name_flaw(name: str) -> str:
    """Why a header cannot have this name; "" if it can."""
    if not _NAME.fullmatch(name):
        return "expected letters, digits and hyphens as the name of a header"
    if name.lower() in _OF_THE_CLIENT:
        return "Parley sets this header itself, because it describes the request"
    return ""


def value_flaw(value: str) -> str:
    """Why a header cannot have this value; "" if it can."""
    if not _VALUE.fullmatch(value):
        return "expected one line of ASCII characters, without spaces at its start and end"
    return ""
