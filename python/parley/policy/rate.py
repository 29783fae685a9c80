"""The limit of requests a minute: a sliding window over the times of those that were."""

from __future__ import annotations

from collections import deque

WINDOW_S = 60.0


class RateWindow:
    """The requests of the last minute, shared by all chats of a process; `limit` 0 is no limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._times: deque[float] = deque()

    def wait(self, now: float) -> float:
        """Seconds until the next request may be sent, 0.0 if it may be sent now."""
        self._forget(now)
        if not self.limit or len(self._times) < self.limit:
            return 0.0
        return max(0.0, self._times[-self.limit] + WINDOW_S - now)

    def take(self, now: float) -> None:
        """Count a request that is sent now."""
        self._times.append(now)

    def left(self, now: float) -> float:
        """The part of the window that is free, from 0.0 to 1.0."""
        self._forget(now)
        return max(0, self.limit - len(self._times)) / self.limit if self.limit else 1.0

    def _forget(self, now: float) -> None:
        while self._times and self._times[0] + WINDOW_S <= now:
            self._times.popleft()
