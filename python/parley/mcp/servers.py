"""All MCP servers: the catalogue of their tools, their calls and their shutdown.

Knows when a server is needed, but not how to connect to it. The `mcp` SDK takes more than a second
to import, so a thread imports it when the first server is needed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.clock import PausableClock
from parley.errors import PendingError, ServerError
from parley.mcp.accounts import Accounts
from parley.mcp.functions import InProcess, WorkspaceServer, no_workspace
from parley.mcp.server_session import Progress, ServerSession
from parley.mcp.supervisor import KnownTools, Supervisor, T, no_known_tools
from parley.processes.reaper import Reaper
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.resources import ResourceList
from parley.tools.results import Outcome
from parley.tools.server_settings import ServerSettings, ServerStatus, again
from parley.tools.tasks import COLLECT, TaskHandle

if TYPE_CHECKING:
    from parley.mcp.callbacks import Elicitor, Sample
    from parley.mcp.connect import Connector
    from parley.tools.prompts import Prompt
    from parley.tools.sampling import SamplingReply, SamplingRequest
    from parley.tools.templates import Blank
    from parley.tools.visits import Visit

_CLOSE_S = 3.0
_LIST_S = 10.0
"""How long a list of resources or prompts waits for each server."""


class Servers:
    """The servers in the settings. Each server has its own supervisor, and is started when it is
    first needed.

    `elicitor` fills in servers' forms, and `sample` replies to servers that may use the model.
    Either may be None. `folder` returns the user's working directory. `in_process` maps names in
    the settings to the servers that are objects in this process. `workspace` creates the
    workspace server. A server with `known_tools` starts only with its first call.
    """

    def __init__(
        self,
        servers: Mapping[str, ServerSettings],
        *,
        environ: Mapping[str, str] | None = None,
        max_bytes: int,
        elicitor: Elicitor | None = None,
        folder: Callable[[], Path] = Path.cwd,
        sample: Sample | None = None,
        in_process: Mapping[str, InProcess] | None = None,
        workspace: WorkspaceServer = no_workspace,
        known_tools: KnownTools = no_known_tools,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._reaper = Reaper()
        self._accounts = Accounts(self._environ)
        self._elicitor = elicitor
        self._folder = folder
        self._in_process = in_process or {}
        self._workspace = workspace
        self._known_tools = known_tools
        self.max_bytes = max_bytes
        self.sample = sample
        self._supervisors: dict[str, Supervisor] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._catalogue = Catalogue()
        self._closed = self._has_sdk = False
        self._last_news = dict[str, str]()
        self.use(servers)

    @cached_property
    def _connector(self) -> Connector:
        """Created with the first connection, because a question without calls needs none."""
        from parley.mcp.callbacks import ServerRequests
        from parley.mcp.connect import Connector

        reply = self._reply if self.sample else None
        return Connector(
            self._environ,
            self._reaper,
            ServerRequests(self._elicitor, self._folder, reply, self.max_bytes),
            self._accounts,
            self.max_bytes,
            self._folder,
            self._in_process,
            self._workspace,
        )

    def use(self, servers: Mapping[str, ServerSettings]) -> None:
        """Use these servers from now on: unchanged servers continue, and all others end."""
        before, self._supervisors = self._supervisors, {}
        for name, settings in servers.items():
            old = before.get(name)
            stays = old is not None and _is_same(old.settings, settings)
            self._supervisors[name] = before.pop(name) if stays else self._supervisor(settings)
        for supervisor in before.values():
            if task := supervisor.stop():
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    def _supervisor(self, settings: ServerSettings) -> Supervisor:
        known = no_known_tools if settings.name in self._in_process else self._known_tools
        return Supervisor(
            settings, self._import_sdk, lambda *parts: self._connector.connect(*parts), known
        )

    async def _reply(self, request: SamplingRequest) -> SamplingReply:
        assert self.sample, "no server is offered sampling then"
        return await self.sample(request)

    async def catalogue(self) -> Catalogue:
        """The tools of all enabled servers, after each has started or failed."""
        await self.begin()
        await asyncio.gather(*(supervisor.settled() for supervisor in self._enabled()))
        return self.offered()

    async def begin(self, *, again: bool = False, only: Collection[str] | None = None) -> None:
        """Start the servers whose tools are not known, or `only` these servers; start a server that
        has just failed only if `again`.
        """
        if not all(s.is_listed or s.offer() for s in self._enabled(only)):
            await self._import_sdk()  # slow on a busy machine, so before any time limit starts
            for supervisor in self._enabled(only):
                if not supervisor.is_listed and not supervisor.offer():
                    supervisor.begin(again=again)

    def needs_sdk(self) -> bool:
        """Whether the list of tools needs the SDK: some server must start first."""
        return any(not supervisor.has_known_tools for supervisor in self._enabled())

    def awaited(self) -> tuple[str, ...]:
        """The servers that are starting or listing their tools again."""
        return tuple(s.settings.name for s in self._enabled() if s.is_awaited)

    async def settled(self, names: Collection[str], limit_s: float | None) -> set[str]:
        """Wait until one of the `names` settles or time is up; return the settled names."""
        waits = {
            asyncio.ensure_future(supervisor.settled()): supervisor.settings.name
            for supervisor in self._enabled()
            if supervisor.settings.name in names
        }
        try:
            if not waits:
                return set(names)
            done, _ = await asyncio.wait(
                waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED
            )
            return {waits[wait] for wait in done}
        finally:
            for wait in waits:
                wait.cancel()

    def offered(self) -> Catalogue:
        """The running servers' tools, and the names of the servers whose tools are missing."""
        missing = [s.settings.name for s in self._enabled() if s.state != "ready"]
        catalogue = Catalogue.of([tool for s in self._ready() for tool in s.tools], missing)
        if catalogue != self._catalogue:
            self._catalogue = catalogue
        return self._catalogue

    def _enabled(self, only: Collection[str] | None = None) -> list[Supervisor]:
        enabled = (s for s in self._supervisors.values() if s.settings.enabled and not self._closed)
        return [s for s in enabled if only is None or s.settings.name in only]

    def _ready(self) -> list[Supervisor]:
        return [
            supervisor for supervisor in self._supervisors.values() if supervisor.state == "ready"
        ]

    def _running(self) -> list[Supervisor]:
        return [supervisor for supervisor in self._ready() if supervisor.is_running]

    def known(self) -> Catalogue | None:
        """The known tools of the servers, without starting any; None if none are known."""
        return self.offered() if self._ready() else None

    async def call(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        task: TaskHandle | None = None,
        *,
        progress: Progress | None = None,
        clock: PausableClock | None = None,
    ) -> Outcome:
        """A call's result, or an error for any failure. If this is cancelled, the call is also
        cancelled at the server.

        While the tool runs, `progress` receives the progress, the total and a message, each of
        which may be None. `clock` pauses while the server asks the user. If the call already runs
        as a `task`, this collects the result. Raises PendingError if the call continues as a task
        but cannot be polled.
        """
        task = task or TaskHandle()
        try:
            supervisor = self._available(tool.server)
        except ServerError as error:
            if task.id:
                raise PendingError(f"{error}. {COLLECT}") from error
            return Outcome("error", str(error))
        return await supervisor.call(tool, arguments, progress, clock or PausableClock(), task)

    async def read_resource(self, server: str, uri: str) -> str:
        """A server resource's text, escaped and limited like a result. Raises ServerError."""
        what = f"Resource '{uri}' of MCP server '{server}'"
        return await self._available(server).ask(what, lambda session, _: session.resource(uri))

    async def resources(self, names: Collection[str] | None = None) -> dict[str, ResourceList]:
        """The resources of the running servers, or only of `names` among them; starts no server.

        Lists the resources again each time; if a server fails, its list contains the reason.
        """
        ready = [s for s in self._running() if names is None or s.settings.name in names]
        return await self._lists(
            ready, lambda session: session.resources(), lambda why: ResourceList(unlisted=why)
        )

    async def values(self, server: str, blank: Blank) -> tuple[str, ...]:
        """A running server's proposals for a template's variable; none if the request fails."""
        ready = [s for s in self._running() if s.settings.name == server]
        lists = await self._lists(ready, lambda session: session.values(blank), lambda _: ())
        return lists.get(server, ())

    async def prompts(self, *, starting: bool = True) -> tuple[Prompt, ...]:
        """All enabled servers' prompts, ordered by server; a server that fails contributes none.

        Without `starting`, only the running servers'.
        """
        if starting:
            await self.catalogue()
        lists = await self._lists(self._running(), lambda session: session.prompts(), lambda _: ())
        return tuple(prompt for prompts in lists.values() for prompt in prompts)

    async def _lists(
        self,
        servers: Sequence[Supervisor],
        request: Callable[[ServerSession], Awaitable[T]],
        failed: Callable[[str], T],
    ) -> dict[str, T]:
        """Each server's list; if a server fails, `failed` creates its list from the reason."""

        async def listed(supervisor: Supervisor) -> T:
            what = f"MCP server '{supervisor.settings.name}'"
            try:
                async with asyncio.timeout(_LIST_S):
                    return await supervisor.ask(what, lambda session, _: request(session))
            except TimeoutError:
                return failed(f"{what} did not answer within {_LIST_S:g} s")
            except ServerError as error:
                return failed(str(error))

        lists = await asyncio.gather(*map(listed, servers))
        return {s.settings.name: one for s, one in zip(servers, lists, strict=True)}

    async def get_prompt(
        self, server: str, name: str, arguments: Mapping[str, str] | None = None
    ) -> str:
        """The text of a server's prompt, to insert into a question. Raises ServerError."""
        what = f"Prompt '{name}' of MCP server '{server}'"
        return await self._available(server).ask(
            what, lambda session, _: session.prompt(name, arguments or {})
        )

    async def settling(self) -> AsyncIterator[None]:
        """Start the servers that are not running; yield whenever one is ready or has failed."""
        await self.begin()
        for settled in asyncio.as_completed(
            [supervisor.settled() for supervisor in self._enabled()]
        ):
            await settled
            yield

    def news(self, missing: Collection[str]) -> dict[str, str]:
        """Messages for the user, by server, each returned once: why tools are `missing` or were
        left out.
        """
        news = {}
        for server in (supervisor.status() for supervisor in self._supervisors.values()):
            line = f"MCP server '{server.name}': {server.error}" if server.error else ""
            if server.name in missing:
                why = server.error.removeprefix(f"MCP server '{server.name}': ")
                line = f"no tools from MCP server '{server.name}': {why or 'it is still starting'}"
            elif server.state != "ready":
                continue
            if line and line != self._last_news.get(server.name):
                news[server.name] = f"{line}. See :ParleyTools"
            self._last_news[server.name] = line
        return news

    def restart(self, server: str) -> None:
        """Begin to restart a server. Raises ServerError if the server is unknown."""
        self._available(server).restart()

    async def sign_in(self, server: str, browse: Callable[[Visit], object]) -> bool:
        """Sign the user in at a server and restart it; False if this cancelled an earlier sign-in.

        `browse` receives the page to show and open. Raises ParleyError if the sign-in fails.
        """
        supervisor = self._available(server)
        await self._import_sdk()
        is_done = await self._accounts.sign_in(supervisor.settings, browse)
        if is_done and supervisor.state != "stopped":
            supervisor.restart()
        return is_done

    def take(self, server: str, address: str) -> bool:
        """Take the address of the browser's last page in a sign-in; return whether it is needed."""
        return self._accounts.take(self._available(server).settings, address)

    def sign_out(self, server: str) -> bool:
        """Forget a server's login and restart the server; return whether there was a login."""
        supervisor = self._available(server)
        had_login = self._accounts.sign_out(supervisor.settings)
        if had_login and supervisor.state != "stopped":
            supervisor.restart()
        return had_login

    def _available(self, server: str) -> Supervisor:
        supervisor = self._supervisors.get(server)
        if supervisor is None:
            raise ServerError(f"there is no MCP server '{server}' in the settings")
        if not supervisor.settings.enabled:
            raise ServerError(f"MCP server '{server}' is disabled in the settings")
        if self._closed:
            raise ServerError(f"MCP server '{server}' is not available")
        return supervisor

    def status(self) -> tuple[ServerStatus, ...]:
        """The state of each server, in the settings' order."""
        return tuple(map(self._status, self._supervisors.values()))

    def _status(self, supervisor: Supervisor) -> ServerStatus:
        settings = supervisor.settings
        folder = self._connector.folder(settings)
        has_own = bool(folder) and settings.cwd is None
        status = replace(supervisor.status(), folder=folder, has_own_folder=has_own)
        account, page = self._accounts.account(supervisor.settings)
        is_known = account != "none" and not (
            account == "signed in" and status.account == "signed out"
        )
        if not is_known:
            return status
        scope = self._accounts.lacking_scope(supervisor.settings) if account == "signed in" else ""
        wish = again(status.name, scope) if scope else ""
        texts = [status.error, wish if wish not in status.error else ""]
        return replace(status, account=account, page=page, error=". ".join(filter(None, texts)))

    async def close(self) -> None:
        """End all servers, so that nothing keeps running. Takes at most two seconds."""
        self._closed = True
        self._accounts.close()
        ending = self._ending | {
            task for supervisor in self._supervisors.values() if (task := supervisor.stop())
        }
        await self._reaper.close()
        if ending:
            _, late = await asyncio.wait(ending, timeout=_CLOSE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=_CLOSE_S)

    async def _import_sdk(self) -> None:
        if not self._has_sdk:
            for name in ("mcp", "jsonschema"):  # jsonschema checks the arguments of calls
                await asyncio.get_running_loop().run_in_executor(None, import_module, name)
        self._has_sdk = True


def _is_same(old: ServerSettings, new: ServerSettings) -> bool:
    """Whether a server's settings are unchanged, and also their origin, which decides which rules
    apply.
    """
    return old == new and old.origin == new.origin
