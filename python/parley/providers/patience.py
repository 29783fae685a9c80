"""Limits a stream's silence, during which comments, pings and empty pieces keep it connected.

Knows a clock and the call that is being written, but nothing about streams.
"""

from __future__ import annotations

from collections.abc import Callable

from parley.models.accumulate import PendingCall


class Patience:
    """Measures the time since a stream's last progress: an event or a piece of a call."""

    def __init__(self, most_s: float, now: Callable[[], float]) -> None:
        self._most_s = most_s
        self._now = now
        self._since = now()
        self._call: PendingCall | None = None

    def renew(self) -> None:
        """Restart the clock, because the stream has made progress."""
        self._since = self._now()

    def check(self, call: PendingCall | None) -> None:
        """Check the pending call for progress. Raises TimeoutError after too long a silence."""
        if call != self._call:
            self._call = call
            self.renew()
        elif self._now() - self._since > self._most_s:
            raise TimeoutError(f"it sent only comments and pings for {self._most_s:g} s")
