"""Sign-ins that wait for the user's browser: at most one at a time for each name.

Knows how a sign-in begins and ends, but not at which site.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from parley.errors import ParleyError
from parley.logins.loopback import Loopback

_WAIT_S = 600.0
"""The time limit is long, because the user may have to look for a second factor."""


@dataclass(slots=True)
class _Running:
    """A sign-in, the port for the browser, and the address of its page."""

    attempt: asyncio.Task[None]
    loopback: Loopback
    page: str = ""


class SignIns:
    """All sign-ins of a kind in this process."""

    def __init__(self, seconds: float = _WAIT_S) -> None:
        """Each may take this many seconds."""
        self._seconds = seconds
        self._running = dict[str, _Running]()

    async def run(
        self, name: str, loopback: Loopback, attempt: Callable[[Loopback], Awaitable[None]]
    ) -> None:
        """Let `attempt` sign the user in, with a port for the browser. Raises ParleyError, also if
        the sign-in is cancelled or takes too long.
        """
        task = asyncio.ensure_future(self._whole(name, loopback, attempt))
        self._running[name] = _Running(task, loopback)
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
            del self._running[name]
        if task.cancelled():
            raise ParleyError(f"sign-in to '{name}' was cancelled")
        task.result()

    def cancel(self, name: str) -> bool:
        """Cancel a running sign-in; return whether there was one."""
        if running := self._running.get(name):
            running.attempt.cancel()
        return running is not None

    def shows(self, name: str, page: str) -> None:
        """Note the address of a running sign-in's page."""
        self._running[name].page = page

    def page(self, name: str) -> str | None:
        """The address of a running sign-in's page, "" before it is known; None without a
        sign-in.
        """
        running = self._running.get(name)
        return running.page if running else None

    def take(self, name: str, address: str) -> bool:
        """Take the address of the browser's last page; return whether it belongs to the sign-in."""
        running = self._running.get(name)
        return running is not None and running.loopback.take(address.strip())

    def close(self) -> None:
        """Cancel all sign-ins."""
        for running in self._running.values():
            running.attempt.cancel()

    async def _whole(
        self, name: str, loopback: Loopback, attempt: Callable[[Loopback], Awaitable[None]]
    ) -> None:
        async with loopback:
            try:
                async with asyncio.timeout(self._seconds):
                    await attempt(loopback)
            except TimeoutError as error:
                raise ParleyError(
                    f"sign-in to '{name}' timed out after {self._seconds:g} s"
                ) from error
