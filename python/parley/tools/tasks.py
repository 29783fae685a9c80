"""MCP servers' tasks as values: calls that continue on their servers, which Parley polls.

Works on results as JSON, in both existing forms: revision 2025-11-25, and the extension
`io.modelcontextprotocol/tasks` of 2026-07-28. Knows no SDK.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

from parley.frozen import frozen
from parley.text import size_text

EXTENSION = "io.modelcontextprotocol/tasks"
LONGEST_ID = 4_096
ORIGIN = "parley/origin"
"""The key for a call's origin in a request's `_meta`."""
COLLECT = "Its result will be collected when the turn continues"
"""Appended to messages about a call that is still running on its server when a turn ends."""
_LEAST_PAUSE_S = 0.05
_PAUSE_S = 1.0
_MOST_PAUSE_S = 60.0

Status: TypeAlias = Literal[
    "working", "input_required", "completed", "failed", "cancelled", "unknown"
]
_STATUSES: tuple[Status, ...] = ("working", "input_required", "completed", "failed", "cancelled")


async def _nobody(_: str) -> None:
    pass


class TaskHandle:
    """One run of a call: its origin, and the id of the task that runs it; "" before one begins."""

    def __init__(
        self, task_id: str = "", on_begin: Callable[[str], Awaitable[None]] = _nobody
    ) -> None:
        """`on_begin` receives the id of a task that begins."""
        self.id = task_id
        self.origin: Mapping[str, str] = {}
        """Where the call comes from. Sent as `_meta`, but only to Parley's own servers in this
        process, which need it to bind and record changes."""
        self._on_begin = on_begin

    async def begin(self, task_id: str) -> None:
        """Note that the server has begun a task."""
        self.id = task_id
        await self._on_begin(task_id)


@frozen
class TaskState:
    """A task as its server describes it; any other status becomes "unknown".

    Only in the newer form, `result` and `error` are set when the task has ended, and `requests`
    when it waits for answers.
    """

    id: str
    status: Status
    message: str = ""
    pause_s: float = _PAUSE_S
    """Seconds until the next poll."""
    requests: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the task has ended."""
        return self.status in ("completed", "failed", "cancelled")


def as_result(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """If a server sent a task instead of a call's result, this task as a result; None for a real
    result.
    """
    if result.get("resultType") == "task":
        task: object = {
            key: value for key, value in result.items() if key not in ("_meta", "resultType")
        }
    else:
        task = None if "content" in result else result.get("task")
    if not isinstance(task, Mapping):
        return None
    return {"resultType": "complete", "content": [], "_meta": {"parley/task": dict(task)}}


def task_in(result: Mapping[str, Any]) -> TaskState | None:
    """The task in a result of `as_result`; None for any other result. Raises ValueError."""
    match result.get("_meta"):
        case {"parley/task": dict(task)}:
            return state(task)
        case _:
            return None


def state(task: Mapping[str, Any], expected: str = "") -> TaskState:
    """A task as a server describes it. Raises ValueError if the task is invalid or unexpected."""
    match task:
        case {"taskId": str(task_id), "status": str(status)} if task_id:
            pass
        case _:
            raise ValueError("it has no id, or no status")
    if len(task_id) > LONGEST_ID:
        raise ValueError(f"its id is {size_text(len(task_id))} long")
    if expected and task_id != expected:
        raise ValueError("it is another task")
    message, requests, result = (
        task.get("statusMessage"),
        task.get("inputRequests"),
        task.get("result"),
    )
    return TaskState(
        task_id,
        next((known for known in _STATUSES if known == status), "unknown"),
        message if isinstance(message, str) else "",
        _pause(task.get("pollIntervalMs", task.get("pollInterval"))),
        requests if isinstance(requests, Mapping) else None,
        result if isinstance(result, Mapping) else None,
        _error(task.get("error")),
    )


def is_of(result: Mapping[str, Any], task_id: str) -> bool:
    """Whether a result may belong to this task: if it contains a task's id, it must be this task's
    id.
    """
    match result.get("_meta"):
        case {"io.modelcontextprotocol/related-task": {"taskId": other}}:
            return bool(other == task_id)
        case _:
            return True


def _pause(milliseconds: object) -> float:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return _PAUSE_S
    if not milliseconds < _MOST_PAUSE_S * 1000:  # or it is NaN
        return _MOST_PAUSE_S
    return max(milliseconds, _LEAST_PAUSE_S * 1000) / 1000


def _error(error: object) -> str:
    match error:
        case {"message": str(message)}:
            return message
        case _:
            return ""
