"""Refusals of the Messages API about its web search: the tool, and the blocks of searches.

A result belongs to an earlier call, which may be in an earlier message. A call without a result is
only valid at the end, together with calls of the client's tools, or if the reply was paused; and
then the tool has to be there.
"""

import re
from collections.abc import Iterator

from tests.strict.shapes import Block, Body, Rule, twice
from tests.strict.turns import BlockAt, placed_blocks, turns

_TOOL = {
    *("type", "name", "max_uses", "allowed_domains", "blocked_domains", "user_location"),
    *("allowed_callers", "cache_control", "defer_loading", "strict"),
}
_TYPES = ("web_search_20250305", "web_search_20260209", "web_search_20260318")
_PAGE = ("url", "title", "encrypted_content")
_ERRORS = (
    *("invalid_tool_input", "unavailable", "max_uses_exceeded"),
    *("too_many_requests", "query_too_long", "request_too_large"),
)
_ID = re.compile("srvtoolu_[a-zA-Z0-9_]+")
SEARCH_BLOCKS = ("server_tool_use", "web_search_tool_result")


def _is_search(tool: Block) -> bool:
    return str(tool.get("type", "")).startswith("web_search")


def _search_tool(body: Body) -> Iterator[str]:
    for at, tool in enumerate(body.get("tools") or []):
        if not _is_search(tool):
            continue
        if tool["type"] not in _TYPES:
            yield f"tools.{at}: Input tag '{tool['type']}' found using 'type' does not match"
        for field in tool.keys() - _TOOL:
            yield f"tools.{at}.{tool['type']}.{field}: Extra inputs are not permitted"
        if tool.get("name") != "web_search":
            yield f"tools.{at}.{tool['type']}.name: Input should be 'web_search'"
        if "max_uses" in tool and tool["max_uses"] < 1:
            yield f"tools.{at}.{tool['type']}.max_uses: Input should be greater than 0"


def _search_ids(body: Body) -> Iterator[str]:
    for placed in placed_blocks(body):
        field = {"server_tool_use": "id", "web_search_tool_result": "tool_use_id"}.get(placed.kind)
        if field and not _ID.fullmatch(str(placed.block[field])):
            yield (
                f"{placed.place}.{placed.kind}.{field}: String should match pattern "
                f"'^{_ID.pattern}$'"
            )
    for again in twice(_ids(body, "server_tool_use", "id")):
        yield f"messages: `server_tool_use` ids must be unique: {again}"
    for again in twice(_ids(body, "web_search_tool_result", "tool_use_id")):
        yield f"each `server_tool_use` must have a single result. Found multiple: {again}"


def _ids(body: Body, kind: str, field: str) -> list[str]:
    return [str(placed.block[field]) for placed in placed_blocks(body) if placed.kind == kind]


def _contents(body: Body) -> Iterator[str]:
    for placed in placed_blocks(body):
        if placed.kind == "server_tool_use" and placed.block["name"] != "web_search":
            yield f"{placed.place}: a tool that was never offered: {placed.block['name']}"
        if placed.kind == "web_search_tool_result":
            yield from _content(placed)


def _content(placed: BlockAt) -> Iterator[str]:
    content, place = placed.block["content"], f"{placed.place}.web_search_tool_result.content"
    if isinstance(content, dict):
        if content.keys() != {"type", "error_code"}:
            yield f"{place}: Extra inputs are not permitted"
        if content.get("error_code") not in _ERRORS:
            yield f"{place}.error_code: Input should be one of {_ERRORS}"
        return
    for at, page in enumerate(content):
        if page.get("type") != "web_search_result":
            yield f"{place}.{at}: Input tag '{page.get('type')}' does not match"
        for field in page.keys() - {"type", "page_age", *_PAGE}:
            yield f"{place}.{at}.{field}: Extra inputs are not permitted"
        for field in _PAGE:
            if not isinstance(page.get(field), str):
                yield f"{place}.{at}.{field}: Field required"
        if page.get("encrypted_content") == "":
            yield f"{placed.place}: Invalid `encrypted_content` in `search_result` block"


def _searches_answered(body: Body) -> Iterator[str]:
    known, answered = set[str](), set(_ids(body, "web_search_tool_result", "tool_use_id"))
    merged, offered = turns(body), any(map(_is_search, body.get("tools") or []))
    for number, turn in enumerate(merged):
        for placed in turn.of(*SEARCH_BLOCKS):
            if placed.kind == "server_tool_use":
                known.add(str(placed.block["id"]))
            elif placed.block["tool_use_id"] not in known:
                yield (
                    f"{placed.place}: unexpected `tool_use_id` found in `web_search_tool_result` "
                    f"blocks: {placed.block['tool_use_id']}. Each `web_search_tool_result` block "
                    "must have a corresponding `server_tool_use` block before it."
                )
        waiting = [str(p.block["id"]) for p in turn.of("server_tool_use")]
        waiting = [search for search in waiting if search not in answered]
        rest = merged[number + 1 :]
        is_mixed = bool(turn.call_ids) and len(rest) == 1
        is_resumed = is_mixed and {placed.kind for placed in rest[0].blocks} == {"tool_result"}
        is_paused = not rest and not turn.call_ids
        for search in waiting:
            words = (
                f"messages.{turn.message}: `web_search` tool use with id `{search}` was found "
                "without a corresponding `web_search_tool_result` block"
            )
            if not (is_resumed or is_paused):
                yield words
            elif not offered:
                yield f"{words}, but no `web_search` tool was provided"


def _tool_for_searches(body: Body) -> Iterator[str]:
    """The page asks for the same tools; whether the API insists, no page says."""
    has_blocks = any(placed.kind in SEARCH_BLOCKS for placed in placed_blocks(body))
    if has_blocks and not any(map(_is_search, body.get("tools") or [])):
        yield "messages: blocks of searches, but no `web_search` tool was provided"


SEARCH_RULES: tuple[Rule, ...] = (
    _search_tool,
    _search_ids,
    _contents,
    _searches_answered,
    _tool_for_searches,
)
