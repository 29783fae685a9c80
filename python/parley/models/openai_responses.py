"""OpenAI's Responses API: turns a `Request` into a request body, and the stream into Parley's
events.

The provider is asked to store nothing. A reasoning model's thinking is returned in encrypted form;
the file keeps it as a thinking block's signature, which is sent again in the same tool loop. Calls
are identified by `call_id`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from parley.chat.history import CallOutcome, ModelTurn, Part, ProviderCall, Turn, UserTurn
from parley.chat.transcript import Attachment, Text, Thinking
from parley.late_patterns import late_pattern
from parley.media import PDF
from parley.models import decoder, openai_searches
from parley.models.accumulate import PartialCall
from parley.models.encode import (
    SHORT_ID,
    arguments_text,
    call_ids,
    fit_body,
    pieces,
    result_parts,
    result_text,
    wire_ids,
    wire_name,
)
from parley.models.events import Event, Reason
from parley.models.fields import mapping, number, sequence, text, token_counts
from parley.models.picture_limits import Picture, attachments_of, mixed
from parley.models.quirks import Quirk
from parley.models.request import Request, tool_fields
from parley.models.searches import SEARCH_NAME
from parley.models.thinking import is_reasoning, openai_effort, prefers_responses
from parley.tools.convert import Definition, shape
from parley.tools.convert import definition as mcp_definition

Body = dict[str, Any]

_LEAST_TOKENS = 16
"""The minimum: "Invalid 'max_output_tokens': integer below minimum value. Expected a value >=
16" (github.com/UKGovernmentBEIS/inspect_evals/issues/694, of 2025-11-21, read 2026-11-22)."""


def request_body(request: Request) -> Body:
    """The body of a streaming request, in the client's form; equal requests give equal bytes."""
    turns = request.turns()
    body: Body = {
        "model": request.model,
        "input": list(_items(request, turns)),
        "stream": True,
        "store": False,
    }
    if request.system.strip():
        body["instructions"] = request.system
    body |= tool_fields(request, turns, _lenient_tool, "none")
    included = list[str]()
    if request.may_search and (request.tools_on or "tools" in body):
        body["tools"] = [*body.get("tools", []), dict(openai_searches.TOOL)]
        included.append(openai_searches.SOURCES)
        if request.tools_on:
            body.pop("tool_choice", None)  # it would forbid searches, too
    if request.max_tokens is not None:
        body["max_output_tokens"] = max(request.max_tokens, _LEAST_TOKENS)
    if is_reasoning(request.model):
        # "The `encrypted_content` in `response.output_item.added` may be incomplete. This is
        # especially important when `store` is `false`" (openai 3.54,
        # types/responses/response_reasoning_item_param.py, 2026-11-22).
        included.append("reasoning.encrypted_content")
        body |= _reasoning(request)
    elif request.temperature is not None:
        body["temperature"] = request.temperature
    return fit_body(body | ({"include": included} if included else {}))


def _reasoning(request: Request) -> Body:
    effort = openai_effort(request.model, request.thinking, request.facts)
    is_shown = request.thinking.enabled and request.thinking.show
    fields = ({"effort": effort} if effort else {}) | ({"summary": "auto"} if is_shown else {})
    return {"reasoning": fields} if fields else {}


def tool(name: str, definition: Definition) -> Body:
    """The tool as `{type: "function", name, description, parameters}`."""
    return {"type": "function"} | shape(name, definition, "parameters")


def definition(tool: Mapping[str, Any]) -> Body:
    """A tool's MCP definition; raises ValueError if the tool is not a function."""
    if tool.get("type", "function") != "function":
        raise ValueError(
            'expected a Responses tool, {"type": "function", "name": …, "parameters": …}'
        )
    return mcp_definition(tool, "parameters")


def _lenient_tool(name: str, definition: Definition) -> Body:
    """A tool with `strict` off, because strict mode, the default, requires properties that may be
    missing in MCP schemas.
    """
    return tool(name, definition) | {"strict": False}


_ONLY_CHAT = late_pattern(
    r"only supported in v1/chat/completions"
    r"|not supported (in|with|by) (the )?(v1/)?responses"
    r"|(can ?not|does not|doesn't) (be used|work) with the responses api",
    re.IGNORECASE,
)


def is_for_other(model: str, status: int, words: str) -> bool:
    """Whether a refusal asks for Chat Completions, or the server does not have this endpoint."""
    is_unknown = status == 404 and model not in words
    return is_unknown or bool(_ONLY_CHAT.search(words))


def _items(request: Request, turns: Sequence[Turn]) -> Iterator[Body]:
    ids, known, images = wire_ids(turns, SHORT_ID), set[str](), request.images(turns)
    for turn in turns:
        visible = tuple(a.path for a in attachments_of(turn) if a.path in images) if images else ()
        key = ("responses", request.model, request.quirks, call_ids(turn, ids), visible)
        yield from pieces(turn, key, partial(_items_of, turn, ids, request, known, images))


def _items_of(
    turn: Turn,
    ids: Mapping[str, str],
    request: Request,
    known: set[str],
    images: Mapping[str, bytes],
) -> Iterator[Body]:
    match turn:
        case UserTurn(text):
            yield {"role": "user", "content": _parts(turn.parts, images, "\n\n") or text}
        case ModelTurn():
            yield from _parts_of(turn, request, known)
            yield from (_call(outcome, ids, request) for outcome in turn.calls)
            yield from (_result(outcome, ids, images) for outcome in turn.calls)


def _parts(parts: Iterable[str | Attachment], images: Mapping[str, bytes], gap: str) -> list[Body]:
    """The parts for content with visible pictures; empty if the content is only text."""
    return list(map(_part, mixed(parts, images, gap)))


def _part(part: str | Picture) -> Body:
    match part:
        case str():
            return {"type": "input_text", "text": part}
        case Picture(attachment=Attachment(media_type=kind)) if kind == PDF:
            return {"type": "input_file", "filename": part.name, "file_data": part.url}
        case Picture():
            return {"type": "input_image", "image_url": part.url}


def _parts_of(reply: ModelTurn, request: Request, known: set[str]) -> Iterator[Body]:
    """The items of a reply's parts."""
    searches = sum(isinstance(part, ProviderCall) for part in reply.parts)
    for step in _steps(reply.parts):
        match step:
            case [Text(text)]:
                phase = _phase(request, is_final=not (searches or reply.calls))
                yield {"role": "assistant", "content": text} | phase
            case _:
                searches -= sum(isinstance(part, ProviderCall) for part in step)
                yield from _step(step, reply, request, known)


def _steps(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """The parts in groups: each text by itself, and thinking with the searches below it. The first
    group may be empty."""
    step = list[Part]()
    for part in parts:
        match step[-1:], part:
            case ([Thinking() | ProviderCall()], ProviderCall()) | ([Thinking()], Thinking()):
                step.append(part)
            case _:
                yield step
                step = [part]
    yield step


def _step(
    step: Sequence[Part], reply: ModelTurn, request: Request, known: set[str]
) -> Iterator[Body]:
    """The items of thinking and the searches below it, or none of them.

    "Item of type 'reasoning' was provided without its required following item" also comes after a
    search (github.com/vercel/ai/issues/8379, read 2026-11-26), and a search needs its reasoning in
    the same way. Only models that do not reason have searches without it.
    """
    thoughts = [part for part in step if isinstance(part, Thinking)]
    searches = [part for part in step if isinstance(part, ProviderCall)]
    items = [unsealed(part) if request.goes_back(part, reply) else None for part in thoughts]
    if searches:
        can_go = reply.open and request.keep_thinking
        is_alone = not thoughts and is_reasoning(request.model)
        items += [
            _search_item(search, request) if can_go and not is_alone else None
            for search in searches
        ]
        ids = [item["id"] for item in items if item]
        if None in items or len(set(ids)) < len(ids) or not known.isdisjoint(ids):
            return
    for item in items:
        if item and item["id"] not in known:  # an item may be sent only once
            known.add(item["id"])
            yield item


def _search_item(search: ProviderCall, request: Request) -> Body | None:
    return openai_searches.sendable(request.raw(search, openai_searches.SEARCH_FORM))


def _phase(request: Request, *, is_final: bool) -> Body:
    """The label for a text, without which newer models perform worse. Text before calls or searches
    is not a final answer.
    """
    is_labelled = "no_phases" not in request.quirks and prefers_responses(request.model)
    return {"phase": "final_answer" if is_final else "commentary"} if is_labelled else {}


def _call(outcome: CallOutcome, ids: Mapping[str, str], request: Request) -> Body:
    name, arguments = (
        wire_name(outcome.call.name),
        arguments_text(outcome.call.arguments, exact="argument_objects" not in request.quirks),
    )
    return {
        "type": "function_call",
        "call_id": ids[outcome.id],
        "name": name,
        "arguments": arguments,
    }


def _result(outcome: CallOutcome, ids: Mapping[str, str], images: Mapping[str, bytes]) -> Body:
    parts = result_parts(outcome) if outcome.status == "ok" else ("Error:", *result_parts(outcome))
    output = _parts(parts, images, "\n") or result_text(outcome)
    return {"type": "function_call_output", "call_id": ids[outcome.id], "output": output}


# --- The stream -----------------------------------------------------------------------------------

# OpenAI has "max_output_tokens", "max_messages", "content_filter" and "steered" (openai 3.54,
# types/responses/response.py, 2026-11-22); reasons missing from the table are cuts like the first.
_CUT: Mapping[str, Reason] = {"max_output_tokens": "length", "content_filter": "content_filter"}

# `ResponseStatus` in openai 3.54, types/responses/response_status.py, 2026-11-24.
_FAILED = frozenset({"failed", "cancelled"})


class Decoder(decoder.Decoder):
    """Decodes one stream; calls are held back until the reply is complete, in the order of items.

    A thinking block is one reasoning item; its signature is the JSON needed to send it again.
    """

    def __init__(self, provider: str, model: str, quirks: tuple[Quirk, ...] = ()) -> None:
        super().__init__(provider, model, quirks)
        self._calls: dict[int, PartialCall] = {}
        self._streamed: dict[int, int] = {}
        """The length of each item's text so far."""
        self._summary = 0
        self._has_refused = False
        self._citations = openai_searches.Citations()
        self._annotated: set[int] = set()
        """The items for which annotations have arrived."""
        self._searches = 0

    def _prose_of(self, raw: Mapping[str, Any]) -> str | None:
        match raw:
            case {
                "type": "response.output_text.delta",
                "output_index": int(at),
                "delta": str(piece),
            } if type(at) is int and at in self._streamed:
                self._streamed[at] += len(piece)
                return piece
        return None

    def _take(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        at = number(raw, "output_index")
        match raw.get("type"):
            case "response.output_item.added":
                self._open(at, mapping(raw, "item"))
            case "response.output_text.delta" | "response.refusal.delta" as kind:
                self._has_refused = self._has_refused or kind == "response.refusal.delta"
                yield from self._text(at, text(raw, "delta"))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield from self._thought(at, number(raw, "summary_index"), text(raw, "delta"))
            case "response.function_call_arguments.delta" if at in self._calls:
                self._calls[at].add(text(raw, "delta"))
            case "response.output_text.annotation.added":
                self._annotated.add(at)
                yield from self._citations.cited(mapping(raw, "annotation"))
            case "response.output_item.done":
                yield from self._close(at, mapping(raw, "item"))
            case "response.completed" | "response.incomplete":
                self._note_model(mapping(raw, "response"))
                yield from self._over(mapping(raw, "response"))
            case "response.failed" | "error" | None as kind:
                self._fail(kind, raw)

    def _fail(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        error = (
            mapping(raw, "response").get("error") if kind == "response.failed" else raw.get("error")
        )
        if kind or error:
            raise decoder.stream_failed(self.provider, error or {**raw, "type": None})

    def _open(self, at: int, item: Mapping[str, Any]) -> None:
        match item.get("type"):
            case "message":
                self._part()
            case "reasoning":
                self._summary = 0
            case "function_call":
                self._open_call = self._calls[at] = PartialCall(
                    text(item, "call_id"), text(item, "name")
                )
            case openai_searches.KIND:
                self._open_call = PartialCall(text(item, "id"), SEARCH_NAME)
                self._open_call.is_running = True

    def _text(self, at: int, piece: str) -> Iterator[Event]:
        if piece:
            self._streamed[at] = self._streamed.get(at, 0) + len(piece)
            yield from self._say(piece)

    def _thought(self, at: int, summary: int, piece: str) -> Iterator[Event]:
        if piece:
            gap = _GAP if summary > self._summary and at in self._streamed else ""
            self._streamed[at] = self._streamed.get(at, 0) + len(piece)
            self._summary = summary
            yield from self._think(gap + piece)

    def _close(self, at: int, item: Mapping[str, Any]) -> Iterator[Event]:
        """Process a finished item, which contains the whole content, in case its pieces did not
        arrive.
        """
        match item.get("type"):
            case "message":
                yield from self._close_message(at, sequence(item, "content"))
            case openai_searches.KIND:
                yield from self._searched(item)
            case "reasoning":
                if at not in self._streamed:
                    yield from self._thought(at, 0, _GAP.join(_summaries(item)))
                yield from self._end_thinking("" if self._calls else sealed(item))
            case "function_call":
                call = self._calls.setdefault(at, PartialCall())
                call.id, call.name = (
                    call.id or text(item, "call_id"),
                    call.name or text(item, "name"),
                )
                call.arguments = text(item, "arguments") or call.arguments

    def _close_message(self, at: int, parts: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        is_new = at not in self._streamed
        if not is_new and self._streamed[at] < len(_whole(parts)):
            raise decoder.part_missing(self.provider)
        for part in parts:
            refusal = text(part, "refusal")
            if is_new:
                self._has_refused = self._has_refused or bool(refusal)
                yield from self._text(at, text(part, "text") or refusal)
            if at not in self._annotated:
                for annotation in sequence(part, "annotations"):
                    yield from self._citations.cited(annotation)

    def _searched(self, item: Mapping[str, Any]) -> Iterator[Event]:
        """A search that the provider has run. It is sent back only at its place, because the file
        would move it if it came below a call.
        """
        yield from self._interrupt()
        self._searches += openai_searches.is_search(item)
        yield from openai_searches.begun(item, goes_back=not self._calls)

    def _over(self, response: Mapping[str, Any]) -> Iterator[Event]:
        if usage := mapping(response, "usage"):
            counts = token_counts(usage, "input", "output")
            yield replace(counts, searches=openai_searches.billed(response, self._searches))
        status, cut = (
            text(response, "status"),
            text(mapping(response, "incomplete_details"), "reason"),
        )
        if status in _FAILED:
            raise decoder.stream_failed(
                self.provider, response.get("error") or f"the response was {status}"
            )
        is_cut = cut or status == "incomplete"
        reason: Reason = (
            "refusal" if self._has_refused else _CUT.get(cut, "length" if is_cut else "complete")
        )
        calls = [self._calls[at] for at in sorted(self._calls)]
        yield from self._conclude(calls, reason, "" if cut in _CUT else cut)

    def _say(self, piece: str) -> Iterator[Event]:
        self._citations.add(piece)
        return super()._say(piece)

    def _finish(self) -> Iterator[Event]:
        raise decoder.ended_early(self.provider)


def unstreamed(response: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """An unstreamed response as the payloads of an equivalent stream."""
    for index, item in enumerate(sequence(response, "output")):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}


_GAP = "\n\n"
"""The text between an item's summaries in the file."""


def sealed(item: Mapping[str, Any]) -> str:
    """A finished item's signature as one line of JSON; "" if the item cannot be sent again.

    If there are several summaries, it includes their lengths, because the file joins them and each
    may contain blank lines.
    """
    parts: dict[str, Any] = {key: text(item, key) for key in ("id", "encrypted_content")}
    lengths = list(map(len, _summaries(item)))
    more = {"summaries": lengths} if len(lengths) > 1 else {}
    return json.dumps(parts | more, separators=(",", ":")) if all(parts.values()) else ""


def unsealed(thinking: Thinking) -> dict[str, Any] | None:
    """The item that a signature represents; None if `sealed` did not create the signature."""
    try:
        parts = json.loads(thinking.signature)
    except (ValueError, RecursionError):
        return None
    match parts:
        case {"id": str(item_id), "encrypted_content": str(content)} if item_id and content:
            texts = _parted(thinking.text or "", parts.get("summaries"))
            summary = [{"type": "summary_text", "text": text} for text in texts if text]
            return {
                "type": "reasoning",
                "id": item_id,
                "summary": summary,
                "encrypted_content": content,
            }
        case _:
            return None


def _whole(parts: Iterable[Mapping[str, Any]]) -> str:
    """A message's text, without the spaces around it that a server may have removed."""
    return "".join(text(part, "text") or text(part, "refusal") for part in parts).strip()


def _summaries(item: Mapping[str, Any]) -> list[str]:
    return [words for part in sequence(item, "summary") if (words := text(part, "text"))]


def _parted(whole: str, lengths: object) -> list[str]:
    """Split text into summaries of these lengths; returns one summary if the text has changed."""
    parts, at = list[str](), 0
    for length in lengths if isinstance(lengths, list) else ():
        if not isinstance(length, int):
            return [whole]
        parts.append(whole[at : at + length])
        at += length + len(_GAP)
    return parts if all(parts) and _GAP.join(parts) == whole else [whole]
