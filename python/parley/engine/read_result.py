"""Parley's own tool that reads more of a long result, without a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from parley.chat.history import CallOutcome, ModelTurn, Turn, history
from parley.chat.transcript import Exchange, Result, Transcript
from parley.engine.observation import Observation
from parley.engine.ports import Ports
from parley.tools.catalogue import Tool
from parley.tools.long_results import excerpt, head_of


def has_long_results(transcript: Transcript) -> bool:
    """Whether a chat has results that were too long for the file."""
    return any(map(_has_long_result, transcript.exchanges))


async def read_result(
    ports: Ports, observation: Observation, _tool: Tool, arguments: dict[str, Any]
) -> Result:
    """Return the requested part of a long result; reads and verifies the attachment each time."""
    request, shot = observation.request(tools_on=True), observation.snapshot
    call = arguments["call"]
    known = _long_results(request.turns())
    every = _long_results(history(shot.transcript, shot.at, max_full_exchanges=None))
    fitting = [o for o in known if call == o.id] or [o for o in every if call in (o.id, o.call.id)]
    if not fitting:
        names = ", ".join(outcome.id for outcome in known or every)
        return Result(
            "error", f"No long result of a call {call!r}. Calls with long results: {names}"
        )
    outcome, whole = fitting[-1], fitting[-1].whole
    assert whole is not None, "each of them has one"
    content = (await ports.attachments.read([whole]))[whole.path]
    if isinstance(content, str):
        return Result("error", f"The result of {outcome.id} cannot be read: {content}")
    text, head = content.decode("utf-8", "replace"), head_of(outcome.content)
    begin = len(head) if text.startswith(head) else 0
    return Result("ok", excerpt(text, arguments, begin, observation.settings.result_max_bytes))


def _has_long_result(exchange: Exchange) -> bool:
    if "long" not in exchange.derived:
        results = (
            call.result
            for answer in exchange.answers
            for call in answer.calls
            if call.result and call.ran_by != "provider"  # whose attachments are no texts
        )
        exchange.derived["long"] = any(a.is_text for result in results for a in result.attachments)
    return bool(exchange.derived["long"])


def _long_results(turns: Iterable[Turn]) -> list[CallOutcome]:
    calls = (outcome for turn in turns if isinstance(turn, ModelTurn) for outcome in turn.calls)
    return [outcome for outcome in calls if outcome.whole]
