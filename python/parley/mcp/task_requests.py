"""Begins, polls, answers, collects and cancels calls that run at their servers as tasks.

Knows the requests for both forms of tasks, which are not part of the SDK, but not how a result is
used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from parley.errors import ServerError
from parley.mcp.plain import plain
from parley.mcp.server_session import CONNECTION_CLOSED, HttpRefusal, SilentError
from parley.tools.server_settings import NEWEST
from parley.tools.tasks import EXTENSION, TaskState, is_of, state

if TYPE_CHECKING:
    from mcp import Client

_LIFE_MS = 24 * 3600 * 1000
"""How long a server should keep a result: overnight."""
_CANCEL_S = 1.0
_MOST_ANSWERS = 100
_NO_SUCH_TASK = -32602
_UNKNOWN = (_NO_SUCH_TASK, -32601)
"""Error codes for an unknown task, or a server without tasks; a failed call has a code of its
own.
"""


class TaskError(ServerError):
    """A server reports that a task failed, or that it does not know the task."""


class TaskRequests:
    """Task requests to one server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._is_newest = client.protocol_version == NEWEST

    @property
    def takes_calls(self) -> bool:
        """Whether calls may run as tasks; in the newest revision, the server decides this for each
        call.
        """
        tasks = None if self._is_newest else self._client.server_capabilities.tasks
        requests = tasks and tasks.requests
        return bool(requests and requests.tools and requests.tools.call is not None)

    async def begin(self, name: str, arguments: Mapping[str, Any], progress: Any) -> dict[str, Any]:
        """The answer to a request to run a call as a task."""
        parameters = {"name": name, "arguments": dict(arguments), "task": {"ttl": _LIFE_MS}}
        return await self._send("tools/call", parameters, progress)

    async def get(self, task_id: str) -> TaskState:
        """A task's state. Raises TaskError if there is no such task, and SilentError if the server
        does not report it.
        """
        return _state(await self._ask("tasks/get", {"taskId": task_id}), task_id)

    async def result_of(self, task: TaskState, tell: Callable[[str], None]) -> Mapping[str, Any]:
        """A call's result, after its task is over; `tell` receives the task's messages.

        Raises TaskError if there is no result, SilentError if the server does not report the task's
        state.
        """
        fetch: asyncio.Future[Mapping[str, Any]] | None = None
        answered = set[str]()
        try:
            while not task.is_over:
                if task.status != "unknown":  # an unknown status must not count as a report
                    tell(task.message)
                if task.status == "input_required" and self._is_newest:
                    await self._answer(task, answered)
                elif task.status == "input_required" and fetch is None:
                    # The server sends its requests in reply to this one.
                    fetch = asyncio.ensure_future(self._result(task.id))
                if fetch is None:
                    await asyncio.sleep(task.pause_s)
                elif (await asyncio.wait({fetch}, timeout=task.pause_s))[0]:
                    return fetch.result()
                task = await self.get(task.id)
            return await self._end(task)
        finally:
            if fetch:
                fetch.cancel()

    async def cancel(self, task_id: str) -> None:
        """Tell the server that the result is no longer wanted; the server may ignore it."""
        from mcp.shared.exceptions import MCPError

        capabilities = self._client.server_capabilities.tasks
        if self._is_newest or (capabilities and capabilities.cancel is not None):
            with suppress(MCPError, ServerError, TimeoutError):
                async with asyncio.timeout(_CANCEL_S):
                    await self._ask("tasks/cancel", {"taskId": task_id})

    async def _end(self, task: TaskState) -> Mapping[str, Any]:
        why = f": {task.message}" if task.message else ""
        if task.status == "cancelled":
            raise TaskError(f"its server cancelled it{why}")
        if not self._is_newest:
            return await self._result(task.id)
        if task.result is not None:
            return task.result
        raise TaskError(
            f"it failed: {task.error}" if task.error else f"it ended without a result{why}"
        )

    async def _result(self, task_id: str) -> Mapping[str, Any]:
        result = await self._ask("tasks/result", {"taskId": task_id})
        if not is_of(result, task_id):
            raise TaskError("its server returned the result of another task")
        return result

    async def _answer(self, task: TaskState, answered: set[str]) -> None:
        """Answer each of a task's requests once, like a server's other requests."""
        from mcp.client.session import ClientRequestContext
        from mcp_types import ElicitRequest, ErrorData, InputRequest
        from pydantic import TypeAdapter, ValidationError

        session, answers = self._client.session, dict[str, Any]()
        for key, question in list((task.requests or {}).items())[:_MOST_ANSWERS]:
            if key in answered:
                continue
            answered.add(key)
            try:
                request: Any = TypeAdapter[Any](InputRequest).validate_python(
                    question, by_name=False
                )
            except ValidationError as error:
                raise TaskError("the server sent an unknown request") from error
            context = ClientRequestContext(session=session, request_id=key, meta=None)
            answer = await session.dispatch_input_request(context, request)
            if isinstance(answer, ErrorData):
                if not isinstance(request, ElicitRequest):
                    raise TaskError(f"its request was not answered: {answer.message}")
                answers[key] = {"action": "cancel"}
            else:
                answers[key] = plain(answer)
        if answers:
            await self._ask("tasks/update", {"taskId": task.id, "inputResponses": answers})

    async def _ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        from mcp.shared.exceptions import MCPError

        try:
            return await self._send(method, parameters)
        except MCPError as error:
            refusal = error.error.data if isinstance(error.error.data, HttpRefusal) else None
            if error.code == CONNECTION_CLOSED or (refusal and refusal.is_lost_session):
                raise  # this does not concern the task
            if refusal or (method != "tasks/result" and error.code not in _UNKNOWN):
                raise SilentError(str(error)) from error
            if method == "tasks/result" and error.code != _NO_SUCH_TASK:
                raise TaskError(f"it failed: {error}") from error
            raise TaskError(
                f"its server no longer knows the task: {error}. The call may have run"
            ) from error

    async def _send(
        self, method: str, parameters: dict[str, Any], progress: Any = None
    ) -> dict[str, Any]:
        from mcp_types import Request
        from pydantic import TypeAdapter

        class Named(Request[dict[str, Any], str]):
            name_param = "taskId" if method.startswith("tasks/") else None

        request = Named(method=method, params=parameters)
        adapter: Any = TypeAdapter(dict[str, Any])
        result: Any = await self._client.session.send_request(
            request, adapter, progress_callback=progress
        )
        return dict(result)


def _state(result: Mapping[str, Any], task_id: str) -> TaskState:
    try:
        return state(result, task_id)
    except ValueError as error:
        raise TaskError(f"its server sent an invalid task state: {error}") from error


def extensions() -> list[Any]:
    """The capabilities that the SDK's client declares in the newest revision."""
    from mcp.client import ClientExtension, ResultClaim
    from mcp_types import CallToolResult, Result

    class TaskResult(Result):
        result_type: Literal["task"] = "task"

    async def resolve(*_: object) -> CallToolResult:
        raise TaskError(
            "its server returned a task that Parley does not recognize"
        )  # `as_result` has replaced all tasks

    class Tasks(ClientExtension):
        identifier = EXTENSION

        def claims(self) -> list[ResultClaim[Any]]:
            return [ResultClaim(result_type="task", model=TaskResult, resolve=resolve)]

    return [Tasks()]
