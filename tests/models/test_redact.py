"""A reply never contains its request's key, for any cuts; the rest is unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from parley.chat.transcript import ToolCall
from parley.models.decoder import Decoder
from parley.models.events import (
    Call,
    Cited,
    Event,
    Finished,
    Ran,
    RanResult,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
)
from parley.models.redact import HIDDEN_KEY, Redacting
from parley.tools.results import Outcome

SECRET = "sk-sk-abcabcd"


class Script(Decoder):
    """Gives the events in its payloads."""

    def _take(self, raw: Mapping[str, Any]) -> Iterable[Event]:
        return raw["events"]  # type: ignore[no-any-return]

    def _finish(self) -> Iterable[Event]:
        return [Finished("complete")]


def events_of(secret: str, *events: Event) -> list[Event]:
    decoder = Redacting(Script("p", "m"), secret)
    redacted = [event for event in events for event in decoder.feed({"events": [event]})]
    return [*redacted, *decoder.end()]


def text(events: list[Event], kind: type[TextDelta | ThinkingDelta]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


PIECES = st.lists(
    st.sampled_from([*(SECRET[:n] for n in range(1, 14)), *"sk-abcd ", SECRET[5:], "x"])
)


@given(PIECES, st.sampled_from([TextDelta, ThinkingDelta]))
def test_a_key_never_passes_and_other_text_stays(
    pieces: list[str], kind: type[TextDelta | ThinkingDelta]
) -> None:
    events = [kind(piece) for piece in pieces]
    redacted = events_of(SECRET, *events)
    assert text(redacted, kind) == "".join(pieces).replace(SECRET, HIDDEN_KEY)
    assert all(not isinstance(event, kind) or event.text for event in redacted)
    assert events_of("", *events) == [*events, Finished("complete")]


def test_held_text_comes_before_later_events() -> None:
    call = ToolCall("a", "note", f'{{"text":"{SECRET}"}}')
    events = events_of(
        SECRET, ThinkingDelta("sk-"), ThinkingEnd(), TextDelta("a sk"), TextDelta("-"), Call(call)
    )
    assert events == [
        *(ThinkingDelta("sk-"), ThinkingEnd(), TextDelta("a "), TextDelta("sk-")),
        Call(ToolCall("a", "note", '{"text":"[key]"}')),
        Finished("complete"),
    ]


def test_a_short_word_used_as_a_key_may_appear() -> None:
    assert events_of("ollama", TextDelta("ollama")) == [TextDelta("ollama"), Finished("complete")]


def test_a_search_shows_no_key_in_its_query_its_result_or_its_source() -> None:
    hidden = HIDDEN_KEY
    found = Outcome("ok", f"https://a.b/{SECRET}", whole=f'["{SECRET}"]')
    events = events_of(
        SECRET,
        Ran(ToolCall("a", "web_search", f'{{"query":"{SECRET}"}}'), "provider"),
        RanResult("a", found),
        Cited(f"https://a.b/{SECRET}", SECRET),
    )
    assert events == [
        Ran(ToolCall("a", "web_search", f'{{"query":"{hidden}"}}'), "provider"),
        RanResult("a", Outcome("ok", f"https://a.b/{hidden}", whole=f'["{hidden}"]')),
        Cited(f"https://a.b/{hidden}", hidden),
        Finished("complete"),
    ]
