"""A reply replaces a broken reply only with text, and no reply is lost to a shorter one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from parley.models.broken_replies import ReplyReplacement
from parley.models.events import (
    Answered,
    Aside,
    Call,
    Event,
    Finished,
    RateLimits,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    Usage,
    Withdrawn,
)
from tests.chats import call

events = st.one_of(
    st.sampled_from(["a", "bb", "c c"]).map(TextDelta),
    st.sampled_from(["hm", "so"]).map(ThinkingDelta),
    st.sampled_from([ThinkingEnd("s"), Usage(3, 1), Usage(3, 2), RateLimits(()), Aside("n")]),
)
replies = st.lists(st.lists(events, max_size=5), min_size=1, max_size=4)


def content(shown: Iterable[Event]) -> list[Event]:
    """The content on the screen after these events."""
    left = list[Event]()
    for event in shown:
        match event:
            case Withdrawn():
                left = []
            case Usage() | RateLimits() | Aside():
                pass
            case _:
                left.append(event)
    return left


def length(shown: Iterable[Event]) -> int:
    """The length of the text; a reply without text is not worth keeping."""
    return sum(len(e.text) for e in shown if isinstance(e, TextDelta))


def fed(reply: ReplyReplacement, steps: Iterable[Event]) -> list[Event]:
    return [each for step in steps for each in reply.feed(step)]


def after_breaks(broken: Sequence[list[Event]]) -> tuple[ReplyReplacement, list[Event]]:
    reply, shown = ReplyReplacement(), list[Event]()
    for steps in broken:
        shown += fed(reply, steps)
        reply.ask_again()
    return reply, shown


@given(replies, st.lists(events, max_size=5))
def test_a_whole_reply_replaces_all_broken_replies(
    broken: list[list[Event]], whole: list[Event]
) -> None:
    reply, shown = after_breaks(broken)
    steps = [*whole, TextDelta("end"), Finished("complete")]
    shown += fed(reply, steps)
    assert not reply.is_missing
    assert content(shown) == content(steps)


@given(replies)
def test_text_is_withdrawn_only_for_text(broken: list[list[Event]]) -> None:
    _, shown = after_breaks(broken)
    for event, following in pairwise(shown):
        if isinstance(event, Withdrawn):
            assert isinstance(following, TextDelta | ThinkingDelta | ThinkingEnd)


@given(replies)
def test_if_no_reply_is_complete_the_longest_one_stays(broken: list[list[Event]]) -> None:
    *before, last = broken
    reply, shown = after_breaks(before)
    shown += fed(reply, last)
    shown += reply.give_up()
    assert length(content(shown)) == max(map(length, broken))


@given(replies)
def test_the_tokens_of_all_requests_are_counted(broken: list[list[Event]]) -> None:
    _, shown = after_breaks(broken)
    usages = [e for e in shown if isinstance(e, Usage)]
    lasts = ([e for e in steps if isinstance(e, Usage)][-1:] for steps in broken)
    total = sum((usage for last in lasts for usage in last), Usage())
    assert (usages[-1] if usages else Usage()) == total


def test_the_text_stays_while_the_new_reply_thinks() -> None:
    reply, shown = after_breaks([[TextDelta("half")]])
    assert shown == [TextDelta("half")]
    assert fed(reply, [ThinkingDelta("hm"), ThinkingEnd()]) == []
    assert fed(reply, [TextDelta("whole")]) == [
        Withdrawn(),
        ThinkingDelta("hm"),
        ThinkingEnd(),
        TextDelta("whole"),
    ]


def test_a_reply_without_text_replaces_nothing() -> None:
    reply, _ = after_breaks([[TextDelta("half")]])
    remark = Answered("another-model")
    assert fed(reply, [ThinkingDelta("hm"), Finished("complete"), remark]) == [remark]
    assert reply.is_missing


def test_a_call_is_noticed() -> None:
    reply = ReplyReplacement()
    fed(reply, [TextDelta("I look."), Call(call(1))])
    assert reply.has_call
