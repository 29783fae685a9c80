"""Parley's own tools: one table of when each tool is offered, and how it runs.

The definition of a tool that needs no approval says why (`Tool.unasked`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from parley.chat.transcript import Proposal, Result, Transcript
from parley.engine.named_resources import readers
from parley.engine.observation import Observation
from parley.engine.ports import Ports
from parley.engine.read_resource import read_resource
from parley.engine.read_result import has_long_results, read_result
from parley.engine.read_skill import read_skill
from parley.engine.tool_search import find_tools, narrowed
from parley.frozen import frozen
from parley.models.tool_room import ToolRoom
from parley.policy.turn_limits import invalid_arguments
from parley.tools.agent_calls import NOT_AWAITED, is_of_agent
from parley.tools.catalogue import Catalogue, Tool, own_identity
from parley.tools.long_results import READ_RESULT
from parley.tools.resources import READ_RESOURCE
from parley.tools.schema import decode_arguments
from parley.tools.search import FIND_TOOLS
from parley.tools.skill_tool import READ_SKILL

_Run: TypeAlias = Callable[[Ports, Observation, Tool, dict[str, Any]], Awaitable[Result | None]]


@frozen
class Offering:
    """The facts that decide which of Parley's own tools a request offers."""

    catalogue: Catalogue
    transcript: Transcript
    skills: Tool | None
    is_full: Callable[[], bool]
    """Whether the tools are too large to be sent with their schemas, including Parley's own that
    come earlier in `OWN`. Adds up all sizes, so only the search asks."""


@frozen
class OwnTool:
    """One of Parley's own tools, or one for each server."""

    offered: Callable[[Offering], Sequence[Tool]]
    """The definitions to offer; none if the chat does not need the tool."""
    run: _Run
    """Returns a call's result. If a server runs the tool, returns the error for a call that must
    not run, and None for any other."""


OWN: Mapping[str, OwnTool] = {
    READ_RESULT.name: OwnTool(
        lambda offering: [READ_RESULT] if has_long_results(offering.transcript) else [],
        read_result,
    ),
    READ_RESOURCE: OwnTool(
        lambda offering: readers(offering.catalogue, offering.transcript), read_resource
    ),
    READ_SKILL: OwnTool(lambda offering: [offering.skills] if offering.skills else [], read_skill),
    FIND_TOOLS.name: OwnTool(
        lambda offering: [FIND_TOOLS] if offering.is_full() else [], find_tools
    ),
}
"""Parley's own tools by name; the search is last, because it depends on the others' sizes."""


def with_own_tools(
    catalogue: Catalogue,
    transcript: Transcript,
    room: ToolRoom | None,
    skills: Tool | None = None,
) -> Catalogue:
    """Add those of Parley's own tools that the chat needs to the tools from servers. `skills` is the
    tool that reads skills, if there are any.

    If all schemas together are too large, only the tools that were found or called most recently
    are sent in full, and only the names of the other tools.
    """
    if any(is_of_agent(tool) for _, tool in catalogue.tools):
        return catalogue  # such an agent has only its own tools
    tools, own = [tool for _, tool in catalogue.tools if not _has_server(tool)], list[Tool]()
    offering = Offering(
        catalogue, transcript, skills, lambda: room is not None and not room.holds([*tools, *own])
    )
    for each in OWN.values():
        own += each.offered(offering)
    alone = [tool for tool in own if not _has_server(tool)]
    every = Catalogue.of([*tools, *alone], catalogue.missing) if alone else catalogue
    every = every.beside(filter(_has_server, own))
    return narrowed(every, transcript, room, own) if room and FIND_TOOLS in own else every


async def run_own(
    ports: Ports, observation: Observation, tool: Tool, arguments: str
) -> Result | None:
    """The result of a call to one of Parley's own tools; None if a server has to run the call."""
    if not tool.is_own:
        return None
    try:
        decoded = decode_arguments(arguments)
    except ValueError as error:
        return Result("error", invalid_arguments(str(error)))
    return await OWN[tool.name].run(ports, observation, tool, decoded)


async def refused_calls(
    ports: Ports, observation: Observation, calls: Iterable[Proposal]
) -> list[tuple[Proposal, Result]]:
    """Waiting calls that must not or cannot run, with their results, so the user does not have to
    decide them: to Parley's tools for servers, and of agents that wait no longer.
    """
    refused, catalogue = list[tuple[Proposal, Result]](), observation.catalogue
    is_agents = any(is_of_agent(tool) for _, tool in catalogue.tools)
    for call in calls:
        tool = catalogue.get(call.call.name)
        if tool is not None and is_agents:
            if not ports.agents.awaits(call.call.id):
                refused.append((call, Result("refused", NOT_AWAITED)))
            continue
        if tool is None or not _has_server(tool) or observation.situation.approvals.starts(call):
            continue
        if result := await run_own(ports, observation, tool, call.call.arguments):
            refused.append((call, Result("refused", result.body)))
    return refused


def _has_server(tool: Tool) -> bool:
    """Whether a tool is Parley's own and a server runs it."""
    return tool.is_own and tool.identity != own_identity()
