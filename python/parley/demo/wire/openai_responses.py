"""A reply as the Responses API sends it: one JSON response, or a stream of numbered events.

Items are announced, filled and repeated in full; the last event is the response with all items.
Reasoning contains encrypted content if `include` asks for it, and a summary if one is requested.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from parley.demo.dialogue import DemoCall, Reply
from parley.demo.signing import seal
from parley.demo.wire.frames import CREATED, named_frame, pieces

Body = Mapping[str, Any]
Item = dict[str, Any]
Event = dict[str, Any]

_ENCRYPTED = "reasoning.encrypted_content"


def whole(reply: Reply, body: Body) -> dict[str, Any]:
    """The response for a request without `stream`."""
    return _response(reply, body, _status(reply), _items(reply, body))


def stream(reply: Reply, body: Body) -> Iterator[str]:
    """The frames for a request with `stream`."""
    for number, event in zip(count(), _events(reply, body), strict=False):
        yield named_frame(event | {"sequence_number": number})


def _events(reply: Reply, body: Body) -> Iterator[Event]:
    begun = _response(reply, body, "in_progress", [])
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(_items(reply, body)):
        yield from _item_events(index, item)
    status = _status(reply)
    yield {
        "type": f"response.{status}",
        "response": _response(reply, body, status, _items(reply, body)),
    }


def _item_events(index: int, item: Item) -> Iterator[Event]:
    place = {"output_index": index}
    yield {"type": "response.output_item.added", "item": item | _UNFILLED[item["type"]]} | place
    for event in _FILL[item["type"]](item):
        yield event | {"item_id": item["id"]} | place
    yield {"type": "response.output_item.done", "item": item} | place


def _reasoning_events(item: Item) -> Iterator[Event]:
    for number, part in enumerate(item["summary"]):
        at, empty = {"summary_index": number}, part | {"text": ""}
        yield {"type": "response.reasoning_summary_part.added", "part": empty} | at
        for piece in pieces(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", "delta": piece} | at
        yield {"type": "response.reasoning_summary_text.done", "text": part["text"]} | at
        yield {"type": "response.reasoning_summary_part.done", "part": part} | at


def _message_events(item: Item) -> Iterator[Event]:
    at, part = {"content_index": 0}, item["content"][0]
    yield {"type": "response.content_part.added", "part": part | {"text": ""}} | at
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", "delta": piece, "logprobs": []} | at
    yield {"type": "response.output_text.done", "text": part["text"], "logprobs": []} | at
    yield {"type": "response.content_part.done", "part": part} | at


def _call_events(item: Item) -> Iterator[Event]:
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", "delta": piece}
    fields = {"arguments": item["arguments"], "name": item["name"]}
    yield {"type": "response.function_call_arguments.done"} | fields


_FILL = {"reasoning": _reasoning_events, "message": _message_events, "function_call": _call_events}
_UNFILLED: Mapping[str, Item] = {
    "reasoning": {"summary": [], "status": "in_progress"},
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
}


def _items(reply: Reply, body: Body) -> list[Item]:
    items = []
    if reply.thinking or reply.hidden:
        items.append(_reasoning(reply, body))
    if reply.text:
        items.append(_message(reply))
    return items + [_call(reply, index, call) for index, call in enumerate(reply.calls)]


def _reasoning(reply: Reply, body: Body) -> Item:
    has_summary = bool((body.get("reasoning") or {}).get("summary"))
    summary = (
        [{"type": "summary_text", "text": reply.thinking}] if has_summary and reply.thinking else []
    )
    item: Item = {
        "id": f"rs_{reply.seed}",
        "type": "reasoning",
        "summary": summary,
        "status": "completed",
    }
    if _ENCRYPTED in (body.get("include") or ()):
        item["encrypted_content"] = seal(reply.thinking or reply.hidden)
    return item


def _message(reply: Reply) -> Item:
    return {
        "id": f"msg_{reply.seed}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary" if reply.calls else "final_answer",
        "content": [{"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}],
    }


def _call(reply: Reply, index: int, call: DemoCall) -> Item:
    return {
        "id": f"fc_{reply.seed}_{index}",
        "type": "function_call",
        "call_id": f"call_{reply.seed}_{index}",
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


def _status(reply: Reply) -> str:
    return "incomplete" if reply.stop == "length" else "completed"


def _response(reply: Reply, body: Body, status: str, items: list[Item]) -> dict[str, Any]:
    cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": f"resp_{reply.seed}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": cut,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": body["model"],
        "output": items,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "temperature": None,
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": None,
        "store": bool(body.get("store", True)),
        "usage": None if status == "in_progress" else _usage(reply),
    }


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.usage.prompt,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": reply.usage.output,
        "output_tokens_details": {"reasoning_tokens": reply.usage.thinking},
        "total_tokens": reply.usage.prompt + reply.usage.output,
    }
