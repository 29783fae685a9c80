"""Which resources the tool that reads them may ask a server for: a tool of Parley's own for each server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parley.chat.transcript import Proposal, Result, ToolCall
from parley.engine.links import resources_of
from parley.engine.observe import Observation
from parley.engine.ports import Ports
from parley.policy.limits import invalid_arguments
from parley.text import one_line
from parley.tools.catalogue import Tool
from parley.tools.resources import is_reader
from parley.tools.schema import decode_arguments

_MOST_NAMED = 20
_LENGTH = 200


async def unknown_resource(
    ports: Ports, observation: Observation, tool: Tool, call: ToolCall
) -> Result | None:
    """The result of a call of `tool` for a resource that is not to be read; None where it is.

    The server is asked for what its own results named, and for what it lists. Any other URI may come from
    another server, or from a text.
    """
    try:
        uri = str(decode_arguments(call.arguments)["uri"])
    except ValueError as error:
        return Result("error", invalid_arguments(str(error)))
    known = resources_of(tool.server, observation.catalogue, observation.snapshot.transcript)
    if uri in known:
        return None
    listed = await ports.tools.resources(tool.server)
    if uri in listed:
        return None
    names = [*known, *(each for each in listed if each not in known)]
    return Result("error", _unknown(tool.server, uri, names))


async def refused_resources(
    ports: Ports, observation: Observation, calls: Iterable[Proposal]
) -> list[tuple[Proposal, Result]]:
    """The waiting calls for resources that are not to be read, with results: nothing is to be decided."""
    refused = list[tuple[Proposal, Result]]()
    for call in calls:
        tool = observation.catalogue.get(call.call.name)
        if tool is None or not is_reader(tool) or observation.situation.approvals.starts(call):
            continue
        if result := await unknown_resource(ports, observation, tool, call.call):
            refused.append((call, Result("refused", result.body)))
    return refused


def _unknown(server: str, uri: str, known: Sequence[str]) -> str:
    names = ", ".join(one_line(each, _LENGTH) for each in known[:_MOST_NAMED])
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return f"The MCP server {server} named no resource {one_line(uri, _LENGTH)!r}. It named: {names}{more}"
