"""A clock that stops while Parley waits for the user, for a rate limit, or for a server that
reports progress.

Each turn and each connection to a server has its own clock. When the server asks the user
something, the connection's clock stops, and so do the clocks of all turns whose calls the server
runs, because the server asks on behalf of one of these calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Renew: TypeAlias = Callable[[], None]

_WORTH_IT = 0.01
"""Restart a limit only after this fraction of it has elapsed, because restarts may be frequent."""


class PausableClock:
    """A clock, and the time limits that it measures."""

    def __init__(self) -> None:
        self._limits: dict[asyncio.Timeout, float] = {}
        self._followers: list[PausableClock] = []
        self._waits = 0
        self._since = 0.0
        self._stood = 0.0
        self._over = asyncio.Event()

    def now(self) -> float:
        """Elapsed seconds since an arbitrary start."""
        return (self._since if self._waits else _ticks()) - self._stood

    @asynccontextmanager
    async def limit(self, seconds: float, most_s: float | None = None) -> AsyncIterator[Renew]:
        """Raises TimeoutError after `seconds`; calling the yielded function restarts the limit.

        With restarts, the total is at most `most_s` seconds.
        """
        start = self.now()

        def renew() -> None:
            end = self.now() + seconds
            end = end if most_s is None else min(end, start + most_s)
            if limit in self._limits and end - self._limits[limit] > seconds * _WORTH_IT:
                self._limits[limit] = end
                if not self._waits and not limit.expired():
                    limit.reschedule(end + self._stood)

        async with asyncio.timeout(None if self._waits else seconds) as limit:
            self._limits[limit] = start + seconds
            self._over.clear()
            try:
                yield renew
            finally:
                del self._limits[limit]
                if not self._limits:
                    self._over.set()

    @contextmanager
    def followed_by(self, other: PausableClock) -> Iterator[None]:
        """Inside this context, the other clock also stops whenever this clock stops."""
        self._followers.append(other)
        try:
            yield
        finally:
            self._followers.remove(other)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock inside this context; it continues when the last wait is over."""
        with ExitStack() as others:
            for other in self._followers:
                others.enter_context(other.paused())
            self._begin_wait()
            try:
                yield
            finally:
                self._end_wait()

    def _begin_wait(self) -> None:
        if not self._waits:
            self._since = _ticks()
            for limit in self._limits:
                limit.reschedule(None)
        self._waits += 1

    def _end_wait(self) -> None:
        self._waits -= 1
        if not self._waits:
            self._stood += _ticks() - self._since
            for limit, end in self._limits.items():
                limit.reschedule(end + self._stood)

    async def while_wanted(self, asking: Coroutine[Any, Any, T]) -> T | None:
        """The user's answer; when no request needs it any more, withdraw the question: None."""
        answer, over = asyncio.ensure_future(asking), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({answer, over}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            answer.cancel()
            over.cancel()


def _ticks() -> float:
    return asyncio.get_running_loop().time()
