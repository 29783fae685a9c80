"""Connections to MCP servers: in this process, over a program's stdin and stdout, or over HTTP.

Knows the SDK's transports and client, but not the messages that they carry.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.errors import ParleyError, ServerError, SettingsError
from parley.hints import Hints
from parley.mcp.accounts import Accounts
from parley.mcp.callbacks import ServerRequests
from parley.mcp.functions import InProcess, WorkspaceServer
from parley.mcp.http_servers import reached
from parley.mcp.revisions import Way, Ways
from parley.mcp.server_client import SdkSession
from parley.mcp.server_session import CONNECTION_CLOSED, HttpRefusal, LostError, Signals, cause
from parley.mcp.task_requests import extensions
from parley.mcp.task_sessions import TaskSessions
from parley.mcp.transport import MOST_QUESTIONS, Wire
from parley.paths import state_folder
from parley.processes import line_codec as lines
from parley.processes.reaper import Reaper
from parley.processes.stderr import StderrTail
from parley.programs import program, search_path, start_folder, surroundings, working_folder
from parley.text import size_text
from parley.tools.server_settings import NEWEST, WORKSPACE, ServerSettings, expand

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp.client.session import MessageHandlerFnT
    from mcp.server import MCPServer

_LISTEN_AGAIN_S = 5.0

_log = logging.getLogger(__name__)
logging.getLogger("mcp").addHandler(logging.NullHandler())  # or junk prints tracebacks to stderr


class Connector:
    """Connects to servers; `reaper` ends local servers with this process."""

    def __init__(
        self,
        environ: Mapping[str, str],
        reaper: Reaper,
        requests: ServerRequests,
        accounts: Accounts,
        max_bytes: int,
        folder: Callable[[], Path],
        in_process: Mapping[str, InProcess],
        workspace: WorkspaceServer,
    ) -> None:
        """`folder` returns the user's working directory, the base of a relative `cwd`.

        `in_process` maps names to the servers in this process, except for the built-in servers.
        `workspace` creates the workspace server.
        """
        self._workspace = workspace
        self._in_process = in_process
        self._environ = environ
        self._folder = folder
        self._reaper = reaper
        self._requests = requests
        self._accounts = accounts
        self._max_bytes = max_bytes
        self._ways = Ways(state_folder(environ) / "ways.json")
        self._sessions = Hints(state_folder(environ) / "sessions.json")
        self._next_ways = dict[str, Way]()
        """For each server's identity, the way to try next because the previous way timed out."""

    @asynccontextmanager
    async def connect(
        self, settings: ServerSettings, stderr: StderrTail, signals: Signals
    ) -> AsyncIterator[SdkSession]:
        """A session with the server; a local server starts and ends with this context."""
        filled = settings if settings.builtin else settings.expanded(self._environ)
        async with AsyncExitStack() as stack:
            client, session = await self._begun(stack, filled, settings.identity, stderr, signals)
            listener = asyncio.get_running_loop().create_task(_listen(client, signals))
            stack.push_async_callback(_ended, listener)
            yield session

    async def _begun(
        self,
        stack: AsyncExitStack,
        settings: ServerSettings,
        identity: str,
        stderr: StderrTail,
        signals: Signals,
    ) -> tuple["Client", SdkSession]:
        """Connect in the way that worked last time, or else in another way.

        Some servers exit or give wrong replies when Parley begins in the newest way.
        """
        last = self._next_ways.pop(identity, None) or self._ways.get(identity)
        ways, failure = _ways(settings, last), None
        while True:
            way = ways.pop(0)
            try:
                async with AsyncExitStack() as attempt:
                    begun = await self._attempt(attempt, way, settings, stderr, signals)
                    await stack.enter_async_context(attempt.pop_all())
            except asyncio.CancelledError:  # it timed out; another way may work
                if ways:
                    self._next_ways[identity] = ways[0]
                raise
            except Exception as error:  # noqa: BLE001 - reported if no other way works
                ways = _others(ways, error)
                failure = failure if failure and way == "events" else _as_end(error)
                if not ways or signals.stopping:
                    raise failure from None
                signals.begin_again()
                stderr.keep()
            else:
                if settings.protocol == "auto" and not settings.builtin:
                    # In the newest way, the SDK may fall back to an older revision, perhaps
                    # after 10 s of silence.
                    is_older = way == "newest" and begun[1].protocol != NEWEST
                    self._ways.put(identity, "older" if is_older else way)
                return begun

    async def _attempt(
        self,
        stack: AsyncExitStack,
        way: Way,
        settings: ServerSettings,
        stderr: StderrTail,
        signals: Signals,
    ) -> tuple["Client", SdkSession]:
        from mcp import Client
        from mcp_types import Implementation

        def note_end() -> None:
            if wire.is_flooded:
                stderr.lines.append(
                    f"(connection closed: the server sent more than {MOST_QUESTIONS} requests without "
                    "reading a reply)"
                )
            if settings.url is None or way == "events":
                signals.connection_lost()

        offer = settings.protocol if settings.protocol not in ("auto", NEWEST) else ""
        wire = Wire(_accepts, note_end, offer)
        sessions = TaskSessions(self._sessions, settings.url or "")
        server = await stack.enter_async_context(
            self._server(settings, stderr, signals, wire, sessions, way)
        )
        me = Implementation(name="parley", version=_version())
        requests = self._requests.callbacks(settings, signals.clock)
        try:
            client = await stack.enter_async_context(
                Client(
                    server,
                    message_handler=_listener(signals, stderr),
                    client_info=me,
                    extensions=extensions() if way == "newest" else None,
                    **_mode(way, settings.protocol),
                    **requests,
                )
            )
        finally:
            stderr.detach()
        session = SdkSession(
            client,
            settings,
            signals,
            self._max_bytes,
            wire.left_out,
            self._requests.elicitor,
            sessions,
        )
        if way == "newest":
            await session.try_out()
        return client, session

    @asynccontextmanager
    async def _server(
        self,
        settings: ServerSettings,
        stderr: StderrTail,
        signals: Signals,
        wire: Wire,
        sessions: TaskSessions,
        way: Way,
    ) -> AsyncIterator["Transport | MCPServer"]:
        if settings.builtin and (server := self._in_process.get(settings.name)):
            yield server
        elif settings.builtin and settings.name == WORKSPACE:
            yield self._workspace(settings)
        elif settings.builtin:
            from parley.mock_server import create_server

            yield create_server(extra="--extra" in settings.args)
        elif settings.url is not None:
            auth = self._accounts.auth(settings, signals.note_login)
            is_sse = way == "events"
            async with reached(
                settings, stderr, self._environ, wire, auth, sessions, is_sse=is_sse
            ) as transport:
                yield wire.tapped(transport)
        else:
            try:
                yield wire.tapped(self._stdio(settings, stderr))
            finally:
                self._reaper.prune()

    def _stdio(self, settings: ServerSettings, stderr: StderrTail) -> "Transport":
        from mcp import StdioServerParameters, stdio_client

        cwd = self._place(settings)
        command, args = self._reaper.launch(_command_path(settings, cwd), settings.args)
        parameters = StdioServerParameters(
            command=command,
            args=args,
            env={**surroundings(self._environ), "PATH": search_path(), **settings.env},
            cwd=cwd or working_folder(self._environ),
            encoding=lines.NAME,
            encoding_error_handler="replace",
        )
        return stdio_client(parameters, errlog=stderr.open())

    def folder(self, settings: ServerSettings) -> str:
        """The folder in which a local server starts, or the workspace's; "" for any other server."""
        if settings.builtin and settings.name == WORKSPACE:
            return settings.cwd or ""
        if settings.command is None or settings.builtin:
            return ""
        if settings.cwd is None:
            return working_folder(self._environ)
        try:
            filled = expand(settings.cwd, self._environ, "cwd")
        except SettingsError:
            return settings.cwd
        return os.path.normpath(start_folder(filled, self._folder()) or settings.cwd)

    def _place(self, settings: ServerSettings) -> Path | None:
        """The folder in `cwd`; None for Parley's own folder, so that no project decides how servers
        run.
        """
        if settings.cwd is None:
            return None
        place = start_folder(settings.cwd, self._folder())
        if place is None or not place.is_dir():
            raise ServerError(
                f"mcp.servers.{settings.name}.cwd: there is no directory {settings.cwd}"
            )
        return place


def _listener(signals: Signals, stderr: StderrTail) -> "MessageHandlerFnT":
    """Receives a server's notifications."""
    from mcp_types import (
        ElicitCompleteNotification,
        LoggingMessageNotification,
        ToolListChangedNotification,
    )

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            signals.tools_changed()
        elif isinstance(message, LoggingMessageNotification):
            signals.logged(message.params.level, message.params.logger, message.params.data)
        elif isinstance(message, ElicitCompleteNotification):
            signals.visit_finished(message.params.elicitation_id)
        elif isinstance(message, Exception) and lines.LONG_LINE in str(message):
            stderr.lines.append(f"(a line of more than {size_text(lines.LINE_BYTES)} was skipped)")
            signals.connection_lost()

    return hear


def _ways(settings: ServerSettings, last: Way | None) -> list[Way]:
    """The ways to try to connect to a server, in order."""
    if settings.builtin or settings.protocol == NEWEST:
        return ["newest"]
    ways: list[Way] = ["older"] if settings.protocol != "auto" else ["newest", "older"]
    if settings.url is not None:
        ways.append("events")
    return sorted(ways, key=lambda way: way != last)


def _mode(way: Way, protocol: str) -> dict[str, Any]:
    """The SDK client's options for this way."""
    from mcp_types import DiscoverResult, ResourcesCapability, ServerCapabilities, ToolsCapability

    if way != "newest":
        return {"mode": "legacy"}
    if protocol != NEWEST:
        return {"mode": "auto"}
    capabilities = ServerCapabilities(
        tools=ToolsCapability(list_changed=True), resources=ResourcesCapability()
    )
    result = DiscoverResult(
        supported_versions=[NEWEST],
        capabilities=capabilities,
        result_type="complete",
        ttl_ms=0,
        cache_scope="private",
    )
    return {"mode": NEWEST, "prior_discover": result}


def _as_end(error: Exception) -> Exception:
    """A LostError if this error means that the server has ended, else the error itself."""
    from mcp.shared.exceptions import MCPError

    inner = cause(error)
    is_end = isinstance(inner, MCPError) and inner.code == CONNECTION_CLOSED
    return LostError(str(inner)) if is_end else error


def _others(ways: list[Way], error: BaseException) -> list[Way]:
    """The remaining ways that may still work after this error."""
    import httpx2

    error = cause(error)
    refusal = getattr(getattr(error, "error", None), "data", None)
    if isinstance(refusal, HttpRefusal):
        return [] if refusal.is_final or refusal.status >= 500 else ways
    if isinstance(error, ParleyError | OSError | httpx2.TransportError) and not isinstance(
        error, LostError
    ):
        return []
    return [way for way in ways if way != "events"]


def _accepts(method: str, version: str, result: Mapping[str, Any]) -> bool:
    """Whether the SDK accepts the whole result: it drops tools with invalid header names."""
    from mcp.shared.inbound import find_invalid_x_mcp_header
    from mcp_types.methods import parse_server_result

    try:
        parse_server_result(method, version, result)
        tools = result["tools"] if (method, version) == ("tools/list", NEWEST) else ()
        return not any(find_invalid_x_mcp_header(tool["inputSchema"]) for tool in tools)
    except KeyError:
        return True  # the SDK does not check results of this method
    except (ValueError, RecursionError):
        return False


def _command_path(settings: ServerSettings, cwd: Path | None) -> str:
    """The path of the command. Raises ServerError if the program is not found or not executable.

    The shell that starts the program would report this only on stderr.
    """
    where, command = f"mcp.servers.{settings.name}", settings.command
    if not command:
        raise ServerError(f"{where} needs a command or a url")
    if path := program(command, settings.env.get("PATH"), cwd):
        return path
    hint = ". Set cwd, or write the full path" if "/" in command and cwd is None else ""
    raise ServerError(f"{where}.command: {command} was not found or is not executable{hint}")


async def _listen(client: "Client", signals: Signals) -> None:
    """Listen for changed tools: a server of revision 2026-07-28 notifies only subscribers."""
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
    from mcp.shared.exceptions import MCPError

    offered = client.server_capabilities.tools
    if offered is None or not offered.list_changed:
        return
    while True:
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    signals.tools_changed()
        except SubscriptionLost:
            await asyncio.sleep(_LISTEN_AGAIN_S)
            signals.tools_changed()  # changes in between were not announced
        except (ListenNotSupportedError, MCPError, TimeoutError):
            return
        else:
            return


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()):
        _log.warning("listening for changed tools failed: %s", error)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("parley-nvim")
    except PackageNotFoundError:  # run from a checkout
        return "0"
