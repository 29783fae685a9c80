"""Work counted in characters, on any machine the same: how many functions get while something
runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

ALLOWED = 2.5
"""How much more work twice as much text may be; what is quadratic takes four times as much."""


def work(run: Callable[[], object]) -> int:
    """The characters that functions get: in the texts they are called with, and as methods of a
    text.
    """
    count = 0

    def profile(frame: FrameType, event: str, function: Any) -> None:
        nonlocal count
        if event == "call":
            count += 1 + sum(_sizes(frame.f_locals.values()))
        elif event == "c_call":
            count += 1 + sum(_sizes([getattr(function, "__self__", None)]))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def _sizes(values: Any) -> Iterator[int]:
    for value in values:
        if isinstance(value, str | bytes):
            yield len(value)


def growth(run: Callable[[int], object], size: int) -> float:
    """How many times the work it is to do twice as much, before which everything is warm."""
    run(min(size, 10))
    once = work(lambda: run(size))
    return work(lambda: run(2 * size)) / once
