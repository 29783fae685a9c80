"""The ledger's request rows: each stores only the difference from the previous request.

A long chat sends many requests, each of which repeats nearly all of the previous request. Does not
know what a unit contains.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from parley.frozen import frozen


@frozen
class RequestRow:
    """A request sent at `at` (seconds since 1970), with the model's reply, as digests.

    `header` is canonical JSON.
    """

    at: float
    digest: str
    header: str
    units: tuple[str, ...]
    reply: tuple[str, ...]


def packed(units: Sequence[str], before: Sequence[str]) -> str:
    """Units as JSON: new units unchanged, and runs of earlier units as `[start, end]`."""
    if before and units[: len(before)] == before:
        return _json([(0, len(before)), *units[len(before) :]])
    places = {unit: number for number, unit in reversed(list(enumerate(before)))}
    pieces, at = list[str | tuple[int, int]](), 0
    while at < len(units):
        start = at if before[at : at + 1] == units[at : at + 1] else places.get(units[at])
        if start is None:
            pieces.append(units[at])
            at += 1
            continue
        end = start
        while end < len(before) and at < len(units) and before[end] == units[at]:
            end, at = end + 1, at + 1
        pieces.append((start, end))
    return _json(pieces)


def _json(pieces: Sequence[str | tuple[int, int]]) -> str:
    return json.dumps(pieces, separators=(",", ":"))


def unpacked(pieces: str, before: Sequence[str]) -> tuple[str, ...]:
    """The units that `packed` turned into `pieces`, given the same earlier units."""
    units = list[str]()
    for piece in json.loads(pieces):
        units += before[piece[0] : piece[1]] if isinstance(piece, list) else [piece]
    return tuple(units)
