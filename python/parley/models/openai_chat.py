"""OpenAI's Chat Completions, which every compatible server implements differently.

Turns a `Request` into a request body, and the stream's chunks into Parley's events. Some
differences between servers are quirks; others are always accepted: several names for reasoning,
parallel calls, missing ids, nulls. Knows nothing about clients, keys or hosts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from parley.chat.history import CallOutcome, ModelTurn, Turn, UserTurn
from parley.chat.transcript import Attachment
from parley.late_patterns import late_pattern
from parley.media import PDF
from parley.models import decoder
from parley.models.accumulate import CallAccumulator
from parley.models.encode import (
    SHORT_ID,
    arguments_text,
    call_ids,
    fit_body,
    pieces,
    result_text,
    wire_ids,
    wire_name,
)
from parley.models.events import Event, Reason, Usage
from parley.models.fields import mapping, sequence, text, token_counts
from parley.models.picture_limits import Picture, attachments_of, mixed
from parley.models.quirks import Quirk
from parley.models.request import Request, tool_fields
from parley.models.think_tags import ThinkTags
from parley.models.thinking import is_reasoning, openai_effort, prefers_responses
from parley.tools.convert import Definition, shape
from parley.tools.convert import definition as mcp_definition

Body = dict[str, Any]

# "skip_thought_signature_validator" replaces the signature of a call that Gemini did not make
# (ai.google.dev/gemini-api/docs/thought-signatures, 2026-11-22).
SIGNATURE_BY_ANOTHER = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""Gemini's documented value for a call that another model made."""


RETURNED_BY = "Returned by"
"""The start of the line above a result's pictures."""


def request_body(request: Request) -> Body:
    """The body of a streaming request, in the client's form; equal requests give equal bytes."""
    turns = request.turns()
    body: Body = {"model": request.model, "messages": _messages(request, turns), "stream": True}
    body["stream_options"] = {"include_usage": True}
    body |= tool_fields(request, turns, tool, "none")
    if request.max_tokens is not None:
        is_new = "max_tokens" not in request.quirks or is_reasoning(request.model)
        body["max_completion_tokens" if is_new else "max_tokens"] = request.max_tokens
    if request.temperature is not None and not is_reasoning(request.model):
        body["temperature"] = request.temperature
    if effort := _effort(request, has_tools="tools" in body):
        body["reasoning_effort"] = effort
    return fit_body(body)


def tool(name: str, definition: Definition) -> Body:
    """The tool as `{type: "function", function: {name, description, parameters}}`."""
    return {"type": "function", "function": shape(name, definition, "parameters")}


def definition(tool: Mapping[str, Any]) -> Body:
    """A tool's MCP definition; raises ValueError if the tool is not a function."""
    function = tool.get("function")
    if tool.get("type", "function") != "function" or not isinstance(function, Mapping):
        raise ValueError(
            'expected a Chat Completions tool, {"type": "function", "function": {"name": …, '
            '"parameters": …}}'
        )
    return mcp_definition(function, "parameters")


# "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions.
# Please use /v1/responses instead." (github.com/pipecat-ai/pipecat/issues/4043, of 2026-03-16, read
# 2026-11-22).
_ONLY_RESPONSES = late_pattern(
    r"only supported in v1/responses"
    r"|not supported in the v1/chat/completions"
    r"|not supported .*v1/chat/completions.*v1/responses",
    re.IGNORECASE | re.DOTALL,
)


def is_for_other(model: str, status: int, words: str) -> bool:
    """Whether a refusal means that the model needs the Responses API."""
    return bool(_ONLY_RESPONSES.search(words))


def _effort(request: Request, *, has_tools: bool) -> str | None:
    if has_tools and prefers_responses(request.model):
        # "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        # (github.com/BerriAI/litellm/pull/34569, of 2026-07-24, read 2026-11-22)
        return "none"
    return openai_effort(request.model, request.thinking, request.facts)


def _messages(request: Request, turns: Sequence[Turn]) -> list[Body]:
    """Messages with alternating roles, because some servers refuse adjacent messages from the same
    role."""
    ids, images = wire_ids(turns, SHORT_ID), request.images(turns)
    current = max((n for n, turn in enumerate(turns) if isinstance(turn, UserTurn)), default=0)
    messages = [{"role": "system", "content": request.system}] if request.system.strip() else []
    for number_, turn in enumerate(turns):
        is_signed = "thought_signatures" in request.quirks and number_ > current
        visible = tuple(a.path for a in attachments_of(turn) if a.path in images) if images else ()
        key = (
            "chat",
            request.quirks,
            request.keep_thinking,
            is_signed,
            call_ids(turn, ids),
            visible,
        )
        make = partial(_messages_of, turn, ids, request, images, is_signed=is_signed)
        first, *more = pieces(turn, key, make)
        _add(messages, first)
        messages += more
    return messages


def _add(messages: list[Body], message: Body) -> None:
    if messages and messages[-1]["role"] == message["role"]:
        content = _joined(messages[-1]["content"], message["content"])
        messages[-1] = {**messages[-1], **message, "content": content}
    else:
        messages.append(message)


def _joined(first: str | list[Body] | None, second: str | list[Body] | None) -> str | list[Body]:
    """Join the contents of two messages, as parts if either has parts."""
    if isinstance(first, list) or isinstance(second, list):
        contents = [first or [], second or []]
        return [part for c in contents for part in ([_part(c)] if isinstance(c, str) else c)]
    return "\n\n".join(filter(None, [first, second]))


def _messages_of(
    turn: Turn,
    ids: Mapping[str, str],
    request: Request,
    images: Mapping[str, bytes],
    *,
    is_signed: bool,
) -> list[Body]:
    if isinstance(turn, UserTurn):
        content = _parts(turn.parts, images, "\n\n")
        return [{"role": "user", "content": content or turn.text}]
    results = [_result(outcome, ids, request) for outcome in turn.calls]
    return [_message(turn, ids, request, is_signed=is_signed), *results, *_looks(turn, ids, images)]


def _looks(reply: ModelTurn, ids: Mapping[str, str], images: Mapping[str, bytes]) -> list[Body]:
    """The pictures in results, as a user message right after the results, which can contain only
    text.

    "content: Union[str, Iterable[ChatCompletionContentPartTextParam]]" (openai 3.54,
    types/chat/chat_completion_tool_message_param.py, 2026-11-23). In the results themselves, text
    describes the pictures.
    """
    parts = list[Body]()
    for outcome in reply.calls:
        if pictures := [a for a in outcome.parts if isinstance(a, Attachment) and a.path in images]:
            title = f"{RETURNED_BY} {wire_name(outcome.call.name)} ({ids[outcome.id]}):"
            parts += _parts([title, *pictures], images, "\n")
    return [{"role": "user", "content": parts}] if parts else []


def _parts(parts: Iterable[str | Attachment], images: Mapping[str, bytes], gap: str) -> list[Body]:
    """The parts for content with visible pictures; empty if the content is only text."""
    return list(map(_part, mixed(parts, images, gap)))


def _part(part: str | Picture) -> Body:
    match part:
        case str():
            return {"type": "text", "text": part}
        case Picture(attachment=Attachment(media_type=kind)) if kind == PDF:
            return {"type": "file", "file": {"filename": part.name, "file_data": part.url}}
        case Picture():
            return {"type": "image_url", "image_url": {"url": part.url}}


def _message(
    reply: ModelTurn, ids: Mapping[str, str], request: Request, *, is_signed: bool
) -> Body:
    message: Body = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [_call(outcome, ids, request) for outcome in reply.calls]
        if is_signed and "extra_content" not in message["tool_calls"][0]:
            message["tool_calls"][0]["extra_content"] = SIGNATURE_BY_ANOTHER
    return message


def _call(outcome: CallOutcome, ids: Mapping[str, str], request: Request) -> Body:
    arguments = arguments_text(
        outcome.call.arguments, exact="argument_objects" not in request.quirks
    )
    function = {"name": wire_name(outcome.call.name), "arguments": arguments}
    return {"id": ids[outcome.id], "type": "function", "function": function} | _extra(
        outcome, request
    )


def _extra(outcome: CallOutcome, request: Request) -> Body:
    """The signature that Gemini added to a call; other servers do not know the field."""
    is_known = "thought_signatures" in request.quirks and request.keep_thinking
    extra = json.loads(outcome.call.extra) if is_known and outcome.call.extra else {}
    return {"extra_content": extra["extra_content"]} if extra.get("extra_content") else {}


def _result(outcome: CallOutcome, ids: Mapping[str, str], request: Request) -> Body:
    message = {"role": "tool", "tool_call_id": ids[outcome.id], "content": result_text(outcome)}
    name = {"name": wire_name(outcome.call.name)} if "result_names" in request.quirks else {}
    return message | name


# --- The stream -----------------------------------------------------------------------------------

# OpenAI's own reasons are `stop`, `length`, `tool_calls`, `content_filter` and "`function_call`
# (deprecated)" (openai 3.54, types/chat/chat_completion_chunk.py, 2026-11-22). The others come from
# compatible servers, and no source was kept for them.
_REASONS: Mapping[str, Reason] = {
    "stop": "complete",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "model_length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "spii": "content_filter",
    "refusal": "refusal",
}
_TELLING = frozenset({"safety", "recitation", "prohibited_content", "blocklist", "spii"})
"""Reasons that are more specific than Parley's."""
_PROSE = frozenset({"role", "content"})
_FAILURES = frozenset({"error", "malformed_function_call"})
_THOUGHTS = ("reasoning_content", "reasoning")
"""The fields for thinking; DeepSeek and vLLM use the first, Ollama and OpenRouter the second."""


class Decoder(decoder.Decoder):
    """Decodes one stream; everything that the last chunk may change is held back until the end."""

    def __init__(self, provider: str, model: str, quirks: tuple[Quirk, ...] = ()) -> None:
        super().__init__(provider, model, quirks)
        self._tags = ThinkTags() if "think_tags" in quirks else None
        self._has_refused = False
        self._calls = CallAccumulator()
        self._usage = Usage()
        self._stop = ""

    def _prose_of(self, raw: Mapping[str, Any]) -> str | None:
        choices = raw.get("choices")
        if type(choices) is not list or len(choices) != 1 or raw.get("usage") or raw.get("error"):
            return None
        choice = choices[0]
        if (
            type(choice) is not dict
            or choice.get("finish_reason") not in (None, "")
            or not (self._tags is None or self._tags.is_past)
        ):
            return None
        delta = choice.get("delta")
        if type(delta) is not dict or not delta.keys() <= _PROSE:
            return None
        content = delta.get("content")
        return content if type(content) is str else None

    def _take(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        if raw.get("error"):
            raise decoder.stream_failed(self.provider, raw["error"])
        self._note_model(raw)
        for choice in sequence(raw, "choices")[:1]:
            yield from self._delta(mapping(choice, "delta"))
            self._stop = text(choice, "finish_reason").lower() or self._stop
        if raw.get("usage"):
            usage = token_counts(mapping(raw, "usage"), "prompt", "completion")
            if usage != self._usage:  # some servers report it in every chunk
                self._usage = usage
                yield usage

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Event]:
        for key in _THOUGHTS:
            if isinstance(delta.get(key), str) and delta[key]:
                yield from self._think(delta[key])
                break
        if content := text(delta, "content"):
            yield from self._content(content)
        if refusal := text(delta, "refusal"):
            self._has_refused = True
            yield from self._say(refusal)
        pieces = sequence(delta, "tool_calls")
        if legacy := mapping(delta, "function_call"):
            pieces = [*pieces, {"index": 0, "function": legacy}]
        for piece in pieces:
            self._part()
            self._open_call = self._calls.feed(piece)

    def _content(self, content: str) -> Iterator[Event]:
        for kind, piece in self._tags.feed(content) if self._tags else [("text", content)]:
            yield from self._tagged(kind, piece)

    def _tagged(self, kind: str, piece: str) -> Iterator[Event]:
        match kind:
            case "thinking":
                yield from self._think(piece)
            case "end":
                yield from self._end_thinking()
            case _:
                yield from self._say(piece)

    def _finish(self) -> Iterator[Event]:
        if not self._stop:
            raise decoder.ended_early(self.provider)
        if self._stop in _FAILURES:
            raise decoder.stream_failed(self.provider, {"type": self._stop})
        for kind, piece in self._tags.end() if self._tags else []:
            yield from self._tagged(kind, piece)
        reason = "refusal" if self._has_refused else _REASONS.get(self._stop, "complete")
        is_told = self._stop in _REASONS and self._stop not in _TELLING
        yield from self._conclude(self._calls.all, reason, "" if is_told else self._stop)


def unstreamed(completion: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A whole completion as one chunk."""
    choices = [
        {**choice, "delta": choice.get("message")} for choice in sequence(completion, "choices")
    ]
    yield {**completion, "choices": choices}
