"""Time and tasks as asyncio has them, for every driver."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from parley.engine import Happening

T = TypeVar("T")


async def together(work: Sequence[Callable[[], Awaitable[T]]], limit_s: float) -> AsyncIterator[T]:
    """Do all at once and yield what comes of each as it comes; what is left after `limit_s` is cancelled."""

    async def run(one: Callable[[], Awaitable[T]]) -> T:
        return await one()

    tasks = [asyncio.ensure_future(run(one)) for one in work]
    pending, loop = set(tasks), asyncio.get_running_loop()
    end = loop.time() + limit_s
    try:
        while pending:
            left = max(end - loop.time(), 0.0)
            done, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                return
            for task in done:
                yield task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class PlainWorld:
    """The engine's world for drivers without a screen: what happens is told to two functions."""

    def __init__(
        self,
        status: Callable[[str], None] = lambda _: None,
        happened: Callable[[Happening], None] = lambda _: None,
    ) -> None:
        self.status = status
        self.happened = happened

    def now(self) -> float:
        """Seconds on the system's monotonic clock."""
        return time.monotonic()

    def together(self, work: Sequence[Callable[[], Awaitable[T]]], limit_s: float) -> AsyncIterator[T]:
        """Do all at once."""
        return together(work, limit_s)
