"""OpenAI's web searches: nothing that a server or a file says becomes anything but a search."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.models.events import Cited
from parley.models.openai_searches import (
    KIND,
    SEARCH_FORM,
    UNLISTED,
    Citations,
    begun,
    billed,
    sendable,
)
from parley.models.searches import NOTHING_FOUND, opened
from tests.examples import examples
from tests.strict import check_responses

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
ACTIONS = st.fixed_dictionaries(
    {"type": st.sampled_from(["search", "open_page", "find_in_page", "buy"]) | VALUES},
    optional=dict.fromkeys(["query", "queries", "url", "pattern", "sources", "role"], VALUES),
)
ITEMS = st.fixed_dictionaries(
    {"type": st.just(KIND) | VALUES, "id": st.sampled_from(["ws_1", "rs_1", ""]) | VALUES},
    optional={
        "status": st.sampled_from(["completed", "failed", "incomplete", "searching"]) | VALUES,
        "action": ACTIONS | VALUES,
        "role": st.just("user"),
        "content": VALUES,
    },
)


def body(item: Any) -> dict[str, Any]:
    return {
        "model": "gpt-4.1",
        "input": [{"role": "user", "content": "x"}, item, {"role": "user", "content": "y"}],
    }


@examples(300)
@given(item=ITEMS | VALUES)
def test_a_forged_attachment_is_a_valid_search_or_nothing(item: Any) -> None:
    sent = sendable(item)
    assert sent is None or (sent["type"] == KIND and check_responses(body(sent)) == [])


@examples(300)
@given(
    action=ACTIONS,
    status=st.sampled_from(["completed", "failed", "incomplete"]),
    goes_back=st.booleans(),
)
def test_an_item_comes_back_as_it_was_stored(action: Any, status: str, goes_back: bool) -> None:
    item = {"type": KIND, "id": "ws_1", "status": status, "action": action}
    ran, result = begun(item, goes_back=goes_back)
    assert (ran.call.id, ran.call.name, result.id) == ("ws_1", "web_search", "ws_1")
    json.loads(ran.call.arguments.encode())
    whole = opened(result.outcome.whole.encode(), SEARCH_FORM)
    assert whole == (sendable(item) if goes_back else None)
    assert sendable(whole) == whole


SOURCES = [
    ({}, UNLISTED),
    ({"type": "search", "query": "x"}, UNLISTED),
    ({"type": "search", "sources": []}, NOTHING_FOUND),
    ({"type": "search", "sources": [{"url": "https://a.b"}, {"name": "weather"}]}, "https://a.b"),
    ({"type": "open_page", "url": "https://a.b"}, "https://a.b"),
    ({"type": "open_page", "url": None}, UNLISTED),
]


@pytest.mark.parametrize(("action", "text"), SOURCES)
def test_a_result_lists_the_pages(action: dict[str, Any], text: str) -> None:
    _, result = begun({"id": "ws_1", "action": action}, goes_back=False)
    assert result.outcome.text == text


PAGE = "https://a.b/c"


@pytest.mark.parametrize(
    ("text", "is_footnote"),
    [
        ("Out.", True),
        (f"Out ([a.b]({PAGE})).", False),
        (f"Out ([a.b]({PAGE}?utm_source=openai)).", False),
        (f"Out: {PAGE}.", False),
        (f"Out: {PAGE}", False),
        (f"Out: {PAGE}/d and {PAGE}?d=1", True),
    ],
)
@pytest.mark.parametrize("url", [PAGE, f"{PAGE}?utm_source=openai"])
def test_only_a_page_whose_address_is_not_in_the_text_becomes_a_footnote(
    text: str, is_footnote: bool, url: str
) -> None:
    citations = Citations()
    for piece in text:
        citations.add(piece)
    marks = list(citations.cited({"type": "url_citation", "url": url, "title": "T"}))
    assert marks == ([Cited(url, "T")] if is_footnote else [])


def test_a_citation_of_no_text_and_of_too_many_pages_is_ignored() -> None:
    page = {"type": "url_citation", "url": PAGE}
    citations = Citations()
    assert list(citations.cited(page)) == []
    citations.add("Out.")
    assert len([mark for _ in range(2000) for mark in citations.cited(page)]) == 999
    assert list(Citations().cited({"type": "file_citation"})) == []


@pytest.mark.parametrize(
    ("usage", "count"),
    [
        ({}, 2),
        ({"tool_usage": None}, 2),
        ({"tool_usage": {"web_search": {"num_requests": 0}}}, 0),
        ({"tool_usage": {"web_search": {"num_requests": 5}}}, 5),
    ],
)
def test_searches_are_counted_as_billed_or_as_seen(usage: dict[str, Any], count: int) -> None:
    assert billed(usage, 2) == count
