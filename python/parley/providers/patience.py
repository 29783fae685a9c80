"""Limits a stream's silence: comments, pings and empty pieces only keep its connection alive.

Knows a clock and the call being written; nothing of streams.
"""

from __future__ import annotations

from collections.abc import Callable

from parley.models.accumulate import PendingCall


class Patience:
    """The time since a stream's last sign: an event or a piece of a call."""

    def __init__(self, most_s: float, now: Callable[[], float]) -> None:
        self._most_s = most_s
        self._now = now
        self._since = now()
        self._call: PendingCall | None = None

    def renew(self) -> None:
        """Restart the time: the stream sent something."""
        self._since = self._now()

    def check(self, call: PendingCall | None) -> None:
        """Check the call being written now. Raises TimeoutError after too long a silence."""
        if call != self._call:
            self._call = call
            self.renew()
        elif self._now() - self._since > self._most_s:
            raise TimeoutError(f"it sent only comments and pings for {self._most_s:g} s")
