"""The terminals of one session of an agent: the commands that run for it, and how they end.

Knows when a terminal ends, but not how its command runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from parley.acp.client_request import INVALID_PARAMS, AgentTerminal, RefusedRequest

MOST_TERMINALS = 20
"""The maximum number of terminals that the agent may have in a session at once."""
_NO_TERMINAL = RefusedRequest("there is no such terminal", INVALID_PARAMS)


class Terminals:
    """The terminals; `next_id` makes ids that the agent cannot guess."""

    def __init__(self, next_id: Callable[[], str]) -> None:
        self._next_id = next_id
        self._open = dict[str, AgentTerminal]()
        self._released = dict[str, AgentTerminal]()
        """Terminals that the agent no longer needs, but whose output its calls may show."""

    @property
    def is_full(self) -> bool:
        """Whether the agent has to release a terminal first."""
        return len(self._open) >= MOST_TERMINALS

    def add(self, terminal: AgentTerminal) -> Mapping[str, Any]:
        """Add a terminal; returns the result of `terminal/create`."""
        name = self._next_id()
        self._open[name] = terminal
        return {"terminalId": name}

    async def request(
        self, method: str, params: Mapping[str, Any]
    ) -> Mapping[str, Any] | RefusedRequest:
        """The result of a request for one terminal."""
        name = params.get("terminalId")
        terminal = self._open.get(name) if isinstance(name, str) else None
        match method:
            case _ if terminal is None or not isinstance(name, str):
                return _NO_TERMINAL
            case "terminal/output":
                return terminal.output()
            case "terminal/wait_for_exit":
                return await terminal.wait()
            case "terminal/release":
                self._release(name)
            case _:
                terminal.end()
        return {}

    def _release(self, name: str) -> None:
        terminal = self._released[name] = self._open.pop(name)
        terminal.end()
        if len(self._released) > MOST_TERMINALS:
            self._released.pop(next(iter(self._released)))

    def text(self, name: str) -> str:
        """The output of a terminal, for a call that shows it; "" for an unknown one."""
        terminal = self._open.get(name) or self._released.get(name)
        return str(terminal.output()["output"]) if terminal else ""

    def end(self) -> None:
        """Begin to end all commands, because the turn has ended; the agent can no longer use
        them."""
        for terminal in self._open.values():
            terminal.end()
        self._released |= self._open
        self._open = {}

    def forget(self) -> None:
        """Forget the outputs of earlier turns."""
        self._released.clear()

    async def closed(self) -> None:
        """Wait until all commands have ended, and their changes are recorded."""
        for terminal in list(self._released.values()):
            await terminal.outcome()
