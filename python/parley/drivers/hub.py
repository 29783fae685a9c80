"""All MCP servers: one catalogue of what they offer, calls to them, their end.

The only client of the `mcp` SDK, which takes more than a second to import: it is imported in a thread, when
the first server is needed.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.drivers.owner import LostError, Owner, Progress, Watch
from parley.drivers.reaper import Reaper
from parley.drivers.tail import Tail
from parley.drivers.watched import watched
from parley.errors import ServerError
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.convert import from_mcp
from parley.tools.results import MAX_BYTES, Outcome, result_text
from parley.tools.servers import ServerSettings, ServerStatus

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp.server import MCPServer

PATIENCE_S = 10.0
_CLOSE_S = 3.0
_LISTEN_AGAIN_S = 5.0
_CONNECTION_CLOSED = -32000
_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602

_log = logging.getLogger(__name__)


class Hub:
    """The servers of the settings, each started when it is first needed, in a life of its own.

    `patience_s` is how long a slow server may hold up the catalogue: what comes later is in the next one.
    """

    def __init__(
        self,
        servers: Mapping[str, ServerSettings],
        *,
        environ: Mapping[str, str] | None = None,
        max_bytes: int = MAX_BYTES,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._max_bytes = max_bytes
        self._patience_s = patience_s
        self._reaper = Reaper()
        self._owners = {name: Owner(each, _import_sdk, self._connect) for name, each in servers.items()}
        self._catalogue = Catalogue()
        self._closed = False

    async def catalogue(self) -> Catalogue:
        """The tools of all enabled servers; those that fail contribute nothing, `status` says why."""
        if not self._closed:
            wanted = [owner for owner in self._owners.values() if owner.settings.enabled]
            await asyncio.gather(*(owner.listed(self._patience_s) for owner in wanted))
        tools = [tool for owner in self._owners.values() if owner.state == "ready" for tool in owner.tools]
        if Catalogue.of(tools) != self._catalogue:
            self._catalogue = Catalogue.of(tools)
        return self._catalogue

    async def call(
        self, tool: Tool, arguments: dict[str, Any], *, progress: Progress | None = None
    ) -> Outcome:
        """The result of a call, an error for whatever goes wrong; cancelling it cancels it at the server.

        `progress` is told (progress, total or None, message or None) while the tool runs.
        """
        owner = self._owners.get(tool.server)
        if self._closed or owner is None or not owner.settings.enabled:
            return Outcome("error", f"MCP server '{tool.server}' is not available")
        return await owner.call(tool, arguments, progress)

    def status(self) -> tuple[ServerStatus, ...]:
        """How each server is, in the order of the settings."""
        return tuple(owner.status() for owner in self._owners.values())

    async def close(self) -> None:
        """Ends all servers; nothing is left running, and it takes two seconds at the worst."""
        self._closed = True
        ending = {task for owner in self._owners.values() if (task := owner.stop())}
        await self._reaper.close()
        if ending:
            _, late = await asyncio.wait(ending, timeout=_CLOSE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=_CLOSE_S)

    @asynccontextmanager
    async def _connect(self, settings: ServerSettings, tail: Tail, watch: Watch) -> AsyncIterator["_Session"]:
        from mcp import Client
        from mcp_types import Implementation, ToolListChangedNotification

        async def hear(message: object) -> None:
            if isinstance(message, ToolListChangedNotification):
                watch.tools_changed()

        filled = settings.expanded(self._environ)
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(self._server(filled, tail, watch))
            me = Implementation(name="parley", version=_version())
            try:
                client = await stack.enter_async_context(Client(server, message_handler=hear, client_info=me))
            finally:
                tail.detach()
            listener = asyncio.get_running_loop().create_task(_listen(client, watch))
            stack.push_async_callback(_ended, listener)
            yield _Session(client, settings, watch, self._max_bytes)

    @asynccontextmanager
    async def _server(
        self, settings: ServerSettings, tail: Tail, watch: Watch
    ) -> AsyncIterator["Transport | MCPServer"]:
        if settings.builtin:
            from parley.mock_server import create_server

            yield create_server(extra="--extra" in settings.args)
        elif settings.url is not None:
            async with _http(settings, tail) as transport:
                yield transport
        else:
            try:
                yield watched(self._stdio(settings, tail), watch.connection_lost)
            finally:
                self._reaper.prune()

    def _stdio(self, settings: ServerSettings, tail: Tail) -> "Transport":
        from mcp import StdioServerParameters, stdio_client

        command, args = self._reaper.launch(self._found(settings), settings.args)
        parameters = StdioServerParameters(
            command=command, args=args, env=dict(settings.env), cwd=settings.cwd
        )
        return stdio_client(parameters, errlog=tail.open())

    def _found(self, settings: ServerSettings) -> str:
        """The command, if it can be run; the shell that starts it would tell only stderr."""
        where = f"mcp.servers.{settings.name}"
        if settings.cwd is not None and not Path(settings.cwd).is_dir():
            raise ServerError(f"{where}.cwd: no such directory: {settings.cwd}")
        command = settings.command
        if not command:
            raise ServerError(f"{where}: needs a command or a url")
        path = settings.env.get("PATH", os.environ.get("PATH"))
        place = Path(settings.cwd or ".", command) if "/" in command else command
        if shutil.which(place, path=path) is None:
            raise ServerError(f"{where}.command: not found or not executable: {command}")
        return command


class _Session:
    """A connected server as the values of this project."""

    def __init__(self, client: "Client", settings: ServerSettings, watch: Watch, max_bytes: int) -> None:
        self.protocol = str(client.protocol_version)
        self._client = client
        self._settings = settings
        self._watch = watch
        self._max_bytes = max_bytes

    async def tools(self) -> tuple[Tool, ...]:
        """The tools of all pages that the settings take; a definition that is none is left out."""
        from mcp.shared.exceptions import MCPError

        found: dict[str, Tool] = {}
        try:
            async for definition in self._definitions():
                with suppress(ValueError, TypeError, RecursionError):
                    tool = from_mcp(
                        definition,
                        server=self._settings.name,
                        identity=self._settings.identity,
                        trusted=self._settings.trusted,
                    )
                    found[tool.name] = tool
        except MCPError as error:
            if error.code == _CONNECTION_CLOSED:
                raise LostError(str(error)) from error
            if error.code != _METHOD_NOT_FOUND:  # a server of prompts or resources alone has no tools
                raise
        return tuple(tool for tool in found.values() if self._settings.takes(tool.name))

    async def _definitions(self) -> AsyncIterator[dict[str, Any]]:
        cursor: str | None = None
        seen: set[str | None] = set()
        while cursor not in seen:  # a server that repeats a cursor would have us list for ever
            seen.add(cursor)
            page = await self._client.list_tools(cursor=cursor, cache_mode="refresh")
            for tool in page.tools:
                yield tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            cursor = page.next_cursor
            if cursor is None:
                return

    async def call(self, name: str, arguments: dict[str, Any], tell: Progress | None) -> Outcome:
        """The result as text, an error that the tool reports too; raises LostError if the connection ends."""
        from mcp.shared.exceptions import MCPError

        async def report(progress: float, total: float | None, message: str | None) -> None:
            if tell is not None:
                tell(progress, total, message)

        try:
            result = await self._client.call_tool(name, arguments, progress_callback=report)
        except MCPError as error:
            if error.code != _INVALID_PARAMS and self._settings.url is not None:
                self._watch.connection_lost()  # perhaps its session has expired: connect anew next time
            if error.code == _CONNECTION_CLOSED:
                raise LostError(str(error)) from error
            raise
        content = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
        text = result_text(content, result.structured_content, self._max_bytes)
        return Outcome("error" if result.is_error else "ok", text)


async def _import_sdk() -> None:
    for name in ("mcp", "jsonschema"):  # with tools come arguments, and jsonschema is to check them
        await asyncio.get_running_loop().run_in_executor(None, import_module, name)


@asynccontextmanager
async def _http(settings: ServerSettings, tail: Tail) -> AsyncIterator["Transport"]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def note(response: httpx2.Response) -> None:
        if response.is_error:  # the SDK does not say which status it was
            tail.lines.append(
                f"{response.request.method}: HTTP {response.status_code} {response.reason_phrase}"
            )

    tail.lines.clear()
    client = httpx2.AsyncClient(
        headers=dict(settings.headers),
        timeout=httpx2.Timeout(30, read=max(300, settings.timeout_s)),
        event_hooks={"response": [note]},
    )
    async with client:
        yield streamable_http_client(settings.url or "", http_client=client)


async def _listen(client: "Client", watch: Watch) -> None:
    """Hears of changed tools from a server of revision 2026-07-28, which tells only those that subscribe."""
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
    from mcp.shared.exceptions import MCPError

    offered = client.server_capabilities.tools
    if offered is None or not offered.list_changed:
        return
    while True:
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    watch.tools_changed()
        except SubscriptionLost:
            await asyncio.sleep(_LISTEN_AGAIN_S)
            watch.tools_changed()  # what changed meanwhile, nobody will say
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
