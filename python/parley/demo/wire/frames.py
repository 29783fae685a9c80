"""The pieces and frames of all wire formats: how text is cut into pieces, and how an event becomes
a frame.

A cut may be between any two characters, even inside a multi-character emoji, but never inside a
character's bytes. Cuts are repeatable: equal replies give equal bytes.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import Any

CREATED = 1_790_000_000
"""The demo server's clock does not move, so that a reply depends only on its request."""

_LENGTHS = (3, 5, 2, 7, 4, 1, 6)


def pieces(text: str) -> Iterator[str]:
    """The text in pieces of a few characters; no pieces for an empty text."""
    at, lengths = 0, cycle(_LENGTHS)
    while at < len(text):
        length = next(lengths)
        yield text[at : at + length]
        at += length


def compact(value: Mapping[str, Any]) -> str:
    """JSON in the providers' wire style: UTF-8, no spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def named_frame(event: Mapping[str, Any]) -> str:
    """A server-sent event named after its `type`."""
    return f"event: {event['type']}\ndata: {compact(event)}\n\n"


def bare_frame(event: Mapping[str, Any]) -> str:
    """A server-sent event without a name."""
    return f"data: {compact(event)}\n\n"
