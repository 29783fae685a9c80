"""Refusals of the Messages API about tools: definitions, names and ids, pairs of calls and results.

After a turn with calls, the next one begins with all their results; text comes before the calls and
after the results.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from tests.strict.schemas import dangling, is_of_2020, top_level
from tests.strict.shapes import NAME, Body, Rule, twice
from tests.strict.turns import BlockAt, Turn, placed_blocks, turns

_SIDES: Mapping[str, str] = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
    "server_tool_use": "assistant",
    "web_search_tool_result": "assistant",
}
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_PATTERN = "String should match pattern '^[a-zA-Z0-9_-]{}$'"


def _sides(body: Body) -> Iterator[str]:
    for placed in placed_blocks(body):
        side = _SIDES.get(placed.kind)
        if side is not None and body["messages"][placed.message]["role"] != side:
            yield f"{placed.place}: `{placed.kind}` blocks can only be in `{side}` messages"


def _identifiers(body: Body) -> Iterator[str]:
    for placed in placed_blocks(body):
        for field in ("id", "tool_use_id") if placed.kind in ("tool_use", "tool_result") else ():
            if not _ID.fullmatch(str(placed.block.get(field, "x"))):
                yield f"{placed.place}.{placed.kind}.{field}: {_PATTERN.format('+')}"
        if placed.kind == "tool_use" and not NAME.fullmatch(placed.block["name"]):
            yield f"{placed.place}.tool_use.name: {_PATTERN.format('{1,64}')}"
    if twice(
        str(placed.block["id"]) for placed in placed_blocks(body) if placed.kind == "tool_use"
    ):
        yield "messages: `tool_use` ids must be unique"


def _calls_answered(body: Body) -> Iterator[str]:
    merged = turns(body)
    for turn, following in zip(merged, [*merged[1:], None], strict=False):
        if turn.role != "assistant" or not turn.call_ids:
            continue
        answered = _leading_results(following)
        missing = [call_id for call_id in turn.call_ids if call_id not in answered]
        if missing or _text_after_call(turn):
            yield (
                f"messages.{turn.message}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(missing or turn.call_ids)}. Each `tool_use` "
                "block must have "
                "a corresponding `tool_result` block in the next message."
            )


def _leading_results(turn: Turn | None) -> list[str]:
    """The ids of the results at the start of a user turn; results after a text do not count."""
    ids = []
    for placed in turn.blocks if turn is not None else ():
        if placed.kind != "tool_result":
            break
        ids.append(str(placed.block["tool_use_id"]))
    return ids


def _text_after_call(turn: Turn) -> bool:
    kinds = [placed.kind for placed in turn.blocks]
    return "text" in kinds[kinds.index("tool_use") :]


def _results_expected(body: Body) -> Iterator[str]:
    for before, turn in pairwise([None, *turns(body)]):
        known = before.call_ids if before is not None else []
        results = turn.of("tool_result") if turn is not None else ()
        yield from (
            _unexpected(placed) for placed in results if placed.block["tool_use_id"] not in known
        )
        for again in twice(str(placed.block["tool_use_id"]) for placed in results):
            yield (
                "each `tool_use` must have a single result. "
                f"Found multiple `tool_result` blocks with id: {again}"
            )


def _failures_say(body: Body) -> Iterator[str]:
    for placed in placed_blocks(body):
        if (
            placed.kind == "tool_result"
            and placed.block.get("is_error")
            and not placed.block.get("content")
        ):
            yield f"{placed.place}.tool_result: content cannot be empty if `is_error` is true"


def _unexpected(placed: BlockAt) -> str:
    return (
        f"{placed.place}: unexpected `tool_use_id` found in `tool_result` blocks: "
        f"{placed.block['tool_use_id']}. Each `tool_result` block must have a corresponding "
        "`tool_use` block "
        "in the previous message."
    )


def _tools(body: Body) -> Iterator[str]:
    tools = body.get("tools") or []
    for at, tool in enumerate(tools):
        if not NAME.fullmatch(str(tool.get("name", ""))):
            yield f"tools.{at}.custom.name: {_PATTERN.format('{1,64}')}"
        schema = tool.get("input_schema")
        if str(tool.get("type", "custom")) != "custom":
            continue
        if schema is None:
            yield f"tools.{at}.custom.input_schema: Field required"
        elif schema.get("type") != "object":
            yield f"tools.{at}.custom.input_schema.type: Input should be 'object'"
        elif not all(map(_KEY.fullmatch, _keys(schema.get("properties")))):
            place, pattern = f"tools.{at}.custom.input_schema.properties", f"^{_KEY.pattern}$"
            yield f"{place}: Property keys should match pattern '{pattern}'"
        else:
            yield from _schema(f"tools.{at}.custom.input_schema", schema)
    if twice(str(tool.get("name")) for tool in tools):
        yield "tools: Tool names must be unique."


def _schema(place: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if not is_of_2020(schema) or dangling(schema):
        yield (
            f"{place}: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
            "(https://json-schema.org/draft/2020-12)."
        )
    elif set(top_level(schema)) & {"oneOf", "allOf", "anyOf"}:
        yield f"{place}: input_schema does not support oneOf, allOf, or anyOf at the top level"


def _keys(properties: object) -> list[str]:
    return list(properties) if isinstance(properties, Mapping) else []


def _tools_for_history(body: Body) -> Iterator[str]:
    if not body.get("tools") and any(
        placed.kind in ("tool_use", "tool_result") for placed in placed_blocks(body)
    ):
        yield (
            "Requests which have `tool_use` or `tool_result` blocks in `messages` must define "
            "`tools`."
        )


def _tool_choice(body: Body) -> Iterator[str]:
    choice = body.get("tool_choice")
    if choice is None:
        return
    offered = [tool.get("name") for tool in body.get("tools") or []]
    if not offered:
        yield "tool_choice: tool_choice may only be specified while providing tools."
    if choice.get("type") not in ("auto", "any", "tool", "none"):
        yield "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'"
    if choice.get("type") == "tool" and choice.get("name") not in offered:
        yield f"tool_choice: Tool '{choice.get('name')}' not found in provided tools"


TOOL_RULES: tuple[Rule, ...] = (
    _sides,
    _identifiers,
    _calls_answered,
    _results_expected,
    _failures_say,
    _tools,
    _tools_for_history,
    _tool_choice,
)
