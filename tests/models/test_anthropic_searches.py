"""Results of Claude's searches: their kept parts go back unchanged, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.transcript import ToolCall
from parley.models.anthropic_searches import call_block, outcome, result_block
from parley.models.searches import opened

CALL = ToolCall("srvtoolu_1", "web_search", '{"query":"a"}')
PAGE = {
    "type": "web_search_result",
    "url": "https://example.org",
    "title": "A page",
    "encrypted_content": "Eq\ud83d",
    "page_age": None,
}
ERROR = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
FIELDS = st.sampled_from([*PAGE, "cache_control", "error_code"])
VALUES = st.one_of(st.text(max_size=3), st.none(), st.integers(), st.sampled_from([*PAGE.values()]))
ITEMS: st.SearchStrategy[Any] = st.one_of(
    st.just(PAGE), st.just(PAGE | {"cache_control": {}}), st.dictionaries(FIELDS, VALUES)
)
CONTENTS = st.one_of(st.lists(ITEMS, max_size=3), ITEMS, st.just(ERROR), VALUES)


@pytest.mark.parametrize("content", [[PAGE, PAGE], [], ERROR])
def test_a_result_goes_back_as_it_came(content: object) -> None:
    block = {"type": "web_search_tool_result", "tool_use_id": CALL.id, "content": content}
    raw = opened(outcome(block, "").whole.encode(), "anthropic")
    assert result_block(CALL, raw) == block


@given(st.one_of(st.fixed_dictionaries({"content": CONTENTS}), VALUES))
def test_only_known_fields_go_back(raw: Any) -> None:
    block = result_block(CALL, raw)
    if block is None:
        return
    assert block.keys() == {"type", "tool_use_id", "content"}
    assert (block["type"], block["tool_use_id"]) == ("web_search_tool_result", CALL.id)
    if isinstance(block["content"], list):
        for page in block["content"]:
            assert page.keys() <= PAGE.keys()
            assert page["type"] == "web_search_result"
    else:
        assert block["content"] == ERROR


@pytest.mark.parametrize(
    "call",
    [ToolCall("toolu_1", "web_search", "{}"), ToolCall("srvtoolu_1", "code_execution", "{}")],
)
def test_a_call_that_is_not_a_search_does_not_go_back(call: ToolCall) -> None:
    assert call_block(call) is None


def test_an_unreadable_query_goes_back_as_an_object() -> None:
    block = call_block(ToolCall("srvtoolu_1", "web_search", '{"query'))
    assert block is not None
    assert block["input"] == {"_raw": '{"query'}
