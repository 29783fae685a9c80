"""Resources of servers: listed when somebody looks, and at no other time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from parley.mcp import servers as module
from parley.mcp.servers import Servers
from parley.tools.resources import Resource, ResourceList
from parley.tools.servers import ServerSettings
from tests.defaults import new_servers
from tests.mcp.resource_server import Library, create
from tests.mcp_servers import only, servers_of, table, tool_of

OFFER = {"capabilities": {"tools": {}, "resources": {}}, "serverInfo": {"name": "table", "version": "1"}}
OLDER = {"initialize": {"protocolVersion": "2025-06-18", **OFFER}, "tools/list": {"tools": []}}


@asynccontextmanager
async def library() -> AsyncIterator[tuple[Servers, Library]]:
    """A server of the SDK in this process, and who asks it."""
    server = create()
    servers = new_servers({"docs": ServerSettings("docs", builtin=True)}, in_process={"docs": server})
    await servers.catalogue()
    yield servers, server
    await servers.close()


async def listed(**answers: Any) -> ResourceList:
    """What a server lists that answers so."""
    methods = {"resources": "resources/list", "templates": "resources/templates/list"}
    async with servers_of(
        table({**OLDER, **{methods[name]: each for name, each in answers.items()}})
    ) as servers:
        await servers.catalogue()
        lists = await servers.resources()
        assert (only(servers).state, only(servers).error) == ("ready", "")
        return lists["table"]


async def test_resources_and_templates_are_listed_anew_each_time_and_never_by_themselves() -> None:
    async with library() as (servers, server):
        assert server.requests == []
        lists = (await servers.resources())["docs"]
        assert lists.resources[0] == Resource("note://tea", "Of tea", "What is said of tea.", "text/markdown")
        assert lists.templates == (Resource("page://{name}/{part}", "a page", "", "text/plain"),)
        stir = await tool_of(servers, "stir")
        assert (await servers.call(stir, {"times": 500})).text == "stirred"
        assert server.requests == ["list"]
        server.resource("note://new", name="new")(lambda: "new")
        assert (
            Resource("note://new", "new", "", "text/plain") in (await servers.resources())["docs"].resources
        )
        assert server.requests == ["list", "list"]


async def test_a_malformed_definition_loses_only_itself() -> None:
    good, more = {"uri": "a:b", "name": "b"}, {"uriTemplate": "a:{b}", "name": "b"}
    lists = await listed(
        resources={"resources": [5, {"uri": "a:c"}, {**good, "size": "large"}, {"name": "d"}]},
        templates={"resourceTemplates": [more, {"name": "none"}]},
    )
    assert lists == ResourceList((Resource("a:b", "b"),), (Resource("a:{b}", "b"),))


async def test_a_server_without_templates_has_its_resources() -> None:
    lists = await listed(resources={"resources": [{"uri": "a:b", "name": "b"}]})
    assert lists == ResourceList((Resource("a:b", "b"),))


async def test_a_list_without_end_is_cut_and_says_so() -> None:
    page = {"resources": [{"uri": f"a:{n}", "name": str(n)} for n in range(700)], "nextCursor": "again"}
    lists = await listed(resources=page, templates={"resourceTemplates": []})
    assert (len(lists.resources), lists.unlisted) == (1000, "no more than 1,000 are listed")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("error -32603", "MCP server 'table' failed: no such thing"),
        ("silence", "MCP server 'table' gave no answer within 0.5 s"),
        ({"resources": "all"}, "MCP server 'table' failed: its answer is none: "),
    ],
)
async def test_a_server_that_cannot_list_them_says_why(
    answer: Any, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LIST_S", 0.5)
    assert (await listed(resources=answer)).unlisted.startswith(problem)
