"""One chat's session with an agent: its prompt, its updates, and the permissions that wait.

A reply ends when the agent asks for permission, or for a file or a command; the prompt stays open
until the agent ends its turn. Nothing here decides: calls are answered only by `answer`, `serve` and
`dismiss`.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from parley.acp.agent_process import AgentProcess
from parley.acp.client_request import AgentTerminal, ClientRequest, RefusedRequest
from parley.acp.permission_request import CANCELLED, PermissionRequest
from parley.acp.session_options import SessionOptions
from parley.acp.session_requests import SessionRequests
from parley.chat.transcript import ToolCall
from parley.errors import ModelError
from parley.models.acp import CALLS, DECLINED, RAN, STOP, UPDATE, ConversationDigest, Decoder
from parley.models.agent_records import AgentRecords, AskedCallEnded, RanByAgent, size_of
from parley.models.events import Event, Finished, joined
from parley.tools.agent_calls import NOT_AWAITED, with_existing
from parley.tools.client_calls import ApprovedChange, ApprovedCommand
from parley.tools.passed_servers import PassedServers
from parley.tools.results import Outcome

MOST_QUEUED = 4_000_000
"""The maximum number of characters in the updates that no reply has taken yet."""
MOST_PERMISSIONS = 50
"""The maximum number of a session's waiting calls; further calls are cancelled."""
TOGETHER_S = 0.02
"""Permissions that arrive within this time belong to one reply."""
AFTER_S = 0.3
"""How long Parley waits for an approved call's outcome after the agent asks about another call."""
LONG_S = 1.0
"""The seconds between two looks at the calls that run. A call that runs at both is shown before it
ends; earlier, the agent may still ask."""
SILENT_S = 1800.0
"""The time limit for an agent that sends nothing during its turn."""
CANCEL_S = 10.0

NOT_ONCE = (
    "The agent offers no way to allow only this call, so this call was cancelled and did not run."
)
STILL_RUNNING = "The agent runs this call, and asked about another call before this one ended."
ASKED_LATER = "The agent asked about this call later."
UNASKED = "The agent ran this call without waiting for the user's choice."
NO_OUTCOME = "The agent ended its turn without reporting the call's outcome."
TOO_MUCH = "The agent sent too much before this call's outcome."
_TOO_MANY = "too many requests wait for the user"


class AgentSession:
    """A session of a chat. `next_id` makes ids for calls."""

    def __init__(self, process: AgentProcess, next_id: Callable[[], str], max_bytes: int) -> None:
        self.id = ""
        self.process = process
        self.digest = ""
        """The digest of the conversation that the agent knows; "" if that is unknown."""
        self.servers = PassedServers()
        """The MCP servers that the agent may start itself."""
        self.question = ""
        """The digest of the conversation up to the open prompt's question."""
        self.asked_calls: frozenset[str] = frozenset()
        """The calls that ended the last reply."""
        self.options = SessionOptions(process, lambda: self.is_open)
        self.requests = SessionRequests(process, next_id)
        self._commands = set[str]()
        """The calls whose commands run in terminals."""
        self._next_id = next_id
        self._max_bytes = max_bytes
        self._records = self._no_records()
        self._queue: deque[tuple[Mapping[str, Any], int]] = deque()
        self._queued = 0
        self._waiting: dict[str, PermissionRequest | ClientRequest] = {}
        self._new: list[str] = []
        """The calls that no reply has contained yet."""
        self._early: dict[str, Outcome] = {}
        """The outcomes of calls that ran although their permission still waits."""
        self._outcomes: dict[str, asyncio.Future[Outcome]] = {}
        self._prompt: asyncio.Task[Any] | None = None
        self._is_cancelled = self._is_lost = self._was_declined = False
        self._news = asyncio.Event()
        self._heard_at = 0.0
        """When the agent last sent a message about this session, on the loop's clock."""

    def _no_records(self) -> AgentRecords:
        return AgentRecords(self._next_id, self._max_bytes, self.requests.terminals.text)

    # --- The session ------------------------------------------------------------------------------

    async def open(self, known: str) -> bool:
        """Open the known session, or else a new session; returns whether it is the known session.
        Raises ModelError.
        """
        if known and await self._reopened(known):
            return True
        response = await self.process.request("session/new", self._place())
        self._begin(response.get("sessionId") if isinstance(response, dict) else None)
        self.options.begin(self.id, response)
        return False

    async def _reopened(self, known: str) -> bool:
        capabilities = self.process.capabilities
        more = capabilities.get("sessionCapabilities")
        can_resume = isinstance(more, dict) and more.get("resume") is not None
        if not can_resume and capabilities.get("loadSession") is not True:
            return False
        self._begin(known)
        try:
            response = await self.process.request(
                "session/resume" if can_resume else "session/load",
                {"sessionId": known, **self._place()},
            )
        except BaseException as error:
            self.process.sessions.pop(known, None)  # the chat's next session may have this id
            self.id = ""
            if isinstance(error, ModelError) and not self.process.is_over:
                return False
            raise
        self.options.begin(self.id, response)
        return True

    def _place(self) -> dict[str, Any]:
        servers, _ = self.servers.accepted(self.process.capabilities)
        return {"cwd": str(self.process.root), "mcpServers": servers}

    def _begin(self, session_id: object) -> None:
        if not isinstance(session_id, str) or not session_id or len(session_id) > 1000:
            raise ModelError("the agent began a session without an id", reason="no session")
        other = self.process.sessions.get(session_id)
        if other is not None and other is not self:
            raise ModelError("the agent began two sessions with one id", reason="no session")
        self.id = session_id
        self.process.sessions[session_id] = self

    # --- The prompt -------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the agent's turn is still open."""
        return self._prompt is not None and not self._is_cancelled and not self._is_lost

    def begin(self, blocks: list[dict[str, Any]]) -> None:
        """Send a prompt; its reply follows."""
        self._clear()
        self._is_cancelled, self.digest, self.asked_calls = False, "", frozenset()
        self._was_declined = False
        self.requests.begin()
        params = {"sessionId": self.id, "prompt": blocks}
        self._prompt = asyncio.ensure_future(self.process.request("session/prompt", params, None))
        self._prompt.add_done_callback(self._ended)
        self.options.check_mode()  # it may have changed before the prompt was open

    async def reply(
        self, provider: str, model: str, digest: ConversationDigest
    ) -> AsyncIterator[Event]:
        """Yield the reply's events, until the agent asks for permission or ends its turn. Closing
        the iterator earlier cancels the prompt. Raises ModelError.
        """
        decoder, is_complete = Decoder(provider, model), False
        self._hear()  # while the user decided, the agent had to wait
        try:
            while not decoder.is_over:
                payloads = await self._next()
                for event in joined(decoder.read(payloads)):
                    digest.feed(event)
                    if isinstance(event, Finished):
                        is_complete = True
                        if event.reason != "tool_calls":
                            self.digest, self._prompt = digest.text(), None
                            self._clear()
                    yield event
        finally:
            if not is_complete:  # the agent knows what it has said, so the session can continue
                self.cancel()
                self.digest = digest.text()

    async def _next(self) -> list[Mapping[str, Any]]:
        """The next payloads; waits for one. Raises ModelError if the agent is silent or gone."""
        while not (self._queue or self._new or (self._prompt and self._prompt.done())):
            self._news.clear()
            if await self._is_news_within(LONG_S):
                continue
            if begun := list(self._records.begun()):
                return [{RAN: each} for each in begun]
            if asyncio.get_running_loop().time() - self._heard_at > SILENT_S:
                raise ModelError(
                    f"the agent sent nothing for {SILENT_S / 60:g} minutes, so Parley cancelled its "
                    "prompt. Ask again",
                    reason="a silent agent",
                )
        if self._new:
            await asyncio.sleep(TOGETHER_S)
            payloads, new = self._take_payloads(), self._new
            self._new = []
            calls = [self._waiting[each].call for each in new if each in self._waiting]
            calls = await asyncio.to_thread(_with_existing_files, calls)
            self.asked_calls = frozenset(call.id for call in calls)
            return [*payloads, {CALLS: calls}] if calls else payloads
        return self._take_payloads() if self._queue else self._last()

    async def _is_news_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._news.wait()
        except TimeoutError:
            return False

    def _last(self) -> list[Mapping[str, Any]]:
        """The payloads at the end of the prompt. Raises ModelError."""
        assert self._prompt is not None
        self._withdraw()
        response = self._prompt.result()
        rest = [{RAN: each} for each in self._records.unfinished()]
        return [*rest, {STOP: response, DECLINED: self._was_declined}]

    def _take_payloads(self) -> list[Mapping[str, Any]]:
        payloads = [payload for payload, _ in self._queue]
        self._queue.clear()
        self._queued = 0
        self.process.resume()
        return payloads

    def cancel(self) -> None:
        """Cancel the prompt, if it is open, and all permissions that wait."""
        if self._prompt is not None and not self._prompt.done() and not self._is_cancelled:
            self._is_cancelled = True
            self.process.notify("session/cancel", {"sessionId": self.id})
        self._clear()

    async def settled(self) -> None:
        """Wait until the agent has reacted to the cancellation of its prompt; end an agent that
        does not react.
        """
        if self._prompt is None:
            return
        done, _ = await asyncio.wait({self._prompt}, timeout=CANCEL_S)
        if not done:
            self.process.end()
            self._prompt.cancel()
        self._prompt = None

    def _clear(self) -> None:
        self._withdraw()
        self._queue.clear()
        self._queued = 0
        self._early.clear()
        self._records = self._no_records()  # they may be large
        self.process.resume()
        self._news.set()

    def _withdraw(self) -> None:
        """Cancel the permissions that wait, and end the waits for outcomes."""
        waiting, self._waiting = self._waiting, {}
        for call_id in self._new:  # no reply will contain these calls
            if early := self._early.pop(call_id, None):
                self._report(waiting[call_id].call, early)
        for permission in waiting.values():
            permission.cancel()
        self._new = []
        self.requests.terminals.end()
        outcomes, self._outcomes = self._outcomes, {}
        for call_id, outcome in outcomes.items():
            if not outcome.done() and call_id not in self._commands:  # a command's end comes soon
                outcome.set_result(Outcome("error", NO_OUTCOME))

    def _ended(self, prompt: asyncio.Task[Any]) -> None:
        if not prompt.cancelled():
            prompt.exception()  # the reply reports it, if there still is one
        if prompt is self._prompt:
            self._withdraw()
            self._news.set()

    # --- What the agent sends ---------------------------------------------------------------------

    def is_full(self) -> bool:
        """Whether the session can keep no more updates until a reply takes some of them."""
        return self._queued > MOST_QUEUED

    def lose(self) -> None:
        """React to the end of the process."""
        self._is_lost = True
        self._withdraw()
        if self._prompt is None:
            self._clear()
        self._news.set()

    def _hear(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()

    def update(self, update: Mapping[str, Any]) -> None:
        """Receive an update; an update outside of a prompt is not part of any reply."""
        self._hear()
        match update.get("sessionUpdate"):
            case "tool_call" | "tool_call_update" if self._takes_updates:
                self._note_call(update)
            case "agent_message_chunk" | "agent_thought_chunk" | "plan" | "usage_update":
                if self._takes_updates:
                    self._put({UPDATE: update}, size_of(update))
            case _:
                self.options.update(update)

    @property
    def _takes_updates(self) -> bool:
        is_prompting = self._prompt is not None and not self._prompt.done()
        return is_prompting and not self._is_cancelled

    def _put(self, payload: Mapping[str, Any], size: int) -> None:
        self._queue.append((payload, size))
        self._queued += size
        self._news.set()
        if self.is_full():
            for outcome in self._outcomes.values():  # nothing takes updates during a call
                if not outcome.done():
                    outcome.set_result(Outcome("error", TOO_MUCH))

    def _note_call(self, update: Mapping[str, Any]) -> None:
        match self._records.take(update):
            case RanByAgent() as ran:
                self._put({RAN: ran}, len(ran.call.arguments) + len(ran.outcome.text))
            case AskedCallEnded(ids, outcome, begun):
                if begun is not None:
                    self._put({RAN: RanByAgent(begun, Outcome("ok", ASKED_LATER), True)}, 100)
                for each in ids:
                    self._note_outcome(each, outcome)
            case None:
                pass

    def _note_outcome(self, call_id: str, outcome: Outcome) -> None:
        if call_id in self._waiting:  # it ran, although the user has not decided
            self._early[call_id] = Outcome(
                "error", f"{UNASKED}\n{outcome.text}", outcome.pictures, outcome.whole
            )
        elif (future := self._outcomes.get(call_id)) and not future.done():
            future.set_result(outcome)

    # --- Permissions ------------------------------------------------------------------------------

    async def ask(self, params: Mapping[str, Any]) -> Any:
        """The result of a permission request, when the user has decided; otherwise cancelled."""
        self._hear()
        call, options = params.get("toolCall"), params.get("options")
        if not isinstance(call, dict) or not isinstance(options, list) or not self._takes_updates:
            return CANCELLED
        if len(self._waiting) >= MOST_PERMISSIONS:
            return CANCELLED
        made = self._records.ask(call)
        if made is None:
            return CANCELLED
        permission = PermissionRequest(made, options, asyncio.get_running_loop().create_future())
        self._wait_for(made, permission)
        return await permission.answer

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request for a file or a command, perhaps after the user has decided; or a
        RefusedRequest."""
        self._hear()
        prompt = self._prompt

        def is_open() -> bool:
            return prompt is self._prompt and self._takes_updates

        made = await self.requests.take(method, params, is_open)
        if not isinstance(made, ClientRequest):
            return made
        if len(self._waiting) >= MOST_PERMISSIONS:
            return RefusedRequest(_TOO_MANY)
        self._wait_for(made.call, made)
        return await made.answer

    def _wait_for(self, call: ToolCall, request: PermissionRequest | ClientRequest) -> None:
        self._waiting[call.id] = request
        self._new.append(call.id)
        self._news.set()

    def awaits(self, call_id: str) -> bool:
        """Whether the agent still waits for the user's choice on this call."""
        return call_id in self._waiting or call_id in self._early

    def dismiss(self, reasons: Mapping[str, str]) -> None:
        """Tell the agent that the calls with these ids must not run, and why."""
        for call_id, why in reasons.items():
            permission, early = self._waiting.pop(call_id, None), self._early.pop(call_id, None)
            if permission:
                permission.reject(why)
                self._was_declined = True
            if permission and early:
                self._report(permission.call, early)

    def _report(self, call: ToolCall, early: Outcome) -> None:
        """Let the file say that a call ran although the user did not allow it."""
        ran = replace(call, id=self._next_id())
        self._put({RAN: RanByAgent(ran, early)}, len(early.text))

    async def serve(
        self, call_id: str, work: Callable[[ClientRequest], Awaitable[Outcome | AgentTerminal]]
    ) -> Outcome | None:
        """Carry out the request that became this call; None if there is no such request."""
        request, prompt = self._waiting.get(call_id), self._prompt
        if not isinstance(request, ClientRequest):
            return None
        del self._waiting[call_id]
        try:
            made = await work(request)
            if isinstance(made, Outcome):
                return made
            is_open = prompt is self._prompt and self._takes_updates
            self.requests.answer_with(request, made, is_open=is_open)
            return await self._command_outcome(call_id, made)
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            request.cancel()  # it has an answer, unless the work failed

    async def answer(
        self,
        call_id: str,
        changes: Sequence[ApprovedChange] = (),
        commands: Sequence[ApprovedCommand] = (),
    ) -> Outcome:
        """Allow a call, and wait for its outcome. The user has approved these changes and commands
        with it."""
        permission, early = self._waiting.pop(call_id, None), self._early.pop(call_id, None)
        if early:
            if permission:
                permission.cancel()
            return early
        if not isinstance(permission, PermissionRequest):
            return Outcome("error", NOT_AWAITED)
        future = asyncio.get_running_loop().create_future()
        self._outcomes[call_id] = future
        try:
            if not permission.approve():
                return Outcome("error", NOT_ONCE)
            self.requests.approved.changes += changes
            self.requests.approved.commands += commands
            return await self._outcome(future)
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            self._outcomes.pop(call_id, None)

    async def _command_outcome(self, call_id: str, terminal: AgentTerminal) -> Outcome:
        """The outcome of a command, unless the agent asks about another call before its end."""
        ending = asyncio.ensure_future(terminal.outcome())
        future = self._outcomes[call_id] = asyncio.get_running_loop().create_future()
        self._commands.add(call_id)

        def note(_: asyncio.Task[Outcome]) -> None:
            self._commands.discard(call_id)
            if future.done() or ending.cancelled():
                return
            if error := ending.exception():
                future.set_exception(error)
            else:
                future.set_result(ending.result())

        ending.add_done_callback(note)
        try:
            return await self._outcome(future)
        finally:
            self._outcomes.pop(call_id, None)

    async def _outcome(self, future: asyncio.Future[Outcome]) -> Outcome:
        """The outcome of an allowed call, or the reason why there is none."""
        while not future.done():
            self._news.clear()
            if self._new:  # the agent may wait for that choice before it ends this call
                with suppress(TimeoutError):
                    async with asyncio.timeout(AFTER_S):
                        return await asyncio.shield(future)
                return Outcome("ok", STILL_RUNNING)
            news = asyncio.ensure_future(self._news.wait())
            waits: set[asyncio.Future[Any]] = {future, news}
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
        return future.result()


def _with_existing_files(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """These calls, with marks for the files that exist now."""
    exists = os.path.lexists
    return [replace(c, arguments=with_existing(c.arguments, exists)) for c in calls]
