"""The wire formats for laws: how to send a request in each, its check, and a body's content in a
common form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from parley.chat.history import ModelTurn, history
from parley.chat.reader import parse
from parley.chat.transcript import (
    Answer,
    Exchange,
    Question,
    Segment,
    Thinking,
    Transcript,
)
from parley.demo.signing import seal, sign
from parley.models import anthropic, openai_chat, openai_responses
from parley.models.quirks import COMPATIBLE, Quirk
from parley.models.request import Request
from parley.tools.catalogue import Catalogue, Tool
from tests.strategies import marked_files, transcripts
from tests.strict import check_anthropic, check_openai, check_responses

Body = dict[str, Any]
Said = tuple[str, ...]
"""`("user", text)`, `("assistant", text)`, `("thinking", signature)`, `("call", id, name)` or
`("result", id, content, "ok" or "failed")`."""


@dataclass(frozen=True)
class WireFormat:
    """A format with a model that uses it."""

    name: str
    adapter: ModuleType
    provider: str
    model: str
    check: Callable[[Body], list[str]]
    said: Callable[[Body], Iterator[Said]]
    quirks: tuple[Quirk, ...] = ()

    def __str__(self) -> str:
        return self.name

    def ask(self, transcript: Transcript, at: int, **further: Any) -> Request:
        """A request for an exchange in the transcript."""
        request = Request(transcript, at, self.provider, self.model, "Be brief.", catalogue=TOOLS)
        return replace(request, quirks=self.quirks, **further)

    def body(self, request: Request) -> Body:
        """The request's body as the server receives it."""
        body: Body = json.loads(
            json.dumps(self.adapter.request_body(request), ensure_ascii=False).encode()
        )
        return body


TOOLS = Catalogue.of(
    Tool(
        "demo", name, description=name, input_schema={"type": "object", "properties": {"query": {}}}
    )
    for name in ("web_search", "read_file")
)


def _anthropic_said(body: Body) -> Iterator[Said]:
    for message in body["messages"]:
        for block in message["content"]:
            match block:
                case {"type": "text", "text": text}:
                    yield message["role"], text
                case {"type": "thinking", "signature": signature}:
                    yield "thinking", signature
                case {"type": "redacted_thinking", "data": signature}:
                    yield "thinking", signature
                case {"type": "tool_use", "id": call_id, "name": name}:
                    yield "call", call_id, name
                case {"type": "tool_result", "tool_use_id": call_id, "content": content}:
                    yield "result", call_id, content, "failed" if block.get("is_error") else "ok"
                case _:
                    raise AssertionError(block)


def _told(call_id: str, content: str) -> Said:
    bare = content.removeprefix("Error: ")
    return "result", call_id, bare, "failed" if bare != content else "ok"


def _chat_said(body: Body) -> Iterator[Said]:
    for message in body["messages"]:
        match message:
            case {"role": "system"}:
                pass
            case {"role": "tool", "tool_call_id": call_id, "content": content}:
                yield _told(call_id, content)
            case {"role": role, "content": content}:
                if content is not None:
                    yield role, content
                for call in message.get("tool_calls", []):
                    yield "call", call["id"], call["function"]["name"]


def _responses_said(body: Body) -> Iterator[Said]:
    for item in body["input"]:
        match item:
            case {"type": "reasoning", "encrypted_content": sealed}:
                yield "thinking", sealed
            case {"type": "function_call", "call_id": call_id, "name": name}:
                yield "call", call_id, name
            case {"type": "function_call_output", "call_id": call_id, "output": content}:
                yield _told(call_id, content)
            case {"role": role, "content": content}:
                yield role, content


_chat = partial(WireFormat, adapter=openai_chat, said=_chat_said)
CLAUDE = WireFormat(
    "anthropic", anthropic, "anthropic", "claude-sonnet-5-5", check_anthropic, _anthropic_said
)
MANUAL = replace(CLAUDE, name="anthropic-manual", model="claude-sonnet-4-5")
OPENAI = _chat(name="openai", provider="openai", model="gpt-4.1", check=check_openai)
GEMINI = _chat(
    name="gemini",
    provider="gemini",
    model="gemini-3-pro",
    check=partial(check_openai, host="gemini"),
    quirks=(*COMPATIBLE, "thought_signatures"),
)
OLLAMA = _chat(
    name="ollama",
    provider="ollama",
    model="qwen3",
    check=partial(check_openai, host="ollama"),
    quirks=COMPATIBLE,
)
RESPONSES = WireFormat(
    "responses", openai_responses, "openai", "gpt-5.4", check_responses, _responses_said
)
FORMATS = [CLAUDE, MANUAL, OPENAI, GEMINI, OLLAMA, RESPONSES]


def own(transcript: Transcript, form: WireFormat) -> Transcript:
    """The transcript with some of its thinking signed by the wire's own model, because no other
    thinking is valid there.
    """
    numbers = iter(range(1_000_000))

    def signed(segment: Segment) -> Segment:
        if (
            not isinstance(segment, Thinking)
            or segment.provider != "anthropic"
            or not segment.signature
        ):
            return segment
        mine = replace(segment, provider=form.provider, model=form.model)
        if form.adapter is openai_responses:
            kept = {"id": f"rs_{next(numbers)}", "encrypted_content": seal(segment.text or "")}
            return replace(mine, redacted=False, signature=json.dumps(kept))
        return replace(
            mine, signature=seal("hidden") if segment.redacted else sign(segment.text or "")
        )

    return with_answers(transcript, lambda a: replace(a, segments=tuple(map(signed, a.segments))))


def with_answers(transcript: Transcript, change: Callable[[Answer], Answer]) -> Transcript:
    """The transcript with each answer changed."""
    return replace(
        transcript,
        exchanges=tuple(
            replace(e, answers=tuple(map(change, e.answers))) for e in transcript.exchanges
        ),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Transcript, int]:
    """A transcript that any file may contain, and one of its exchanges with a question to send."""
    transcript = draw(st.one_of(transcripts(), transcripts(), marked_files.map(parse)))
    exchanges = transcript.exchanges or (Exchange(Question()),)
    at = draw(st.integers(0, len(exchanges) - 1))
    turns = history(replace(transcript, exchanges=exchanges), at, max_full_exchanges=None)
    if not turns or (isinstance(turns[-1], ModelTurn) and not turns[-1].calls):
        begun = replace(exchanges[at], answers=(*exchanges[at].answers, Answer(None)))
        exchanges = (*exchanges[:at], begun, *exchanges[at + 1 :])
    return replace(transcript, exchanges=exchanges), at
