"""Events that arrive together are joined; no text is lost or moved."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import ModelError
from parley.models.events import (
    Event,
    Finished,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    Usage,
    joined,
)

EVENTS = st.lists(
    st.one_of(
        st.builds(TextDelta, st.text(min_size=1, max_size=2)),
        st.builds(ThinkingDelta, st.text(min_size=1, max_size=2)),
        st.sampled_from([ThinkingEnd("sig"), Usage(1), Finished("complete")]),
    )
)


def _letters(events: list[Event]) -> list[Event]:
    return [
        type(event)(letter) if isinstance(event, TextDelta | ThinkingDelta) else event
        for event in events
        for letter in (event.text if isinstance(event, TextDelta | ThinkingDelta) else " ")
    ]


@given(events=EVENTS, fails=st.booleans())
def test_joined_events_have_the_same_content_and_order_up_to_a_failure(
    events: list[Event], fails: bool
) -> None:
    def text() -> Iterator[Event]:
        yield from events
        if fails:
            raise ModelError("it broke", reason="it broke")

    heard = list[Event]()
    if fails:
        with pytest.raises(ModelError):
            heard.extend(joined(text()))
    else:
        heard.extend(joined(text()))
    assert _letters(heard) == _letters(events)
    for one, other in pairwise(heard):
        assert not (type(one) is type(other) and isinstance(one, TextDelta | ThinkingDelta))
