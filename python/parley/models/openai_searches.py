"""Web searches in OpenAI's Responses API: their items, and the pages that a reply's text cites.

An item (`web_search_call`) is a search, a page that the model opens, or a text that it looks for in
a page. Knows neither streams nor requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from parley.chat.grammar import fit
from parley.chat.transcript import CALL_ID, ToolCall
from parley.late_patterns import late_pattern
from parley.models.events import Cited, Ran, RanResult
from parley.models.fields import mapping, number, text
from parley.models.searches import SEARCH_NAME, sealed, sources_text
from parley.tools.results import Outcome

SEARCH_FORM = "openai_responses"
"""The format of the attachment with an item."""
KIND = "web_search_call"
TOOL: Mapping[str, Any] = {"type": "web_search"}
UNLISTED = "(the sources were not listed)"
SOURCES = "web_search_call.action.sources"
"""The value of `include` that asks for the pages that a search found."""

# `ResponseFunctionWebSearch` in openai 3.54, types/responses/response_function_web_search.py,
# 2026-11-26. An action without `sources` is usual: the API sends them only on request.
_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "search": ("query", "queries"),
    "open_page": ("url",),
    "find_in_page": ("pattern", "url"),
}
_STATUSES = ("completed", "failed", "incomplete")
_ITEM_ID = late_pattern(r"ws_[A-Za-z0-9_-]{1,200}")
_MOST_CITED = 1000
"""The maximum number of citations that are compared with the text of one reply."""


def begun(item: Mapping[str, Any], *, goes_back: bool) -> tuple[Ran, RanResult]:
    """A finished item as a call and its result; only an item that `goes_back` is kept in full."""
    action = _action(item.get("action"))
    is_repeated = action.get("queries") == [action.get("query")]
    shown = {key: value for key, value in action.items() if key != "queries" or not is_repeated}
    arguments = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    item_id = text(item, "id")
    call_id = item_id if CALL_ID.fullmatch(item_id) else "search"
    return Ran(ToolCall(call_id, SEARCH_NAME, arguments), "provider"), RanResult(
        call_id, _outcome(item, action, goes_back=goes_back)
    )


def is_search(item: Mapping[str, Any]) -> bool:
    """Whether an item is a search that has not failed, so the provider charges for it."""
    return _action(item.get("action")).get("type") == "search" and item.get("status") != "failed"


def _outcome(item: Mapping[str, Any], action: Mapping[str, Any], *, goes_back: bool) -> Outcome:
    whole = sealed(SEARCH_FORM, own) if goes_back and (own := sendable(item)) else ""
    if (status := text(item, "status")) in _FAILED:
        return Outcome("error", f"The search {_FAILED[status]}", whole=whole)
    sources = _sources(item, action)
    return Outcome("ok", UNLISTED if sources is None else sources_text(sources), whole=whole)


_FAILED = {"failed": "failed", "incomplete": "did not end"}


def _sources(
    item: Mapping[str, Any], action: Mapping[str, Any]
) -> list[tuple[object, object]] | None:
    """The titles and addresses of the pages that an item has read; None if it does not list them.

    Sources without an address are services, for example a weather service.
    """
    if isinstance(opened := action.get("url"), str):
        return [("", opened)]
    found = mapping(item, "action").get("sources")
    if not isinstance(found, list):
        return None
    return [(each.get("title"), each.get("url")) for each in found if isinstance(each, Mapping)]


def sendable(item: object) -> dict[str, Any] | None:
    """The item as it is sent back, with nothing but its own fields; None if it is not a web search.

    The item comes from a file next to the chat, which anyone may have written.
    """
    match item:
        case {"type": kind, "id": str(item_id), "status": str(status), "action": raw} if (
            kind == KIND and status in _STATUSES and _ITEM_ID.fullmatch(item_id)
        ):
            action = _action(raw)
            fields = {"type": KIND, "id": item_id, "status": status, "action": action}
            return fields if _is_whole(action) else None
        case _:
            return None


def _action(action: object) -> dict[str, Any]:
    """An action without the pages that it found; empty if its type is unknown."""
    kind = action.get("type") if isinstance(action, Mapping) else None
    if not isinstance(action, Mapping) or not isinstance(kind, str) or kind not in _ACTIONS:
        return {}
    fields: dict[str, Any] = {"type": kind}
    for name in _ACTIONS[kind]:
        match action.get(name):
            case str(value) if name != "queries":
                fields[name] = fit(value)
            case [*values] if name == "queries" and all(isinstance(v, str) for v in values):
                fields[name] = list(map(fit, values))
    return fields


def _is_whole(action: Mapping[str, Any]) -> bool:
    """Whether an action has the fields that the API requires."""
    needed = ("pattern", "url") if action.get("type") == "find_in_page" else ()
    return bool(action) and all(name in action for name in needed)


class Citations:
    """The pages that a reply's text cites, and the text so far.

    The text usually already has a link to each page. Only pages without a link need a footnote.
    """

    def __init__(self) -> None:
        self._pieces = list[str]()
        self._count = 0

    def add(self, piece: str) -> None:
        """Add the next piece of the text."""
        self._pieces.append(piece)

    def cited(self, annotation: Mapping[str, Any]) -> Iterator[Cited]:
        """The citation in an annotation, unless the text has the page's address."""
        self._count += 1
        if text(annotation, "type") != "url_citation" or self._count > _MOST_CITED:
            return
        url = text(annotation, "url")
        if url and self._pieces and not self._has(url):
            yield Cited(url, text(annotation, "title"))

    def _has(self, url: str) -> bool:
        """Whether the text has this address, with or without OpenAI's own parameter."""
        self._pieces = ["".join(self._pieces)]
        bare = re.sub(rf"{_OWN_PARAMETER}\Z", "", url)
        address = rf"{re.escape(bare)}(?:{_OWN_PARAMETER})?(?![\w/%?#&=~-])"
        return bool(re.search(address, self._pieces[0]))


_OWN_PARAMETER = r"[?&]utm_source=openai"
"""OpenAI adds this parameter to the addresses in its texts."""


def billed(response: Mapping[str, Any], seen: int) -> int:
    """The number of searches that a response costs; without a report, the searches `seen` in it.

    "`web_search.num_requests` counts billable searches. […] The field can be omitted when tool
    usage is unavailable" (openai 3.54, types/responses/response.py, 2026-11-26).
    """
    usage = mapping(mapping(response, "tool_usage"), "web_search")
    return number(usage, "num_requests") if "num_requests" in usage else seen
