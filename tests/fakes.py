"""A turn without the outside world: a document in memory, a scripted model, tools that keep a log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from parley.chat.transcript import Choice, Result, ToolCall, Transcript
from parley.engine import (
    ChatSettings,
    ChoiceMade,
    End,
    Narrow,
    Ports,
    Press,
    Resolve,
    TurnEvent,
    choose,
    guidance,
    regenerating,
    run_turn,
)
from parley.models.events import Call, Event, Finished, TextDelta
from parley.models.fingerprint import fingerprint
from parley.models.request import Request
from parley.policy.approval import CallKey
from parley.policy.choice import Scope
from parley.policy.rules import Rules
from parley.policy.turn_limits import Limits
from parley.storage.chat_file import TextDocument
from parley.storage.ledger import ChatLedger
from parley.tools.catalogue import Catalogue, Tool, canonical
from parley.tools.tasks import TaskHandle
from tests.defaults import CHAT_SETTINGS, limits_with
from tests.ledgers import open_ledger

T = TypeVar("T")
ScriptStep = Event | BaseException | Callable[[], None]
"""A step of a reply: an event, a failure, or something that happens during the reply."""


class CrashError(BaseException):
    """Simulates the death of the process at this point."""


class ScriptedModel:
    """Gives its replies one after another, and keeps the requests."""

    def __init__(self, *replies: Sequence[ScriptStep]) -> None:
        self.replies = [list(reply) for reply in replies]
        self.asks = list[Request]()
        self.closed = 0

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.asks.append(request)
        assert self.replies, "asked once more than the script has replies"
        try:
            for step in self.replies.pop(0):
                if isinstance(step, BaseException):
                    raise step
                if callable(step):
                    step()
                else:
                    yield step
        finally:
            self.closed += 1


class RecordingModel(ScriptedModel):
    """Records its requests, like the port for real models."""

    ledger: ChatLedger

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        async for event in super().stream(request):
            yield event
        mark = fingerprint(request, guidance(request.catalogue))
        self.ledger.hold_request(mark.digest, canonical(mark.header), mark.units)


def says(text: str) -> list[ScriptStep]:
    """A reply in prose."""
    return [TextDelta(text), Finished("complete")]


def calls(*tool_calls: ToolCall, text: str = "") -> list[ScriptStep]:
    """A reply with calls."""
    prose: list[ScriptStep] = [TextDelta(text)] if text else []
    return [*prose, *map(Call, tool_calls), Finished("tool_calls")]


class LoggedTools:
    """Tools with predefined results; `log` contains the calls that reached them."""

    def __init__(
        self,
        catalogue: Catalogue,
        results: Mapping[str, Result | Callable[[str], Result]] | None = None,
    ) -> None:
        self.offered = catalogue
        self.results = dict(results or {})
        self.log = list[tuple[str, str]]()
        self.listed = list[str]()

    async def catalogue(self, narrow: Narrow, calls: Sequence[str]) -> Catalogue:
        return self.offered

    def go_without(self) -> None:
        pass

    async def resources(self, server: str) -> Sequence[str]:
        self.log.append((f"resources of {server}", ""))
        return self.listed

    async def call(self, tool: Tool, key: CallKey, request: Request, task: TaskHandle) -> Result:
        self.log.append((tool.name, key.arguments))
        result = self.results.get(tool.name, Result("ok", "fine"))
        return result(key.arguments) if callable(result) else result


@dataclass
class FakeClock:
    """A clock that tests set. Work runs in order, and is cut off if it would take too long."""

    time: float = 0.0
    limits: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    async def together(
        self, work: Sequence[Callable[[], Awaitable[T]]], limit_s: float
    ) -> AsyncIterator[T]:
        self.limits.append(limit_s)
        end = self.time + limit_s
        for job in work:
            outcome = await job()
            if self.time > end:
                return
            yield outcome


@dataclass
class FakeObserver:
    """A list of everything that a turn reports."""

    statuses: list[str] = field(default_factory=list)
    events: list[TurnEvent] = field(default_factory=list)

    def status(self, text: str) -> None:
        self.statuses.append(text)

    def on_event(self, what: TurnEvent) -> None:
        self.events.append(what)


class Turns:
    """A chat that continues as if a user acted: `run` is the respond key, `press` a choice key."""

    def __init__(
        self,
        text: str,
        model: ScriptedModel,
        tools: LoggedTools,
        *,
        anchor: int | None = None,
        ledger: ChatLedger | None = None,
        limits: Limits | None = None,
        rules: Rules | None = None,
        scope: Scope = CHAT_SETTINGS.scope,
        parallel: bool = CHAT_SETTINGS.parallel,
        timeout_s: float = CHAT_SETTINGS.timeout_s,
        provider: str = "anthropic",
        model_name: str = "claude-sonnet-5-5",
    ) -> None:
        self.document = TextDocument(text, 10**6 if anchor is None else anchor)
        self.model, self.tools = model, tools
        self.clock, self.observer = FakeClock(), FakeObserver()
        self.ledger = ledger or open_ledger().chat("chat.md")
        self.ports = Ports(self.document, model, tools, self.ledger, self.clock, self.observer)

        def resolve(transcript: Transcript) -> ChatSettings:
            return ChatSettings(
                agent="Demo",
                request=Request(transcript, 0, provider, model_name, system="Be brief."),
                limits=limits or limits_with(),
                rules=rules or Rules(),
                tools=lambda catalogue: catalogue,
                scope=scope,
                parallel=parallel,
                timeout_s=timeout_s,
                result_max_bytes=CHAT_SETTINGS.result_max_bytes,
            )

        self.resolve: Resolve = resolve

    @property
    def text(self) -> str:
        return self.document.text

    async def run(self) -> End:
        return await run_turn(self.ports, self.resolve)

    async def regenerate(self) -> End:
        """Regenerate the answer in the current exchange."""
        return await run_turn(regenerating(self.ports, "Demo"), self.resolve)

    async def press(self, key: Choice, on: str = "❓", reason: str = "") -> ChoiceMade:
        """Press a choice key on the last line that contains a text."""
        line = max(n for n, text in enumerate(self.document.lines) if on in text)
        return await choose(self.ports, self.resolve, line, Press(key, "key", reason))

    def edit(self, change: Callable[[str], str]) -> None:
        """Edit the text as a user would."""
        self.document.lines = change(self.text).split("\n")[:-1]

    def ask(self, question: str) -> None:
        """Type a question into the empty one at the end, and put the cursor there."""
        assert self.text.endswith("💬: \n")
        self.edit(lambda text: f"{text[:-1]}{question}\n")
        self.document.anchor = 10**6
