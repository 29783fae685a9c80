"""A reply as the Messages API sends it: one JSON message, or a stream of events.

Blocks come in order; each is opened, filled and closed. The first piece of a call's input is "",
and a call without arguments has no other pieces; thinking ends with its signature.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from parley.demo.dialogue import Reply
from parley.demo.reading import shows_thinking
from parley.demo.signing import seal, sign
from parley.demo.wire.frames import compact, named_frame, pieces

Body = Mapping[str, Any]
Block = dict[str, Any]
Event = dict[str, Any]

_PAGE = {"type": "web_search_result", "encrypted_content": seal("a page"), "page_age": None}
_STOPS = {"end": "end_turn", "calls": "tool_use", "length": "max_tokens"}


def whole(reply: Reply, body: Body) -> dict[str, Any]:
    """The message for a request without `stream`."""
    blocks = [block | _filled(block, text) for block, text in _blocks(reply, body)]
    usage = _input_usage(reply) | _output_usage(reply)
    return _message(reply, body, blocks) | {"stop_reason": _STOPS[reply.stop], "usage": usage}


def stream(reply: Reply, body: Body) -> Iterator[str]:
    """The frames for a request with `stream`."""
    yield named_frame({"type": "message_start", "message": _message(reply, body, [])})
    yield named_frame({"type": "ping"})
    for index, (block, text) in enumerate(_blocks(reply, body)):
        begun = block | ({"citations": []} if block.get("citations") else {})
        yield named_frame({"type": "content_block_start", "index": index, "content_block": begun})
        for delta in _deltas(block, text):
            yield named_frame({"type": "content_block_delta", "index": index, "delta": delta})
        yield named_frame({"type": "content_block_stop", "index": index})
    yield named_frame(
        {
            "type": "message_delta",
            "delta": {"stop_reason": _STOPS[reply.stop], "stop_sequence": None},
            "usage": _output_usage(reply),
        }
    )
    yield named_frame({"type": "message_stop"})


def _message(reply: Reply, body: Body, blocks: list[Block]) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.seed}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _input_usage(reply) | {"output_tokens": 1},
    }


def _blocks(reply: Reply, body: Body) -> Iterator[tuple[Block, str]]:
    """Each block as it is when it is opened, and its text."""
    if reply.thinking:
        text = reply.thinking if shows_thinking(body) else ""
        yield {"type": "thinking", "thinking": "", "signature": ""}, text
    if reply.hidden:
        yield {"type": "redacted_thinking", "data": seal(reply.hidden)}, ""
    if reply.query:
        search = f"srvtoolu_{reply.seed}"
        yield _use("server_tool_use", search, "web_search"), compact({"query": reply.query})
        pages = [_PAGE | {"title": f"About {reply.query}", "url": _address(reply)}]
        yield {"type": "web_search_tool_result", "tool_use_id": search, "content": pages}, ""
    if reply.text:
        cited = {"citations": [_citation(reply)]} if reply.query else {}
        yield {"type": "text", "text": ""} | cited, reply.text
    for index, call in enumerate(reply.calls):
        yield _use("tool_use", f"toolu_{reply.seed}_{index}", call.name), call.arguments


def _use(kind: str, identifier: str, name: str) -> Block:
    return {"type": kind, "id": identifier, "name": name, "input": {}}


def _address(reply: Reply) -> str:
    return f"https://example.org/{quote(reply.query)}"


def _citation(reply: Reply) -> Block:
    kind, title = "web_search_result_location", f"About {reply.query}"
    place = {"type": kind, "url": _address(reply), "title": title}
    return place | {"encrypted_index": seal("1"), "cited_text": title}


def _deltas(block: Block, text: str) -> Iterator[Event]:
    match block["type"]:
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(text))
            yield {"type": "signature_delta", "signature": sign(text)}
        case "text":
            for citation in block.get("citations", ()):
                yield {"type": "citations_delta", "citation": citation}
            yield from ({"type": "text_delta", "text": piece} for piece in pieces(text))
        case "tool_use" | "server_tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            arguments = "" if text == "{}" else text
            yield from (
                {"type": "input_json_delta", "partial_json": piece} for piece in pieces(arguments)
            )


def _filled(block: Block, text: str) -> Block:
    match block["type"]:
        case "thinking":
            return {"thinking": text, "signature": sign(text)}
        case "text":
            return {"text": text}
        case "tool_use" | "server_tool_use":
            return {"input": _input(text)}
        case _:
            return {}


def _input(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _input_usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.usage.prompt,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }


def _output_usage(reply: Reply) -> dict[str, Any]:
    thought = {"thinking_tokens": reply.usage.thinking}
    searches = {"server_tool_use": {"web_search_requests": 1}} if reply.query else {}
    return {"output_tokens": reply.usage.output, "output_tokens_details": thought} | searches
