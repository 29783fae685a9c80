"""Parley's own tool that finds tools by keywords, without a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from parley.chat.transcript import Exchange, Result, Transcript
from parley.engine.observation import Observation
from parley.engine.ports import Ports
from parley.models.tool_room import ToolRoom
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.search import FIND_TOOLS, names_in, ranking, report


async def find_tools(
    _ports: Ports, observation: Observation, _tool: Tool, arguments: dict[str, Any]
) -> Result:
    """Find the tools that match the query, as many as fit in the request."""
    query = str(arguments["query"])
    every, room = observation.catalogue.tools, observation.settings.request.tool_room
    offers = [(wire, tool) for wire, tool in every if not tool.is_own]
    hits = ranking(query, offers)
    tools = [tool for _, tool in hits]
    fitting = room.fitting(tools, len(every) - len(offers)) if room else tools
    return Result("ok", report(query, [hit for hit in hits if hit[1] in fitting], len(offers)))


def narrowed(
    catalogue: Catalogue, transcript: Transcript, room: ToolRoom, own: Sequence[Tool]
) -> Catalogue:
    """The catalogue with only Parley's own tools, and those last found or called, in full."""
    latest = [tool for tool in _latest(catalogue, transcript) if tool not in own]
    in_full = {*own, *room.fitting(latest, len(own))}
    names = frozenset(wire for wire, tool in catalogue.tools if tool not in in_full)
    return replace(catalogue, names_only=names)


def _latest(catalogue: Catalogue, transcript: Transcript) -> list[Tool]:
    """The tools that were found or called in a chat, without duplicates, latest first."""
    names = [name for exchange in transcript.exchanges for name in _uses(exchange, catalogue)]
    return [tool for name in dict.fromkeys(reversed(names)) if (tool := catalogue.get(name))]


def _uses(exchange: Exchange, catalogue: Catalogue) -> Iterator[str]:
    """The names of the tools that an exchange called or found; waiting calls do not count."""
    search = catalogue.wire(FIND_TOOLS)
    for proposal in (p for answer in exchange.answers for p in answer.proposals if p.result):
        yield proposal.call.name
        if proposal.call.name == search and proposal.result and proposal.result.status == "ok":
            yield from reversed(names_in(proposal.result.body))
