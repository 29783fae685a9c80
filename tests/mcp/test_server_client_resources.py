"""Servers' resources: Parley lists and reads them on request, and at no other time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from parley.mcp import servers as module
from parley.mcp.servers import Servers
from parley.mock_server import PIXEL
from parley.tools.resources import Resource, ResourceList, reader
from parley.tools.results import Outcome
from parley.tools.server_settings import ServerSettings
from parley.tools.templates import blank_of
from tests.mcp.resource_server import LINK, LONG, TEA, Library, create
from tests.mcp_servers import fake, only, servers_of, table, tool_of

OFFER = {
    "capabilities": {"tools": {}, "resources": {}},
    "serverInfo": {"name": "table", "version": "1"},
}
TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
PAGE = "page://{name}/{part}"
OLDER = {"initialize": {"protocolVersion": "2025-06-18", **OFFER}, "tools/list": {"tools": []}}


@asynccontextmanager
async def library() -> AsyncIterator[tuple[Servers, Library]]:
    """An SDK server in this process, and its client."""
    server = create()
    async with servers_of(
        ServerSettings("docs", builtin=True), in_process={"docs": server}
    ) as servers:
        await servers.catalogue()
        yield servers, server


async def listed(**answers: Any) -> ResourceList:
    """The resources of a server with these answers."""
    methods = {"resources": "resources/list", "templates": "resources/templates/list"}
    async with servers_of(
        table({**OLDER, **{methods[name]: each for name, each in answers.items()}})
    ) as servers:
        await servers.catalogue()
        lists = await servers.resources()
        assert (only(servers).state, only(servers).error) == ("ready", "")
        return lists["table"]


async def test_resources_and_templates_are_listed_each_time_and_only_on_request() -> None:
    async with library() as (servers, server):
        assert server.requests == []
        lists = (await servers.resources())["docs"]
        assert lists.resources[0] == Resource(
            "note://tea", "Of tea", "What is said of tea.", "text/markdown"
        )
        assert lists.templates == (Resource("page://{name}/{part}", "a page", "", "text/plain"),)
        stir = await tool_of(servers, "stir")
        assert (await servers.call(stir, {"times": 500})).text == "stirred"
        assert server.requests == ["list"]
        server.resource("note://new", name="new")(lambda: "new")
        assert (
            Resource("note://new", "new", "", "text/plain")
            in (await servers.resources())["docs"].resources
        )
        assert server.requests == ["list", "list"]


async def test_the_server_proposes_values_for_a_template() -> None:
    name, part = blank_of(PAGE, "page://t"), blank_of(PAGE, "page://tea/")
    assert name
    assert part
    async with library() as (servers, _):
        assert await servers.values("docs", name) == ("tea", "tin")
        assert await servers.values("docs", part) == ("tea-0", "tea-1", "tea-2")
        assert await servers.values("docs", replace(name, template="none://{name}")) == (
            "tea",
            "tin",
        )
        assert await servers.values("gone", name) == ()


@pytest.mark.parametrize(
    ("answer", "values"),
    [
        ({"completion": {"values": [str(number) for number in range(500)]}}, 100),
        ({"completion": {"values": "tea"}}, 0),
        ("error -32603", 0),
    ],
)
async def test_values_are_bounded_and_an_error_means_no_values(answer: Any, values: int) -> None:
    blank = blank_of(PAGE, "page://t")
    assert blank
    capable = {**OFFER, "capabilities": {"tools": {}, "completions": {}}}
    for offer, count in ((capable, values), (OFFER, 0)):
        begin = {
            "initialize": {"protocolVersion": "2025-06-18", **offer},
            "completion/complete": answer,
        }
        async with servers_of(table({**OLDER, **begin})) as servers:
            await servers.catalogue()
            assert len(await servers.values("table", blank)) == count


async def test_a_malformed_definition_costs_only_itself() -> None:
    good, more = {"uri": "a:b", "name": "b"}, {"uriTemplate": "a:{b}", "name": "b"}
    lists = await listed(
        resources={"resources": [5, {"uri": "a:c"}, {**good, "size": "large"}, {"name": "d"}]},
        templates={"resourceTemplates": [more, {"name": "none"}]},
    )
    assert lists == ResourceList((Resource("a:b", "b"),), (Resource("a:{b}", "b"),))


async def test_a_server_without_templates_still_lists_resources() -> None:
    lists = await listed(resources={"resources": [{"uri": "a:b", "name": "b"}]})
    assert lists == ResourceList((Resource("a:b", "b"),))


async def test_an_endless_list_is_cut_and_says_so() -> None:
    page = {
        "resources": [{"uri": f"a:{n}", "name": str(n)} for n in range(700)],
        "nextCursor": "again",
    }
    lists = await listed(resources=page, templates={"resourceTemplates": []})
    assert (len(lists.resources), lists.unlisted) == (1000, "only the first 1,000 are listed")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("error -32603", "MCP server 'table' failed: no such thing"),
        ("silence", "MCP server 'table' did not answer within 0.5 s"),
        ({"resources": "all"}, "MCP server 'table' failed: it sent an invalid reply: "),
    ],
)
async def test_a_server_that_cannot_list_its_resources_says_why(
    answer: Any, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LIST_S", 0.5)
    assert (await listed(resources=answer)).unlisted.startswith(problem)


# --- Read by a model ------------------------------------------------------------------------------

FAILED = "Tool 'read_resource' of MCP server 'docs' failed: "


@pytest.mark.parametrize(
    ("uri", "result"),
    [
        ("note://tea", Outcome("ok", TEA.replace(LINK, f"\\{LINK}"))),
        ("note://picture", Outcome("ok", "", (PIXEL,))),
        ("note://bytes", Outcome("ok", "[resource application/x-thing, note://bytes, 3 B]")),
        ("note://broken", Outcome("error", f"{FAILED}Error reading resource note://broken")),
        ("note://none", Outcome("error", f"{FAILED}Unknown resource: note://none")),
        ("page://tea/leaf", Outcome("ok", "leaf of tea")),
    ],
)
async def test_a_resource_is_the_result_of_a_call(uri: str, result: Outcome) -> None:
    async with library() as (servers, server):
        tool = reader(await tool_of(servers, "say"))
        assert await servers.call(tool, {"uri": uri}) == result
        assert server.requests == [uri]


async def test_a_long_resource_has_its_head_and_its_whole_text() -> None:
    async with library() as (servers, _):
        outcome = await servers.call(reader(await tool_of(servers, "say")), {"uri": "note://long"})
        assert outcome.whole == LONG
        assert outcome.text.startswith("line 0\nline 1\n")
        assert "bytes omitted]" in outcome.text


async def test_a_server_that_was_replaced_is_not_asked() -> None:
    async with library() as (servers, server):
        tool = await tool_of(servers, "say")
        for other in (replace(tool, identity="{}"), replace(tool, instructions="Else.")):
            outcome = await servers.call(reader(other), {"uri": "note://tea"})
            assert outcome == Outcome(
                "error",
                "Tool 'read_resource' of MCP server 'docs' has changed its definition since",
            )
        gone = await servers.call(reader(replace(tool, server="gone")), {"uri": "note://tea"})
        assert gone == Outcome("error", "there is no MCP server 'gone' in the settings")
        assert server.requests == []


async def test_a_server_that_ends_or_knows_no_resources_is_an_error_for_the_model() -> None:
    async with servers_of(fake(), table({"tools/list": {"tools": [TOOL]}})) as servers:
        ended = await servers.call(
            reader(await tool_of(servers, "fake__echo")), {"uri": "die://now"}
        )
        assert ended.status == "error"
        assert ended.text.startswith("MCP server 'fake' ended during the call")
        none = await servers.call(reader(await tool_of(servers, "table__echo")), {"uri": "a:b"})
        assert none == Outcome(
            "error", "Tool 'read_resource' of MCP server 'table' failed: no such thing"
        )


async def test_a_picture_resource_in_a_result_is_a_picture() -> None:
    async with library() as (servers, _):
        assert await servers.call(await tool_of(servers, "show"), {}) == Outcome("ok", "", (PIXEL,))
