"""Remembers each task's session: a server may not know the task in any other session.

So a task outlives its connection, however this process ends. Knows nothing about requests.
"""

from __future__ import annotations

from parley.hints import Hints


class TaskSessions:
    """One connection's session, and the sessions of tasks that began over earlier connections."""

    def __init__(self, hints: Hints, url: str) -> None:
        self._hints = hints
        self._url = url
        self._open = set[str]()
        self.current = ""
        """This connection's session; "" if there is none."""

    def begin(self, task: str) -> None:
        """Note that a task began in the current session."""
        if self.current:
            self._open.add(task)
            self._hints.put(self._key(task), self.current)

    def end(self, task: str) -> None:
        """Forget a task that is over, or whose session is gone."""
        self._open.discard(task)
        self._hints.put(self._key(task), None)

    def of(self, task: str) -> str:
        """The session in which to ask for a task; "" for this connection's session."""
        session = self._hints.get(self._key(task)) or ""
        return "" if session == self.current else session

    @property
    def is_needed(self) -> bool:
        """Whether tasks continue in this connection's session, which must then stay open."""
        return bool(self._open)

    def _key(self, task: str) -> str:
        return f"{self._url}\n{task}"
