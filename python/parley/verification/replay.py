"""Replays a chat: a model repeats the file's answers, and tools return the file's results.

A replay sends nothing, does not need a server and does not change the file. It compares the file's
meaning with the outcome from the current engine and settings.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from difflib import unified_diff
from typing import TypeAlias

from parley import engine
from parley.chat import edits
from parley.chat.history import DECLINED
from parley.chat.reader import parse
from parley.chat.rounds import Notice, Round, is_resumption, last_notice, read_notice, replies
from parley.chat.transcript import (
    YES,
    Answer,
    Attachment,
    Choice,
    Note,
    Proposal,
    Question,
    Result,
    Segment,
    Text,
    Thinking,
    Transcript,
)
from parley.chat.writer import answer_line, join_blocks, question_blocks, render
from parley.clock import PausableClock
from parley.engine.calls import refuse
from parley.errors import ModelError
from parley.frozen import frozen
from parley.models.events import (
    Call,
    Event,
    Finished,
    Ran,
    RanResult,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
)
from parley.models.request import Request
from parley.policy import turn_limits
from parley.policy.approval import CallKey
from parley.runtime.asyncio_ports import Callbacks, TurnClock
from parley.storage.chat_file import TextDocument
from parley.storage.ledger import ChatLedger
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.long_results import READ_RESULT
from parley.tools.results import Outcome
from parley.tools.tasks import TaskHandle

ReadAttachments: TypeAlias = Callable[[Sequence[Attachment]], Awaitable[Mapping[str, bytes | str]]]

_SERVER = "recorded"
_STOPPED = Notice("Stopped", "")
_UNFIT = (turn_limits.UNKNOWN_TOOL, turn_limits.INVALID_ARGUMENTS)


@frozen
class Replay:
    """The outcome: the number of requests, and the `diff` from the file ("" if there are none)."""

    requests: int
    diff: str


async def replay_chat(
    transcript: Transcript,
    resolve: engine.Resolve,
    ledger: ChatLedger,
    read: ReadAttachments,
    on_request: Callable[[int, Request], None],
) -> Replay:
    """Ask all of a chat's questions again. The `ledger` must not be stored on disk.

    `read` reads attachments. `on_request` receives each request and its exchange's number, from 1.
    """
    document = TextDocument(render(replace(transcript, exchanges=())), 0)
    tools, attachments, requests = _Tools(transcript), _Attachments(read), 0

    def settings(now: Transcript) -> engine.ChatSettings:
        own = resolve(now)
        request = replace(own.request, tool_room=None)
        return replace(
            own, tools=lambda catalogue: catalogue, request=request, scope="letter", skills=None
        )

    for number, exchange in enumerate(transcript.exchanges, 1):
        _put(document, question_blocks(exchange.question) if exchange.question else [])
        for answer in exchange.answers:
            _put(document, [[answer_line(answer.agent)]])
            tools.expect(answer)
            model = _Model(answer, number, attachments.results, on_request)
            await _answer(
                _ports(document, model, tools, ledger, attachments), settings, answer, model
            )
            await _close(document, number)
            requests += model.requests
    return Replay(requests, _difference(transcript, parse(document.text)))


def _ports(
    document: TextDocument,
    model: _Model,
    tools: _Tools,
    ledger: ChatLedger,
    attachments: _Attachments,
) -> engine.Ports:
    clock = TurnClock(PausableClock())
    return engine.Ports(document, model, tools, ledger, clock, Callbacks(), attachments=attachments)


def _put(document: TextDocument, blocks: Sequence[Sequence[str]]) -> None:
    """Append blocks to the text, and make their exchange the current exchange."""
    lines, added = document.lines, join_blocks(blocks)
    document.lines = [*lines, *([""] if lines and lines[-1] and added else []), *added]
    document.anchor = len(document.lines)


async def _close(document: TextDocument, number: int) -> None:
    """Remove the empty question that a turn leaves below the exchange with this number."""
    below = (await document.read()).transcript.exchanges[number:]
    if below:
        del document.lines[below[0].span.start :]


async def _answer(
    ports: engine.Ports, resolve: engine.Resolve, answer: Answer, model: _Model
) -> None:
    """Run turns until the recorded answer is used up, or until it waits as in the file."""
    resumptions = sum(map(is_resumption, answer.segments))
    while True:
        try:
            end = await engine.run_turn(ports, resolve)
        except _StoppedError:
            await engine.stopped(ports)
            end = engine.End("stopped")
        except _OverError:
            await ports.document.change(lambda s: edits.end_reply(s.lines, s.answer))
            return
        if end.kind == "waiting":
            if not await _decide(ports, resolve, answer):
                return
        elif end.kind in ("stopped", "interrupted") and model.resumptions < resumptions:
            model.resumptions += 1  # the user asked to continue
        else:
            return


async def _decide(ports: engine.Ports, resolve: engine.Resolve, answer: Answer) -> bool:
    """Make the file's choice on a waiting call; False if there is none, or it is rejected.

    If Parley refused a call without asking, refuse it again. The reason may be unknown here: for
    example, the call did not match its tool's schema.
    """
    observation = await engine.observe(ports, resolve)
    places = [proposal.span for proposal in observation.snapshot.answer.proposals]
    calls = dict(zip(places, answer.proposals, strict=False))
    pairs = [
        (call, calls.get(call.span))
        for call in observation.undecided()
        if isinstance(call, Proposal)
    ]
    results = [
        (call, proposal, proposal.result)
        for call, proposal in pairs
        if proposal and proposal.result
    ]
    if refused := [(call, result) for call, proposal, result in results if _is_refused(proposal)]:
        await refuse(ports, refused)
        return True
    for call, proposal, _ in results[:1]:
        choice, reason = _choice(proposal)
        outcome = await engine.choose(
            ports, resolve, call.span.start, engine.Press(choice, "command", reason)
        )
        return outcome.decided
    return False


def _is_refused(proposal: Proposal) -> bool:
    """Whether a call was refused, but not by the user."""
    is_no = proposal.choice is not None and proposal.choice not in YES
    return proposal.result is not None and proposal.result.status == "refused" and not is_no


def _choice(proposal: Proposal) -> tuple[Choice, str]:
    """The choice for this call alone, and the reason if the user declined."""
    if proposal.choice is None or proposal.choice in YES:
        return "yo", ""
    body = proposal.result.body if proposal.result else ""
    return "yn", body.removeprefix(DECLINED).strip()


class _StoppedError(Exception):
    """The user stopped the answer here."""


class _OverError(Exception):
    """The file contains no further reply."""


@frozen
class _Reply:
    """A reply as a round, and how often the answer had been resumed before it."""

    round: Round
    resumptions: int


def _replies(answer: Answer) -> Iterator[_Reply]:
    resumptions = 0
    for reply in replies(answer):
        if reply.has_content:
            yield _Reply(reply, resumptions)
        resumptions += sum(map(is_resumption, reply.segments))


class _Model:
    """Repeats the answer, reply by reply."""

    def __init__(
        self,
        answer: Answer,
        number: int,
        results: deque[Result],
        on_request: Callable[[int, Request], None],
    ) -> None:
        """`results` receives the results of the calls that others ran."""
        self._replies = deque(_replies(answer))
        self._results = results
        self.requests = 0
        self.resumptions = 0
        self._end = last_notice(answer)
        self._number = number
        self._on_request = on_request

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.requests += 1
        self._on_request(self._number, request)
        if not self._replies:
            raise self._failure()
        if self._replies[0].resumptions > self.resumptions:
            raise ModelError("it was resumed here", reason="resumed here")
        reply = self._replies.popleft().round
        while reply.broken and not reply.proposals and self._replies:  # a broken call
            reply = Round((*reply.segments, *self._replies.popleft().round.segments))
        for event in _events(reply, self._results):
            yield event
        if self._end and not (self._replies or reply.proposals):
            raise self._failure()
        if self._replies and not reply.proposals:  # it broke off after a call that others ran
            raise ModelError("it was resumed here", reason="resumed here")
        yield Finished("tool_calls" if reply.proposals else "complete")

    def _failure(self) -> Exception:
        """The exception that ends the answer as recorded in the file."""
        match self._end:
            case Notice("Stopped"):
                return _StoppedError()
            case Notice("Interrupted", reason):
                return ModelError(reason, reason=reason)
            case _:
                return _OverError()


def _events(reply: Round, results: deque[Result]) -> Iterator[Event]:
    gap = ""
    for segment in reply.segments:
        match segment:
            case Text(text):
                yield TextDelta(gap + text)
                gap = "\n\n"
            case Thinking(text=text, signature=signature, redacted=redacted):
                if text is not None:
                    yield ThinkingDelta(text)
                yield ThinkingEnd(signature, redacted)
                gap = ""
            case Proposal(call, result=result, ran_by=str(ran_by)):
                yield Ran(call, ran_by)
                if result:
                    results.append(result)
                    yield RanResult(call.id, Outcome("ok", ""))
                gap = ""
            case Proposal(call):
                yield Call(call)
            case _:
                pass


class _Attachments:
    """The files next to the chat, and the recorded results of the calls that others ran."""

    def __init__(self, read: ReadAttachments) -> None:
        self._read = read
        self.results = deque[Result]()

    async def read(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        return await self._read(attachments)

    async def result_of(self, outcome: Outcome) -> Result:
        return self.results.popleft()


class _Tools:
    """The tools that the chat's calls use, without unknown tools; the results come from the
    file.
    """

    def __init__(self, transcript: Transcript) -> None:
        proposals = (
            p for e in transcript.exchanges for answer in e.answers for p in answer.proposals
        )
        offered = {
            proposal.call.name for proposal in proposals if not turn_limits.is_unknown(proposal)
        }
        names = sorted(offered - {READ_RESULT.name}) or [_SERVER]  # no tools: no parsed calls
        self._catalogue = Catalogue(tuple((name, Tool(_SERVER, name)) for name in names))
        self._results = dict[tuple[str, str], deque[Result]]()

    def expect(self, answer: Answer) -> None:
        """Expect the calls of this answer next."""
        self._results = defaultdict(deque)
        for proposal in answer.proposals:
            if proposal.result and proposal.result.status != "refused":
                self._results[proposal.call.name, proposal.call.arguments].append(proposal.result)

    async def catalogue(self, narrow: engine.Narrow, calls: Sequence[str]) -> Catalogue:
        return narrow(self._catalogue)

    def go_without(self) -> None:
        pass

    async def call(self, tool: Tool, key: CallKey, request: Request, task: TaskHandle) -> Result:
        results = self._results[tool.name, key.arguments]
        return (
            results.popleft()
            if results
            else Result("error", "The chat has no result of this call.")
        )

    async def resources(self, server: str) -> Sequence[str]:
        return ()


# --- Comparison -----------------------------------------------------------------------------------


def _difference(one: Transcript, other: Transcript) -> str:
    """The difference in meaning between two chats, as a diff; "" for none."""
    normal = [_normal(one), _normal(other)]
    if normal[0] == normal[1]:
        return ""
    old, new = (render(transcript).splitlines(keepends=True) for transcript in normal)
    return "".join(unified_diff(old, new, "file", "replay"))


def _normal(transcript: Transcript) -> Transcript:
    """The chat without the user's parts, and without text that differs between machines."""
    exchanges = [
        replace(e, answers=tuple(map(_normal_answer, e.answers))) for e in transcript.exchanges
    ]
    if exchanges and not exchanges[-1].answers and exchanges[-1].question == Question():
        exchanges.pop()
    return replace(transcript, exchanges=tuple(exchanges), problems=())


def _normal_answer(answer: Answer) -> Answer:
    segments = list[Segment]()
    for segment in _normal_segments(answer.segments):
        match segments[-1:], segment:
            case [Text(before)], Text(text):
                segments[-1] = Text(f"{before}\n\n{text}")
            case _:
                segments.append(segment)
    return Answer(answer.agent, tuple(segments))


def _normal_segments(segments: Iterable[Segment]) -> Iterator[Segment]:
    for segment in segments:
        match segment:
            case Text(text):
                yield Text(text.rstrip(" \t\r"))
            case Thinking():
                yield Thinking(
                    "provider", "model", segment.text, segment.signature, segment.redacted
                )
            case Proposal(call=call, result=result):
                yield Proposal(replace(call, index=None), None, result and _normal_result(result))
            case Note() if notice := read_notice(segment):
                yield Note((_STOPPED if notice.kind == "Stopped" else notice).text)
            case _:
                pass


def _normal_result(result: Result) -> Result:
    """A result in comparable form: a refusal because of a tool's schema is worded differently here,
    because the schema is unknown.
    """
    is_unfit = result.status == "refused" and result.body.startswith(_UNFIT)
    return Result(result.status, _UNFIT[0] if is_unfit else result.body, result.attachments)
