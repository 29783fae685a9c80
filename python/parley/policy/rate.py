"""Limits the requests per minute, with a sliding window over the times of past requests."""

from __future__ import annotations

WINDOW_S = 60.0


class RateWindow:
    """The last minute's requests, shared by all chats in a process; a `limit` of 0 means no limit.

    Windows with the same list of `times` count the same requests.
    """

    def __init__(self, limit: int, times: list[float] | None = None) -> None:
        self.limit = limit
        self._times = [] if times is None else times

    def wait(self, now: float) -> float:
        """Seconds until the next request may be sent; 0.0 if it may be sent now."""
        times = self._recent(now)
        if not self.limit or len(times) < self.limit:
            return 0.0
        return max(0.0, times[-self.limit] + WINDOW_S - now)

    def take(self, now: float) -> None:
        """Count a request sent at this time."""
        self._times[:] = [*self._recent(now), now]

    def left(self, now: float) -> float:
        """The free part of the window, from 0.0 to 1.0."""
        return max(0, self.limit - len(self._recent(now))) / self.limit if self.limit else 1.0

    def _recent(self, now: float) -> list[float]:
        """The times that count. A copy, because another thread may send, too."""
        return [time for time in self._times.copy() if time + WINDOW_S > now]
