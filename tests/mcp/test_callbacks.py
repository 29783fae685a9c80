"""The requests of servers to Parley: forms, the working directory, sampling."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import pytest
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve
from mcp_types import ListRootsResult
from pydantic import BaseModel

from parley.errors import ServerError
from parley.providers.sampling_requests import conversation
from parley.runtime.app import App
from parley.settings.values import Mcp, Settings
from parley.tools.results import Outcome
from parley.tools.server_settings import ServerSettings
from tests.defaults import new_servers
from tests.ledgers import open_ledger
from tests.mcp.forms import Form
from tests.mcp_servers import fake, only, served, servers_of, tool_of, until_stderr

# --- Resources ------------------------------------------------------------------------------------


# --- Servers' questions ---------------------------------------------------------------------------


async def test_the_user_fills_in_the_form_of_an_older_server() -> None:
    form = Form({"colour": "red"})
    async with servers_of(fake("--more"), elicitor=form) as servers:
        ask = await tool_of(servers, "ask")
        assert json.loads((await servers.call(ask, {})).text) == {
            "action": "accept",
            "content": {"colour": "red"},
        }
        assert form.requests == [("fake", "Which \\x1b[31mcolour?", ["colour"])]
        form.answer = "decline"
        assert json.loads((await servers.call(ask, {})).text) == {"action": "decline"}
        form.answer = {"color": 7}
        assert json.loads((await servers.call(ask, {})).text) == {"action": "cancel"}


async def test_requests_that_nothing_can_answer_are_not_offered_and_are_refused() -> None:
    async with servers_of(fake("--more", roots=False)) as servers:
        for name in ("ask", "roots", "sample"):
            reply = json.loads((await servers.call(await tool_of(servers, name), {})).text)
            assert reply["message"].endswith("not supported")
        await until_stderr(servers, "offered {}")


async def test_a_server_is_told_the_working_directory(tmp_path: Path) -> None:
    servers = new_servers({"fake": fake("--more")}, folder=lambda: tmp_path)
    reply = json.loads((await servers.call(await tool_of(servers, "roots"), {})).text)
    assert reply == {"roots": [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]}
    await servers.close()


@pytest.mark.parametrize("argument", ["{}", "--folder={}"])
async def test_a_server_whose_arguments_name_a_folder_is_told_no_other_folder(
    tmp_path: Path, argument: str
) -> None:
    async with servers_of(fake("--more", argument.format(tmp_path))) as servers:
        reply = json.loads((await servers.call(await tool_of(servers, "roots"), {})).text)
        assert reply["message"].endswith("not supported")


async def test_the_time_of_a_call_pauses_while_the_user_thinks() -> None:
    form = Form({"colour": "red"})
    form.thought.clear()
    other = fake("--more", name="other", timeout_s=0.3)
    async with servers_of(fake("--more", timeout_s=0.3), other, elicitor=form) as servers:
        ask, hang = await tool_of(servers, "fake__ask"), await tool_of(servers, "other__hang")
        asking = asyncio.create_task(servers.call(ask, {}))
        await form.thinks.wait()
        # so 0.3 s have passed
        assert (await servers.call(hang, {})).text.endswith("did not answer within 0.3 s")
        form.thought.set()
        assert (await asking).status == "ok"


async def test_the_model_replies_to_a_server_with_sampling(tmp_path: Path) -> None:
    servers = {"may": fake("--more", name="may", sampling=True), "not": fake("--more", name="not")}
    app = App(Settings(agent="Demo", mcp=Mcp(servers)), {}, open_ledger(tmp_path / "ledger.db"))
    try:
        reply = json.loads(
            (await app.servers.call(await tool_of(app.servers, "may__sample"), {})).text
        )
        assert reply["content"] == {"text": "so be it", "type": "text"}
        assert reply["stopReason"] == "endTurn"
        reply = json.loads(
            (await app.servers.call(await tool_of(app.servers, "not__sample"), {})).text
        )
        assert reply["message"].endswith("not supported")
    finally:
        await app.close()


@pytest.mark.parametrize(
    "messages", [[], [("assistant", "hello")], [("user", "a"), ("assistant", "b")]]
)
def test_a_sampling_request_must_end_with_a_user_message(messages: list[tuple[str, str]]) -> None:
    with pytest.raises(ServerError, match="must end with a user message"):
        conversation(messages)


class Colour(BaseModel):
    colour: str


def asking_server() -> MCPServer:
    """A server with the newest revision, which requires its inputs before it continues."""
    server = MCPServer("asking", log_level="CRITICAL")

    def which() -> Elicit[Colour]:
        return Elicit("Which colour?", Colour)

    def where() -> ListRoots:
        return ListRoots()

    def paint(chosen: Annotated[Colour, Resolve(which)]) -> str:
        return f"painted {chosen.colour}"

    def look(roots: Annotated[ListRootsResult, Resolve(where)]) -> str:
        return str(roots.roots[0].uri)

    server.add_tool(paint, structured_output=False)
    server.add_tool(look, structured_output=False)
    return server


async def test_inputs_that_the_newest_revision_requires_are_asked_in_the_same_way(
    tmp_path: Path,
) -> None:
    form = Form({"colour": "blue"})
    async with served([], mcp=asking_server()) as url:
        server = ServerSettings("web", url=url)
        servers = new_servers({"web": server}, elicitor=form, folder=lambda: tmp_path)
        assert await servers.call(await tool_of(servers, "paint"), {}) == Outcome(
            "ok", "painted blue"
        )
        assert form.requests == [("web", "Which colour?", ["colour"])]
        assert (await servers.call(await tool_of(servers, "look"), {})).text.rstrip(
            "/"
        ) == tmp_path.as_uri()
        assert only(servers).protocol == "2026-07-28"
        form.answer = "decline"
        assert (await servers.call(await tool_of(servers, "paint"), {})).status == "error"
        await servers.close()


async def test_a_call_that_requires_an_unanswered_input_is_an_error() -> None:
    async with served([], mcp=asking_server()) as url:
        servers = new_servers({"web": ServerSettings("web", url=url, roots=False)})
        for name in ("paint", "look"):
            assert (await servers.call(await tool_of(servers, name), {})).status == "error"
        assert only(servers).state == "ready"
        await servers.close()
