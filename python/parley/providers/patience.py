"""How long a stream may say nothing: comments, pings and empty pieces only keep its connection alive.

Knows a clock and the call that is being written; nothing of streams.
"""

from __future__ import annotations

from collections.abc import Callable

from parley.models.accumulate import PendingCall


class Patience:
    """The time since a stream said something, an event or a piece of a call."""

    def __init__(self, most_s: float, now: Callable[[], float]) -> None:
        self._most_s = most_s
        self._now = now
        self._since = now()
        self._call: PendingCall | None = None

    def renew(self) -> None:
        """Begin again: the stream said something."""
        self._since = self._now()

    def check(self, call: PendingCall | None) -> None:
        """Look at the call that is being written now. Raises TimeoutError when nothing has come for long."""
        if call != self._call:
            self._call = call
            self.renew()
        elif self._now() - self._since > self._most_s:
            raise TimeoutError(f"it sent only comments and pings for {self._most_s:g} s")
