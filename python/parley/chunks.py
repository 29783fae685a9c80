"""The chunks of an answer that the library yields, and their creation from events.

Chunks are plain tables that can be dumped as JSON and differ in their `type`. The chunks' messages
are worded for the library. This module knows the engine's events, but not who runs the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NotRequired, TypeAlias, TypedDict

from parley import engine
from parley.chat.call_lines import proposal_json
from parley.chat.transcript import Proposal, Result
from parley.models.events import Finished, TextDelta, ThinkingDelta, Usage, Withdrawn


class TextChunk(TypedDict):
    """A piece of the answer (`content`) or of the model's thinking, or a hint, or a status."""

    type: Literal["thinking", "content", "hint", "status"]
    content: str


class CallChunk(TypedDict):
    """A call that is sent to its server; `content` is the call as JSON.

    If the model's provider, or an agent by its own rules, runs the call, `ran_by` says so.
    """

    type: Literal["tool_start"]
    content: str
    id: str
    name: str
    ran_by: NotRequired[Literal["provider", "agent"]]


class ResultChunk(TypedDict):
    """A call's result; if a call was `refused`, it never ran, and `is_error` is true."""

    type: Literal["tool_result"]
    content: str
    id: str
    name: str
    is_error: bool
    refused: bool
    ran_by: NotRequired[Literal["provider", "agent"]]


class ErrorChunk(TypedDict):
    """A failure: with an `id`, the reason why the call was refused; otherwise, the reason why the
    answer is incomplete.
    """

    type: Literal["error"]
    error: str
    id: NotRequired[str]


class TokenCounts(TypedDict):
    """The fields of a `Usage`: `Usage(**counts)` creates one."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    thinking: int
    searches: int


class UsageChunk(TypedDict):
    """The tokens of one request; yielded when the reply is complete."""

    type: Literal["usage"]
    usage: TokenCounts


class WithdrawnChunk(TypedDict):
    """The text and thinking since the last call or result, or since the start, are void: the reply
    broke off, and another reply replaces it.
    """

    type: Literal["withdrawn"]


class DoneChunk(TypedDict):
    """The last chunk."""

    type: Literal["done"]


Chunk: TypeAlias = (
    TextChunk | CallChunk | ResultChunk | ErrorChunk | UsageChunk | WithdrawnChunk | DoneChunk
)
ChunkType: TypeAlias = Literal[
    "thinking",
    "content",
    "hint",
    "status",
    "tool_start",
    "tool_result",
    "error",
    "usage",
    "withdrawn",
    "done",
]


_IN_PYTHON = {
    ":ParleyRespond! asks again": "call regenerate() again",
    " (:ParleyAllow widens it)": "",
    ":ParleyRespond asks again": "send the message again",
    "try :ParleyRespond again": "send the message again",
    ":ParleyRespond": "send the message again",
    ":ParleyRequest shows what was sent": "see session.transcript for what was sent",
    ". :ParleyTools shows why": "",
    ". See :ParleyTools": "",
    ":ParleyLogin": "parley login",
    ":ParleyCompact summarizes older exchanges": "a new Session begins without them",
    ":ParleyAgent": "Session(agent=NAME)",
    ":ParleyInstall": "reinstall Parley",
    " before you start Neovim": " in the environment",
    ", then press ": ", then give ",
}
"""The editor's wording of remedies, and the wording for Python programs."""


def in_python(text: str) -> str:
    """A message, reworded for users of the library."""
    for editors, own in _IN_PYTHON.items():
        text = text.replace(editors, own)
    return text


class Chunks:
    """Converts a turn's events to chunks."""

    def __init__(self) -> None:
        self._usage: Usage | None = None

    def of(self, what: engine.TurnEvent) -> Iterator[Chunk]:
        """The chunks for an event; for many events, there are none."""
        match what:
            case TextDelta(text):
                yield {"type": "content", "content": text}
            case ThinkingDelta(text):
                yield {"type": "thinking", "content": text}
            case engine.CallBegan(proposal, _):
                yield _start(proposal)
            case engine.CallEnded(proposal, result):
                yield _result(proposal, result)
            case engine.CallRefused(proposal, result):
                yield {"type": "error", "error": result.text, "id": proposal.call.id}
                yield _result(proposal, result)
            case engine.Aside(news) | engine.MissingTools(message=news):
                yield {"type": "hint", "content": in_python(news)}
            case Withdrawn():
                yield {"type": "withdrawn"}
            case Usage():
                self._usage = what
            case Finished() if self._usage:
                yield {"type": "usage", "usage": _counts(self._usage)}
                self._usage = None
            case _:
                pass


def _counts(usage: Usage) -> TokenCounts:
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "thinking": usage.thinking,
        "searches": usage.searches,
    }


def _start(proposal: Proposal) -> CallChunk:
    call, content = proposal.call, proposal_json(proposal.call)
    chunk = CallChunk(type="tool_start", content=content, id=call.id, name=call.name)
    if proposal.ran_by:
        chunk["ran_by"] = proposal.ran_by
    return chunk


def _result(proposal: Proposal, result: Result) -> ResultChunk:
    chunk = ResultChunk(
        type="tool_result",
        content=result.text,
        id=proposal.call.id,
        name=proposal.call.name,
        is_error=result.status != "ok",
        refused=result.status == "refused",
    )
    if proposal.ran_by:
        chunk["ran_by"] = proposal.ran_by
    return chunk
