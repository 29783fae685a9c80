"""A reply that its provider pauses continues with the content so far, up to a limit."""

from __future__ import annotations

from collections.abc import AsyncIterator

from parley.chat.reader import parse
from parley.models.events import Event, Finished, Paused, TextDelta, Usage
from parley.models.request import Request
from parley.runtime.paused_replies import MOST_PAUSES, continued

REQUEST = Request(parse("💬: q\n"), 0, "anthropic", "claude-sonnet-5-5", web_search=True)


def block(number: int) -> dict[str, object]:
    return {"type": "text", "text": str(number)}


async def reply(pauses: int) -> tuple[list[Event], list[Request]]:
    """The events of a reply that pauses this many times, and the requests for it."""
    sent = list[Request]()

    async def send(request: Request) -> AsyncIterator[Event]:
        sent.append(request)
        number = len(sent)
        yield Usage(1, 1)
        yield TextDelta(str(number))
        yield Usage(1, number, searches=1)
        if number <= pauses:
            yield Paused("pause", content=(*request.paused, block(number)))
        else:
            yield Finished("complete")

    return [event async for event in continued(send, REQUEST)], sent


async def test_a_paused_reply_continues_and_its_usage_is_the_sum() -> None:
    events, sent = await reply(2)
    assert [request.paused for request in sent] == [(), (block(1),), (block(1), block(2))]
    assert [event for event in events if not isinstance(event, Usage)] == [
        *(TextDelta("1"), TextDelta("2"), TextDelta("3")),
        Finished("complete"),
    ]
    assert [e for e in events if isinstance(e, Usage)][-1] == Usage(3, 6, searches=3)


async def test_a_reply_that_pauses_again_and_again_ends() -> None:
    events, sent = await reply(99)
    assert len(sent) == MOST_PAUSES + 1
    assert events[-1] == Finished("pause", "after it had continued 10 times")
