"""Refusals of the Messages API: unknown fields, empty messages, wrong roles, sampling, cache marks.

Words and rules are from API version 2026-10-21. Tool blocks and thinking have their own modules.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.strict.kinds import dotted, kinds_rule
from tests.strict.pictures import anthropic_pictures
from tests.strict.search_blocks import SEARCH_BLOCKS, SEARCH_RULES
from tests.strict.shapes import (
    Block,
    Body,
    Rule,
    has_lone_surrogate,
    names,
    reasons,
)
from tests.strict.thinking import THINKING_RULES
from tests.strict.tool_blocks import TOOL_RULES
from tests.strict.turns import placed_blocks

VERSION = "2026-10-21"
_SAMPLING = ("temperature", "top_p", "top_k")
_FIELDS = names(
    "model messages max_tokens system tools tool_choice thinking output_config stop_sequences "
    "stream "
    "metadata service_tier cache_control container diagnostics inference_geo speed user_profile_id "
    "workspace_id"
)
_BLOCK_FIELDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "text": (("text",), ("citations", "cache_control")),
    "thinking": (("thinking", "signature"), ()),
    "redacted_thinking": (("data",), ()),
    "tool_use": (("id", "name", "input"), ("cache_control", "caller", "toolset_name")),
    "tool_result": (("tool_use_id",), ("content", "is_error", "cache_control", "toolset_name")),
    "server_tool_use": (("id", "name", "input"), ("cache_control", "caller")),
    "web_search_tool_result": (("tool_use_id", "content"), ("cache_control", "caller")),
    "image": (("source",), ("cache_control",)),
    "document": (("source",), ("title", "context", "citations", "cache_control")),
}
_TEXT_BLOCK = {"type": str, "text": str, "cache_control": dict}
_BLOCK = _TEXT_BLOCK | {
    "thinking": str,
    "signature": str,
    "data": str,
    "id": str,
    "name": str,
    "input": dict,
    "tool_use_id": str,
    "content": (str, dict, [_TEXT_BLOCK | {"source": dict, "encrypted_content": str}]),
    "is_error": bool,
    "source": dict,
}
_KINDS = {
    "model": str,
    "max_tokens": int,
    "stream": bool,
    "system": (str, [_TEXT_BLOCK]),
    "messages": [{"role": str, "content": (str, [_BLOCK])}],
    "tools": [{"name": str, "description": str, "input_schema": dict, "cache_control": dict}],
    "tool_choice": {"type": str, "name": str, "disable_parallel_tool_use": bool},
    "thinking": {"type": str, "budget_tokens": int, "display": str},
    "output_config": {"effort": str},
    "cache_control": dict,
}
_PREFILL = (
    "This model does not support assistant message prefill. The conversation must end "
    "with a user message."
)


def check_anthropic(body: Mapping[str, Any], *, version: str = VERSION) -> list[str]:
    """Every reason to answer 400 to a Messages request; `version` is the anthropic-version
    header."""
    sampling: Sequence[Rule] = (_sampling,) if version >= VERSION else ()
    return reasons((*_SHAPES, (*_RULES, *sampling)), body)


def _required(body: Body) -> Iterator[str]:
    for field in ("model", "max_tokens", "messages"):
        if body.get(field) is None:
            yield f"{field}: Field required"


def _unknown_fields(body: Body) -> Iterator[str]:
    for field in body.keys() - _FIELDS - {*_SAMPLING}:
        yield f"{field}: Extra inputs are not permitted"


def _messages_shape(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        for field in message.keys() - {"role", "content"}:
            yield f"messages.{index}.{field}: Extra inputs are not permitted"
        if message.get("role") == "system":
            yield (
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
                'parameter, not "system" as an input message role.'
            )
        elif message.get("role") not in ("user", "assistant"):
            yield f"messages.{index}.role: Input should be 'user' or 'assistant'"
        if message.get("content") is None:
            yield f"messages.{index}.content: Field required"


def _blocks_shape(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        content = message.get("content")
        for at, block in enumerate(content if isinstance(content, list) else []):
            yield from _block_shape(f"messages.{index}.content.{at}", block)


def _block_shape(place: str, block: Block) -> Iterator[str]:
    kind = str(block.get("type"))
    if kind not in _BLOCK_FIELDS:
        yield (
            f"{place}: Input tag '{kind}' found using 'type' does not match any of the "
            "expected tags"
        )
        return
    required, optional = _BLOCK_FIELDS[kind]
    for field in required:
        if field not in block:
            yield f"{place}.{kind}.{field}: Field required"
        elif block[field] is None:
            yield f"{place}.{kind}.{field}: Input should not be null"
    if isinstance(block.get("content"), dict) and kind != "web_search_tool_result":
        yield f"{place}.{kind}.content: Input should be a valid string or array"
    if isinstance(block.get("content"), str) and kind == "web_search_tool_result":
        yield f"{place}.{kind}.content: Input should be a valid object or array"
    for field in block.keys() - {"type", *required, *optional}:
        yield f"{place}.{kind}.{field}: Extra inputs are not permitted"


def _encoding(body: Body) -> Iterator[str]:
    if has_lone_surrogate(body):
        yield "The request body is not valid JSON: no low surrogate in string"


def _some_messages(body: Body) -> Iterator[str]:
    if not body["messages"]:
        yield "messages: at least one message is required"
    elif body["messages"][0]["role"] != "user":
        yield 'messages: first message must use the "user" role'


def _no_prefill(body: Body) -> Iterator[str]:
    if not body["messages"] or body["messages"][-1]["role"] == "user":
        return
    blocks = [
        placed for placed in placed_blocks(body) if placed.message == len(body["messages"]) - 1
    ]
    if any(placed.kind in SEARCH_BLOCKS for placed in blocks):
        return  # the provider paused this reply and continues it
    yield _PREFILL
    text = str(blocks[-1].block.get("text", "")) if blocks else ""
    if text != text.rstrip():
        yield "messages: final assistant content cannot end with trailing whitespace"


def _no_empty_messages(body: Body) -> Iterator[str]:
    last = len(body["messages"]) - 1
    for index, message in enumerate(body["messages"]):
        if not message["content"] and not (index == last and message["role"] == "assistant"):
            yield (
                f"messages.{index}: all messages must have non-empty content "
                "except for the optional final assistant message"
            )


def _no_empty_texts(body: Body) -> Iterator[str]:
    for placed in placed_blocks(body):
        whole_message = isinstance(body["messages"][placed.message]["content"], str)
        inner = placed.block.get("content") if placed.kind == "tool_result" else None
        for block in [placed.block, *(inner if isinstance(inner, list) else [])]:
            if not (whole_message and block.get("text") == ""):  # the message was refused for it
                yield from _text_refused("messages", block)
    system = body.get("system")
    for block in system if isinstance(system, list) else []:
        yield from _text_refused("system", block)


def _text_refused(where: str, block: Block) -> Iterator[str]:
    if block.get("type") == "text" and not block.get("text"):
        yield f"{where}: text content blocks must be non-empty"
    elif block.get("type") == "text" and not block["text"].strip():
        yield f"{where}: text content blocks must contain non-whitespace text"


def _pictures(body: Body) -> Iterator[str]:
    for placed in placed_blocks(body):
        yield from anthropic_pictures(placed.place, placed.block)
        inner = placed.block.get("content")
        if placed.kind == "tool_result" and isinstance(inner, list):
            failed = bool(placed.block.get("is_error"))
            for at, block in enumerate(inner):
                yield from anthropic_pictures(
                    f"{placed.place}.tool_result.content.{at}", block, failed=failed
                )


def _cache_marks(body: Body) -> Iterator[str]:
    system = body.get("system")
    blocks = list(body.get("tools") or []) + (system if isinstance(system, list) else [])
    blocks += [placed.block for placed in placed_blocks(body)]
    every = [block.get("cache_control") for block in blocks] + [body.get("cache_control")]
    marks = [mark for mark in every if mark is not None]
    if len(marks) > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}."
    # github.com/cnighswonger/claude-code-cache-fix/issues/44, 2026-11-25
    times = [mark.get("ttl", "5m") for mark in marks]
    if "5m" in times and "1h" in times[times.index("5m") :]:
        yield (
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
            "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
        )


def _sampling(body: Body) -> Iterator[str]:
    for field in _SAMPLING:
        if field in body:
            yield f"{field}: Extra inputs are not permitted"


_SHAPES: tuple[tuple[Rule, ...], ...] = (
    (kinds_rule(_KINDS, lambda path, noun: f"{dotted(path)}: Input should be a valid {noun}"),),
    (_required, _unknown_fields),
    (_messages_shape, _blocks_shape),
)
_RULES: tuple[Rule, ...] = (
    _encoding,
    _some_messages,
    _no_empty_messages,
    _no_empty_texts,
    _pictures,
    *TOOL_RULES,
    *SEARCH_RULES,
    _no_prefill,
    _cache_marks,
    *THINKING_RULES,
)
