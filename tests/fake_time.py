"""An event loop whose time jumps to the next timer as soon as nothing else is to be done: a fake
clock.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: the time until the next timer is over at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select()
        self.now += max(timeout, 0.0)
        return super().select(0)


class FakeTimeLoop(asyncio.SelectorEventLoop):
    """asyncio's loop on that clock."""

    def __init__(self) -> None:
        self._selector = _Selector()
        super().__init__(self._selector)

    def time(self) -> float:
        return self._selector.now

    def advance(self, seconds: float) -> None:
        """Let time pass while the loop is busy, so no timer fires."""
        self._selector.now += seconds


def run(work: Coroutine[Any, Any, T]) -> T:
    """What comes of the work, whose hours pass in no time."""
    with asyncio.Runner(loop_factory=FakeTimeLoop) as runner:
        return runner.run(_to_the_end(work))


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """The work, and its threads: from Python 3.12 on, a runner waits for these by the clock,
    which jumps.
    """
    try:
        return await work
    finally:
        await asyncio.get_running_loop().shutdown_default_executor()
