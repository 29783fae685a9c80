"""A turn's running calls, and the facts for their rows and for listeners. Pure.

Knows when each call began; Lua counts the seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parley.chat.transcript import Result
from parley.display.summary import legible_line, shown_line
from parley.engine import CallBegan, CallEnded, CallProgress, CallRefused
from parley.tools.catalogue import Tool
from parley.tools.command_results import command_failure


class RunningCalls:
    """The calls that a turn has begun; `now` is a clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._calls = dict[str, tuple[float, Tool, str]]()
        self._ended = set[str]()
        """The finished calls, whose results may not be in the text yet."""
        self._may_have_changed = False

    def __contains__(self, call_id: str) -> bool:
        """Whether a call has begun, or was refused."""
        return call_id in self._calls or call_id in self._ended

    def tools(self, server: str) -> list[str]:
        """The names of a server's running tools, without duplicates."""
        running = (tool for _, tool, _ in self._calls.values())
        return list(
            dict.fromkeys(legible_line(tool.name) for tool in running if tool.server == server)
        )

    def take_changes(self, *, at_end: bool = False) -> bool:
        """Whether files may have changed since the last time: a tool that does not only read was
        called. False while calls run, unless the turn is `at_end`.
        """
        if self._calls and not at_end:
            return False
        may_have_changed, self._may_have_changed = self._may_have_changed, False
        return may_have_changed

    def facts(
        self, what: CallBegan | CallProgress | CallEnded | CallRefused
    ) -> list[dict[str, Any]]:
        """The facts about a call for Lua: its id, its state, and details of the state."""
        match what:
            case CallBegan(proposal, tool):
                cannot_change = tool.only_reads or tool.unasked or proposal.ran_by == "provider"
                self._may_have_changed |= not cannot_change
                self._calls[proposal.call.id] = self._now(), tool, proposal.call.arguments
                return [{"id": proposal.call.id, "state": "running", **_names(tool)}]
            case CallProgress(tool, arguments, text):
                same = [name for name, call in self._calls.items() if call[1:] == (tool, arguments)]
                return [
                    {"id": name, "state": "running", "text": shown_line(text, None)}
                    for name in same
                ]
            case CallEnded(proposal, result):
                if proposal.call.id not in self._calls:
                    return []
                start, tool, _ = self._calls.pop(proposal.call.id)
                self._ended.add(proposal.call.id)
                state, seconds = (
                    "done" if _is_good(result) else "failed",
                    round(self._now() - start, 1),
                )
                return [
                    {"id": proposal.call.id, "state": state, "seconds": seconds, **_names(tool)}
                ]
            case CallRefused(proposal, _):
                self._ended.add(proposal.call.id)
                return [{"id": proposal.call.id, "state": "refused"}]


def _is_good(result: Result) -> bool:
    """Whether a call, and the command that it ran, succeeded."""
    return result.status == "ok" and not command_failure(result.body)


def _names(tool: Tool) -> dict[str, str]:
    return {"name": legible_line(tool.name), "server": legible_line(tool.server)}
