"""The border between the supervisor of an MCP server and the connection to it.

A `Session` answers what the supervisor asks; through `Signals` it reports what happens while nobody asks.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from parley.clock import PausableClock
from parley.errors import ServerError
from parley.mcp.stderr import StderrTail
from parley.text import one_line
from parley.tools.catalogue import Tool
from parley.tools.prompts import Prompt
from parley.tools.resources import ResourceList
from parley.tools.results import Outcome
from parley.tools.servers import ServerSettings
from parley.tools.tasks import TaskHandle
from parley.tools.templates import Blank
from parley.tools.visits import LONGEST_ID

CONNECTION_CLOSED = -32000
"""For the SDK the end of a connection, and for many servers any error."""
PROXY_HINT = ". What to do: check HTTPS_PROXY: the proxy wants a password"
_FINAL = (401, 403, 407, 429)
_LOGGED = 20
_LOG_LENGTH = 300

Progress = Callable[[float | None, float | None, str | None], None]
"""How far a call is, of how much, and in words; None for what is not known."""
_MOST_FINISHED = 100


class LostError(ServerError):
    """The connection ended under a call."""


class SilentError(LostError):
    """A server does not say how a task is: perhaps our session is over."""


class NotBegunError(ServerError):
    """The server does not know our session any more, so what was asked of it has not begun."""


def cause(error: BaseException) -> BaseException:
    """The first exception that is not a group of others; the SDK's task groups wrap theirs."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal over HTTP: its status, what it says, and whether it is the session that is unknown."""

    status: int
    text: str
    is_lost_session: bool = False

    @property
    def is_final(self) -> bool:
        """Whether it is the same in every way to begin with a server."""
        return self.status in _FINAL


class Session(Protocol):
    """A connected server."""

    protocol: str
    instructions: str
    """What it says of all its tools, made visible and bounded."""
    left_out: str
    """The tools of it that cannot be used, for a person to read; "" for nothing."""

    async def tools(self) -> tuple[Tool, ...]:
        """The tools it offers now."""

    async def call(self, name: str, arguments: dict[str, Any], tell: Progress, task: TaskHandle) -> Outcome:
        """The result of one call, `tell` hearing of its progress; raises LostError if the connection ends.

        Of one that runs as a task already, only the result is asked for.
        """

    async def cancel(self, task_id: str) -> None:
        """Tell the server that nobody wants the result of a task any more."""

    async def resource(self, uri: str) -> str:
        """The text of a resource."""

    async def read(self, uri: str) -> Outcome:
        """A resource as the result of a call: its text, and its pictures."""

    async def resources(self) -> ResourceList:
        """The resources and templates that it lists now."""

    async def values(self, blank: Blank) -> tuple[str, ...]:
        """What it proposes for a variable of a template; nothing where it does not."""

    async def prompts(self) -> tuple[Prompt, ...]:
        """The prompts it offers now."""

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a prompt for these arguments."""


class Signals:
    """Reports of a session while nobody asks it: the tools changed, the connection ended."""

    def __init__(self, settled: asyncio.Event) -> None:
        self.event = asyncio.Event()
        self.log: deque[str] = deque(maxlen=_LOGGED)
        """The last messages for a log, a line each."""
        self.clock = PausableClock()
        self._settled = settled
        self.changed = False
        self.restless = False
        """Whether changes come so often that nobody waits for them."""
        self.lost = False
        self.stopping = False
        self.wants_login = False
        """Whether the server refused the last request since nobody is signed in."""
        self._finished = deque[str](maxlen=_MOST_FINISHED)
        self._finish = asyncio.Event()

    def tools_changed(self) -> None:
        """The list of tools is out of date."""
        self.changed = True
        if not self.restless:
            self._settled.clear()
        self.event.set()

    def visit_finished(self, visit_id: str) -> None:
        """The server says that all is done at a page which it wanted opened."""
        if len(visit_id) <= LONGEST_ID:  # of what says nothing, none is kept
            self._finished.append(visit_id)
            self._finish.set()

    async def until_finished(self, visit_id: str) -> None:
        """Returns when the server has said so of this page; it need not."""
        while not visit_id or visit_id not in self._finished:
            self._finish.clear()
            await self._finish.wait()

    def logged(self, level: str, logger: str | None, data: object) -> None:
        """The server sends something for a log."""
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        self.log.append(one_line(f"{level}{f' {logger}' if logger else ''}: {text}", _LOG_LENGTH))

    def connection_lost(self) -> None:
        """The server is gone, or its session is."""
        self.lost = True
        self.event.set()

    def note_login(self, is_refused: bool) -> None:
        """A request was answered, or refused since nobody is signed in."""
        self.wants_login = is_refused

    def begin_again(self) -> None:
        """The connection that ended was an attempt: another one is made."""
        self.lost = False

    def stop(self) -> None:
        """The server is wanted no more."""
        self.stopping = True
        self.event.set()


Connect = Callable[[ServerSettings, StderrTail, Signals], AbstractAsyncContextManager[Session]]
