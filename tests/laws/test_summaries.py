"""The law of several summaries: the summaries of one reasoning item are sent back unchanged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.chat.transcript import Thinking
from parley.models import openai_responses
from parley.models.events import Event, ThinkingDelta, ThinkingEnd
from tests.examples import examples

_summary_texts = st.lists(
    st.text(st.sampled_from("ab \n*\u00e9\U0001f9e0"), min_size=1), min_size=1, max_size=4
)


@given(_summary_texts, st.booleans())
@examples(100)
@example(["**First**\n\nso", "**Then**\n\nthis"], True)
@example(["a\n\nb", "\n\n"], False)
def test_several_summaries_of_one_item_are_sent_back_separately(
    summaries: list[str], is_streamed: bool
) -> None:
    parts = [{"type": "summary_text", "text": words} for words in summaries]
    item = {"type": "reasoning", "id": "rs_1", "summary": parts, "encrypted_content": "c2VhbGVk"}
    decoder = openai_responses.Decoder("openai", "a-model")
    pieces = [
        {"type": "response.reasoning_summary_text.delta", "summary_index": n, "delta": words}
        for n, words in enumerate(summaries)
    ]
    events = list[Event]()
    for payload in (
        {"type": "response.output_item.added", "item": item},
        *(pieces if is_streamed else ()),
        {"type": "response.output_item.done", "item": item},
    ):
        events += decoder.feed({"output_index": 0, **payload})
    words = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
    (signature,) = (event.signature for event in events if isinstance(event, ThinkingEnd))
    thinking = Thinking("openai", "a-model", words, signature)
    assert openai_responses.unsealed(thinking) == item
    # An edited text is sent in its current form.
    edited = openai_responses.unsealed(replace(thinking, text=f"{words}!"))
    assert edited
    assert edited["summary"] == [{"type": "summary_text", "text": f"{words}!"}]


@pytest.mark.parametrize(
    "lengths", ["7", "[]", "[0,3]", '["1"]', "[true]", "[9]", "[-1]", "{}", "[1,1]", "null"]
)
def test_lengths_that_do_not_match_the_text_leave_it_whole(lengths: str) -> None:
    signature = f'{{"id":"rs_1","encrypted_content":"c2VhbGVk","summaries":{lengths}}}'
    item = openai_responses.unsealed(Thinking("openai", "a-model", "a\n\n", signature))
    assert item
    assert item["summary"] == [{"type": "summary_text", "text": "a\n\n"}]
