"""Parley's own tools that read resources, one for each server: decides which resources Parley may
request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parley.chat.transcript import Result
from parley.engine.named_resources import resources_of
from parley.engine.observation import Observation
from parley.engine.ports import Ports
from parley.text import one_line
from parley.tools.catalogue import Tool

_MOST_NAMED = 20
_LENGTH = 200


async def read_resource(
    ports: Ports, observation: Observation, tool: Tool, arguments: dict[str, Any]
) -> Result | None:
    """The error for a resource that must not be read; None if the server is to read it.

    Parley requests only resources that the server's own results mentioned or that the server lists.
    Any other URI may come from another server, or from a text.
    """
    uri = str(arguments["uri"])
    known = resources_of(tool.server, observation.catalogue, observation.snapshot.transcript)
    if uri in known:
        return None
    listed = await ports.tools.resources(tool.server)
    if uri in listed:
        return None
    names = [*known, *(each for each in listed if each not in known)]
    return Result("error", _unknown(tool.server, uri, names))


def _unknown(server: str, uri: str, known: Sequence[str]) -> str:
    names = ", ".join(one_line(each, _LENGTH) for each in known[:_MOST_NAMED])
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return (
        f"The MCP server {server} named no resource {one_line(uri, _LENGTH)!r}. It named: "
        f"{names}{more}"
    )
