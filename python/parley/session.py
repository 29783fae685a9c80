"""Parley as a library: a conversation in memory, driven by the same engine as the editor's.

async with Session(settings) as session:
    async for chunk in session.send_message_stream("What is the price of GOOGL?"):
        ...
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Literal, Self, TypedDict

from parley import engine
from parley.chat.calls import proposal_json
from parley.chat.grammar import fit
from parley.chat.rounds import rounds
from parley.chat.transcript import Choice, Proposal, Question, Text, is_blank
from parley.chat.writer import join_blocks, question_blocks
from parley.errors import ParleyError
from parley.models.events import TextDelta, ThinkingDelta
from parley.runtime.app import App
from parley.runtime.tasks import Callbacks
from parley.settings.start import Ready, Refusal
from parley.settings.values import Settings
from parley.storage.chat_file import TextDocument
from parley.storage.ledger import LedgerFile

ChunkType = Literal["thinking", "tool_start", "tool_result", "content", "hint", "error", "done"]
Approve = Callable[[Proposal], Choice]


class Chunk(TypedDict, total=False):
    """One event: `content` is thinking, text, a call's JSON, a result or a hint, `error` what failed."""

    type: ChunkType
    content: str
    error: str


class Session:
    """A conversation. `approve` decides on tool calls; without it, those that no rule allows are declined."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        agent: str | None = None,
        approve: Approve | None = None,
        transcript: str = "",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.app = App(settings or Settings(), environ, LedgerFile(None))
        self._agent = agent
        self._approve = approve or (lambda _: "yn")
        self._document = TextDocument(transcript, 0)

    @property
    def transcript(self) -> str:
        """The conversation as a chat file's text: save it, and go on from it another day."""
        return self._document.text

    async def send_message_stream(self, text: str) -> AsyncIterator[Chunk]:
        """Ask, and yield what happens until the answer is complete; ends with `done`."""
        queue = asyncio.Queue[Chunk | None]()
        turn = asyncio.ensure_future(self._turn(text, queue))
        try:
            while (chunk := await queue.get()) is not None:
                yield chunk
        finally:
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)
        turn.result()  # what is no ParleyError is a bug, and not to be hidden
        yield {"type": "done"}

    async def process_message(self, text: str) -> str:
        """Ask, and return the text of the complete answer. Raises ParleyError where there is none."""
        async for chunk in self.send_message_stream(text):
            if chunk["type"] == "error":
                raise ParleyError(chunk["error"])
        snapshot = await self._document.read()
        answered = [e for e in snapshot.transcript.exchanges if e.answers]
        segments = rounds(answered[-1].answers[-1])[-1].segments
        return "\n\n".join(segment.text for segment in segments if isinstance(segment, Text))

    async def _turn(self, text: str, queue: asyncio.Queue[Chunk | None]) -> None:
        try:
            if hint := self._begin(text):
                queue.put_nowait({"type": "hint", "content": hint})
            before = list(self._document.lines)
            self._ask(text)
            end = await self._run(queue)
            if end.kind == "nothing":
                self._document.lines = before  # the question stands in the text that is sent once more
            if end.kind in ("interrupted", "stopped", "nothing"):
                queue.put_nowait({"type": "error", "error": end.message})
        except ParleyError as error:
            queue.put_nowait({"type": "error", "error": str(error)})
        finally:
            queue.put_nowait(None)

    def _begin(self, text: str) -> str:
        """A hint for who asks, "" for none. Raises ParleyError where no turn may begin."""
        transcript = engine.Snapshot.of(self.transcript, 0).transcript
        match self.app.start(transcript, "", self._agent, question=text):
            case Ready(hint):
                return hint
            case Refusal("no question"):
                raise ParleyError("nothing is asked: the text is empty")
            case Refusal("unconfirmed agent", wish):
                name = self.app.agent_name(transcript, None)
                raise ParleyError(
                    f"the transcript asks for {wish}: if that is what you want, say agent={name!r}"
                )
            case Refusal("unknown agent", problem):
                raise ParleyError(f"{problem} (agent=NAME)")
            case Refusal("broken front matter", problem):
                raise ParleyError(f"transcript: {problem}")
            case Refusal(_, problem):
                raise ParleyError(problem)

    async def _run(self, queue: asyncio.Queue[Chunk | None]) -> engine.End:
        observer = Callbacks(on_event=lambda what: _tell(queue, what))
        ports = self.app.ports(self._document, "", observer)
        resolve = self.app.resolve(self._agent)
        while (end := await engine.run_turn(ports, resolve)).kind == "waiting":
            await self._decide(ports, resolve)
        return end

    async def _decide(self, ports: engine.Ports, resolve: engine.Resolve) -> None:
        """Let `approve` decide on the first call that is undecided. Raises ParleyError where it cannot."""
        call = (await engine.observe(ports, resolve)).undecided()[0]
        choice = self._approve(call) if isinstance(call, Proposal) else "yn"
        outcome = await engine.choose(ports, resolve, call.span.start, choice, "command")
        if not outcome.decided:
            raise ParleyError(outcome.message)

    def _ask(self, text: str) -> None:
        """The question below all there is; an empty one that waits is filled."""
        lines = self._document.lines
        question = join_blocks(question_blocks(Question((Text(fit(_without_blank_edges(text))),))))
        exchanges = engine.Snapshot.of(self.transcript, 0).transcript.exchanges
        if exchanges and not exchanges[-1].answers and exchanges[-1].question == Question():
            del lines[exchanges[-1].span.start :]
        self._document.anchor = len(lines) + (1 if lines and lines[-1] else 0)
        lines += ["", *question] if lines and lines[-1] else question

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.app.close()


def _without_blank_edges(text: str) -> str:
    lines = text.split("\n")
    filled = [number for number, line in enumerate(lines) if not is_blank(line)]
    return "\n".join(lines[filled[0] : filled[-1] + 1]) if filled else ""


def _tell(queue: asyncio.Queue[Chunk | None], what: engine.TurnEvent) -> None:
    match what:
        case TextDelta(text):
            queue.put_nowait({"type": "content", "content": text})
        case ThinkingDelta(text):
            queue.put_nowait({"type": "thinking", "content": text})
        case engine.CallBegan(proposal, _):
            queue.put_nowait({"type": "tool_start", "content": proposal_json(proposal.call)})
        case engine.CallEnded(_, result):
            queue.put_nowait({"type": "tool_result", "content": result.text})
        case engine.Aside(news):
            queue.put_nowait({"type": "hint", "content": news})
        case _:
            pass
