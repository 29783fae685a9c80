"""Ports of the loop: what it needs from the world, implemented for Neovim, files and tests."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, TypeAlias, TypeVar

from parley.chat.edits import Edit
from parley.chat.reader import parse_lines, split_lines
from parley.chat.references import Reference, ReferenceText
from parley.chat.transcript import (
    Answer,
    Attachment,
    Exchange,
    Proposal,
    Result,
    Transcript,
)
from parley.errors import GoneError
from parley.models.events import Event
from parley.models.request import Request
from parley.policy.approval import CallKey, LedgerView
from parley.policy.choice import Scope, exchange_at
from parley.policy.facts import Fact
from parley.policy.limits import Limits
from parley.policy.rules import Rules
from parley.policy.status import without
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.tasks import TaskHandle

NOTHING_ASKED = "there is no question here: a chat starts with a line 💬: and your question"
REMOVED = "the answer was removed, so its turn has ended: :ParleyRespond asks again"

T = TypeVar("T")


@asynccontextmanager
async def closing(events: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Events whose source is closed as soon as the consumer stops: its connection and tasks end."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


class Snapshot:
    """The document at one moment; `anchor` is a line (counted from 0) of the current exchange."""

    def __init__(
        self, lines: list[str], anchor: int, read: Callable[[list[str]], Transcript] = parse_lines
    ) -> None:
        """`read` parses the lines when the transcript is first needed."""
        self.lines = lines
        self.anchor = anchor
        self._read = read

    @classmethod
    def of(cls, text: str, anchor: int) -> Snapshot:
        """The snapshot of a text."""
        return cls(split_lines(text), anchor)

    @cached_property
    def transcript(self) -> Transcript:
        """The parsed text."""
        return self._read(self.lines)

    @cached_property
    def at(self) -> int:
        """The number of the current exchange. Raises GoneError if none is left."""
        at = exchange_at(self.transcript, self.anchor)
        if at is None:
            raise GoneError(NOTHING_ASKED)
        return at

    @property
    def exchange(self) -> Exchange:
        """The current exchange."""
        return self.transcript.exchanges[self.at]

    @property
    def answer(self) -> Answer:
        """The current answer. Raises GoneError if it was removed."""
        if not self.exchange.answers:
            raise GoneError(REMOVED)
        return self.exchange.answers[-1]


Change: TypeAlias = Callable[[Snapshot], Iterable[Edit]]
Narrow: TypeAlias = Callable[[Catalogue], Catalogue]


class Document(Protocol):
    """The chat being worked on. Methods raise GoneError once the chat or the current answer was
    removed."""

    async def read(self) -> Snapshot:
        """The document as it is now."""
        ...

    async def change(self, change: Change) -> None:
        """Apply the edits that `change` makes for the current lines, at once; retried if the lines
        changed."""
        ...

    async def begin(self, change: Change) -> None:
        """Start such a change: `read` shows it at once, and later writes wait for it."""
        ...

    async def open_stream(self, tip: Callable[[Snapshot], tuple[Edit, int]]) -> None:
        """Start an edit and let `append` write at the line it names, even if that line moves."""
        ...

    async def append(self, text: str) -> None:
        """Write at the tip, soon; may return before the text is in the document."""
        ...

    async def settle(self) -> None:
        """Return when all appended text is in the document."""
        ...


class Model(Protocol):
    """A provider."""

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The events of the model's reply. Raises ModelError."""
        ...


class Tools(Protocol):
    """The MCP servers."""

    async def catalogue(self, narrow: Narrow, calls: Sequence[str]) -> Catalogue:
        """The tools on offer. Starts the servers, and waits for those whose tools `narrow` may
        keep.

        If `calls` names the tools of calls that wait to run, it needs to know only those tools.
        """
        ...

    def go_without(self) -> None:
        """Stop waiting for the servers that `catalogue` waits for."""
        ...

    async def call(self, tool: Tool, arguments: str, request: Request, task: TaskHandle) -> Result:
        """Run one call; a failure is a result. `request` says which model made the call, and how it
        is asked.

        If the call already runs as a `task`, collect its result. Raises PendingError if it still
        runs and cannot be queried.
        """
        ...

    async def resources(self, server: str) -> Sequence[str]:
        """The URIs of the resources that a server lists now; none if it cannot list them."""
        ...


class References(Protocol):
    """The texts that a question may refer to."""

    async def bring(self, references: Sequence[Reference]) -> Sequence[ReferenceText]:
        """The texts of a question's references: one each, one for each file of a glob, or why there
        is none."""
        ...


class NoReferences:
    """No source of texts: references stay as typed."""

    async def bring(self, references: Sequence[Reference]) -> Sequence[ReferenceText]:
        """Nothing."""
        return ()


class Attachments(Protocol):
    """The files next to the chat."""

    async def read(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        """The contents of attachments by their paths, each verified by its name; or why there are
        none."""
        ...


class NoAttachments:
    """No folder next to the chat."""

    async def read(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        """Nothing."""
        return {attachment.path: "this chat has no file yet" for attachment in attachments}


class Ledger(Protocol):
    """The decisions made on this machine for this chat. Each method is one durable transaction."""

    def lease(self) -> AbstractContextManager[None]:
        """The right to run a turn in this chat, for one process at a time. Raises BusyError."""
        ...

    def view(self, calls: Collection[tuple[str, str]] = ()) -> LedgerView:
        """All records, and which of these calls (id, arguments) were started for another file."""
        ...

    def start(self, key: CallKey) -> bool:
        """Use up the approval of this call. Only the caller that gets True may send it to its
        server."""
        ...

    def begin_task(self, key: CallKey, task: str) -> None:
        """Record that a started call runs at its server as the task with this id."""
        ...

    def record(self, *facts: Fact) -> None:
        """Record facts, in this order."""
        ...


@dataclass(frozen=True, slots=True)
class ServerWait:
    """The turn waits for these servers to start; an empty tuple ends the wait."""

    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingTools:
    """The turn continues without the tools of these servers; the reason was given before."""

    servers: tuple[str, ...]

    @property
    def message(self) -> str:
        """The message to the user."""
        return without(self.servers)


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A call is sent to its server."""

    proposal: Proposal
    tool: Tool


@dataclass(frozen=True, slots=True)
class TaskBegan:
    """A call runs at its server as a task that the document now names."""

    proposal: Proposal


@dataclass(frozen=True, slots=True)
class CallProgress:
    """Progress of a call of this tool with these arguments, as reported by its server."""

    tool: Tool
    arguments: str
    text: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has its result."""

    proposal: Proposal
    result: Result


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A call does not run; its result says why."""

    proposal: Proposal
    result: Result


TurnEvent: TypeAlias = (
    Event
    | ServerWait
    | MissingTools
    | CallBegan
    | TaskBegan
    | CallProgress
    | CallEnded
    | CallRefused
)


class Observer(Protocol):
    """Receives everything that happens."""

    def status(self, text: str) -> None:
        """Show the current activity; "" for none."""
        ...

    def on_event(self, what: TurnEvent) -> None:
        """Note an event of the model, or a call that began, ended or was refused."""
        ...


class Clock(Protocol):
    """The clock of a turn, and work within a time limit."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def together(
        self, work: Sequence[Callable[[], Awaitable[T]]], limit_s: float
    ) -> AsyncIterator[T]:
        """Do all work at once and yield each outcome as it arrives; after `limit_s` seconds, cancel
        the rest."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """All ports of one turn."""

    document: Document
    model: Model
    tools: Tools
    ledger: Ledger
    clock: Clock
    observer: Observer
    references: References = field(default_factory=NoReferences)
    attachments: Attachments = field(default_factory=NoAttachments)


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """The settings for one look at one chat: agent, request defaults, limits and rules."""

    agent: str
    request: Request
    """The request without the document's content and the tools."""
    limits: Limits
    rules: Rules
    tools: Narrow | None
    """Narrows the catalogue to the tools that this chat may use; None if it may use none."""
    scope: Scope
    parallel: bool
    timeout_s: float
    result_max_bytes: int


Resolve: TypeAlias = Callable[[Transcript], ChatSettings]
EndKind: TypeAlias = Literal["complete", "waiting", "stopped", "interrupted", "nothing", "answered"]


@dataclass(frozen=True, slots=True)
class End:
    """The end of a turn, with a message for the user ("" for none)."""

    kind: EndKind
    message: str = ""
