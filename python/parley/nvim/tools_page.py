"""The page with servers and tools: its lines, their subjects, and its folds. Pure.

Knows the available tools and the chat's selection; knows the keys' names, but not what they do, and
does not know windows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parley.display.summary import page_line
from parley.frozen import frozen
from parley.models.agent_status import AgentStatus
from parley.models.tool_room import ToolRoom, tokens_of
from parley.text import counted, fence, last_words
from parley.tools.catalogue import Tool
from parley.tools.resources import Resource, ResourceList
from parley.tools.server_settings import WORKSPACE, ServerStatus
from parley.tools.visits import visit

PAGE_KEYS = "x: on or off for this chat   R: restart   t: trust   <CR>: details   q: close"
LOGIN_KEYS = "s: sign in, in your browser   S: sign out"
RESOURCES_LISTED = 100
"""The maximum number of resources, and of templates, shown for a server."""
ALL, SOME, NONE, NEVER = "[x]", "[~]", "[ ]", "[-]"


@frozen
class ServerOffer:
    """The servers, and the tools that a chat may use and does use, as (server, tool)."""

    servers: Sequence[ServerStatus]
    possible: frozenset[tuple[str, str]] = frozenset()
    in_use: frozenset[tuple[str, str]] = frozenset()
    left_out: frozenset[str] = frozenset()
    """Servers whose tools are unknown, and which the chat leaves out."""
    room: ToolRoom | None = None
    """The room for tool schemas in the chat's requests."""
    chat: str = ""
    problems: Sequence[str] = ()
    resources: Mapping[str, ResourceList] = field(default_factory=dict)
    """The resources from servers that have replied."""
    agents: Sequence[AgentStatus] = ()
    """The processes of agents of other programs."""
    workspace: str = ""
    """Why the workspace tools are not offered; "" if they are."""

    def box(self, server: ServerStatus) -> str:
        """The checkbox that shows whether the chat uses all, some or none of a server's tools."""
        possible = [
            (server.name, t.name) for t in server.tools if (server.name, t.name) in self.possible
        ]
        in_use = [key for key in possible if key in self.in_use]
        if not server.enabled or (server.tools and not possible):
            return NEVER
        if not server.tools:
            return NONE if server.name in self.left_out else ALL
        return ALL if len(in_use) == len(possible) else SOME if in_use else NONE

    def tool_box(self, tool: Tool) -> str:
        """Whether the chat uses a tool."""
        key = tool.server, tool.name
        return NEVER if key not in self.possible else ALL if key in self.in_use else NONE


@dataclass(slots=True)
class ToolsPage:
    """The lines of the page, the rows at which a subject begins, and the folded rows."""

    lines: list[str] = field(default_factory=list)
    marks: list[dict[str, Any]] = field(default_factory=list)
    folds: list[dict[str, int]] = field(default_factory=list)

    def add(self, *lines: str) -> None:
        """Append lines."""
        self.lines += lines

    def mark(self, server: str, tool: str = "") -> None:
        """Record the subject of the following lines; "" if they do not belong to a server."""
        self.marks.append({"row": len(self.lines), "server": server, "tool": tool})

    def fold(self, head: str, body: Iterable[str]) -> None:
        """Add a line that represents folded lines."""
        start = len(self.lines)
        self.add(head, *body)
        self.folds.append({"first": start, "last": len(self.lines) - 1})

    def table(self) -> dict[str, Any]:
        """The page for Lua."""
        return {"lines": self.lines, "marks": self.marks, "folds": self.folds}


def tools_page(offer: ServerOffer) -> ToolsPage:
    """The page, which shows each server with its state and tools."""
    page = ToolsPage()
    page.add(f"# MCP servers{f' of {page_line(offer.chat)}' if offer.chat else ''}", "", PAGE_KEYS)
    if any(server.account != "none" for server in offer.servers):
        page.add(LOGIN_KEYS)
    if offer.problems:
        page.add("", *(f"! {page_line(problem)}" for problem in offer.problems))
    page.add(*_excess(offer))
    for server in offer.servers:
        _server(page, offer, server)
    for agent in offer.agents:
        _agent(page, agent)
    if offer.workspace:
        page.add("", f"## {NEVER} {WORKSPACE}: not offered", "", page_line(offer.workspace))
    return page


def _excess(offer: ServerOffer) -> list[str]:
    """A line that is shown if there are too many tools to send all schemas."""
    every = [tool for server in offer.servers for tool in server.tools]
    tools, room = [tool for tool in every if (tool.server, tool.name) in offer.in_use], offer.room
    if room is None or room.holds(tools):
        return []
    most = (
        f"~{room.tokens:,} tokens"
        if room.count is None
        else f"{room.count} tools, ~{room.tokens:,} tokens"
    )
    return [
        "",
        f"In use: {_sum(tools)}. There is room for only {most},",
        "so a model receives only tool names, and uses find_tools to find the tools that it needs.",
    ]


def _server(page: ToolsPage, offer: ServerOffer, server: ServerStatus) -> None:
    page.add("")
    page.mark(server.name)
    state = server.state if server.enabled else "switched off in the settings"
    account = f", {server.account}" if server.enabled and server.account != "none" else ""
    protocol = f", protocol {server.protocol}" if server.protocol else ""
    page.add(
        f"## {offer.box(server)} {server.name}: {state}{account}{protocol}, {_sum(server.tools)}"
    )
    if server.account == "signed out":
        page.add("", "To sign in, press s: a page opens in your browser")
    if server.page:
        page.add(
            "",
            f"Sign in at {visit(server.page, '').host}, in your browser (s: cancel):",
            server.page,
        )
    elif server.error and server.account != "signed out":
        page.add("", f"Error: {page_line(server.error)}")
    if server.folder and server.enabled:
        own = " (Parley's own; to change it, set cwd)" if server.has_own_folder else ""
        page.add("", f"Folder: {page_line(server.folder)}{page_line(own)}")
    said = server.instructions.split("\n") if server.instructions else []
    _lines(page, "instructions", said, said[:1])
    _lines(page, "log", server.log, last_words(server.log))
    _lines(page, "stderr", server.stderr, last_words(server.stderr))
    if server.state == "ready":
        _resources(page, offer.resources.get(server.name, ResourceList()))
    if server.tools:
        page.add("")
    for tool in server.tools:
        page.mark(server.name, tool.name)
        _tool(page, offer, tool)


def _agent(page: ToolsPage, agent: AgentStatus) -> None:
    page.add("")
    page.mark("")  # no key acts on an agent
    state = "running" if agent.is_running else "ended"
    page.add(f"## {page_line(agent.name)}: agent of another program, {state}")
    if agent.problem:
        page.add("", f"Error: {page_line(agent.problem)}")
    page.add("", f"Folder: {page_line(agent.folder)}")
    _lines(page, "stderr", agent.stderr, last_words(agent.stderr))


def _sum(tools: Sequence[Tool]) -> str:
    """The number of tools, and how many tokens they use."""
    text = counted(len(tools), "tool")
    return f"{text}, ~{tokens_of(tools):,} tokens" if tools else text


def _lines(page: ToolsPage, name: str, lines: Sequence[str], some: Sequence[str]) -> None:
    """A server's lines, folded under one of them."""
    if lines:
        ticks = fence("\n".join(lines))
        page.add("")
        page.fold(
            f"{name}, {counted(len(lines), 'line')}: {''.join(map(page_line, some))}",
            [ticks, *map(page_line, lines), ticks],
        )


def _resources(page: ToolsPage, listed: ResourceList) -> None:
    """A server's resources and templates, folded under a line that counts them."""
    if listed.unlisted:
        page.add("", f"Resources: {page_line(listed.unlisted)}")
    for kind, resources in (("resource", listed.resources), ("template", listed.templates)):
        if resources:
            page.add("")
            page.fold(
                f"{counted(len(resources), kind)}: {page_line(resources[0].uri)}",
                _resource_lines(kind, resources),
            )


def _resource_lines(kind: str, resources: Sequence[Resource]) -> Iterator[str]:
    for resource in resources[:RESOURCES_LISTED]:
        yield f"- {page_line(resource.uri)}  {page_line(resource.about)}".rstrip()
    if (more := len(resources) - RESOURCES_LISTED) > 0:
        yield f"  and {counted(more, f'more {kind}')}"


def _tool(page: ToolsPage, offer: ServerOffer, tool: Tool) -> None:
    described = [page_line(line) for line in tool.description.strip().split("\n") if line.strip()]
    notes = ", ".join(f"{name}: {json.dumps(value)}" for name, value in tool.annotations.items())
    schema = json.dumps(dict(tool.input_schema), indent=2, ensure_ascii=False).split("\n")
    page.fold(
        f"- {offer.tool_box(tool)} {page_line(tool.name)} ~{tokens_of([tool]):,}"
        f"{'  ' + described[0] if described else ''}",
        [
            *(["", f"  Title: {page_line(tool.title)}"] if tool.title else []),
            *(["", *(f"  {line}" for line in described)] if described else []),
            *(["", f"  Annotations: {page_line(notes)}"] if notes else []),
            "",
            "  ```json",
            *(f"  {page_line(line)}" for line in schema),
            "  ```",
        ],
    )
