"""In which session of its server each task runs: servers may know a task in no other one.

So a task outlives the connection, however the process ends. Knows nothing of requests.
"""

from __future__ import annotations

from parley.mcp.hints import Hints


class TaskSessions:
    """The session of one connection, and those of tasks that began over connections before."""

    def __init__(self, hints: Hints, url: str) -> None:
        self._hints = hints
        self._url = url
        self._open = set[str]()
        self.current = ""
        """The session of this connection; "" for none."""

    def begin(self, task: str) -> None:
        """A task began in the session of now."""
        if self.current:
            self._open.add(task)
            self._hints.put(self._key(task), self.current)

    def end(self, task: str) -> None:
        """Nothing more comes of a task, or its session is gone."""
        self._open.discard(task)
        self._hints.put(self._key(task), None)

    def of(self, task: str) -> str:
        """The session to ask for a task in; "" where that of the connection will do."""
        session = self._hints.get(self._key(task)) or ""
        return "" if session == self.current else session

    @property
    def is_needed(self) -> bool:
        """Whether tasks run on in the session of this connection, which must not be ended then."""
        return bool(self._open)

    def _key(self, task: str) -> str:
        return f"{self._url}\n{task}"
