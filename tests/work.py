"""Work in characters, the same on any machine: how many characters functions receive while
something runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

ALLOWED = 2.5
"""The permitted growth of work if the text doubles; quadratic work quadruples."""


def work(run: Callable[[], object]) -> int:
    """Counts the characters that functions receive: texts as arguments, and texts whose methods are
    called.
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
    """The factor by which the work grows if the text doubles, measured after a warm-up."""
    run(min(size, 10))
    once = work(lambda: run(size))
    return work(lambda: run(2 * size)) / once
