"""Claude's web searches: the tool, the results as text for people, and the blocks of earlier
searches that are sent back.

Only known kinds of blocks with known fields are sent back, because an attachment can be forged.
Knows neither streams nor the order of a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parley.chat.history import ModelTurn, ProviderCall, Turn
from parley.chat.transcript import ToolCall
from parley.late_patterns import late_pattern
from parley.models.encode import arguments_object
from parley.models.searches import SEARCH_NAME, sealed, sources_text
from parley.text import one_line
from parley.tools.results import Outcome

Block = dict[str, Any]

FORMAT = "anthropic"
USES = 8
"""How many searches one request may make; each costs money."""

# All models that search know this variant, and it calls the search directly. From _20260209 on, a
# search runs inside code execution unless `allowed_callers` forbids it. Google Cloud has only this
# one. "Both the new and old versions are current."
# (platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool and tool-reference,
# 2026-08-22)
_TOOL = {"type": "web_search_20250305", "name": SEARCH_NAME, "max_uses": USES}

# WebSearchToolResultErrorCode in anthropic 2.12.
_ERRORS: Mapping[str, str] = {
    "too_many_requests": "there were too many searches within a short time",
    "invalid_tool_input": "the query is invalid",
    "max_uses_exceeded": f"one request may make only {USES} searches",
    "query_too_long": "the query is too long",
    "request_too_large": "the request is too large",
    "unavailable": "the search is unavailable",
}
_PAGE = {"type", "url", "title", "encrypted_content"}
"""The fields of a page; each of them is a text."""
_FIELDS = {*_PAGE, "page_age"}

# "server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'" (a refusal,
# github.com/ding113/claude-code-hub/issues/470, 2026-11-26).
_ID = late_pattern(r"srvtoolu_[A-Za-z0-9_]{1,110}")


def search_tool() -> Block:
    """The tool for a request; always the same, because the provider caches a request by its
    beginning."""
    return dict(_TOOL)


def outcome(block: Mapping[str, Any], after: str | None) -> Outcome:
    """The outcome of a search, from its block in a reply that was written after this call ("" for
    the search's own call; None if that is in an earlier reply).

    A search that code execution ran cannot go back without the code's blocks, so nothing of it
    does.
    """
    content = block.get("content")
    caller = block.get("caller") or {}
    is_direct = isinstance(caller, Mapping) and caller.get("type", "direct") == "direct"
    kept = _sound(content) if is_direct else None
    raw = {"content": kept} | ({} if after == "" else {"after": after})
    whole = "" if kept is None else sealed(FORMAT, raw)
    if isinstance(content, list):
        pages = [page for page in content if isinstance(page, Mapping)]
        text = sources_text((page.get("title"), page.get("url")) for page in pages)
        return Outcome("ok", text, whole=whole)
    code = content.get("error_code") if isinstance(content, Mapping) else None
    reason = _ERRORS.get(str(code)) or one_line(str(code or "its result cannot be read"), 100)
    return Outcome("error", f"The search failed: {reason}", whole=whole)


def call_block(call: ToolCall) -> Block | None:
    """The block of a search's call; None if the provider would refuse its id."""
    if call.name != SEARCH_NAME or not _ID.fullmatch(call.id):
        return None
    query = arguments_object(call.arguments)
    return {"type": "server_tool_use", "id": call.id, "name": SEARCH_NAME, "input": query}


def result_block(call: ToolCall, raw: object) -> Block | None:
    """The block of a search's result; None if an attachment contains no such block."""
    content = _sound(raw.get("content")) if isinstance(raw, Mapping) else None
    if content is None:
        return None
    return {"type": "web_search_tool_result", "tool_use_id": call.id, "content": content}


@dataclass(slots=True)
class Placed:
    """The blocks of a reply's searches by the number of their part, -1 for those that open it.

    `key` identifies all of them.
    """

    blocks: dict[int, list[Block]] = field(default_factory=dict)
    key: tuple[tuple[int, str, str, str], ...] = ()

    def put(self, at: int, block: Block, path: str) -> None:
        """Add a block; `path` is the attachment that contains it. A call comes before results."""
        blocks = self.blocks.setdefault(at, [])
        is_call = block["type"] == "server_tool_use"
        blocks.insert(0 if is_call else len(blocks), block)
        self.key += ((at, block["type"], block.get("id") or block["tool_use_id"], path),)


def placed(turns: Sequence[Turn], raw: Callable[[ProviderCall], object] | None) -> list[Placed]:
    """The blocks of earlier searches that go back, for each turn; none without `raw`.

    A search goes back with its result, in the order in which both were received: a result may come
    after further calls, or open the next reply. A search that has no result goes back only if its
    reply is the last one and has calls of the user's tools, too: the provider runs it now, and its
    result opens the next reply. "The follow-up user message must contain nothing except
    `tool_result` blocks" (platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools,
    2026-08-22).
    """
    all_, seen = [Placed() for _ in turns], set[str]()
    for number, turn in enumerate(turns):
        if raw is None or not isinstance(turn, ModelTurn):
            continue
        is_last, following = number == len(turns) - 1, turns[number + 1 : number + 2]
        parts = {at: part for at, part in enumerate(turn.parts) if isinstance(part, ProviderCall)}
        numbers = {part.call.id: at for at, part in parts.items()}
        for at, part in parts.items():
            call, value = call_block(part.call), raw(part)
            result = result_block(part.call, value)
            waits = part.status is None and is_last and turn.open and bool(turn.calls)
            if call is None or part.call.id in seen or not (result or waits):
                continue
            seen.add(part.call.id)
            all_[number].put(at, call, "")
            if result is None:
                continue
            path, after = part.raw.path if part.raw else "", _after(value)
            if after is None and following and isinstance(following[0], ModelTurn):
                all_[number + 1].put(-1, result, path)
            else:
                all_[number].put(max(at, numbers.get(after or "", at)), result, path)
    return all_


def _after(raw: object) -> str | None:
    """The id of the call after which a result was written: "" for its own, None if its call is in
    an earlier reply."""
    after = raw.get("after", "") if isinstance(raw, Mapping) else ""
    return after if isinstance(after, str) else None


def _sound(content: object) -> list[Block] | Block | None:
    """The content of a result that the provider accepts; None for any other content."""
    match content:
        case list() if all(map(_is_page, content)):
            return [{key: page[key] for key in page if key in _FIELDS} for page in content]
        case {"type": "web_search_tool_result_error" as kind, "error_code": str(code)}:
            return {"type": kind, "error_code": code} if code in _ERRORS else None
        case _:
            return None


def _is_page(page: object) -> bool:
    return bool(
        isinstance(page, Mapping)
        and page.get("type") == "web_search_result"
        and all(isinstance(page.get(key), str) for key in _PAGE)
        and page["encrypted_content"]  # some servers that are not Anthropic's leave it empty
        and isinstance(page.get("page_age"), str | None)
    )
