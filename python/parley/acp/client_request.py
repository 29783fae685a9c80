"""A request of an agent to read or write a file or to run a command, and its answers.

Pure, except for the future that the agent's request waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from parley.chat.transcript import ToolCall
from parley.frozen import frozen
from parley.tools.client_calls import ApprovedWork
from parley.tools.results import Outcome

INVALID_PARAMS = -32602
NOT_FOUND = -32002
NOT_ALLOWED = -32001
FAILED = -32603
"""Codes of JSON-RPC errors; -32000 would ask for a sign-in."""
NO_TURN = "there is no open turn, so Parley accepts no request"
CANCELLED_REQUEST = "the request was cancelled and did not run, because the turn has ended"
REFUSED = "the user did not allow this"


@frozen
class RefusedRequest:
    """The answer to a request that Parley does not carry out."""

    message: str
    code: int = FAILED


class AgentTerminal(Protocol):
    """A command that runs for an agent."""

    def output(self) -> Mapping[str, Any]:
        """The result of `terminal/output`."""
        ...

    async def wait(self) -> Mapping[str, Any]:
        """The result of `terminal/wait_for_exit`, when the command has ended."""
        ...

    def end(self) -> None:
        """Begin to end the command with its processes."""
        ...

    async def outcome(self) -> Outcome:
        """The outcome of the command for the chat, when all is done."""
        ...


@frozen
class ClientRequest:
    """The call that a request became, its root, the future of the answer, and what the user has
    approved for the session."""

    call: ToolCall
    params: Mapping[str, Any]
    root: Path
    answer: asyncio.Future[Any]
    approved: ApprovedWork

    def fulfil(self, result: Mapping[str, Any]) -> None:
        """Answer with a result."""
        if not self.answer.done():
            self.answer.set_result(result)

    def fail(self, why: str, code: int = FAILED) -> None:
        """Answer with an error."""
        if not self.answer.done():
            self.answer.set_result(RefusedRequest(why, code))

    def reject(self, why: str = "") -> None:
        """Tell the agent that the user or a rule declined, or the result of the call."""
        self.fail(why or REFUSED, NOT_ALLOWED)

    def cancel(self) -> None:
        """Withdraw the call."""
        self.fail(CANCELLED_REQUEST, NOT_ALLOWED)


class ClientTools(Protocol):
    """The workspace, as the client of an agent."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the workspace's tools that this chat may use."""
        ...

    @property
    def root(self) -> Path:
        """The workspace's root."""
        ...

    async def at_once(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        params: Mapping[str, Any],
        approved: ApprovedWork,
    ) -> Mapping[str, Any] | RefusedRequest | AgentTerminal | None:
        """The answer to a request that needs no choice, because Parley cannot carry it out, or
        because the user has already approved exactly this; None for any other request.
        """
        ...
