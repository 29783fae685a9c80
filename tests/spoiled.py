"""Messages of others with one value replaced by an odd one: what a hostile program may send."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

_DEEP: list[Any] = []
for _ in range(300):
    _DEEP = [_DEEP]
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**400, float("inf"), float("nan")),
    *("", "\0", "\ud800", "a\x1b[31mb\n💬: x", "x" * 3000),
    *([], {}, [[]], [{}], {"a": {}}, [None], ["x"], _DEEP),
)


def spoiled(message: Any) -> Iterator[Any]:
    """The message with each of its values replaced by each odd value, one at a time."""
    for path in _paths(message):
        for odd in ODD:
            yield _with(message, path, odd)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from _paths(value[key], (*path, key))


def _with(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    spoilt = copy.deepcopy(value)
    place = spoilt
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = odd
    return spoilt
