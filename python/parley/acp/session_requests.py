"""The requests of one session of an agent for files and commands: which are answered at once, and
which become calls.

Decides nothing: the workspace says what needs no choice, and calls wait for the user.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from parley.acp.agent_process import AgentProcess
from parley.acp.client_request import (
    INVALID_PARAMS,
    NO_TURN,
    NOT_FOUND,
    AgentTerminal,
    ClientRequest,
    ClientTools,
    RefusedRequest,
)
from parley.acp.terminals import Terminals
from parley.chat.transcript import ToolCall
from parley.tools.client_calls import (
    CLIENT_TOOLS,
    MISSING_AS_EMPTY,
    ApprovedWork,
    ClientParamsError,
    arguments_text,
    client_arguments,
)

_UNAVAILABLE = RefusedRequest("this is not available in this chat now")
_NO_TURN = RefusedRequest(NO_TURN)
_FULL = RefusedRequest("too many terminals are open. Release one first")
_CREATE = "terminal/create"
_BECOME_CALLS = ("fs/read_text_file", "fs/write_text_file", _CREATE)
"""The requests on which the user decides."""


class SessionRequests:
    """Takes requests. `next_id` makes ids for calls and terminals."""

    def __init__(self, process: AgentProcess, next_id: Callable[[], str]) -> None:
        self.client: ClientTools | None = None
        """The workspace; None if the agent may ask for nothing."""
        self.approved = ApprovedWork()
        self.terminals = Terminals(next_id)
        self._process = process
        self._next_id = next_id
        self._order = asyncio.Lock()
        """Keeps requests in the order of their arrival."""

    def begin(self) -> None:
        """Forget what belongs to the last prompt."""
        self.approved.end_prompt()
        self.terminals.forget()

    async def take(
        self, method: str, params: Mapping[str, Any], is_open: Callable[[], bool]
    ) -> Mapping[str, Any] | RefusedRequest | ClientRequest:
        """The answer to a request, or the call that it becomes. `is_open` says whether the turn in
        which it arrived continues.
        """
        client, tool = self.client, CLIENT_TOOLS[method]
        if client is None or tool not in client.names:
            return _UNAVAILABLE
        if not is_open():
            return _NO_TURN
        if method not in _BECOME_CALLS:
            return await self.terminals.request(method, params)
        if method == _CREATE and self.terminals.is_full:
            return _FULL
        try:
            arguments = client_arguments(method, params, client.root, self._process.root)
            async with self._order:
                if not is_open():  # the turn ended while an earlier request was carried out
                    return _NO_TURN
                at_once = await client.at_once(tool, arguments, params, self.approved)
            if at_once is not None:
                return self._answer(at_once, is_open=is_open())
            call = ToolCall(self._next_id(), tool, arguments_text(arguments))
        except ClientParamsError as error:
            return RefusedRequest(str(error), INVALID_PARAMS)
        if not is_open():
            return _NO_TURN
        answer = asyncio.get_running_loop().create_future()
        return ClientRequest(call, params, client.root, answer, self.approved)

    def _answer(
        self, at_once: Mapping[str, Any] | RefusedRequest | AgentTerminal, *, is_open: bool
    ) -> Mapping[str, Any] | RefusedRequest:
        match at_once:
            case RefusedRequest(_, code):
                name = self._process.name.lower()
                is_empty = code == NOT_FOUND and any(word in name for word in MISSING_AS_EMPTY)
                return {"content": ""} if is_empty else at_once
            case Mapping():
                return at_once
        return self._opened(at_once, is_open=is_open)

    def answer_with(
        self, request: ClientRequest, terminal: AgentTerminal, *, is_open: bool
    ) -> None:
        """Give the agent a terminal whose command has begun."""
        opened = self._opened(terminal, is_open=is_open)
        if isinstance(opened, RefusedRequest):
            request.fail(opened.message)
        else:
            request.fulfil(opened)

    def _opened(
        self, terminal: AgentTerminal, *, is_open: bool
    ) -> Mapping[str, Any] | RefusedRequest:
        """Take a terminal; if the turn is over, its command ends."""
        if is_open:
            return self.terminals.add(terminal)
        terminal.end()
        return _NO_TURN
