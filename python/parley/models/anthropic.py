"""Anthropic's Messages API: turns a `Request` into a request body, and the stream into Parley's
events.

As of API version 2026-10-21. Temperature is never sent, because that version refuses even the
default value. Knows nothing about clients, keys or hosts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from parley.chat.history import CallOutcome, ModelTurn, ProviderCall, Turn, UserTurn
from parley.chat.transcript import Attachment, Text, Thinking
from parley.media import PDF
from parley.models import anthropic_searches as searches
from parley.models import decoder
from parley.models.accumulate import PartialCall, finished_calls
from parley.models.decoder import sound_signature
from parley.models.encode import (
    STRICT_ID,
    arguments_object,
    bare_text,
    call_ids,
    fit_body,
    pieces,
    result_parts,
    wire_ids,
    wire_name,
)
from parley.models.events import (
    Aside,
    Cited,
    Event,
    Finished,
    Paused,
    Ran,
    RanResult,
    Reason,
    ThinkingEnd,
    Usage,
)
from parley.models.fields import mapping, number, sequence, text
from parley.models.picture_limits import Picture, attachments_of, mixed
from parley.models.quirks import Quirk
from parley.models.received_blocks import ReceivedBlocks
from parley.models.request import Request, tool_fields
from parley.models.searches import SEARCH_NAME, without_footnotes
from parley.models.thinking import ThinkingFields, claude_thinking
from parley.text import one_line
from parley.tools.convert import Definition, shape
from parley.tools.convert import definition as mcp_definition

Body = dict[str, Any]
Block = dict[str, Any]


def request_body(request: Request) -> Body:
    """The body of a streaming request, in the client's form; equal requests give equal bytes."""
    turns = request.turns()
    messages = _messages(turns, request)
    if request.paused:
        messages.append({"role": "assistant", "content": list(request.paused)})
    mode = _thinking(request)
    body: Body = {
        "model": request.model,
        "max_tokens": mode.max_tokens,
        "messages": messages,
        "stream": True,
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system}]
    body |= _tool_fields(request, turns, messages)
    if mode.config and _may_think(mode.config, messages):
        body["thinking"] = dict(mode.config)
    if mode.effort:
        body["output_config"] = {"effort": mode.effort}
    _mark_cached(body, is_long=request.may_wait and "short_cache" not in request.quirks)
    return fit_body(body)


def _tool_fields(
    request: Request, turns: Sequence[Turn], messages: Sequence[Body]
) -> dict[str, Any]:
    """The tools, the provider's search last.

    With earlier searches in the messages, the provider wants the tool even if calls are forbidden:
    "keep the same `tools` array". If the user turns the search off, nothing of earlier searches is
    sent: `max_uses` cannot be 0, and `tool_choice` would forbid all tools.
    """
    none = {"type": "none"}
    fields = tool_fields(request, turns, tool, none)
    if not _may_search(request):
        return fields
    search = searches.search_tool()
    if request.tools_on:
        return {"tools": [*(fields["tools"] if request.offers_tools else []), search]}
    has_searched = any(
        block["type"] == "server_tool_use" for message in messages for block in message["content"]
    )
    if not (fields or has_searched):
        return {}
    return {"tools": [*fields.get("tools", []), search], "tool_choice": none}


def _may_search(request: Request) -> bool:
    """Whether to offer the provider's search; a server's tool with its name replaces it."""
    names = (name for name, _ in request.catalogue.in_full)
    return request.may_search and SEARCH_NAME not in names


def _thinking(request: Request) -> ThinkingFields:
    return claude_thinking(request.model, request.thinking, request.max_tokens, request.facts)


def tool(name: str, definition: Definition) -> Body:
    """The tool as `{name, description, input_schema}`."""
    return shape(name, definition, "input_schema")


def definition(tool: Mapping[str, Any]) -> Body:
    """A tool's MCP definition; raises ValueError if the tool has no name."""
    return mcp_definition(tool, "input_schema")


def _messages(turns: Sequence[Turn], request: Request) -> list[Body]:
    """Messages of blocks, with alternating roles."""
    ids, images = wire_ids(turns, STRICT_ID), request.images(turns)
    messages = list[Body]()
    for role, blocks in _sides(turns, ids, request, images):
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})
    return messages


def _sides(
    turns: Sequence[Turn], ids: Mapping[str, str], request: Request, images: Mapping[str, bytes]
) -> Iterator[tuple[str, list[Block]]]:
    found = searches.placed(turns, _raw(request))
    for turn, placed in zip(turns, found, strict=True):
        key = ("anthropic", call_ids(turn, ids), placed.key)
        visible = tuple(a.path for a in attachments_of(turn) if a.path in images) if images else ()
        match turn:
            case UserTurn():
                blocks = partial(_question, turn, images)
                yield "user", list(pieces(turn, (*key, visible), blocks))
            case ModelTurn():
                yield (
                    "assistant",
                    list(pieces(turn, key, partial(_reply_blocks, turn, ids, request, placed))),
                )
                results = partial(_results, turn, ids, images)
                yield "user", list(pieces(turn, ("results", *key, visible), results))


def _raw(request: Request) -> Callable[[ProviderCall], object] | None:
    """Finds the parts of a search that are sent back; None if no part of any search may be sent
    back."""
    may_go_back = request.keep_searches and _may_search(request)
    return (lambda call: request.raw(call, searches.FORMAT)) if may_go_back else None


def _question(turn: UserTurn, images: Mapping[str, bytes]) -> list[Block]:
    return _blocks(turn.parts, images, "\n\n") or [_block(turn.text)]


def _blocks(
    parts: Iterable[str | Attachment], images: Mapping[str, bytes], gap: str
) -> list[Block]:
    """The blocks for content with visible pictures; empty if the content is only text."""
    return list(map(_block, mixed(parts, images, gap)))


def _block(part: str | Picture) -> Block:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    media_type = part.attachment.media_type
    source = {"type": "base64", "media_type": media_type, "data": part.base64}
    return {"type": "document" if media_type == PDF else "image", "source": source}


def _reply_blocks(
    reply: ModelTurn, ids: Mapping[str, str], request: Request, placed: searches.Placed
) -> Iterator[Block]:
    texts = _texts(reply)
    yield from placed.blocks.get(-1, ())
    for at, part in enumerate(reply.parts):
        yield from placed.blocks.get(at, ())
        match part:
            case Text():
                yield from ({"type": "text", "text": words} for words in next(texts))
            case Thinking() if request.goes_back(part, reply):
                yield _thinking_block(part)
    yield from _calls(reply, ids)


def _texts(reply: ModelTurn) -> Iterator[list[str]]:
    """Each of a reply's texts, as a list that is empty if nothing is left of it.

    In the open loop, signatures of thinking may depend on the text, so Parley's footnotes are taken
    out.
    """
    texts = [part.text for part in reply.parts if isinstance(part, Text)]
    has_searches = any(isinstance(part, ProviderCall) for part in reply.parts)
    if not (reply.open and has_searches):
        return ([text] for text in texts)
    return ([words] if words.strip() else [] for words in without_footnotes(texts))


def _thinking_block(part: Thinking) -> Block:
    if part.redacted:
        return {"type": "redacted_thinking", "data": part.signature}
    return {"type": "thinking", "thinking": part.text or "", "signature": part.signature}


# All results must come first in the next message, before any text: "`tool_use` ids were found
# without `tool_result` blocks immediately after" (a refusal; the rule is in
# platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls, 2026-11-22).
def _calls(reply: ModelTurn, ids: Mapping[str, str]) -> Iterator[Block]:
    for outcome in reply.calls:
        name, arguments = wire_name(outcome.call.name), arguments_object(outcome.call.arguments)
        yield {"type": "tool_use", "id": ids[outcome.id], "name": name, "input": arguments}


def _results(reply: ModelTurn, ids: Mapping[str, str], images: Mapping[str, bytes]) -> list[Block]:
    return [
        {
            "type": "tool_result",
            "tool_use_id": ids[outcome.id],
            "content": _content(outcome, images),
        }
        | ({} if outcome.status == "ok" else {"is_error": True})
        for outcome in reply.calls
    ]


def _content(outcome: CallOutcome, images: Mapping[str, bytes]) -> str | list[Block]:
    """A result's text, or its blocks if it has visible pictures.

    A failed result is always text: "all content must be type 'text' if 'is_error' is true" (a
    refusal, github.com/vellum-ai/vellum-assistant/pull/18387, 2026-11-23).
    """
    blocks = _blocks(result_parts(outcome), images, "\n") if outcome.status == "ok" else []
    return blocks or bare_text(outcome)


def thinking_paused(request: Request) -> str:
    """The notice that thinking pauses during an open tool loop; "" if thinking does not pause."""
    mode = _thinking(request)
    if not mode.config or _may_think(mode.config, _messages(request.turns(), request)):
        return ""
    return (
        f"{request.model} continues this answer without thinking, because the answer does not "
        "start with thinking by this model"
    )


def _may_think(config: Mapping[str, Any], messages: Sequence[Body]) -> bool:
    """Whether thinking can be turned on; in manual mode, an open loop must start with thinking.

    Otherwise, thinking pauses until the next loop.

    "When `thinking` is enabled, a final `assistant` message must start with a thinking block
    (preceeding the lastmost set of `tool_use` and `tool_result` blocks)" (a refusal by Claude 4.5
    and earlier); "a tool-use loop is one assistant turn, so change the configuration only between
    turns" (platform.claude.com/docs/build-with-claude/thinking-tool-workflows, 2026-11-22).
    """
    sides = [(message["role"], message["content"]) for message in messages]
    questions = [
        n
        for n, (role, blocks) in enumerate(sides)
        if role == "user" and blocks[-1]["type"] != "tool_result"
    ]
    loop = sides[questions[-1] + 1 :] if questions else sides
    first = loop[0][1][0]["type"] if loop else "thinking"
    return config["type"] != "enabled" or first in ("thinking", "redacted_thinking")


# --- The stream -----------------------------------------------------------------------------------

# All values of `StopReason` in anthropic 2.12, types/stop_reason.py. "pause_turn: A server-tool
# loop reached its iteration limit. Send the assistant content back to continue.";
# "model_context_window_exceeded: … Treat the response as truncated."
# (platform.claude.com/docs/build-with-claude/handling-stop-reasons, 2026-11-22)
_REASONS: Mapping[str, Reason] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "refusal",
    "model_context_window_exceeded": "context",
    "pause_turn": "pause",
}
_KIND_SHOWN = 60
_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class Decoder(decoder.Decoder):
    """Decodes one stream in order of arrival, but holds calls back until the reply is complete.

    Text and thinking after a call therefore move before the call, as in the file. Thinking that was
    moved loses its signature, which would be invalid in the new place.
    """

    def __init__(self, provider: str, model: str, quirks: tuple[Quirk, ...] = ()) -> None:
        super().__init__(provider, model, quirks)
        self._kinds: dict[int, str] = {}
        self._calls: dict[int, PartialCall] = {}
        self._searches: dict[int, PartialCall] = {}
        """The searches whose query is still arriving."""
        self._search_ids: dict[str, str] = {}
        """The ids of this reply's searches as events, by the ids that the provider uses."""
        self._received = ReceivedBlocks()
        self._cited = list[Event]()
        """The pages that the current text cites; they may come before the text."""
        self._unknown = set[str]()
        self._signature = ""
        self._usage: dict[str, int] = {}
        self._stop: tuple[Reason, str] | None = None

    def _prose_of(self, raw: Mapping[str, Any]) -> str | None:
        match raw:
            case {
                "type": "content_block_delta",
                "index": int(index),
                "delta": {"type": "text_delta", "text": str(piece)},
            } if type(index) is int and index in self._kinds:  # True is also an int
                self._received.add_text(index, piece)
                return piece
        return None

    def resume(self, content: Sequence[Mapping[str, Any]]) -> None:
        """Decode the rest of a reply that began with these blocks."""
        self._received = ReceivedBlocks(content)
        begun = [block for block in content if block.get("type") == "server_tool_use"]
        self._search_ids = {text(block, "id"): text(block, "id") for block in begun}
        self._has_said = bool(content) and content[-1].get("type") == "text"
        self._part()

    def _take(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        match raw.get("type"):
            case "message_start":
                self._note_model(mapping(raw, "message"))
                yield from self._count(mapping(mapping(raw, "message"), "usage"))
            case "content_block_start":
                yield from self._open(number(raw, "index"), mapping(raw, "content_block"))
            case "content_block_delta":
                yield from self._delta(number(raw, "index"), mapping(raw, "delta"))
            case "content_block_stop":
                yield from self._close(number(raw, "index"))
            case "message_delta":
                self._note_stop(mapping(raw, "delta"))
                yield from self._count(mapping(raw, "usage"))
            case "message_stop":
                yield from self._finish()
            case "error":
                raise decoder.stream_failed(self.provider, raw.get("error"))

    def _open(self, index: int, block: Mapping[str, Any]) -> Iterator[Event]:
        yield from self._citations()
        kind = self._kinds[index] = text(block, "type")
        self._received.open(index, block)
        if kind != "text":  # join adjacent texts, because a citation splits a sentence
            self._part()
        match kind:
            case "text":
                yield from self._say(text(block, "text"))
                for citation in sequence(block, "citations"):
                    self._cited += _cited(citation)
            case "thinking":
                self._signature = text(block, "signature")
                yield from self._think(text(block, "thinking"))
            case "redacted_thinking":
                yield from self._redacted(block)
            case "tool_use":
                self._open_call = self._calls[index] = _begun_call(block)
            case "server_tool_use" if block.get("name") == SEARCH_NAME:
                self._open_call = self._searches[index] = _begun_call(block)
            case "web_search_tool_result":
                yield from self._take_result(block)
            case _:
                yield from self._left_out(text(block, "name") or kind)

    def _redacted(self, block: Mapping[str, Any]) -> Iterator[Event]:
        if not self._calls and (data := sound_signature(text(block, "data"))):
            yield ThinkingEnd(data, redacted=True)

    def _delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[Event]:
        if index not in self._kinds:
            raise ValueError(f"a piece of block {index}, which never started")
        self._received.add(index, delta)
        match delta.get("type"):
            case "text_delta":
                yield from self._say(text(delta, "text"))
            case "thinking_delta":
                yield from self._think(text(delta, "thinking"))
            case "signature_delta":
                self._signature += text(delta, "signature")
            case "citations_delta":
                self._cited += _cited(mapping(delta, "citation"))
            case "input_json_delta" if call := self._calls.get(index) or self._searches.get(index):
                call.add(text(delta, "partial_json"))

    def _close(self, index: int) -> Iterator[Event]:
        yield from self._citations()
        if self._kinds.get(index) == "thinking":
            yield from self._end_thinking("" if self._calls else self._signature)
        elif search := self._searches.pop(index, None):
            yield from self._search(search)

    def _citations(self) -> Iterator[Event]:
        """The pages that a finished text cites."""
        cited, self._cited = self._cited, []
        yield from cited

    def _search(self, search: PartialCall) -> Iterator[Event]:
        """The query of a search is known, and the provider runs it."""
        (found,) = finished_calls([search], cut=False)
        call = replace(found.call, index=None)
        self._search_ids[search.id] = call.id
        yield from self._interrupt()
        yield Ran(call, "provider")

    def _take_result(self, block: Mapping[str, Any]) -> Iterator[Event]:
        """The result of a search; its call may be in an earlier reply."""
        for index in sorted(self._searches):
            yield from self._close(index)
        search_id, last = text(block, "tool_use_id"), next(reversed(self._search_ids), "")
        own = self._search_ids.get(search_id)
        after = None if own is None else "" if search_id == last else self._search_ids[last]
        yield RanResult(own or search_id, searches.outcome(block, after))

    def _left_out(self, kind: str) -> Iterator[Event]:
        """Report the first part of each unknown kind."""
        if kind not in self._unknown:
            self._unknown.add(kind)
            yield Aside(
                f"{self.provider} sent a part of a kind that Parley does not know, so it is not in "
                f"the file: {one_line(kind, _KIND_SHOWN)}"
            )

    def _count(self, usage: Mapping[str, Any]) -> Iterator[Event]:
        details = mapping(usage, "output_tokens_details")
        self._usage |= {key: number(usage, key) for key in _COUNTS if usage.get(key) is not None}
        self._usage |= {"thinking": number(details, "thinking_tokens")} if details else {}
        charged = mapping(usage, "server_tool_use")
        self._usage |= {"searches": number(charged, "web_search_requests")} if charged else {}
        prompt, out, read, write = (self._usage.get(key, 0) for key in _COUNTS)
        thinking, found = (self._usage.get(key, 0) for key in ("thinking", "searches"))
        yield Usage(prompt + read + write, out, read, write, thinking, found)

    def _note_stop(self, delta: Mapping[str, Any]) -> None:
        if reason := text(delta, "stop_reason"):
            details = mapping(delta, "stop_details")
            explanation = text(details, "explanation") or text(details, "category")
            self._stop = (
                _REASONS.get(reason, "complete"),
                explanation if reason in _REASONS else reason,
            )

    def _finish(self) -> Iterator[Event]:
        if self._stop is None:
            raise decoder.ended_early(self.provider)
        for index in sorted(self._searches):
            if self._searches[index].is_whole():  # a reply that is cut off may end within a query
                yield from self._close(index)
        yield from self._citations()
        calls = [self._calls[index] for index in sorted(self._calls)]
        content = self._received.all()
        for event in self._conclude(calls, *self._stop):
            is_paused = isinstance(event, Finished) and event.reason == "pause"
            yield Paused("pause", content=content) if is_paused and content and not calls else event


def _cited(citation: Mapping[str, Any]) -> Iterator[Event]:
    """A page that a text cites; citations of other kinds have no address."""
    if text(citation, "type") == "web_search_result_location":
        yield Cited(text(citation, "url"), text(citation, "title"))


def _begun_call(block: Mapping[str, Any]) -> PartialCall:
    call = PartialCall(text(block, "id"), text(block, "name"))
    if arguments := mapping(block, "input"):  # compatible servers send them whole
        call.arguments = json.dumps(arguments, ensure_ascii=False)
    return call


# --- The provider's cache -------------------------------------------------------------------------

# "A maximum of 4 blocks with cache_control may be provided." (a refusal; "exactly Anthropic's
# per-request limit", github.com/microsoft/vscode/pull/315505, 2026-11-22)
_CACHED = {"cache_control": {"type": "ephemeral"}}
# The cache lasts for five minutes, or for an hour with `ttl`. Writing costs 1.25 or 2 times the
# input, reading 0.1 times, and each read renews the time
# (platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-08-22). Each request writes only
# the new part, but after a longer wait for the user it would write the whole chat again: 2 + 0.1 is
# less than 2 x 1.25. All marks have the same `ttl`, because a longer one must not follow a shorter.
_CACHED_LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
_CACHED_TURNS = 2


def _mark_cached(body: Body, *, is_long: bool) -> None:
    """Mark the parts that the provider should cache because the next request repeats them.

    At most four marks are allowed: on the last tool, the system prompt and the user's last two
    turns. The mark on the last turn caches the new part; the mark on the turn before it reads the
    part that the previous request cached.
    """
    turns = [message["content"] for message in body["messages"] if message["role"] == "user"]
    for blocks in [body.get("tools"), body.get("system"), *turns[-_CACHED_TURNS:]]:
        if blocks:
            blocks[-1] = {**blocks[-1], **(_CACHED_LONG if is_long else _CACHED)}


def unstreamed(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """An unstreamed message as the payloads of an equivalent stream."""
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(sequence(message, "content")):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": message, "usage": message.get("usage")}
    yield {"type": "message_stop"}
