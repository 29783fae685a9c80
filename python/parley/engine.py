"""The loop: look at the file, take the step that follows, write what came of it, look again.

Everything the loop needs of the world is a port, defined here; drivers implement them for Neovim, for files
and for tests. The loop holds no state of the conversation: between two steps all of it is in the document.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, Protocol, TypeAlias, TypeVar

from parley.chat import edits
from parley.chat.edits import Edit
from parley.chat.history import NO_QUESTION
from parley.chat.reader import parse, split_lines
from parley.chat.reply import ReplyWriter
from parley.chat.rounds import Notice, NoticeKind
from parley.chat.transcript import (
    YES,
    Answer,
    Broken,
    Choice,
    Exchange,
    Proposal,
    Question,
    Result,
    Text,
    Thinking,
    ToolCall,
    Transcript,
)
from parley.errors import GoneError, ModelError
from parley.models.ask import Ask
from parley.models.events import Call, Event, Finished, TextDelta, ThinkingDelta, ThinkingEnd, Usage
from parley.tools.catalogue import Catalogue, Tool
from parley.turn import plan
from parley.turn.approval import Approvals, CallKey, Decision, LedgerView, Rule, Rules, call_key, written_key
from parley.turn.choice import Scope, chosen, exchange_at
from parley.turn.guidance import guidance
from parley.turn.limits import Limits, tools_allowed
from parley.turn.plan import Situation, next_step

T = TypeVar("T")


class Snapshot:
    """The document at one moment; `anchor` is a line (counted from 0) of the exchange in hand."""

    def __init__(self, text: str, anchor: int) -> None:
        self.text = text
        self.anchor = anchor

    @cached_property
    def lines(self) -> list[str]:
        """The lines, as edits count them."""
        return split_lines(self.text)

    @cached_property
    def transcript(self) -> Transcript:
        """What the text says."""
        return parse(self.text)

    @cached_property
    def at(self) -> int:
        """The number of the exchange in hand. Raises GoneError where there is none any more."""
        at = exchange_at(self.transcript, self.anchor)
        if at is None:
            raise GoneError("there is no question here: a chat starts with a line 💬: and your question")
        return at

    @property
    def exchange(self) -> Exchange:
        """The exchange in hand."""
        return self.transcript.exchanges[self.at]

    @property
    def answer(self) -> Answer:
        """The answer in hand. Raises GoneError where it was taken away."""
        if not self.exchange.answers:
            raise GoneError("the answer was removed")
        return self.exchange.answers[-1]


Change: TypeAlias = Callable[[Snapshot], Iterable[Edit]]


class Document(Protocol):
    """The chat being worked on. Methods raise GoneError once it, or the answer in hand, was taken away."""

    async def read(self) -> Snapshot:
        """The document as it is now."""
        ...

    async def change(self, change: Change) -> None:
        """Apply the edits that `change` finds for the lines as they are, at once; retried when they moved."""
        ...

    async def open_stream(self, tip: Callable[[Snapshot], tuple[Edit, int]]) -> None:
        """Apply an edit and let `append` write at the line it names, wherever that line moves to."""
        ...

    async def append(self, text: str) -> None:
        """Write at the tip, soon; may return before the text is in the document."""
        ...

    async def settle(self) -> None:
        """Return when all that was appended is in the document."""
        ...


class Model(Protocol):
    """A provider."""

    def stream(self, ask: Ask) -> AsyncIterator[Event]:
        """What the model says. Raises ModelError."""
        ...


class Tools(Protocol):
    """The MCP servers."""

    async def catalogue(self) -> Catalogue:
        """The tools on offer; starts the servers."""
        ...

    async def call(self, tool: Tool, arguments: str) -> Result:
        """Run one call; its failure is a result."""
        ...


class Ledger(Protocol):
    """What was decided on this machine for this chat. Each method is one durable transaction."""

    def view(self) -> LedgerView:
        """What it holds."""
        ...

    def enter(self, decided: Sequence[tuple[CallKey, Choice]], rule: Rule, why: str) -> None:
        """Record yeses; each revokes the live entries of its call."""
        ...

    def revoke(self, call_ids: Iterable[str]) -> None:
        """Take back the live yeses for these calls."""
        ...

    def start(self, key: CallKey) -> bool:
        """Use up the yes for this call: True once for each, and only then may it be sent to its server."""
        ...

    def wrote(self, proposals: Iterable[tuple[str, str, str]]) -> None:
        """Record proposals (id, name, arguments) that Parley wrote from a model's reply."""
        ...


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A call is sent to its server."""

    proposal: Proposal
    tool: Tool


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has its result."""

    proposal: Proposal
    result: Result


Happening: TypeAlias = Event | CallBegan | CallEnded


class World(Protocol):
    """Time, tasks, and where the user is told what happens."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def together(self, work: Sequence[Callable[[], Awaitable[T]]], limit_s: float) -> AsyncIterator[T]:
        """Do all at once, yield what comes of each as it comes; after `limit_s` seconds cancel the rest."""
        ...

    def status(self, text: str) -> None:
        """Show what is being done; "" when nothing is."""
        ...

    def happened(self, what: Happening) -> None:
        """Take note of what the model said, or of a call that began or ended."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The world of one turn."""

    document: Document
    model: Model
    tools: Tools
    ledger: Ledger
    world: World


@dataclass(frozen=True, slots=True)
class Conduct:
    """The settings of one look at one chat: agent, defaults of its requests, limits and rules."""

    agent: str
    ask: Ask
    """The request without what the document says and the tools."""
    limits: Limits
    rules: Rules
    tools: Callable[[Catalogue], Catalogue] | None
    """Narrows the catalogue to what this chat may use; None where it may use no tool."""
    scope: Scope = "letter"
    parallel: bool = True
    timeout_s: float = 120.0


Resolve: TypeAlias = Callable[[Transcript], Conduct]
EndKind: TypeAlias = Literal["complete", "waiting", "stopped", "interrupted", "nothing", "answered"]


@dataclass(frozen=True, slots=True)
class End:
    """How a turn ended, and what to tell the user of it ("" for nothing)."""

    kind: EndKind
    message: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the document, with all that decides the step that follows."""

    snapshot: Snapshot
    conduct: Conduct
    catalogue: Catalogue
    view: LedgerView

    @property
    def situation(self) -> Situation:
        """What the step depends on."""
        shot, conduct = self.snapshot, self.conduct
        return Situation(shot.transcript, shot.at, self.catalogue, self.view, conduct.limits, conduct.rules)

    def ask(self, tools_on: bool) -> Ask:
        """The request that the model is to answer."""
        shot, ask = self.snapshot, self.conduct.ask
        return replace(
            ask,
            system="\n\n".join(filter(None, (ask.system, guidance(self.catalogue) if tools_on else ""))),
            transcript=shot.transcript,
            at=shot.at,
            catalogue=self.catalogue,
            tools_on=tools_on,
        )

    def next_ask(self) -> Ask:
        """The request that comes next, whatever is done before it.

        With nothing to ask it carries all that was said, and ends in a stand-in for the question, since
        providers refuse a request that ends in an answer.
        """
        shot = self.snapshot
        ask = self.ask(tools_allowed(self.conduct.limits, shot.transcript, shot.exchange))
        if not isinstance(next_step(self.situation), plan.AwaitQuestion | plan.Complete):
            return ask
        said = [e for e in shot.transcript.exchanges[: shot.at + 1] if e.answers]
        exchanges = (*said, Exchange(Question((Text(NO_QUESTION),))))
        return replace(ask, transcript=replace(shot.transcript, exchanges=exchanges), at=len(said))

    def is_decided(self, call: Proposal | Broken) -> bool:
        """Whether a call without result has its choice."""
        approvals = self.situation.approvals
        return isinstance(call, Proposal) and approvals.standing(call) in ("approved", "declined")


async def look(ports: Ports, resolve: Resolve) -> Look:
    """The document, its settings, its tools and its decisions, as they are now."""
    snapshot = await ports.document.read()
    conduct = resolve(snapshot.transcript)
    catalogue = conduct.tools(await ports.tools.catalogue()) if conduct.tools else Catalogue()
    return Look(snapshot, conduct, catalogue, ports.ledger.view())


async def run_turn(ports: Ports, resolve: Resolve) -> End:
    """Move the exchange in hand on until it is the user's turn again.

    Raises GoneError when the document or the answer was taken away; then nothing more was written.
    """
    started, moved = ports.world.now(), False
    try:
        while True:
            seen = await look(ports, resolve)
            step = next_step(seen.situation)
            if not moved and isinstance(step, plan.Complete):
                return End("answered", "already answered; :ParleyRespond! regenerates")
            if moved and isinstance(step, plan.AskModel | plan.RunTools):
                step = _in_time(ports, seen.conduct, started) or step
            if end := await _take(ports, seen, step, started):
                return end
            moved = True
    finally:
        ports.world.status("")


async def _take(ports: Ports, seen: Look, step: plan.Step, started: float) -> End | None:  # noqa: C901 - a case a step
    """Carry out one step; an End where it is the user's turn after it."""
    match step:
        case plan.AwaitQuestion():
            return End("nothing", "nothing is asked here: write your question after 💬: first")
        case plan.AwaitChoices():
            return End("waiting")
        case plan.Complete():
            await _open_question(ports)
            return End("complete")
        case plan.Stop(reason):
            return await _stop(ports, reason)
        case plan.AskModel(tools_on):
            return await _ask_model(ports, seen.ask(tools_on))
        case plan.StartAnswer():
            agent = seen.conduct.agent
            await ports.document.change(lambda s: [edits.start_answer(s.lines, s.exchange, agent)])
        case plan.Resume():
            await ports.document.change(lambda s: edits.drop_unfinished(s.lines, s.answer))
        case plan.Settle(results):
            await _settle(ports, results)
        case plan.Decide(decisions):
            _enter_decisions(ports, seen, decisions)
            await _mark(ports, [(d.proposal, "ya") for d in decisions])
        case plan.RunTools(proposals):
            await _run_tools(ports, seen, proposals, started)
    return None


def _in_time(ports: Ports, conduct: Conduct, started: float) -> plan.Stop | None:
    late = ports.world.now() - started > conduct.timeout_s
    return plan.Stop(f"it took longer than {conduct.timeout_s:g} seconds") if late else None


async def _open_question(ports: Ports) -> None:
    def change(shot: Snapshot) -> list[Edit]:
        last = shot.at == len(shot.transcript.exchanges) - 1
        return [edits.open_question(shot.lines, shot.exchange)] if last else []

    await ports.document.change(change)


async def _stop(ports: Ports, reason: str) -> End:
    ports.world.status(f"Stopped: {reason}")
    await write_notice(ports.document, "Unable to complete task", reason)
    await _open_question(ports)
    return End("stopped", f"Unable to complete task: {reason}")


async def write_notice(document: Document, kind: NoticeKind, reason: str) -> None:
    """Say in the file why the answer in hand is not complete."""
    notice = Notice(kind, reason)
    await document.change(lambda s: [edits.append_notice(s.lines, s.answer, notice)])


# --- Asking the model ---------------------------------------------------------------------------------------


async def _ask_model(ports: Ports, ask: Ask) -> End | None:
    """Stream one reply into the document; an End where the turn cannot go on from it."""
    document = ports.document
    ports.world.status("Processing tool results..." if _has_results(ask) else "Analyzing request...")
    await document.open_stream(lambda s: edits.open_tip(s.lines, s.answer))
    reply = _Reply(ports, ask)
    try:
        async for event in ports.model.stream(ask):
            await reply.take(event)
        await reply.end()
    except ModelError as error:
        await reply.cut()
        await write_notice(document, "Interrupted", error.reason)
        return End("interrupted", str(error))
    if trouble := reply.trouble():
        await write_notice(document, "Interrupted", trouble)
        return End("interrupted", f"The reply is not complete: {trouble}. :ParleyRespond asks again")
    return None


def _has_results(ask: Ask) -> bool:
    exchange = ask.transcript.exchanges[ask.at]
    return bool(exchange.answers and exchange.answers[-1].proposals)


_TROUBLE = {
    "length": "the reply was cut at max_tokens",
    "context": "the conversation is larger than the model's context window",
    "refusal": "the model refused to answer",
    "content_filter": "the provider's content filter cut the reply",
}


class _Reply:
    """One reply on its way into the document: prose and thinking as they come, the calls when all is said."""

    def __init__(self, ports: Ports, ask: Ask) -> None:
        self.ports = ports
        self.provider, self.model = ask.provider, ask.model
        self.writer = ReplyWriter()
        self.calls = list[ToolCall]()
        self.said = False
        self.finished: Finished | None = None
        self._block = False

    async def take(self, event: Event) -> None:
        """One event of the model."""
        self.ports.world.happened(event)
        match event:
            case TextDelta(text):
                await self._append(self.writer.text(text))
            case ThinkingDelta(text):
                self._block = True
                await self._append(self.writer.thinking(self.provider, self.model, text))
            case ThinkingEnd(signature, redacted):
                await self._end_thinking(signature, redacted)
            case Call(call):
                self.ports.world.status("Selecting appropriate tools...")
                self.calls.append(call)
            case Finished():
                self.finished = event
            case Usage():
                pass

    async def _append(self, text: str) -> None:
        if text:
            if not self.said:
                self.ports.world.status("Formulating response...")
            self.said = True
            await self.ports.document.append(text)

    async def _end_thinking(self, signature: str, redacted: bool) -> None:
        made = Thinking(self.provider, self.model, None, signature, redacted) if signature else None
        if not self._block:
            await self._append(self.writer.sealed(made) if made else "")
            return
        self._block = False
        await self._append(self.writer.end_thinking())
        if made:
            await self.ports.document.settle()
            await self.ports.document.change(lambda s: edits.sign_thinking(s.answer, signature))

    async def end(self) -> None:
        """The reply is through: write what was held back, then its calls."""
        await self.cut()
        if self.calls:
            proposals = [Proposal(call) for call in edits.written_calls(self.calls)]
            await self.ports.document.change(lambda s: [edits.append_segments(s.lines, s.answer, proposals)])
            self.ports.ledger.wrote(map(written_key, proposals))

    async def cut(self) -> None:
        """The reply ends here: what was said stays, its calls are dropped."""
        await self._append(self.writer.end())
        await self.ports.document.settle()

    def trouble(self) -> str | None:
        """Why the reply is no complete one, None where it is."""
        reason = self.finished.reason if self.finished else "complete"
        if not self.said and not self.calls and reason not in _TROUBLE:
            return "the model's reply was empty"
        return _TROUBLE.get(reason)


# --- Calls --------------------------------------------------------------------------------------------------


def _find(snapshot: Snapshot, proposal: Proposal) -> Proposal | None:
    """The same call in the document as it is now, None where it is gone or answered."""
    open_calls = plan.waiting(snapshot.answer)
    same = (c for c in open_calls if isinstance(c, Proposal) and c.call == proposal.call)
    return next(same, None)


async def _settle(ports: Ports, results: Sequence[tuple[Proposal, Result]]) -> None:
    def change(shot: Snapshot) -> list[Edit]:
        found = [(_find(shot, proposal), result) for proposal, result in results]
        return [edits.put_result(shot.lines, proposal, result) for proposal, result in found if proposal]

    await ports.document.change(change)


async def _mark(ports: Ports, choices: Sequence[tuple[Proposal, Choice]]) -> None:
    def change(shot: Snapshot) -> list[Edit]:
        found = [(_find(shot, proposal), choice) for proposal, choice in choices]
        return [edits.mark(shot.lines, proposal, choice) for proposal, choice in found if proposal]

    await ports.document.change(change)


def _enter_decisions(ports: Ports, seen: Look, decisions: Sequence[Decision]) -> None:
    for decision in decisions:
        tool = seen.catalogue.get(decision.proposal.call.name)
        if tool is not None:
            ports.ledger.enter([(call_key(decision.proposal, tool), "ya")], decision.rule, decision.why)


async def _run_tools(ports: Ports, seen: Look, proposals: Sequence[Proposal], started: float) -> None:
    """Run approved calls, each result into the document when it comes."""

    async def run(proposal: Proposal) -> tuple[Proposal, Result | None]:
        tool = seen.catalogue.get(proposal.call.name)
        if tool is None or not ports.ledger.start(call_key(proposal, tool)):
            return proposal, None
        ports.world.happened(CallBegan(proposal, tool))
        return proposal, await ports.tools.call(tool, proposal.call.arguments)

    names = ", ".join(dict.fromkeys(proposal.call.name for proposal in proposals))
    ports.world.status(f"Running {names}...")
    limit = seen.conduct.timeout_s - (ports.world.now() - started)
    batches = [list(proposals)] if seen.conduct.parallel else [[p] for p in proposals]
    for batch in batches:
        async for proposal, result in ports.world.together([partial(run, p) for p in batch], limit):
            if result is not None:
                await _settle(ports, [(proposal, result)])
                ports.world.happened(CallEnded(proposal, result))


@dataclass(frozen=True, slots=True)
class ChoiceMade:
    """What a key did: whether it decided anything, and what to tell the user."""

    decided: bool
    message: str = ""


async def choose(
    ports: Ports, resolve: Resolve, line: int, key: Choice, rule: Rule, reason: str = ""
) -> ChoiceMade:
    """Carry out a choice on a line of the exchange in hand: into the ledger first, then into the file."""
    seen = await look(ports, resolve)
    approvals = Approvals(seen.snapshot.transcript, seen.catalogue, seen.view)
    found = chosen(seen.snapshot.exchange, line, key, seen.conduct.scope, approvals)
    proposals = [call for call in found.proposals if isinstance(call, Proposal)]
    if key in YES:
        if found.proposals and not proposals:
            return ChoiceMade(
                False, "this line cannot be read as a tool call: mend it, or decline it with yn"
            )
        known = [(p, tool) for p in proposals if (tool := seen.catalogue.get(p.call.name))]
        ports.ledger.enter([(call_key(p, tool), key) for p, tool in known], rule, f"{key} by {rule}")
    else:
        ports.ledger.revoke(p.call.id for p in proposals)
    declined = f"{plan.DECLINED} {reason}".strip()

    def change(shot: Snapshot) -> list[Edit]:
        open_calls = plan.waiting(shot.answer)
        same = [c for c in open_calls if c in found.proposals]
        marks = [edits.mark(shot.lines, call, key) for call in same]
        if key in YES:
            return marks
        answered = [c for c in same if isinstance(c, Proposal)]
        return marks + [edits.put_result(shot.lines, c, Result("refused", declined)) for c in answered]

    if found.proposals:
        await ports.document.change(change)
    return ChoiceMade(bool(found.proposals), found.message)


async def regenerate(ports: Ports, agent: str) -> None:
    """Empty the last answer of the exchange in hand, so that the next turn gives it anew."""

    def change(shot: Snapshot) -> list[Edit]:
        answers = shot.exchange.answers
        return [edits.empty_answer(shot.lines, answers[-1], agent)] if answers else []

    shot = await ports.document.read()
    if shot.exchange.answers:
        ports.ledger.revoke(p.call.id for p in shot.answer.proposals)
    await ports.document.change(change)
