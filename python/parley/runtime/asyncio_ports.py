"""Concurrent tasks in asyncio, and an observer for callers without a screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from parley.clock import PausableClock
from parley.engine import TurnEvent

T = TypeVar("T")


async def together(
    work: Sequence[Callable[[], Awaitable[T]]], limit_s: float, clock: PausableClock
) -> AsyncIterator[T]:
    """Do all the work concurrently and yield each outcome as it arrives; after `limit_s`, cancel
    the rest.
    """

    async def run(job: Callable[[], Awaitable[T]]) -> T:
        return await job()

    tasks = [asyncio.ensure_future(run(job)) for job in work]
    pending, end = set(tasks), clock.now() + limit_s
    try:
        while pending:
            with suppress(TimeoutError):
                async with clock.limit(end - clock.now()):
                    await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            finished = {task for task in pending if task.done()}
            if not finished:
                return
            pending -= finished
            for task in finished:
                yield task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class TurnClock:
    """Implements the engine's clock with a pausable clock."""

    def __init__(self, clock: PausableClock) -> None:
        self._clock = clock

    def now(self) -> float:
        """Seconds on the turn's clock."""
        return self._clock.now()

    def together(
        self, work: Sequence[Callable[[], Awaitable[T]]], limit_s: float
    ) -> AsyncIterator[T]:
        """Do all the work concurrently, within a time limit on the turn's clock."""
        return together(work, limit_s, self._clock)


class Callbacks:
    """Implements the engine's observer with two functions."""

    def __init__(
        self,
        status: Callable[[str], None] = lambda _: None,
        on_event: Callable[[TurnEvent], None] = lambda _: None,
    ) -> None:
        self.status = status
        self.on_event = on_event
