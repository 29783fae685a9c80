"""Records each request and each call: its time, duration, outcome and usage.

Wraps the loop's observer, and forwards everything to it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from typing import Any, Protocol, TypeVar

from parley.chat.transcript import Proposal, Result
from parley.engine import CallBegan, CallEnded, Observer, TurnEvent
from parley.errors import ModelError, ParleyError
from parley.iterators import closing
from parley.models.events import Answered, Event, Finished, Usage
from parley.models.request import Request

T = TypeVar("T")


class AuditLog(Protocol):
    """The log that receives the records."""

    chat: str
    """The path of the log's chat."""

    def note(self, kind: str, facts: Mapping[str, Any], at: float | None = None) -> None:
        """Record an event that began at this time (seconds since 1970), by default now."""
        ...

    def hold_request(self, digest: str, header: str, units: tuple[str, ...]) -> None:
        """Store the fingerprint of a request that a turn sent."""
        ...

    def rule(self, call_id: str, arguments: str) -> str:
        """The rule behind the approval that this call used up; "" if there is none."""
        ...

    def news(self) -> list[str]:
        """Messages for the user about problems with the records, each returned once."""
        ...


class AuditedObserver:
    """Wraps a turn's observer and records calls."""

    def __init__(self, observer: Observer, audit: AuditLog) -> None:
        self._observer = observer
        self._audit = audit
        self._began: dict[str, _Began] = {}
        self.doing = ""
        """The last status."""

    def status(self, text: str) -> None:
        """Show the current activity."""
        if text != self.doing:
            self._observer.status(text)
        self.doing = text

    def on_event(self, what: TurnEvent) -> None:
        """Record a call when its result has arrived."""
        match what:
            case CallBegan(proposal, tool):
                self._began[proposal.call.id] = _Began(f"{tool.server}/{tool.name}")
            case CallEnded(proposal, result):
                self._note_call(proposal, result)
            case _:
                pass
        self._observer.on_event(what)

    def _note_call(self, proposal: Proposal, result: Result) -> None:
        """Record a call. No rule approved a call that others ran."""
        call, ran_by = proposal.call, proposal.ran_by
        began = self._began.pop(call.id, None) or _Began(call.name)
        facts = {
            "call": call.id,
            "tool": began.what,
            "outcome": result.status,
            "rule": "" if ran_by else self._audit.rule(call.id, call.arguments),
            **({"ran_by": ran_by} if ran_by else {}),
            "seconds": began.seconds(),
            "bytes": len(result.body.encode()),
        }
        self._audit.note("call", facts, began.at)


async def recorded(
    events: AsyncIterator[Event], request: Request, audit: AuditLog, purpose: str = ""
) -> AsyncIterator[Event]:
    """Yield a request's events; record the request and its purpose when it ends in any way."""
    began, usage, outcome, answered = _Began(request.provider), Usage(), "cut", ""
    try:
        async with closing(events) as stream:
            async for event in stream:
                match event:
                    case Usage():
                        usage = event
                    case Finished(reason):
                        outcome = reason
                    case Answered(model):
                        answered = model
                    case _:
                        pass
                yield event
    except ModelError as error:
        outcome = error.reason
        raise
    except ParleyError as error:
        outcome = str(error)
        raise
    finally:
        facts = {
            "provider": began.what,
            "model": request.model,
            **({"answered": answered} if answered else {}),
            "outcome": outcome,
            "seconds": began.seconds(),
        }
        facts |= {"tokens": asdict(usage)} | ({"for": purpose} if purpose else {})
        facts |= {"cost": request.price.cost(usage)} if request.price else {}
        audit.note("request", facts, began.at)


class _Began:
    """A call or request that begins now, and whose duration is measured."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.at = time.time()
        self._ticks = time.monotonic()

    def seconds(self) -> float:
        return round(time.monotonic() - self._ticks, 3)
