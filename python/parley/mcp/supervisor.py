"""One MCP server's life: a task starts the server, keeps the connection, lists the server's tools
and ends it.

The SDK's client must be entered and left in one task; calls run in their own tasks. Knows when to
start, restart and give up, but not the SDK: a `ServerSession` talks to the server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, TypeAlias, TypeVar

from parley.clock import PausableClock, Renew
from parley.errors import ParleyError, PendingError, ServerError, first_reason
from parley.late_patterns import late_pattern
from parley.mcp.server_session import (
    PROXY_HINT,
    Connect,
    LostError,
    NotBegunError,
    Progress,
    ServerSession,
    Signals,
    SilentError,
    cause,
)
from parley.processes.stderr import StderrTail
from parley.text import last_words
from parley.tools.catalogue import Tool
from parley.tools.resources import is_reader, reader
from parley.tools.results import Outcome
from parley.tools.server_settings import ServerSettings, ServerStatus, State
from parley.tools.tasks import COLLECT, TaskHandle

T = TypeVar("T")
Work: TypeAlias = Callable[[ServerSession, Renew], Awaitable[T]]
"""Work with a server, which may restart its own time limit."""

KnownTools: TypeAlias = Callable[[ServerSettings], tuple[Tool, ...] | None]
"""The tools of a server that need no start to be known, or None."""

MOST_RENEWALS = 60
"""A call that reports progress may take this many times its time limit in all."""

_RETRY_S = 5.0  # after a failed start; doubled with each further failure
_RETRY_MAX_S = 300.0
_SLACK_S = 5.0
_RELIST_S = 10.0
_CAUSE_SHOWN = 600
_LONG_WORD = late_pattern(r"(\S{200})\S{2,}")
"""Matches a word that is too long to read, such as a content type with thousands of letters."""
_CHANGES = 5  # this many changes in a row are each listed at once
_CALM_S = 0.5  # further changes wait this long, doubled each time
_CALM_MAX_S = 30.0


def no_known_tools(_: ServerSettings) -> None:
    """Every server must list its tools."""


class Supervisor:
    """Starts a server when it is needed, and restarts it after it has died."""

    def __init__(
        self,
        settings: ServerSettings,
        prepare: Callable[[], Awaitable[None]],
        connect: Connect,
        known_tools: KnownTools = no_known_tools,
    ) -> None:
        self.settings = settings
        self.state: State = "stopped"
        self.tools: tuple[Tool, ...] = ()
        self._prepare = prepare
        self._connect = connect
        self._known_tools = known_tools
        self._protocol = ""
        self._error = ""
        self._stderr = StderrTail()
        self._session: ServerSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._signals = Signals(self._settled)
        self._calls: set[asyncio.Task[Any]] = set()
        self._failures = 0
        self._started_at = 0.0

    def status(self) -> ServerStatus:
        """The server's current state."""
        return ServerStatus(
            name=self.settings.name,
            state=self.state,
            enabled=self.settings.enabled,
            protocol=self._protocol,
            tools=self.tools,
            error=self._error or (self._session.left_out if self._session else ""),
            stderr=tuple(self._stderr.lines),
            log=tuple(self._signals.log),
            instructions=self._session.instructions if self._session else "",
            account="signed out" if self._signals.wants_login else "none",
        )

    @property
    def is_listed(self) -> bool:
        """Whether the server's tools are known and up to date."""
        return self.state == "ready" and self._settled.is_set()

    @property
    def is_running(self) -> bool:
        """Whether there is a connection to the server."""
        return self._session is not None

    @property
    def has_known_tools(self) -> bool:
        """Whether the server's tools are known without a start."""
        return self._known_tools(self.settings) is not None

    def offer(self) -> bool:
        """Offer the server's tools if they are known without a start; the first call starts it."""
        known = self._known_tools(self.settings) if self._task is None else None
        if known is not None:
            self.tools, self.state = known, "ready"
            self._settled.set()
        return known is not None

    def begin(self, *, again: bool) -> None:
        """Start the server if necessary; a failed server is started only after a pause, or if
        `again`.
        """
        pause = min(_RETRY_S * 2 ** (self._failures - 1), _RETRY_MAX_S) if self._failures else 0.0
        is_over = asyncio.get_running_loop().time() >= self._started_at + pause
        if self.state != "failed" or again or is_over:
            self._start()

    @property
    def is_awaited(self) -> bool:
        """Whether the server is starting or listing its tools again."""
        return self.state in ("starting", "ready") and not self._settled.is_set()

    async def settled(self) -> None:
        """Wait until the server's tools are known, it has failed, or the time for a start is over.

        If the tools are only being listed again, the wait is shorter, because the known tools
        suffice.
        """
        left = _RELIST_S
        if self.state == "starting":
            now = asyncio.get_running_loop().time()
            left = self.settings.start_timeout_s + _SLACK_S - (now - self._started_at)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(left, 0)):
                await self._settled.wait()

    async def call(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        progress: Progress | None,
        clock: PausableClock,
        task: TaskHandle,
    ) -> Outcome:
        """The result of `tool`, whose definition must be the approved one.

        `clock` pauses while the server asks the user, and from the call's first progress report
        to its end. Each report restarts the call's time limit. Raises PendingError if the call
        continues as a task but the server cannot be polled.
        """

        async def call(session: ServerSession, renew: Renew) -> Outcome:
            if reason := _change(tool, self.tools):
                raise ServerError(f"{name} {reason}")
            has_reported = False
            with self._signals.clock.followed_by(clock), ExitStack() as still:

                def report(steps: float | None, total: float | None, message: str | None) -> None:
                    nonlocal has_reported
                    renew()
                    if not has_reported:
                        has_reported = True
                        still.enter_context(clock.paused())
                    if progress is not None:
                        progress(steps, total, message)

                return await _result(session, tool, arguments, report, task)

        name = f"Tool '{tool.name}' of MCP server '{self.settings.name}'"
        try:
            return await self._ask_again(name, call, task)
        except ServerError as error:
            if task.id and self.settings.url is not None:  # a local task has ended with its server
                raise PendingError(f"{error}. {COLLECT}") from error
            return Outcome("error", str(error))
        except asyncio.CancelledError:
            if task.id and self._session is not None and not self._signals.stopping:
                await self._session.cancel(task.id)
            raise

    async def _ask_again(self, what: str, work: Work[T], task: TaskHandle) -> T:
        """The result of `work`, repeated once if the connection fails while the call is a task."""
        try:
            return await self.ask(what, work)
        except ServerError as error:
            if not (
                task.id and self.settings.url is not None and isinstance(error.__cause__, LostError)
            ):
                raise
        return await self.ask(what, work)

    async def ask(self, what: str, work: Work[T]) -> T:
        """The result of `work`, which is called with the server; starts the server if necessary.

        `what` describes the work in messages. Raises ServerError for any failure.
        """
        try:
            return await self._ask_once(what, work)
        except NotBegunError:
            while self._calls:  # the other calls fail in the same way
                await asyncio.wait(self._calls.copy())
        try:
            return await self._ask_once(what, work)
        except NotBegunError as error:
            raise ServerError(f"{what} failed: {error}") from error

    async def _ask_once(self, what: str, work: Work[T]) -> T:
        self._start()
        await self._settled.wait()  # set when the start times out, at the latest
        session = self._session
        if session is None:
            raise ServerError(self._error or f"MCP server '{self.settings.name}' was stopped")
        task = asyncio.get_running_loop().create_task(self._within_time(session, what, work))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return await task  # cancelled with the caller

    def restart(self) -> None:
        """Stop the server, if it is running, and start it again; do not wait for either."""
        self.stop()
        self._failures = 0
        self._begin()

    def stop(self) -> asyncio.Task[None] | None:
        """Start shutting down the server. Returns the task that finishes when the server has stopped,
        or None if it is not running.
        """
        task = self._task
        if task is None or task.done():
            if self.state == "ready":  # its tools were only offered
                self.state, self.tools = "stopped", ()
            return None
        self._signals.stop()
        if self.state == "starting":
            task.cancel()
        return task

    def _start(self) -> None:
        if self._task is not None and not self._task.done() and self.state != "failed":
            if not (self._signals.lost and not self._calls):
                return
            self.stop()
        self._begin()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self.state, self._error, self._protocol = "starting", "", ""
        self.tools, self._session = (), None
        self._settled.clear()
        self._started_at = loop.time()
        self._signals = Signals(self._settled)
        self._task = loop.create_task(self._live(self._signals, self._task))

    async def _live(self, signals: Signals, before: asyncio.Task[None] | None) -> None:
        """Run the server from start to end, and report any failure."""
        if before is not None:
            await asyncio.wait({before})  # one process at a time: the earlier one is already ending
        try:
            await self._prepare()
            await self._hold(signals)
            error = (
                "" if signals.stopping else f"MCP server '{self.settings.name}' ended unexpectedly"
            )
        except asyncio.CancelledError:
            error = ""
        except Exception as failure:  # noqa: BLE001 - the boundary of this task
            error = self._explain(failure)
        self._stderr.close()
        self._end(signals, error)

    async def _hold(self, signals: Signals) -> None:
        timer = asyncio.get_running_loop().call_later(
            self.settings.start_timeout_s, self._give_up, signals, asyncio.current_task()
        )
        try:
            async with self._connect(self.settings, self._stderr, signals) as session:
                self.tools = await session.tools()
                timer.cancel()
                self._ready(session)
                try:
                    await self._attend(session, signals)
                finally:
                    await self._end_calls()
        finally:
            timer.cancel()

    async def _attend(self, session: ServerSession, signals: Signals) -> None:
        """List the tools again when they change, and less and less often if they keep changing."""
        now, listed_at, changes = asyncio.get_running_loop().time, 0.0, 0
        while not self._is_over(signals):
            await signals.event.wait()
            signals.event.clear()
            if not signals.changed:
                continue
            pause = (
                min(_CALM_S * 2 ** (changes - _CHANGES), _CALM_MAX_S)
                if changes >= _CHANGES
                else 0.0
            )
            # Only changes soon after a listing count as one row of changes.
            changes = changes + 1 if now() - listed_at < pause + _CALM_S else 0
            signals.restless = changes > _CHANGES
            if signals.restless:
                self._settled.set()  # the known tools suffice, so nothing waits for the pause
                await self._rest(signals, pause)
            signals.changed = False  # first, because the list may miss a change that arrives now
            async with asyncio.timeout(self.settings.timeout_s):
                self.tools = await session.tools()
            listed_at = now()
            if signals.restless or not signals.changed:
                self._settled.set()

    def _is_over(self, signals: Signals) -> bool:
        return signals.stopping or (signals.lost and not self.settings.url)

    async def _rest(self, signals: Signals, seconds: float) -> None:
        """Wait this long, or until the server ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._is_over(signals):
                    await signals.event.wait()
                    signals.event.clear()

    def _ready(self, session: ServerSession) -> None:
        self._session, self._protocol = session, session.protocol
        self.state, self._failures = "ready", 0
        self._settled.set()

    def _give_up(self, signals: Signals, task: asyncio.Task[Any] | None) -> None:
        seconds = self.settings.start_timeout_s
        self._stderr.drain()
        self._fail(
            f"MCP server '{self.settings.name}' was not ready within {seconds:g} s"
            f"{self._last_words()}{_hint(self.settings)}"
        )
        signals.stop()
        if task is not None:
            task.cancel()  # the SDK may take seconds to end it: do not wait

    def _fail(self, error: str) -> None:
        if self.state == "starting":
            self._failures += 1
        self.state, self._error = "failed", error
        self.tools, self._session = (), None
        self._settled.set()

    def _end(self, signals: Signals, error: str) -> None:
        if signals is not self._signals or self.state == "failed":
            return  # restarted, or already reported
        if error:
            self._fail(error)
        else:
            self.state, self.tools, self._session = "stopped", (), None
            self._settled.set()

    async def _end_calls(self) -> None:
        self._session = None
        self._stderr.drain()
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls)

    async def _within_time(self, session: ServerSession, what: str, work: Work[T]) -> T:
        seconds, clock = self.settings.timeout_s, self._signals.clock
        most, start = seconds * MOST_RENEWALS, clock.now()
        try:
            async with clock.limit(seconds, most) as renew:
                return await work(session, renew)
        except TimeoutError as error:
            limit = most if clock.now() - start >= most else seconds
            raise ServerError(f"{what} did not answer within {limit:g} s") from error
        except SilentError as error:
            why = f"is running as a task whose state its server does not report: {_words(error)}"
            raise ServerError(f"{what} {why}") from error
        except LostError as error:
            raise ServerError(self._ended(str(error) if self.settings.url else "")) from error
        except ServerError:
            raise
        except asyncio.CancelledError as error:
            if self._session is session:
                raise  # the caller was cancelled
            raise ServerError(self._ended()) from error
        except Exception as failure:
            raise ServerError(f"{what} failed: {_words(cause(failure))}") from failure

    def _ended(self, why: str = "") -> str:
        self._stderr.drain()
        why = f" ({why})" if why else ""
        return f"MCP server '{self.settings.name}' ended during the call{why}{self._last_words()}"

    def _explain(self, failure: Exception) -> str:
        self._stderr.drain()
        error, server = cause(failure), f"MCP server '{self.settings.name}'"
        if isinstance(error, LostError):
            return f"{server} ended while starting{self._last_words()}{_hint(self.settings)}"
        if isinstance(error, ParleyError):
            return str(error)
        return f"{server}: {_words(error)}{self._last_words()}"

    def _last_words(self) -> str:
        said = last_words(self._stderr.lines)
        return f"; its last output: {said[0]}" if said else ""


def _change(tool: Tool, tools: Sequence[Tool]) -> str:
    """How a tool differs from the tools that its server offers now; "" if it does not."""
    offered = map(reader, tools[:1]) if is_reader(tool) else tools
    digest = next((other.digest for other in offered if other.name == tool.name), None)
    if digest == tool.digest:
        return ""
    return "has changed its definition since" if digest else "is no longer offered"


def _hint(settings: ServerSettings) -> str:
    """A possible reason why a program does not start outside your shell."""
    return (
        f". If the server needs variables from your environment, set them in mcp.servers.{settings.name}.env"
        if settings.command
        else ""
    )


async def _result(
    session: ServerSession,
    tool: Tool,
    arguments: dict[str, Any],
    report: Progress,
    task: TaskHandle,
) -> Outcome:
    if is_reader(tool):
        return await session.read(str(arguments["uri"]))
    return await session.call(tool.name, arguments, report, task)


def _words(error: BaseException) -> str:
    """An error on one line; for an invalid reply, only the first flaw."""
    if type(error).__name__ == "ValidationError" and (flaws := getattr(error, "errors", None)):
        flaw = flaws(include_url=False, include_input=False)[0]
        return f"it sent an invalid reply: {'.'.join(map(str, flaw['loc']))}: {flaw['msg']}"[
            :_CAUSE_SHOWN
        ]
    is_lost = type(error).__name__ in ("ConnectError", "ReadError", "WriteError")  # of `httpx2`
    text = first_reason(error) if is_lost else str(error)
    words = _LONG_WORD.sub(r"\1…", " ".join(text.split()))[:_CAUSE_SHOWN] or type(error).__name__
    if type(error).__name__ == "ProxyError":  # of `httpx2`: a proxy's reply to CONNECT
        return f"HTTP {words}{PROXY_HINT if words.startswith('407') else ''}"
    return words
