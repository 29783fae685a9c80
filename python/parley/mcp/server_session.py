"""The interface between an MCP server's supervisor and its connection.

A `ServerSession` answers the supervisor's requests, and reports events between them to `Signals`.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from parley.clock import PausableClock
from parley.errors import ServerError
from parley.frozen import frozen
from parley.processes.stderr import StderrTail
from parley.text import one_line
from parley.tools.catalogue import Tool
from parley.tools.server_settings import ServerSettings
from parley.tools.visits import VISIT_ID_LENGTH

if TYPE_CHECKING:
    from parley.tools.prompts import Prompt
    from parley.tools.resources import ResourceList
    from parley.tools.results import Outcome
    from parley.tools.tasks import TaskHandle
    from parley.tools.templates import Blank

CONNECTION_CLOSED = -32000
"""The SDK uses this code for the end of a connection, and many servers for any error."""
PROXY_HINT = ". What to do: check HTTPS_PROXY (the proxy requires a password)"
_FINAL = (401, 403, 407, 429)
_LOGGED = 20
_LOG_LENGTH = 300

Progress = Callable[[float | None, float | None, str | None], None]
"""Receives a call's progress, the total and a message; each is None if unknown."""
_MOST_FINISHED = 100


class LostError(ServerError):
    """The connection ended during a call."""


class SilentError(LostError):
    """A server did not report a task's state; perhaps our session is over."""


class NotBegunError(ServerError):
    """The server no longer knows our session, so the request has not begun."""


def cause(error: BaseException) -> BaseException:
    """The first exception that is not a group: the SDK's task groups wrap their exceptions."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@frozen
class HttpRefusal:
    """A refusal over HTTP: its status, its text, and whether the session is unknown."""

    status: int
    text: str
    is_lost_session: bool = False

    @property
    def is_final(self) -> bool:
        """Whether every other way to connect would fail, too."""
        return self.status in _FINAL


class ServerSession(Protocol):
    """A connected server."""

    protocol: str
    instructions: str
    """The server's instructions for all its tools, escaped and limited in size."""
    left_out: str
    """The tools that cannot be used, as text for a person; "" for none."""

    async def tools(self) -> tuple[Tool, ...]:
        """The server's current tools."""

    async def call(
        self, name: str, arguments: dict[str, Any], tell: Progress, task: TaskHandle
    ) -> Outcome:
        """One call's result; `tell` receives its progress. Raises LostError if the connection ends.

        If the call already runs as a task, this only collects the result.
        """

    async def cancel(self, task_id: str) -> None:
        """Tell the server that a task's result is no longer wanted."""

    async def resource(self, uri: str) -> str:
        """The text of a resource."""

    async def read(self, uri: str) -> Outcome:
        """A resource as a call's result: its text and its pictures."""

    async def resources(self) -> ResourceList:
        """The resources and templates that the server lists now."""

    async def values(self, blank: Blank) -> tuple[str, ...]:
        """The server's proposals for a template's variable; empty if the server has none."""

    async def prompts(self) -> tuple[Prompt, ...]:
        """The server's current prompts."""

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """A prompt's text for these arguments."""


class Signals:
    """A session's reports between requests: the tools have changed, or the connection has ended."""

    def __init__(self, settled: asyncio.Event) -> None:
        self.event = asyncio.Event()
        self.log: deque[str] = deque(maxlen=_LOGGED)
        """The server's latest log messages, one line each."""
        self.clock = PausableClock()
        self._settled = settled
        self.changed = False
        self.restless = False
        """Whether the tools change so often that waiting for their list is pointless."""
        self.lost = False
        self.stopping = False
        self.wants_login = False
        """Whether the server refused the last request because the user is not signed in."""
        self._finished = deque[str](maxlen=_MOST_FINISHED)
        self._finish = asyncio.Event()

    def tools_changed(self) -> None:
        """Note that the tool list is out of date."""
        self.changed = True
        if not self.restless:
            self._settled.clear()
        self.event.set()

    def visit_finished(self, visit_id: str) -> None:
        """Note the server's report that the user has finished with a page."""
        if len(visit_id) <= VISIT_ID_LENGTH:  # an id that is too long is ignored
            self._finished.append(visit_id)
            self._finish.set()

    async def until_finished(self, visit_id: str) -> None:
        """Wait until the server reports that the user has finished with a page; the server may
        never report it.
        """
        while not visit_id or visit_id not in self._finished:
            self._finish.clear()
            await self._finish.wait()

    def logged(self, level: str, logger: str | None, data: object) -> None:
        """Keep a server's log message."""
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        self.log.append(one_line(f"{level}{f' {logger}' if logger else ''}: {text}", _LOG_LENGTH))

    def connection_lost(self) -> None:
        """Note that the server, or its session, is gone."""
        self.lost = True
        self.event.set()

    def note_login(self, is_refused: bool) -> None:
        """Note whether a request was refused because the user is not signed in."""
        self.wants_login = is_refused

    def begin_again(self) -> None:
        """Note that the connection that ended was only an attempt, and that another attempt
        follows.
        """
        self.lost = False

    def stop(self) -> None:
        """Note that the server is no longer wanted."""
        self.stopping = True
        self.event.set()


Connect = Callable[
    [ServerSettings, StderrTail, Signals], AbstractAsyncContextManager[ServerSession]
]
