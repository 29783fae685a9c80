"""The loop's ports: interfaces to the outside world, implemented for Neovim, files and tests."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager
from dataclasses import field
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
from parley.errors import GoneError, ParleyError
from parley.frozen import frozen
from parley.models.events import Event, ReplyEvent
from parley.models.request import Request
from parley.policy.approval import CallKey, LedgerView
from parley.policy.choice import Scope, exchange_at
from parley.policy.facts import Fact
from parley.policy.previews import Previews
from parley.policy.rules import Rules
from parley.policy.status_texts import without
from parley.policy.turn_limits import Limits
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.results import Outcome
from parley.tools.tasks import TaskHandle

NOTHING_ASKED = "no question here: a chat starts with a 💬: line and your question"
REMOVED = "the answer was removed, so its turn has ended. :ParleyRespond asks again"

T = TypeVar("T")


class Snapshot:
    """The document at one moment; `anchor` is a line (counted from 0) in the current exchange."""

    def __init__(
        self, lines: list[str], anchor: int, read: Callable[[list[str]], Transcript] = parse_lines
    ) -> None:
        """`read` parses the lines when the transcript is first needed."""
        self.lines = lines
        self.anchor = anchor
        self._read = read

    @classmethod
    def of(cls, text: str, anchor: int) -> Snapshot:
        """A snapshot with this text."""
        return cls(split_lines(text), anchor)

    @cached_property
    def transcript(self) -> Transcript:
        """The parsed text."""
        return self._read(self.lines)

    @cached_property
    def at(self) -> int:
        """The number of the current exchange. Raises GoneError if no exchange is left."""
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
        """The current answer. Raises GoneError if the answer was removed."""
        if not self.exchange.answers:
            raise GoneError(REMOVED)
        return self.exchange.answers[-1]


Change: TypeAlias = Callable[[Snapshot], Iterable[Edit]]
Narrow: TypeAlias = Callable[[Catalogue], Catalogue]


class Document(Protocol):
    """The current chat. Methods raise GoneError if the chat or the current answer was removed."""

    async def read(self) -> Snapshot:
        """Read the current document."""
        ...

    async def change(self, change: Change) -> None:
        """Apply all edits from `change` to the current lines at once; retry if the lines have
        changed."""
        ...

    async def begin(self, change: Change) -> None:
        """Start a change without waiting for it: `read` includes the change at once, and later
        writes wait for the change.
        """
        ...

    async def open_stream(
        self, tip: Callable[[Snapshot], tuple[Edit, int]], text: str = ""
    ) -> None:
        """Start an edit that adds an empty line for `append` to write to, even if that line moves.

        The same edit writes `text` at the tip.
        """
        ...

    async def append(self, text: str) -> None:
        """Write text at the tip soon; may return before the text is in the document."""
        ...

    async def settle(self) -> None:
        """Wait until all appended text is in the document."""
        ...


class Model(Protocol):
    """A provider."""

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """Stream the events of the model's reply. Raises ModelError."""
        ...


class ToolRunner(Protocol):
    """The MCP servers."""

    async def catalogue(self, narrow: Narrow, calls: Sequence[str]) -> Catalogue:
        """The tools on offer. Starts the servers, and waits for servers whose tools `narrow` may
        keep.

        If calls wait to run, `calls` names their tools, and only those tools are needed.
        """
        ...

    def go_without(self) -> None:
        """Stop waiting for the servers that `catalogue` waits for."""
        ...

    async def call(self, tool: Tool, key: CallKey, request: Request, task: TaskHandle) -> Result:
        """Run the call that was approved with this key; a failure is a result. `request` contains
        the model that made the call, and the model's settings.

        If the call already runs as a `task`, collect its result. Raises PendingError if the task
        still runs and cannot be queried.
        """
        ...

    async def resources(self, server: str) -> Sequence[str]:
        """The URIs of the resources that a server currently lists; empty if it cannot list any."""
        ...


class AgentCalls(Protocol):
    """The calls by agents of other programs that wait for the user's choice."""

    def awaits(self, call_id: str) -> bool:
        """Whether the agent still waits for the choice on this call."""
        ...

    def dismiss(self, reasons: Mapping[str, str]) -> None:
        """Tell the agent that the calls with these ids will not run, and why."""
        ...


class NoAgentCalls:
    """There are no agents."""

    def awaits(self, call_id: str) -> bool:
        """No agent waits."""
        return False

    def dismiss(self, reasons: Mapping[str, str]) -> None:
        """Nothing to do."""


class References(Protocol):
    """The texts that a question may refer to."""

    async def bring(self, references: Sequence[Reference]) -> Sequence[ReferenceText]:
        """The texts for a question's references: one text for each reference, but one for each file
        that matches a glob; or the reason why a text is missing.
        """
        ...


class NoReferences:
    """Provides no texts, so references stay as typed."""

    async def bring(self, references: Sequence[Reference]) -> Sequence[ReferenceText]:
        """Always empty."""
        return ()


class Attachments(Protocol):
    """The files next to the chat."""

    async def read(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        """The attachments' contents by path, each verified against its name; or the reason why a
        content is missing.
        """
        ...

    async def result_of(self, outcome: Outcome) -> Result:
        """The result for the file; parts that are not text are saved next to the chat, or replaced
        with a description if that fails.
        """
        ...


class NoAttachments:
    """Used for a chat without a folder for attachments."""

    async def read(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        """Always the reason why an attachment is missing."""
        return {attachment.path: "this chat has no file yet" for attachment in attachments}

    async def result_of(self, outcome: Outcome) -> Result:
        """A result with the outcome's text alone."""
        return Result(outcome.status, outcome.text)


class PreviewSource(Protocol):
    """The files that calls would change."""

    async def of(self, calls: Sequence[tuple[Proposal, Tool]]) -> Previews:
        """What these waiting calls would do to files, each on top of the earlier calls that the
        user has not declined. A call without an entry changes no known file.
        """
        ...


class NoPreviews:
    """Knows no files."""

    async def of(self, calls: Sequence[tuple[Proposal, Tool]]) -> Previews:
        """Always empty."""
        return {}


class Skills(Protocol):
    """The files of the skills that the model may read."""

    async def read(self, name: str, path: str) -> str:
        """The text of a file in a skill's folder; "" means its instructions. Raises ParleyError."""
        ...


class NoSkills:
    """Has no skills."""

    async def read(self, name: str, path: str) -> str:
        """Raises ParleyError."""
        raise ParleyError("there are no skills here")


class Ledger(Protocol):
    """The decisions made on this machine for this chat.

    Each method is one transaction, which survives the end of this process. Only a power loss may
    undo the last facts that `record` received, and none that takes something away.
    """

    def lease(self) -> AbstractContextManager[None]:
        """Hold the right to run a turn in this chat; raises BusyError if another process holds this
        right.
        """
        ...

    def view(self, calls: Collection[tuple[str, str]] = ()) -> LedgerView:
        """All records, and which of these calls (id, arguments) were started for another file."""
        ...

    def start(self, key: CallKey) -> bool:
        """Use up this call's approval, durably. Only the caller for which this returns True may
        send the call to its server.
        """
        ...

    def begin_task(self, key: CallKey, task: str) -> None:
        """Record that a started call runs on its server as the task with this id."""
        ...

    def record(self, *facts: Fact) -> None:
        """Record these facts, in this order."""
        ...


@frozen
class ServerWait:
    """The turn waits for these servers to start; an empty tuple ends the wait."""

    servers: tuple[str, ...]


@frozen
class MissingTools:
    """The turn continues without these servers' tools; the user already knows the reason."""

    servers: tuple[str, ...]

    @property
    def message(self) -> str:
        """The message for the user."""
        return without(self.servers)


@frozen
class CallBegan:
    """A call is being sent to its server, or is run by others."""

    proposal: Proposal
    tool: Tool


@frozen
class TaskBegan:
    """A call runs on its server as a task, and the document now contains the task's id."""

    proposal: Proposal


@frozen
class CallProgress:
    """Progress that a server reported for a call of this tool with these arguments."""

    tool: Tool
    arguments: str
    text: str


@frozen
class CallEnded:
    """A call has its result."""

    proposal: Proposal
    result: Result


@frozen
class CallRefused:
    """A call does not run; its result contains the reason."""

    proposal: Proposal
    result: Result


TurnEvent: TypeAlias = (
    ReplyEvent
    | ServerWait
    | MissingTools
    | CallBegan
    | TaskBegan
    | CallProgress
    | CallEnded
    | CallRefused
)


class Observer(Protocol):
    """Receives status texts and events during a turn."""

    def status(self, text: str) -> None:
        """Show the current activity; "" for none."""
        ...

    def on_event(self, what: TurnEvent) -> None:
        """Receive an event from the model, or about servers and calls."""
        ...


class Clock(Protocol):
    """A turn's clock, which also runs work within a time limit."""

    def now(self) -> float:
        """The seconds on a monotonic clock."""
        ...

    def together(
        self, work: Sequence[Callable[[], Awaitable[T]]], limit_s: float
    ) -> AsyncIterator[T]:
        """Run all work concurrently and yield each outcome when it arrives; after `limit_s`
        seconds, cancel the rest."""
        ...


@frozen
class Ports:
    """All ports for one turn."""

    document: Document
    model: Model
    tools: ToolRunner
    ledger: Ledger
    clock: Clock
    observer: Observer
    references: References = field(default_factory=NoReferences)
    attachments: Attachments = field(default_factory=NoAttachments)
    previews: PreviewSource = field(default_factory=NoPreviews)
    skills: Skills = field(default_factory=NoSkills)
    agents: AgentCalls = field(default_factory=NoAgentCalls)


@frozen
class ChatSettings:
    """The settings for a chat at one moment: agent, request defaults, limits and rules."""

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
    skills: Tool | None = None
    """The tool that reads skills; None if there are none."""


Resolve: TypeAlias = Callable[[Transcript], ChatSettings]
EndKind: TypeAlias = Literal["complete", "waiting", "stopped", "interrupted", "nothing", "answered"]


@frozen
class End:
    """How a turn ended, with a message for the user ("" for none)."""

    kind: EndKind
    message: str = ""
