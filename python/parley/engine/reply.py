"""Streams one of the model's replies into the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from parley.chat import edits
from parley.chat.edits import Edit, apply_edits
from parley.chat.reply_writer import ReplyWriter, thinker
from parley.chat.rounds import answered_by, is_answered_by, notes_of, plan_note
from parley.chat.transcript import Note, Proposal, Runner, Segment, Thinking, ToolCall
from parley.engine.notices import end_unfinished
from parley.engine.ports import CallBegan, CallEnded, End, Ports, Snapshot
from parley.engine.regeneration import edited
from parley.engine.request_pictures import with_pictures
from parley.errors import ModelError
from parley.iterators import closing
from parley.models.events import (
    AgentPlan,
    Answered,
    Aside,
    Call,
    Cited,
    Event,
    Finished,
    Ran,
    RanResult,
    RateLimits,
    Reason,
    ReplyEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    Usage,
    Withdrawn,
)
from parley.models.model_list import is_same_model
from parley.models.refusals import TOO_LONG
from parley.models.request import Request
from parley.models.searches import Footnotes
from parley.policy import status_texts
from parley.policy.approval import call_key, departed, written_key
from parley.policy.facts import Proposed
from parley.tools.catalogue import Tool
from parley.tools.results import Outcome


async def ask_model(ports: Ports, request: Request) -> End | None:
    """Stream one reply into the document; returns an End if the turn cannot continue."""
    ports.observer.status(_what_for(request))
    reply = _Reply(ports, request)
    await reply.begin()
    request = await with_pictures(ports, request)
    try:
        async with closing(ports.model.stream(request)) as events:
            async for event in events:
                await reply.take(event)
        await reply.end()
    except ModelError as error:
        await reply.close()
        await end_unfinished(ports, "Interrupted", error.reason)
        return End("interrupted", str(error))
    if news := reply.news():
        ports.observer.on_event(Aside(news))
    if trouble := reply.trouble():
        await end_unfinished(ports, "Interrupted", trouble.cause)
        return End(
            "interrupted",
            f"The reply is not complete: {trouble.cause}. What to do: {trouble.action}",
        )
    return None


def _what_for(request: Request) -> str:
    """The status before the model's first event."""
    results = _results(request)
    if not results:
        return status_texts.ANALYZING
    last = results[-1]
    return (
        status_texts.failed(last.call.name)
        if last.result and last.result.status == "error"
        else status_texts.PROCESSING
    )


def _results(request: Request) -> list[Proposal]:
    """The current answer's calls that have results."""
    exchange = request.transcript.exchanges[request.at]
    return [p for p in exchange.answers[-1].proposals if p.result] if exchange.answers else []


class _Trouble(NamedTuple):
    """The reason why a reply is incomplete, and what the user can do."""

    cause: str
    action: str


_AGAIN = ":ParleyRespond asks again"
_EMPTY = _Trouble("the model's reply was empty", _AGAIN)
TROUBLE: Mapping[Reason, _Trouble] = {
    "length": _Trouble("the reply was cut off at max_tokens", f"raise max_tokens; {_AGAIN}"),
    "context": _Trouble(TOO_LONG, f"{_AGAIN}, with less of the chat"),
    "refusal": _Trouble("the model refused to answer", f"rephrase the question; {_AGAIN}"),
    "content_filter": _Trouble(
        "the provider's content filter cut off the reply", f"rephrase the question; {_AGAIN}"
    ),
    "pause": _Trouble("the provider paused the reply before it was complete", _AGAIN),
}
"""The reasons why a reply can end incomplete."""


class _Reply:
    """A reply that is being written to the document: prose and thinking as they arrive, calls at
    the end."""

    def __init__(self, ports: Ports, request: Request) -> None:
        self.ports = ports
        self.provider, self.model = thinker(request.provider, request.model)
        self.catalogue = request.catalogue
        self.writer = ReplyWriter()
        self.calls = list[ToolCall]()
        self.ran = dict[str, str]()
        """The ids in the file of the calls that others ran, by the ids in the stream."""
        self._footnotes: Footnotes | None = None
        self.has_text = False
        self.finished: Finished | None = None
        self._requested, self._answered = request.model, ""
        self._plan = ""
        """The agent's last plan, as a list; "" if there is none."""
        self._block = False
        self._shows = request.thinking.show
        self._is_last = bool(_results(request)) or not (
            request.tools_on and request.catalogue.tools
        )
        """Whether the text may be the final answer. Before the first result, text only announces
        calls.
        """
        self._status = ""
        """The status for the current text or thinking."""
        self._unshown = ""
        self._is_void = False
        """Whether the text in the document is void, so that the next text replaces it."""

    async def begin(self) -> None:
        """Add an empty line for the reply."""
        await self.ports.document.open_stream(lambda s: edits.open_tip(s.lines, s.answer))

    async def take(self, event: Event) -> None:
        """Process one event from the model; hidden thinking is held back until its signature is
        known."""
        self._tell(event)
        if isinstance(event, ThinkingDelta) and not self._shows:
            self._unshown += event.text
            return
        match event:
            case Ran() | RanResult():
                await self._take_ran(event)
            case Cited(url, title):
                await self._cite(url, title)
            case AgentPlan(text):
                self._plan = text
                self.ports.observer.status(status_texts.planning(text))
            case _:
                self.ports.observer.on_event(event)
                await self._take_own(event)

    async def _cite(self, url: str, title: str) -> None:
        """Write a footnote's mark behind the text so far."""
        if self._footnotes is None:
            self._footnotes = Footnotes((await self.ports.document.read()).lines)
        if mark := self._footnotes.mark(url, title):
            await self.take(TextDelta(mark))

    async def close(self) -> None:
        """End the reply here: its text and its footnotes stay, and its calls are dropped."""
        if self._footnotes and (text := self._footnotes.definitions()):
            await self.take(TextDelta(text))
        await self.cut()

    async def _take_own(self, event: ReplyEvent) -> None:
        match event:
            case TextDelta(text):
                await self._append(self.writer.text(text))
            case ThinkingDelta(text):
                self._block = True
                await self._append(self.writer.thinking(self.provider, self.model, text))
            case ThinkingEnd(signature, redacted):
                await self._end_thinking(signature, redacted)
            case Call(call):
                self.ports.observer.status(status_texts.SELECTING)
                self.calls.append(call)
            case Finished():
                self.finished = event
            case Withdrawn():
                await self._withdraw()
            case Answered(model):
                self._answered = model
            case Usage() | RateLimits() | Aside():
                pass

    def _tell(self, event: Event) -> None:
        """Show when the model starts to think or to write."""
        match event:
            case ThinkingDelta():
                now = status_texts.THINKING
            case TextDelta():
                now = status_texts.FORMULATING if self._is_last else status_texts.WRITING
            case _:
                return
        if now != self._status:
            self._status = now
            self.ports.observer.status(now)

    async def _append(self, text: str) -> None:
        if not text:
            return
        self.has_text = True
        if self._is_void:
            self._is_void = False
            await self.ports.document.open_stream(_replacing, text)
        else:
            await self.ports.document.append(text)

    async def _end_thinking(self, signature: str, redacted: bool) -> None:
        unshown, self._unshown = self._unshown, ""
        if unshown and signature:  # the signature covers the text, so the text must be in the file
            self._block = True
            await self._append(self.writer.thinking(self.provider, self.model, unshown))
        thinking = (
            Thinking(self.provider, self.model, None, signature, redacted) if signature else None
        )
        if not self._block:
            await self._append(self.writer.sealed(thinking) if thinking else "")
            return
        self._block = False
        await self._append(self.writer.end_thinking())
        if thinking:
            await self.ports.document.settle()
            await self.ports.document.change(lambda s: edits.sign_thinking(s.answer, signature))

    async def _take_ran(self, event: Ran | RanResult) -> None:
        """Write a call that others run, or its outcome."""
        match event:
            case Ran(call, ran_by):
                await self._begin_ran(call, ran_by)
            case RanResult(call_id, outcome):
                await self._end_ran(self.ran.get(call_id, call_id), outcome)

    async def _begin_ran(self, call: ToolCall, ran_by: Runner) -> None:
        """Write the call, and an empty line for the rest of the reply."""
        self.ports.observer.status(status_texts.using([call.name]))
        await self.cut()
        written = list[Proposal]()

        def tip(shot: Snapshot) -> tuple[Edit, int]:
            used_ids = {proposal.call.id for proposal in shot.answer.calls}
            (unique,) = edits.written_calls([call], used_ids)
            written[:] = [Proposal(replace(unique, index=None), ran_by=ran_by)]
            return _with_tip(shot, written)

        await self.ports.document.open_stream(tip)
        await self.ports.document.settle()  # the edit, and thus the id, may come later
        self.ran[call.id] = written[0].call.id
        self.writer, self.has_text, self._block = ReplyWriter(), True, False
        self._status = ""
        tool = Tool(self.provider, call.name)
        self.ports.observer.on_event(CallBegan(written[0], tool))

    async def _end_ran(self, call_id: str, outcome: Outcome) -> None:
        """Write the outcome below its call, which may be in an earlier reply; an outcome without a
        call that waits for it is ignored."""
        result, ended = await self.ports.attachments.result_of(outcome), list[Proposal]()

        def change(shot: Snapshot) -> list[Edit]:
            ran = [p for p in shot.answer.calls if p.ran_by and p.call.id == call_id]
            ended[:] = [p for p in ran if p.result is None]
            return [edits.put_result(shot.lines, p, result) for p in ended[-1:]]

        await self.ports.document.settle()
        await self.ports.document.change(change)
        for proposal in ended[-1:]:
            readable = replace(proposal, result=result).readable_result or result
            self.ports.observer.on_event(CallEnded(proposal, readable))

    async def _withdraw(self) -> None:
        """Everything written so far is void. The next text replaces it in a single change."""
        await self.ports.document.settle()
        self.writer, self.has_text, self._block, self._unshown = ReplyWriter(), False, False, ""
        self._footnotes = None
        self._status, self._is_void = "", True

    async def end(self) -> None:
        """End a complete reply: write the held-back text and the calls, and remove the notice."""
        await self.close()
        if self.trouble():
            return
        if self.calls:
            await self._propose()
        else:
            await self.ports.document.change(
                lambda s: edits.end_reply(s.lines, s.answer, self._notes(s))
            )

    def _notes(self, shot: Snapshot) -> list[Note]:
        """A note with the agent's plan, and a note with the model that answered, if it is not the
        requested model; leaves out notes that the chat already has.
        """
        notes, earlier = list[Note](), list(notes_of(shot.transcript))
        if self._plan and not any(note.text == plan_note(self._plan) for note in earlier):
            notes.append(Note(plan_note(self._plan)))
        if self._answered and not is_same_model(self._requested, self._answered):
            text = answered_by(self._answered, self._requested)
            last = next((note for note in reversed(earlier) if is_answered_by(note)), None)
            notes += [] if last and last.text == text else [Note(text)]
        return notes

    async def _propose(self) -> None:
        """Write the calls to the document, and record that Parley wrote them."""
        view, proposals = self.ports.ledger.view(), list[Proposal]()

        def change(shot: Snapshot) -> list[Edit]:
            ran = {each.call.id for each in shot.answer.calls if each.ran_by}
            calls = edits.written_calls(self.calls, departed(shot.transcript, view) | ran)
            proposals[:] = map(Proposal, calls)
            return edits.end_reply(shot.lines, shot.answer, [*self._notes(shot), *proposals])

        await self.ports.document.change(change)
        tools = [(p, tool) for p in proposals if (tool := self.catalogue.get(p.call.name))]
        self.ports.ledger.record(
            Proposed(
                tuple(map(written_key, proposals)), tuple(call_key(p, tool) for p, tool in tools)
            )
        )

    async def cut(self) -> None:
        """Write the text that was held back."""
        await self._append(self.writer.end())
        await self.ports.document.settle()
        if self._is_void:  # no text has replaced it
            self._is_void = False
            await self.ports.document.change(lambda s: edits.withdraw(s.lines, s.answer))
            await self.begin()
            await self.ports.document.settle()

    def trouble(self) -> _Trouble | None:
        """Why the reply is incomplete; None if it is complete."""
        finished = self.finished or Finished("complete")
        if trouble := TROUBLE.get(finished.reason):
            return trouble._replace(cause=f"{trouble.cause}{_explanation(finished)}")
        is_empty = not self.has_text and not self.calls
        return (
            _EMPTY._replace(cause=f"{_EMPTY.cause}{_explanation(finished)}") if is_empty else None
        )

    def news(self) -> str:
        """The provider's remark about the end of a complete reply; "" if there is none."""
        said = "" if self.finished is None or self.trouble() else self.finished.detail
        return f"{self.provider} explained why it ended the reply: {said}" if said else ""


def _replacing(shot: Snapshot) -> tuple[Edit, int]:
    """The edit that replaces the reply so far by an empty line for a reply, and this line."""
    return _then_tip(shot, edits.withdraw(shot.lines, shot.answer))


def _with_tip(shot: Snapshot, segments: Sequence[Segment]) -> tuple[Edit, int]:
    """The edit that ends the text so far with segments and an empty line, and this line."""
    return _then_tip(shot, edits.end_reply(shot.lines, shot.answer, segments))


def _then_tip(shot: Snapshot, changes: Sequence[Edit]) -> tuple[Edit, int]:
    """The edit that makes these changes and adds an empty line for a reply, and this line."""
    bare, span = edited(shot, list(changes)), shot.answer.span
    edit, row = edits.open_tip(bare.lines, bare.answer)
    lines = apply_edits(bare.lines, [edit])
    end = len(lines) - (len(shot.lines) - span.end)
    return Edit(span.start, span.end, tuple(lines[span.start : end])), row


def _explanation(finished: Finished) -> str:
    """The provider's own explanation, to be appended to a cause."""
    return f": {finished.detail.rstrip('. ')}" if finished.detail else ""
