"""Pages that a server asks the user to open."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from parley.errors import ServerError
from parley.tools.results import Outcome
from parley.tools.server_settings import ServerSettings
from tests.mcp.forms import Form
from tests.mcp_servers import servers_of, tool_of

# --- Resources ------------------------------------------------------------------------------------


# --- Pages to open --------------------------------------------------------------------------------

ADDRESS = "https://sign.example/in?a=1"


def visiting(*args: str, **more: Any) -> ServerSettings:
    path = Path(__file__).parent / "visiting_server.py"
    return ServerSettings("far", command=sys.executable, args=(str(path), *args), **more)


@pytest.mark.parametrize("answer", ["accept", "decline", "cancel"])
async def test_only_the_user_opens_a_page_for_a_server(answer: Any) -> None:
    user = Form(answer)
    async with servers_of(visiting(ADDRESS), elicitor=user) as servers:
        reply = await servers.call(await tool_of(servers, "visit"), {})
        assert json.loads(reply.text) == {"action": answer}
        assert user.requests == [("far", "Sign in, \\x1b[31mplease", [ADDRESS])]


async def test_an_address_that_must_not_be_opened_is_not_shown() -> None:
    user = Form("accept")
    async with servers_of(visiting("file:///etc/passwd"), elicitor=user) as servers:
        reply = json.loads((await servers.call(await tool_of(servers, "visit"), {})).text)
        assert "this page cannot be opened: file:///etc/passwd does not begin" in reply["message"]
        reply_text = (await servers.call(await tool_of(servers, "locked"), {})).text
        assert (
            "MCP server 'far' asks for a page that cannot be opened: file:///etc/passwd"
            in reply_text
        )
        assert user.requests == []


async def test_a_call_that_requires_a_page_is_repeated_when_the_server_reports_the_end(
    tmp_path: Path,
) -> None:
    user = Form("accept")
    user.thought.clear()
    async with servers_of(
        visiting(ADDRESS, str(tmp_path / "done"), timeout_s=0.3), elicitor=user
    ) as servers:
        call = asyncio.create_task(servers.call(await tool_of(servers, "locked"), {}))
        await user.thinks.wait()
        (tmp_path / "done").touch()
        assert await call == Outcome(
            "ok", "[the user opened sign.example first, then the call was made again]\nunlocked"
        )


async def test_a_call_that_requires_a_page_is_repeated_when_the_user_has_finished(
    tmp_path: Path,
) -> None:
    user = Form("accept")
    async with servers_of(visiting(ADDRESS, str(tmp_path / "done")), elicitor=user) as servers:
        locked = await tool_of(servers, "locked")
        told = await servers.call(locked, {})
        assert (
            told.text
            == f"MCP server 'far' asks for pages again and again: {', '.join(['sign.example'] * 4)}"
        )
        assert len(user.requests) == 4
        user.answer = "decline"
        told = await servers.call(locked, {})
        what = (
            "MCP server 'far' asks for a page on sign.example to be opened first. The user did "
            "not open it."
        )
        assert told == Outcome("error", what)


async def test_a_resource_that_requires_a_page_is_read_after_it_was_opened(tmp_path: Path) -> None:
    user, done = Form("decline"), tmp_path / "done"
    async with servers_of(visiting(ADDRESS, str(done)), elicitor=user) as servers:
        with pytest.raises(
            ServerError, match=r"asks for a page on sign\.example to be opened first"
        ):
            await servers.read_resource("far", "note://a")
        done.touch()
        assert await servers.read_resource("far", "note://a") == "unlocked"


async def test_without_a_user_the_result_of_a_call_names_the_required_page() -> None:
    async with servers_of(visiting(ADDRESS)) as servers:
        told = await servers.call(await tool_of(servers, "locked"), {})
        assert told.status == "error"
        assert told.text.startswith(
            "MCP server 'far' asks for a page on sign.example to be opened in a browser first: "
            f"{ADDRESS}\n"
            "It says: Sign in, \\x1b[31mplease\n"
        )
