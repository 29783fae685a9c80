"""Sends requests to models that may not support tools: tries the provider's own tools first, and
retries failed calls.

The caller provides the function that sends a request; `models.attempts` decides how each retry
differs. While the process runs, this module remembers which models do not support tools.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from parley.chat.history import ModelTurn
from parley.errors import ModelError, reason_of
from parley.iterators import closing
from parley.models.attempts import Attempts, Preview, TryFailed
from parley.models.events import Aside, Call, Event, TextDelta
from parley.models.request import Request, TextTools
from parley.paths import private_file
from parley.text import counted

Send: TypeAlias = Callable[[Request], AsyncIterator[Event]]
Tell: TypeAlias = Callable[[str], None]

_REFUSALS = (
    "does not support tools",  # Ollama
    "does not support function calling",
    "no endpoints found that support tool use",  # OpenRouter
    "requires --enable-auto-tool-choice",  # vLLM
    "tools param requires --jinja",  # llama.cpp
)
"""Error messages of servers whose model or configuration does not support tools."""


async def _as_the_provider_says(_: Request) -> bool:
    """Assume that the model supports tools until the provider refuses them."""
    return True


class TextToolCaller:
    """Requests replies with tool calls from any model, whether or not it supports tools. One for
    each process.

    `records` is a file; for each reply that was corrected after failures, a line of JSON is
    appended to it. After `patience` characters, a reply is shown although it may still fail; None
    if text that was shown cannot be withdrawn. `has_tools` returns False for a request whose model
    is known not to support tools.
    """

    def __init__(
        self,
        attempts: Attempts,
        records: str | None = None,
        patience: int | None = None,
        *,
        has_tools: Callable[[Request], Awaitable[bool]] = _as_the_provider_says,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        luck: Callable[[], float] = random.random,
    ) -> None:
        self._attempts = attempts
        self._records = records
        self._patience = patience
        self._has_tools = has_tools
        self._sleep = sleep
        self._luck = luck
        self._without_tools = set[tuple[str, str]]()

    def settled(self, request: Request) -> Request:
        """The request, with tools as text if its model is known not to support tools."""
        text_tools = request.text_tools
        if text_tools is None or text_tools.mode != "auto":
            return request
        has_none = (
            request.provider,
            request.model,
        ) in self._without_tools or not text_tools.template.native
        return (
            replace(request, text_tools=replace(text_tools, mode="json")) if has_none else request
        )

    def stream(self, send: Send, request: Request, tell: Tell) -> AsyncIterator[Event]:
        """The model's events, through `send`. Raises ModelError, also if the last attempt fails."""
        request = self.settled(request)
        match request.text_tools:
            case None:
                return send(request)
            case TextTools(mode="auto") as text_tools:
                return self._native_first(send, request, text_tools, tell)
            case text_tools:
                return self._tries(send, request, text_tools, tell)

    async def _native_first(
        self, send: Send, request: Request, text_tools: TextTools, tell: Tell
    ) -> AsyncIterator[Event]:
        if not _is_about_tools(request) or await self._has_tools(request):
            try:
                async with closing(send(request)) as events:
                    async for event in events:
                        yield event
            except ModelError as error:
                if not _refuses_tools(error):
                    raise
            else:
                return
        self._without_tools.add((request.provider, request.model))
        yield Aside(
            f"{request.model} does not support tools, so Parley describes them in the prompt"
        )
        async with closing(
            self._tries(send, request, replace(text_tools, mode="json"), tell)
        ) as events:
            async for event in events:
                yield event

    async def _tries(
        self, send: Send, request: Request, text_tools: TextTools, tell: Tell
    ) -> AsyncIterator[Event]:
        attempts, failures, preview = self._attempts, list[TryFailed](), Preview(self._patience)
        while True:
            reply, preview = list[Event](), Preview(self._patience, preview.spent)
            next_try = replace(
                request,
                temperature=attempts.temperature(request.temperature),
                text_tools=replace(text_tools, errors=attempts.errors),
            )
            try:
                async with closing(send(next_try)) as events:
                    async for event in events:
                        reply.append(event)
                        for ready in preview.feed(event):
                            yield ready
            except TryFailed as failure:
                for ready in preview.failed():
                    yield ready
                failures.append(failure)
                attempts = _next_try(request, attempts, failure)
            except ModelError:
                for ready in preview.rest():
                    yield ready
                raise
            else:
                if notice := self._record(next_try, failures, reply):
                    yield Aside(notice)
                return
            tell(f"The tool call failed, retry {len(failures)} of {attempts.max_retries}...")
            await self._sleep(attempts.delay_s(self._luck()))

    def _record(self, request: Request, failures: list[TryFailed], events: list[Event]) -> str:
        """Record a corrected reply if the settings ask for it; returns a notice if that fails."""
        if not (self._records and failures):
            return ""
        calls = [event.call for event in events if isinstance(event, Call)]
        line: dict[str, Any] = {
            "provider": request.provider,
            "model": request.model,
            "mode": request.text_tools.mode if request.text_tools else None,
            "failed": [{"error": str(failure), "said": failure.text} for failure in failures],
            "corrected": {
                "said": "".join(event.text for event in events if isinstance(event, TextDelta)),
                "calls": [{"name": call.name, "arguments": call.arguments} for call in calls],
            },
        }
        try:
            path = Path(self._records).expanduser()
            path.parent.mkdir(parents=True, exist_ok=True)
            with private_file(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: no such home directory
            return f"prompt_tools.records: {self._records} cannot be written: {reason_of(error)}"
        return ""


def _is_about_tools(request: Request) -> bool:
    """Whether the request needs tools, either for new calls or so that the model understands past
    calls.
    """
    calls = (turn.calls for turn in request.turns() if isinstance(turn, ModelTurn))
    return request.offers_tools or any(calls)


def _refuses_tools(error: ModelError) -> bool:
    message = str(error).lower()
    return error.status is not None and any(phrase in message for phrase in _REFUSALS)


def _next_try(request: Request, attempts: Attempts, failure: TryFailed) -> Attempts:
    """The attempts with one more failure. Raises ModelError after the last."""
    attempts = attempts.after(str(failure))
    if not attempts.is_exhausted:
        return attempts
    count = len(attempts.errors)
    times = counted(count, "attempt")
    raise ModelError(
        f"{request.model} made no valid tool call in {times}; the last error: "
        f"{attempts.errors[-1]}. "
        "What to do: ask again, choose a larger model with :ParleyAgent, or set tool_mode to off",
        reason=f"no valid tool call in {times}",
    ) from failure
