"""Servers that send without limit: Parley bounds each flood and reports omissions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from parley.mcp import server_client
from parley.mcp.server_session import Signals
from parley.tools.results import Outcome
from parley.tools.server_settings import ServerSettings
from tests.mcp_servers import NoVisitor, only, servers_of, tool_of, until

SERVER = str(Path(__file__).with_name("flood_server.py"))


def flooding(kind: str, **settings: Any) -> ServerSettings:
    return ServerSettings(name="flood", command=sys.executable, args=(SERVER, kind), **settings)


@pytest.mark.parametrize(
    "kind", ["changes", "resources", "logs", "a list with each change", "progress"]
)
async def test_a_call_gets_its_result_in_spite_of_a_flood_of_notes(kind: str) -> None:
    told = list[float]()
    async with servers_of(flooding(kind)) as servers:
        tool = await tool_of(servers, "echo")
        outcome = await servers.call(tool, {}, progress=lambda done, *_: told.append(done))
        assert outcome == Outcome("ok", "done")
        assert (await servers.catalogue()).names() == ("echo",)


async def test_constantly_changing_tools_are_listed_ever_less_often() -> None:
    async with servers_of(flooding("a list with each change")) as servers:
        await tool_of(servers, "echo")
        supervisor = servers._supervisors["flood"]
        await until(lambda: "listed 7" in only(servers).stderr and supervisor._signals.restless)
        assert supervisor.state == "ready"
        assert (await servers.catalogue()).names() == ("echo",)  # the next list is not awaited


LARGE = (
    "left out: tools whose definitions are too large ({}: more than 100 kB each or 1.0 MB in all)"
)


@pytest.mark.parametrize(
    ("kind", "count", "told"),
    [
        ("tools", 1000, "left out: all tools beyond the first 1000"),
        ("pages", 1000, "left out: all tools beyond the first 1000 pages"),
        ("empty pages", 0, "left out: all tools beyond the first 1000 pages"),
        ("a description", 1, LARGE.format(1)),
        ("descriptions", 11, LARGE.format(39)),
    ],
)
async def test_only_some_of_countless_tools_are_used_and_the_user_is_told_once(
    kind: str, count: int, told: str
) -> None:
    async with servers_of(flooding(kind)) as servers:
        assert len((await servers.catalogue()).tools) == count
        assert (only(servers).state, only(servers).error) == ("ready", told)
        assert servers.news(()) == {"flood": f"MCP server 'flood': {told}. See :ParleyTools"}
        assert servers.news(()) == {}


async def test_settings_that_select_few_of_many_tools_leave_room_for_them() -> None:
    async with servers_of(flooding("descriptions", enabled_tools=("t04*",))) as servers:
        assert len((await servers.catalogue()).tools) == 10
        assert only(servers).error == ""


def test_a_page_id_that_is_too_long_is_not_kept() -> None:
    signals = Signals(asyncio.Event())
    for number in range(100):
        signals.visit_finished(f"{number}{'i' * 1_000}")
    assert not signals._finished


async def test_a_server_that_keeps_asking_without_reading_replies_is_disconnected() -> None:
    async with servers_of(flooding("questions")) as servers:
        outcome = await servers.call(await tool_of(servers, "echo"), {})
        assert outcome.status == "error"
        assert outcome.text.startswith(
            "MCP server 'flood' ended during the call; its last output: "
        )
        told = (
            "(connection closed: the server sent more than 1000 requests without reading a reply)"
        )
        assert told in only(servers).stderr


class Crowd(NoVisitor):
    """A user who gets many forms, and leaves each unanswered."""

    def __init__(self) -> None:
        self.count = self.now = self.most = 0

    async def ask(self, server: str, message: str, schema: Mapping[str, Any]) -> Any:
        self.count += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return "decline"


async def test_only_a_few_of_countless_forms_are_shown() -> None:
    crowd = Crowd()
    async with servers_of(flooding("forms"), elicitor=crowd) as servers:
        outcome = await servers.call(await tool_of(servers, "echo"), {})
    assert crowd.most <= 5
    assert crowd.count <= 20
    assert outcome == Outcome("ok", f"answered {crowd.count}, refused {200 - crowd.count}")


async def test_a_result_of_too_many_parts_says_so() -> None:
    async with servers_of(flooding("parts")) as servers:
        outcome = await servers.call(await tool_of(servers, "echo"), {})
    text = "x\n" * server_client.MOST_PARTS + "[left out: 4000 more parts of this result]"
    assert outcome == Outcome("ok", text)


async def test_an_endless_line_ends_the_server_and_the_call_at_once() -> None:
    async with servers_of(flooding("a line")) as servers:
        outcome = await servers.call(await tool_of(servers, "echo"), {})
    assert outcome == Outcome(
        "error",
        (
            "MCP server 'flood' ended during the call; its last output: (a line of more than "
            "64.0 MB "
            "was skipped)"
        ),
    )
