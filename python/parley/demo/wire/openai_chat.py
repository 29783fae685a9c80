"""A reply as Chat Completions sends it: one JSON completion, or a stream of chunks.

Parallel calls are interleaved: first each call's id and name, then fragments of all calls'
arguments in turn, distinguished by `index`. Thinking is in `reasoning_content`, as in compatible
servers.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, zip_longest
from typing import Any

from parley.demo.dialogue import DemoCall, Reply
from parley.demo.wire.frames import CREATED, bare_frame, pieces

Body = Mapping[str, Any]
Delta = dict[str, Any]

END = "data: [DONE]\n\n"
_STOPS = {"end": "stop", "calls": "tool_calls", "length": "length"}


def whole(reply: Reply, body: Body) -> dict[str, Any]:
    """The completion for a request without `stream`."""
    message: Delta = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if thought := reply.thinking or reply.hidden:
        message["reasoning_content"] = thought
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": _id(reply, index),
                "type": "function",
                "function": _function(call, call.arguments),
            }
            for index, call in enumerate(reply.calls)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _STOPS[reply.stop]}
    return _envelope("chat.completion", reply, body) | {"choices": [choice], "usage": _usage(reply)}


def stream(reply: Reply, body: Body) -> Iterator[str]:
    """The frames for a request with `stream`; usage only if `stream_options` asks for it."""
    envelope = _envelope("chat.completion.chunk", reply, body)
    wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    extra = {"usage": None} if wants_usage else {}
    for delta in _deltas(reply):
        yield bare_frame(envelope | {"choices": [_choice(delta, None)]} | extra)
    yield bare_frame(envelope | {"choices": [_choice({}, _STOPS[reply.stop])]} | extra)
    if wants_usage:
        yield bare_frame(envelope | {"choices": [], "usage": _usage(reply)})
    yield END


def _deltas(reply: Reply) -> Iterator[Delta]:
    yield {"role": "assistant", "content": None if reply.calls and not reply.text else ""}
    for piece in pieces(reply.thinking or reply.hidden):
        yield {"reasoning_content": piece}
    for piece in pieces(reply.text):
        yield {"content": piece}
    for index, call in enumerate(reply.calls):
        head = {
            "index": index,
            "id": _id(reply, index),
            "type": "function",
            "function": _function(call, ""),
        }
        yield {"tool_calls": [head]}
    for fragment in _mixed(reply.calls):
        yield {"tool_calls": [fragment]}


def _mixed(calls: tuple[DemoCall, ...]) -> Iterator[Delta]:
    streams = [_fragments(index, call) for index, call in enumerate(calls)]
    return (
        fragment for fragment in chain.from_iterable(zip_longest(*streams)) if fragment is not None
    )


def _fragments(index: int, call: DemoCall) -> Iterator[Delta]:
    for piece in pieces(call.arguments):
        yield {"index": index, "function": {"arguments": piece}}


def _function(call: DemoCall, arguments: str) -> Delta:
    return {"name": call.name, "arguments": arguments}


def _choice(delta: Delta, finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _envelope(kind: str, reply: Reply, body: Body) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.seed}",
        "object": kind,
        "created": CREATED,
        "model": body["model"],
    }


def _id(reply: Reply, index: int) -> str:
    return f"call_{reply.seed}_{index}"


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.usage.prompt,
        "completion_tokens": reply.usage.output,
        "total_tokens": reply.usage.prompt + reply.usage.output,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reply.usage.thinking},
    }
