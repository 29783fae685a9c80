"""The tools of Parley's own servers: the servers list exactly these, and functions take them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver.tools import Tool as Function

from parley.tools.builtin_tools import DEFINITIONS, NO_COMMAND, builtin_tools
from parley.tools.server_settings import MOCK, WORKSPACE, ServerSettings
from parley.workspace.boundary import Boundary
from parley.workspace.tool_server import create_workspace_server
from parley.workspace.toolbox import Workspace
from tests.mcp_servers import servers_of


def without_titles(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def known(settings: ServerSettings) -> Any:
    return builtin_tools(settings, has_code=True)


@pytest.mark.parametrize(
    "settings",
    [
        ServerSettings(MOCK, builtin=True),
        ServerSettings(WORKSPACE, builtin=True, cwd="/p"),
        ServerSettings(
            WORKSPACE, builtin=True, cwd="/p", args=(NO_COMMAND,), disabled_tools=("move*",)
        ),
    ],
)
async def test_a_server_lists_exactly_the_known_tools(
    settings: ServerSettings, tmp_path: Path
) -> None:
    def workspace(_: ServerSettings) -> Any:
        return create_workspace_server(
            lambda: Workspace(Boundary(tmp_path)),
            has_command=NO_COMMAND not in settings.args,
            has_code=True,
        )

    async with servers_of(settings, workspace=workspace) as servers:
        listed = await servers.catalogue()
        assert [tool for _, tool in listed.tools] == sorted(
            known(settings), key=lambda tool: tool.name
        )


def test_a_function_takes_what_its_definition_says() -> None:
    """The SDK derives the same schemas from the functions' parameters, except for titles."""
    from parley.workspace import tool_server

    kinds = (tool_server._ReadOnlyTools, tool_server._ChangingTools, tool_server._CodeTools)
    functions = [
        function
        for kind in kinds
        for name in DEFINITIONS
        if (function := getattr(kind(lambda: None), name, None))  # type: ignore[arg-type, return-value]
    ]
    assert {function.__name__ for function in functions} | {"web_search"} == DEFINITIONS.keys()
    for function in functions:
        definition = DEFINITIONS[function.__name__]
        derived = Function.from_function(function, structured_output=False)
        assert without_titles(derived.parameters) == definition["inputSchema"]
        assert " ".join((function.__doc__ or "").split()) == definition["description"]


async def test_known_tools_need_no_start_until_one_is_called(tmp_path: Path) -> None:
    settings = ServerSettings(MOCK, builtin=True)
    async with servers_of(settings, known_tools=known) as servers:
        assert not servers.needs_sdk()
        (tool,) = [tool for _, tool in (await servers.catalogue()).tools]
        assert [(s.state, s.protocol, s.tools) for s in servers.status()] == [
            ("ready", "", (tool,))
        ]
        assert (await servers.prompts(), await servers.resources()) == ((), {})
        assert not servers._has_sdk
        assert "GOOGL" in (await servers.call(tool, {"query": "google"})).text
        (status,) = servers.status()
        assert (status.state, status.tools) == ("ready", (tool,))
        assert status.protocol
        old = replace(tool, description="Another description.")
        assert "has changed its definition" in (await servers.call(old, {"query": "x"})).text
        await servers.catalogue()
        servers.restart(MOCK)
        assert [tool] == [tool for _, tool in (await servers.catalogue()).tools]


async def test_a_stopped_server_offers_nothing() -> None:
    settings = ServerSettings(MOCK, builtin=True)
    async with servers_of(settings, known_tools=known) as servers:
        await servers.catalogue()
        servers.use({MOCK: replace(settings, enabled=False)})
        assert (await servers.catalogue()).tools == ()
    async with servers_of(settings, known_tools=known) as servers:
        await servers.catalogue()
        await servers.close()
        assert (await servers.catalogue()).tools == ()


@pytest.mark.parametrize("settings", [ServerSettings("other", builtin=True), ServerSettings(MOCK)])
def test_other_servers_must_start(settings: ServerSettings) -> None:
    assert known(settings) is None


async def test_a_programs_server_with_a_builtin_name_is_asked(tmp_path: Path) -> None:
    from mcp.server import MCPServer

    async def ask() -> str:
        """Ask."""
        return "asked"

    server: Any = MCPServer("own")
    server.add_tool(ask)
    settings = ServerSettings(MOCK, builtin=True)
    async with servers_of(settings, known_tools=known, in_process={MOCK: server}) as servers:
        assert [tool.name for _, tool in (await servers.catalogue()).tools] == ["ask"]
