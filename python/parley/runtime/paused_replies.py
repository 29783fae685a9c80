"""Asks a provider to continue a reply that it paused because its own tools took long.

The caller provides the function that sends a request. The provider receives the content of its
reply so far as it sent it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from parley.iterators import closing
from parley.models.events import Event, Finished, Paused, Usage
from parley.models.request import Request

MOST_PAUSES = 10
"""How many times a reply may continue, because each time costs searches and tokens."""


async def continued(
    send: Callable[[Request], AsyncIterator[Event]], request: Request
) -> AsyncIterator[Event]:
    """A reply's events, from as many requests as necessary; usage is their sum."""
    before = spent = Usage()
    for pauses in range(MOST_PAUSES + 1):
        content = None
        async with closing(send(request)) as events:
            async for event in events:
                match event:
                    case Paused() if pauses < MOST_PAUSES:
                        content = event.content
                    case Paused():
                        yield Finished("pause", f"after it had continued {MOST_PAUSES} times")
                    case Usage():
                        spent = before + event
                        yield spent
                    case _:
                        yield event
        if content is None:
            return
        before, request = spent, replace(request, paused=content)
