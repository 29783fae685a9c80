"""Parley's own tool that finds tools by keywords, without a server."""

from __future__ import annotations

from parley.chat.transcript import Result
from parley.engine.observe import Observation
from parley.policy.limits import invalid_arguments
from parley.tools.schema import decode_arguments
from parley.tools.search import ranking, report


def find_tools(observation: Observation, arguments: str) -> Result:
    """Find the tools that match the query, as many as fit in the request."""
    try:
        query = str(decode_arguments(arguments)["query"])
    except ValueError as error:
        return Result("error", invalid_arguments(str(error)))
    every, room = observation.catalogue.tools, observation.settings.request.tool_room
    offers = [(wire, tool) for wire, tool in every if not tool.is_own]
    hits = ranking(query, offers)
    tools = [tool for _, tool in hits]
    fitting = room.fitting(tools, len(every) - len(offers)) if room else tools
    return Result("ok", report(query, [hit for hit in hits if hit[1] in fitting], len(offers)))
