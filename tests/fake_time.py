"""An event loop with a fake clock: when nothing else is left to do, the time jumps to the next
timer.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Does not wait: the time until the next timer passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select()
        self.now += max(timeout, 0.0)
        return super().select(0)


class FakeTimeLoop(asyncio.SelectorEventLoop):
    """asyncio's loop on the fake clock."""

    def __init__(self) -> None:
        self._selector = _Selector()
        super().__init__(self._selector)

    def time(self) -> float:
        return self._selector.now

    def advance(self, seconds: float) -> None:
        """Let time pass while the loop is busy, so no timer fires."""
        self._selector.now += seconds


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run the work and return its result; its hours pass in no time."""
    with asyncio.Runner(loop_factory=FakeTimeLoop) as runner:
        return runner.run(_to_the_end(work))


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Run the work and wait for its threads. From Python 3.12 on, a runner waits for threads by the
    clock, which jumps here.
    """
    try:
        return await work
    finally:
        await asyncio.get_running_loop().shutdown_default_executor()
