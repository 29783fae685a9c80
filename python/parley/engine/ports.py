"""Ports of the loop: what it needs of the world, implemented for Neovim, files and tests."""

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
from parley.chat.transcript import Answer, Attachment, Choice, Exchange, Proposal, Result, Transcript
from parley.errors import GoneError
from parley.models.events import Event
from parley.models.request import Request
from parley.policy.approval import CallKey, Explained, LedgerView, Rule
from parley.policy.choice import Scope, exchange_at
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
    """Events whose source is told at once when nobody listens any more: its connection, its tasks end."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


class Snapshot:
    """The document at one moment; `anchor` is a line (counted from 0) of the exchange in hand."""

    def __init__(
        self, lines: list[str], anchor: int, read: Callable[[list[str]], Transcript] = parse_lines
    ) -> None:
        """`read` makes the transcript of the lines, once it is needed."""
        self.lines = lines
        self.anchor = anchor
        self._read = read

    @classmethod
    def of(cls, text: str, anchor: int) -> Snapshot:
        """A snapshot of a text."""
        return cls(split_lines(text), anchor)

    @cached_property
    def transcript(self) -> Transcript:
        """The text as values."""
        return self._read(self.lines)

    @cached_property
    def at(self) -> int:
        """The number of the exchange in hand. Raises GoneError where there is none any more."""
        at = exchange_at(self.transcript, self.anchor)
        if at is None:
            raise GoneError(NOTHING_ASKED)
        return at

    @property
    def exchange(self) -> Exchange:
        """The exchange in hand."""
        return self.transcript.exchanges[self.at]

    @property
    def answer(self) -> Answer:
        """The answer in hand. Raises GoneError where it was taken away."""
        if not self.exchange.answers:
            raise GoneError(REMOVED)
        return self.exchange.answers[-1]


Change: TypeAlias = Callable[[Snapshot], Iterable[Edit]]
Narrow: TypeAlias = Callable[[Catalogue], Catalogue]


class Document(Protocol):
    """The chat being worked on. Methods raise GoneError once it, or the answer in hand, was taken away."""

    async def read(self) -> Snapshot:
        """The document as it is now."""
        ...

    async def change(self, change: Change) -> None:
        """Apply the edits that `change` finds for the lines as they are, at once; retried when they moved."""
        ...

    async def begin(self, change: Change) -> None:
        """Begin such a change: `read` has it at once, and what is written after it waits for it."""
        ...

    async def open_stream(self, tip: Callable[[Snapshot], tuple[Edit, int]]) -> None:
        """Begin an edit, and let `append` write at the line it names, wherever that line moves to."""
        ...

    async def append(self, text: str) -> None:
        """Write at the tip, soon; may return before the text is in the document."""
        ...

    async def settle(self) -> None:
        """Return when all that was appended is in the document."""
        ...


class Model(Protocol):
    """A provider."""

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The events of the model's reply. Raises ModelError."""
        ...


class Tools(Protocol):
    """The MCP servers."""

    async def catalogue(self, narrow: Narrow, calls: Sequence[str]) -> Catalogue:
        """The tools on offer; starts the servers, and waits for those of which `narrow` may leave a tool.

        Where `calls` wait to be run, by their names, it need not know of other tools than theirs.
        """
        ...

    def go_without(self) -> None:
        """Wait no longer for the servers that `catalogue` waits for."""
        ...

    async def call(self, tool: Tool, arguments: str, request: Request, task: TaskHandle) -> Result:
        """Run one call; its failure is a result. `request` says which model made it, and how it is asked.

        Of one that runs as a `task` already, the result is collected. Raises PendingError where it still runs
        and cannot be asked after.
        """
        ...

    async def resources(self, server: str) -> Sequence[str]:
        """The URIs of the resources that a server lists now; none where it cannot."""
        ...


class References(Protocol):
    """The texts that a question may refer to."""

    async def bring(self, references: Sequence[Reference]) -> Sequence[ReferenceText]:
        """The texts of a question's references: one each, one a file of a glob, or why there is none."""
        ...


class NoReferences:
    """No place for texts: references stay what was typed."""

    async def bring(self, references: Sequence[Reference]) -> Sequence[ReferenceText]:
        """Nothing."""
        return ()


class Attachments(Protocol):
    """The files beside the chat."""

    async def read(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        """The contents of attachments by their paths, each proved by its name; or why there is none."""
        ...


class NoAttachments:
    """No place beside the chat."""

    async def read(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        """Nothing."""
        return {attachment.path: "this chat has no file yet" for attachment in attachments}


class Ledger(Protocol):
    """The decisions made on this machine for this chat. Each method is one durable transaction."""

    def lease(self) -> AbstractContextManager[None]:
        """The right to run a turn in this chat, for one process at a time. Raises BusyError."""
        ...

    def view(self, calls: Collection[tuple[str, str]] = ()) -> LedgerView:
        """All that it holds, and which of these calls (id, arguments) were started for another file."""
        ...

    def enter(self, decided: Sequence[tuple[CallKey, Choice]], rule: Rule, why: str = "") -> None:
        """Record yeses, and why where nobody was asked; each revokes the live entries of its call."""
        ...

    def explain(self, what: Explained, calls: Iterable[tuple[str, str, str]]) -> None:
        """Record why calls (id, tool, reason) wait or do not run: once, however often one looks."""
        ...

    def revoke(self, call_ids: Iterable[str]) -> None:
        """Take back the live yeses for these calls."""
        ...

    def forget(self, calls: Iterable[tuple[str, str]]) -> None:
        """Close the books on calls (id, arguments) that leave the file, with their results if they ran."""
        ...

    def disown(self, calls: Iterable[tuple[str, str]]) -> None:
        """These calls (id, arguments) were refused: if opened again, only a person decides."""
        ...

    def start(self, key: CallKey) -> bool:
        """Use up the yes for this call: True once for each, and only then may it be sent to its server."""
        ...

    def begin_task(self, key: CallKey, task: str) -> None:
        """A call that was started runs at its server as the task with this id."""
        ...

    def wrote(self, proposals: Iterable[tuple[str, str, str]], keys: Iterable[CallKey] = ()) -> None:
        """Record proposals (id, name, arguments) that Parley wrote from a model's reply, with their tools."""
        ...

    def enter_reply(self, units: Sequence[str]) -> None:
        """Keep the digests of the request that was sent last, and these of what the model replied."""
        ...

    def warn(self, warnings: Iterable[tuple[str, str, str]]) -> None:
        """Whoever decides now was told this of calls (id, arguments, what), or of a question's references."""
        ...

    def unwarn(self, warnings: Iterable[tuple[str, str, str]]) -> None:
        """What was told so has been heeded: next time it is told anew."""
        ...


@dataclass(frozen=True, slots=True)
class ServerWait:
    """The turn waits for these servers to start; for none any more where there are none."""

    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingTools:
    """The turn goes on without the tools of these servers; why was told before."""

    servers: tuple[str, ...]

    @property
    def message(self) -> str:
        """What the user is told of it."""
        return without(self.servers)


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A call is sent to its server."""

    proposal: Proposal
    tool: Tool


@dataclass(frozen=True, slots=True)
class TaskBegan:
    """A call runs at its server as a task, which the document names now."""

    proposal: Proposal


@dataclass(frozen=True, slots=True)
class CallProgress:
    """A call of this tool with these arguments has come this far, as its server says."""

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
    """A call is not run, and its result says why."""

    proposal: Proposal
    result: Result


TurnEvent: TypeAlias = (
    Event | ServerWait | MissingTools | CallBegan | TaskBegan | CallProgress | CallEnded | CallRefused
)


class Observer(Protocol):
    """Who is told what happens."""

    def status(self, text: str) -> None:
        """Show what is being done; "" when nothing is."""
        ...

    def on_event(self, what: TurnEvent) -> None:
        """Take note of what the model said, or of a call that began, ended or was refused."""
        ...


class Clock(Protocol):
    """The time of a turn, and work that is done within some of it."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def together(self, work: Sequence[Callable[[], Awaitable[T]]], limit_s: float) -> AsyncIterator[T]:
        """Do all at once, yield what comes of each as it comes; after `limit_s` seconds cancel the rest."""
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
    """The settings of one look at one chat: agent, defaults of its requests, limits and rules."""

    agent: str
    request: Request
    """The request without what the document says and the tools."""
    limits: Limits
    rules: Rules
    tools: Narrow | None
    """Narrows the catalogue to what this chat may use; None where it may use no tool."""
    scope: Scope
    parallel: bool
    timeout_s: float
    result_max_bytes: int


Resolve: TypeAlias = Callable[[Transcript], ChatSettings]
EndKind: TypeAlias = Literal["complete", "waiting", "stopped", "interrupted", "nothing", "answered"]


@dataclass(frozen=True, slots=True)
class End:
    """The end of a turn, and a message on it for the user ("" for none)."""

    kind: EndKind
    message: str = ""
