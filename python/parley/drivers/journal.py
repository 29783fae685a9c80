"""Keeps a record of each request and each call: when, how long, how it ended, what it used.

Stands between the loop and a driver's own world, and passes everything on.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol, TypeVar

from parley.engine import CallBegan, CallEnded, Happening, World
from parley.errors import ModelError
from parley.models.ask import Ask
from parley.models.events import Event, Finished, Usage

T = TypeVar("T")


class Notes(Protocol):
    """Where records go."""

    def note(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Keep one."""
        ...


class RecordedWorld:
    """A world whose calls are noted."""

    def __init__(self, world: World, notes: Notes) -> None:
        self._world = world
        self._notes = notes
        self._began: dict[str, float] = {}
        self._paused = 0.0
        self.status = world.status

    def now(self) -> float:
        """The world's clock, which stands still while a rate limit is waited for."""
        return self._world.now() - self._paused

    def paused(self, seconds: float) -> None:
        """Take time out of the turn."""
        self._paused += seconds

    def together(self, work: Sequence[Callable[[], Awaitable[T]]], limit_s: float) -> AsyncIterator[T]:
        """As the world does it."""
        return self._world.together(work, limit_s)

    def happened(self, what: Happening) -> None:
        """Note a call when it has its result."""
        match what:
            case CallBegan(proposal, _):
                self._began[proposal.call.id] = time.monotonic()
            case CallEnded(proposal, result):
                facts = {"call": proposal.call.id, "tool": proposal.call.name, "outcome": result.status}
                seconds = _since(self._began.pop(proposal.call.id, time.monotonic()))
                self._notes.note("call", {**facts, "seconds": seconds, "bytes": len(result.body.encode())})
            case _:
                pass
        self._world.happened(what)


async def recorded(events: AsyncIterator[Event], ask: Ask, notes: Notes) -> AsyncIterator[Event]:
    """The events of a request, noted when it is over, however it ends."""
    began, usage, outcome = time.monotonic(), Usage(), "cut"
    try:
        async for event in events:
            match event:
                case Usage():
                    usage = event
                case Finished(reason):
                    outcome = reason
                case _:
                    pass
            yield event
    except ModelError as error:
        outcome = error.reason
        raise
    finally:
        facts = {"provider": ask.provider, "model": ask.model, "outcome": outcome}
        notes.note("request", {**facts, "seconds": _since(began), "tokens": asdict(usage)})


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)
