"""A connected MCP server's offers and answers as Parley's own values.

No SDK type leaves this module. It does not know how or when Parley connects to the server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from parley.errors import ServerError
from parley.iterators import closing
from parley.mcp.callbacks import Elicitor
from parley.mcp.plain import plain
from parley.mcp.server_session import (
    CONNECTION_CLOSED,
    HttpRefusal,
    LostError,
    NotBegunError,
    Progress,
    Signals,
    SilentError,
)
from parley.mcp.task_requests import TaskError, TaskRequests
from parley.mcp.task_sessions import TaskSessions
from parley.text import one_line, size_text, visible
from parley.tools.catalogue import Tool
from parley.tools.convert import from_mcp
from parley.tools.prompts import Prompt, prompt_from_mcp, prompt_text
from parley.tools.resources import Resource, ResourceList, resource_from_mcp
from parley.tools.results import WHOLE_TEXT, Outcome, cut, outcome, result_text
from parley.tools.server_settings import ServerSettings
from parley.tools.tasks import ORIGIN, TaskHandle, TaskState, task_in
from parley.tools.templates import Blank
from parley.tools.visits import Visit, required_visits

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")
Kind: TypeAlias = Literal["tools", "prompts", "resources", "resource_templates"]

_METHOD_NOT_FOUND = -32601
MOST_OFFERED = 1_000
"""The maximum number of a server's tools, prompts, resources or templates, and of their pages."""
MOST_PARTS = 1_000
"""The maximum number of parts in one result, resource or prompt."""
MOST_OF_A_TOOL = 100_000
MOST_OF_TOOLS = 1_000_000
"""The maximum number of characters in tool definitions, which each request sends to the model."""
MOST_OF_INSTRUCTIONS = 4_000
"""The maximum number of bytes in a server's instructions, which each request also sends to the
model.
"""
_NAMED = 5
_MOST_SAID = 600
"""The maximum number of characters in a server's explanation for a failed task."""
MOST_VALUES = 100
"""The maximum number of values for one variable: "must not exceed 100 items" (`Completion.values`
of mcp_types 2.3.0, read 2026-11-23).
"""
_VISITS_REQUIRED = -32042
_ANSWERS = (-32602, _METHOD_NOT_FOUND, -32002, _VISITS_REQUIRED)
"""Error codes from a healthy server: wrong parameters, no such method or resource, or a page to
visit first.
"""
_MOST_TRIES = 4
"""The number of attempts at a call that requires pages each time it is sent."""


class SdkSession:
    """A connected server, through the SDK's client."""

    def __init__(
        self,
        client: "Client",
        settings: ServerSettings,
        signals: Signals,
        max_bytes: int,
        broken: list[str],
        elicitor: Elicitor | None,
        sessions: TaskSessions,
    ) -> None:
        """While the tools are listed, the names of broken definitions are added to `broken`."""
        self.protocol = str(client.protocol_version)
        self.instructions = cut(visible((client.instructions or "").strip()), MOST_OF_INSTRUCTIONS)
        self.left_out = ""
        self._client = client
        self._settings = settings
        self._signals = signals
        self._max_bytes = max_bytes
        self._broken = broken
        self._elicitor = elicitor
        self._sessions = sessions
        self._first: tuple[Tool, ...] | None = None
        self._tasks = TaskRequests(client)
        self._as_tasks = set[str]()
        """The names of the tools that run as tasks."""

    async def try_out(self) -> None:
        """List the tools in advance, so that a connection error is raised now."""
        self._first = await self.tools()

    async def tools(self) -> tuple[Tool, ...]:
        """The tools that the settings enable, from all pages.

        Leaves out broken definitions, tools beyond the limits, and tools that run only as tasks if
        the server does not support tasks; `left_out` contains the names of these tools.
        """
        first, self._first = self._first, None
        if first is not None:
            return first
        as_tasks = set[str]()
        tools, room, too_large, tasks = dict[str, Tool](), MOST_OF_TOOLS, 0, list[str]()
        self.left_out = ""
        self._broken.clear()
        for definition in [definition async for definition in self._listed("tools")]:
            with suppress(ValueError, TypeError, RecursionError):
                tool = self._tool(definition)
                size = len(tool.definition)
                if not self._settings.takes(tool.name):
                    continue
                support = _task_support(definition)
                if support == "required" and not self._tasks.takes_calls:
                    tasks.append(tool.name)
                elif size > min(MOST_OF_A_TOOL, room):
                    too_large += 1
                else:
                    room -= size
                    tools[tool.name] = tool
                    # A local server ends with Neovim, so its tasks cannot outlive Neovim.
                    if support == "required" or (
                        support == "optional" and self._settings.url is not None
                    ):
                        as_tasks.add(tool.name)
        if self._broken:
            names = ", ".join(dict.fromkeys(self._broken[:_NAMED]))
            self._leave_out(f"tools with a broken definition ({len(self._broken)}: {names})")
        if tasks:
            names = ", ".join(tasks[:_NAMED])
            self._leave_out(f"tools that run only as tasks ({len(tasks)}: {names})")
        if too_large:
            self._leave_out(
                f"tools whose definitions are too large ({too_large}: more than "
                f"{size_text(MOST_OF_A_TOOL)} "
                f"each or {size_text(MOST_OF_TOOLS)} in all)"
            )
        self._as_tasks = as_tasks if self._tasks.takes_calls else set()
        return tuple(tools.values())

    def _tool(self, definition: dict[str, Any]) -> Tool:
        return from_mcp(
            definition,
            server=self._settings.name,
            identity=self._settings.identity,
            trusted=self._settings.trusted,
            of_project=self._settings.origin == "project",
            instructions=self.instructions,
        )

    def _leave_out(self, what: str, kind: Kind = "tools") -> None:
        if kind in ("resources", "resource_templates"):
            return  # `ResourceList.unlisted` reports this
        self.left_out = f"{self.left_out}, {what}" if self.left_out else f"left out: {what}"

    async def prompts(self) -> tuple[Prompt, ...]:
        """The prompts from all pages."""
        async with closing(self._listed("prompts")) as listed:
            return tuple(
                [prompt_from_mcp(definition, self._settings.name) async for definition in listed]
            )

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """A prompt's text for these arguments."""
        result, _ = await self._after_visits(
            partial(self._client.get_prompt, name, dict(arguments))
        )
        return prompt_text(map(plain, result.messages[:MOST_PARTS]), self._max_bytes)

    async def resource(self, uri: str) -> str:
        """A resource's text, from all its parts. Raises ServerError if no part has text."""
        parts = await self._contents(uri)
        text = result_text(parts, max_bytes=self._max_bytes)
        if not any("text" in part["resource"] for part in parts):
            raise ServerError(f"no text: {text}")
        return text

    async def read(self, uri: str) -> Outcome:
        """A resource as a call's result: its text and its pictures."""
        return outcome("ok", await self._contents(uri), max_bytes=self._max_bytes)

    async def _contents(self, uri: str) -> list[dict[str, Any]]:
        """The parts of a resource, in the form of a call's result."""
        once = partial(self._client.read_resource, uri, cache_mode="refresh")
        result, _ = await self._after_visits(once)
        return [
            {"type": "resource", "resource": plain(part)} for part in result.contents[:MOST_PARTS]
        ]

    async def resources(self) -> ResourceList:
        """The resources and templates from all pages; empty if the server declares no resources."""
        if self._client.server_capabilities.resources is None:
            return ResourceList()
        resources = await self._resources("resources")
        templates = await self._resources("resource_templates")
        is_cut = MOST_OFFERED in (len(resources), len(templates))
        unlisted = f"only the first {MOST_OFFERED:,} are listed" if is_cut else ""
        return ResourceList(resources, templates, unlisted)

    async def _resources(self, kind: Kind) -> tuple[Resource, ...]:
        resources = list[Resource]()
        async with closing(self._listed(kind)) as listed:
            async for definition in listed:
                with suppress(ValueError):
                    resources.append(resource_from_mcp(definition))
        return tuple(resources)

    async def values(self, blank: Blank) -> tuple[str, ...]:
        """The server's proposals for a template's variable; none if it declares no completions."""
        from mcp_types import ResourceTemplateReference

        if self._client.server_capabilities.completions is None:
            return ()
        template = ResourceTemplateReference(uri=blank.template)
        argument = {"name": blank.variable, "value": blank.value}
        result = await self._client.complete(template, argument, dict(blank.others) or None)
        return tuple(result.completion.values[:MOST_VALUES])

    async def call(
        self, name: str, arguments: dict[str, Any], tell: Progress, task: TaskHandle
    ) -> Outcome:
        """The call's result, possibly the tool's error; raises LostError if the connection ends.

        If the call runs as a task, polls the task until it is over.
        """

        async def report(progress: float, total: float | None, message: str | None) -> None:
            tell(progress, total, message)

        hosts, state = list[str](), None
        try:
            if not task.id:
                result, hosts = await self._answer(name, arguments, report, task.origin)
                if (state := _begun(result)) is None:
                    return self._outcome(result, hosts)
                self._sessions.begin(state.id)
                await task.begin(state.id)
            with self._errors():
                state = state or await self._tasks.get(task.id)
                ended = await self._tasks.result_of(
                    state, lambda message: tell(None, None, message)
                )
            self._sessions.end(task.id)
            return self._outcome(ended, hosts)
        except TaskError as error:
            self._sessions.end(task.id)
            why = one_line(str(error), _MOST_SAID)
            return Outcome(
                "error",
                f"The call was started as a task on MCP server '{self._settings.name}': {why}",
            )

    async def cancel(self, task_id: str) -> None:
        """Cancel a task whose result is no longer wanted."""
        await self._tasks.cancel(task_id)
        self._sessions.end(task_id)

    async def _answer(
        self, name: str, arguments: dict[str, Any], report: Any, origin: Mapping[str, str]
    ) -> tuple[dict[str, Any], list[str]]:
        """The answer to a call (a result or a started task), and the hosts of the visited pages."""
        if name in self._as_tasks:
            return await self._after_visits(partial(self._tasks.begin, name, arguments, report))
        meta: Any = {ORIGIN: dict(origin)} if origin and self._settings.builtin else None
        once = partial(self._client.call_tool, name, arguments, progress_callback=report, meta=meta)
        returned, hosts = await self._after_visits(once)
        result = {"content": returned.content, "structuredContent": returned.structured_content}
        return result | {"isError": returned.is_error, "_meta": returned.meta}, hosts

    def _outcome(self, result: Mapping[str, Any], hosts: Sequence[str]) -> Outcome:
        """A call's result as an outcome; its parts are JSON or the SDK's values.

        A task's result has not been validated yet, so this drops invalid parts.
        """
        from pydantic import BaseModel

        content = result.get("content")
        content = content if isinstance(content, list) else [content]
        parts = [
            plain(part) if isinstance(part, BaseModel) else part for part in content[:MOST_PARTS]
        ]
        if (more := len(content) - MOST_PARTS) > 0:
            parts.append({"type": "text", "text": f"[left out: {more} more parts of this result]"})
        status: Literal["ok", "error"] = "error" if result.get("isError") else "ok"
        returned = outcome(
            status, parts, result.get("structuredContent"), max_bytes=self._max_bytes
        )
        if self._settings.builtin and not returned.whole:
            returned = replace(returned, whole=(result.get("_meta") or {}).get(WHOLE_TEXT, ""))
        return replace(returned, text=f"{_opened(hosts)}{returned.text}") if hosts else returned

    async def _after_visits(self, once: Callable[[], Awaitable[T]]) -> tuple[T, list[str]]:
        """A request's result, after the user has visited the pages that it requires.

        Also returns the hosts of these pages. A request that requires pages has not begun, so
        sending it again runs it only once. Raises ServerError if a page is not opened.
        """
        from mcp.shared.exceptions import MCPError

        hosts = list[str]()
        for _ in range(_MOST_TRIES):
            try:
                with self._errors():
                    return await once(), hosts
            except MCPError as error:
                if error.code != _VISITS_REQUIRED:
                    raise
                try:
                    visits = required_visits(error.data)
                except ValueError as flaw:
                    raise ServerError(
                        f"{self._wish} a page that cannot be opened: {flaw}"
                    ) from error
            for page in visits:
                await self._visit(page)
                hosts.append(page.host)
        raise ServerError(f"{self._wish} pages again and again: {', '.join(hosts)}")

    @property
    def _wish(self) -> str:
        return f"MCP server '{self._settings.name}' asks for"

    async def _visit(self, page: Visit) -> None:
        """Ask the user to open a page; return when the user or the server reports that the page is
        done.
        """
        user, server = self._elicitor, self._settings.name
        if user is None:
            raise ServerError(
                f"{self._wish} a page on {page.host} to be opened in a browser first: {page.url}\n"
                f"It says: {page.message}\nWhen you are done there, ask again."
            )
        with self._signals.clock.paused():
            if await user.visit(server, page) != "accept":
                raise ServerError(
                    f"{self._wish} a page on {page.host} to be opened first. The user did not open it."
                )
            told = asyncio.ensure_future(self._signals.until_finished(page.id))
            done = asyncio.ensure_future(user.finish(server, page))
            try:
                await asyncio.wait({told, done}, return_when=asyncio.FIRST_COMPLETED)
                if not (told.done() or done.result()):
                    raise ServerError(
                        f"{self._wish} a page on {page.host} to be opened first. The user left it undone."
                    )
            finally:
                told.cancel()
                done.cancel()

    async def _listed(self, kind: Kind) -> AsyncIterator[dict[str, Any]]:
        """The definitions from all pages, up to a limit; none if the server does not offer this
        kind.
        """
        from mcp.shared.exceptions import MCPError

        client = self._client
        fetch: Callable[..., Awaitable[Any]] = {
            "tools": client.list_tools,
            "prompts": client.list_prompts,
            "resources": client.list_resources,
            "resource_templates": client.list_resource_templates,
        }[kind]
        cursor: str | None = None
        seen: set[str | None] = set()
        left = MOST_OFFERED
        while cursor not in seen:  # otherwise, a repeated cursor would make this loop endless
            if len(seen) == MOST_OFFERED:
                self._leave_out(f"all {kind} beyond the first {MOST_OFFERED} pages", kind)
                return
            seen.add(cursor)
            try:
                page = await fetch(cursor=cursor, cache_mode="refresh")
            except MCPError as error:
                if error.code == CONNECTION_CLOSED:
                    raise LostError(str(error)) from error
                if error.code == _METHOD_NOT_FOUND:
                    return
                raise
            definitions = getattr(page, kind)
            for definition in definitions[:left]:
                yield plain(definition)
            left -= len(definitions)
            if left < 0:
                self._leave_out(f"all {kind} beyond the first {MOST_OFFERED}", kind)
                return
            cursor = page.next_cursor
            if cursor is None:
                return

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from mcp.shared.exceptions import MCPError

        try:
            yield
        except SilentError:
            if self._settings.url is not None:
                self._signals.connection_lost()
            raise
        except MCPError as error:
            if isinstance(error.error.data, HttpRefusal) and error.error.data.is_lost_session:
                self._signals.connection_lost()
                raise NotBegunError(str(error)) from error
            if error.code not in _ANSWERS and self._settings.url is not None:
                self._signals.connection_lost()  # perhaps its session has expired
            if error.code == CONNECTION_CLOSED:
                raise LostError(str(error)) from error
            raise


def _task_support(definition: Mapping[str, Any]) -> object:
    """Whether a call of the tool may, must or cannot run as a task."""
    execution = definition.get("execution")
    return execution.get("taskSupport") if isinstance(execution, Mapping) else None


def _begun(result: Mapping[str, Any]) -> TaskState | None:
    """The task that was returned instead of a result; None for a result. Raises TaskError if the
    task is invalid.
    """
    try:
        return task_in(result)
    except ValueError as error:
        raise TaskError(
            f"its server returned an invalid task: {error}. The call may have run"
        ) from error


def _opened(hosts: Sequence[str]) -> str:
    """The line that precedes a repeated call's result."""
    return (
        f"[the user opened {', '.join(dict.fromkeys(hosts))} first, then the call was made again]\n"
    )
