"""Decides which resources Parley may request from a server. Each server has its own tool for
reading resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parley.chat.transcript import Proposal, Result, ToolCall
from parley.engine.named_resources import resources_of
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
    """The error for a call of `tool` whose resource must not be read; None if reading is allowed.

    Parley requests only resources that the server's own results mentioned or that the server lists.
    Any other URI may come from another server, or from a text.
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
    """Waiting calls for resources that must not be read, with their results; the user does not have
    to decide them."""
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
    return (
        f"The MCP server {server} named no resource {one_line(uri, _LENGTH)!r}. It named: "
        f"{names}{more}"
    )
