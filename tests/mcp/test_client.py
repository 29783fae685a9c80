"""Servers' offers besides tools, their requests to Parley, and failures that do no harm."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve
from mcp_types import ListRootsResult
from pydantic import BaseModel

from parley.chat import references
from parley.chat.references import ReferenceText
from parley.errors import ServerError
from parley.providers.sampling import conversation
from parley.runtime.app import App
from parley.settings.values import Mcp, Settings
from parley.storage.references import FileReferences
from parley.tools.prompts import Prompt, PromptArgument
from parley.tools.resources import Resource, ResourceList
from parley.tools.results import Outcome
from parley.tools.servers import ServerSettings
from parley.tools.visits import Visit
from tests.defaults import new_servers
from tests.ledgers import open_ledger
from tests.mcp_servers import MOCK, fake, only, served, servers_of, tool_of, until_stderr


class Form:
    """A user with the same answer to every form and page; forms are answered only after `thought`
    is set.
    """

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, list[str]]] = []
        self.thinks, self.thought = asyncio.Event(), asyncio.Event()
        self.thought.set()

    async def ask(self, server: str, message: str, schema: Mapping[str, Any]) -> Any:
        self.requests.append((server, message, list(schema["properties"])))
        self.thinks.set()
        await self.thought.wait()
        return self.answer

    async def visit(self, server: str, page: Visit) -> Any:
        self.requests.append((server, page.message, [page.url]))
        return self.answer

    async def finish(self, server: str, page: Visit) -> bool:
        self.thinks.set()
        await self.thought.wait()
        return bool(self.answer == "accept")


# --- Resources ------------------------------------------------------------------------------------


async def test_a_resource_is_its_visible_text() -> None:
    async with servers_of(fake()) as servers:
        assert await servers.read_resource("fake", "note://a") == "one\n\\x1b[2Jtwo\nthree"


async def test_a_resource_is_bounded_like_a_result() -> None:
    servers = new_servers({"fake": fake()}, max_bytes=6)
    assert (
        await servers.read_resource("fake", "note://a") == "one\n\\x… [truncated: 14 bytes omitted]"
    )
    await servers.close()


@pytest.mark.parametrize(
    ("server", "uri", "complaint"),
    [
        (
            "fake",
            "other://a",
            "Resource 'other://a' of MCP server 'fake' failed: no such resource",
        ),
        ("fake", "bytes://a", "no text: [resource text/plain, bytes://a, 3 B]"),
        (
            "fake",
            "hang://a",
            "Resource 'hang://a' of MCP server 'fake' gave no answer within 0.3 s",
        ),
        ("fake", "die://a", "MCP server 'fake' ended during the call"),
        ("none", "note://a", "there is no MCP server 'none' in the settings"),
        ("mock", "note://a", "Resource 'note://a' of MCP server 'mock' failed: "),
        (
            "lost",
            "note://a",
            "mcp.servers.lost.command: not found or not executable: no-such-command",
        ),
    ],
)
async def test_an_unreadable_resource_is_one_line_in_the_question(
    server: str, uri: str, complaint: str
) -> None:
    lost = ServerSettings("lost", "no-such-command")
    async with servers_of(fake(timeout_s=0.3), MOCK, lost) as servers:
        with pytest.raises(ServerError) as told:
            await servers.read_resource(server, uri)
        assert str(told.value).startswith(complaint)
        (brought,) = await FileReferences(Path.cwd, servers.read_resource).bring(
            [references.Resource(server, uri)]
        )
        assert (brought.title, brought.kind) == (f"{server}:{uri}", "missing")
        assert brought.text.startswith(complaint)


async def test_a_resource_goes_into_the_question_as_text() -> None:
    async with servers_of(fake()) as servers:
        brought = await FileReferences(Path.cwd, servers.read_resource).bring(
            [references.Resource("fake", "note://a.py")]
        )
    assert brought == [ReferenceText("fake:note://a.py", "one\n\\x1b[2Jtwo\nthree")]


async def test_resources_of_running_servers_are_listed_and_no_server_starts() -> None:
    async with servers_of(fake(), MOCK, ServerSettings("lost", "no-such-command")) as servers:
        assert await servers.resources() == {}
        assert {server.state for server in servers.status()} == {"stopped"}
        await servers.catalogue()
        lists = await servers.resources()
        assert set(lists) == {"fake", "mock"}
        assert lists["fake"].resources[0] == Resource("note://a.py", "a note")
        assert lists["mock"] == ResourceList()
        assert set(await servers.resources(["mock"])) == {"mock"}


# --- Prompts --------------------------------------------------------------------------------------


async def test_prompts_are_listed_by_server_and_servers_without_prompts_do_no_harm() -> None:
    async with servers_of(fake(), MOCK, ServerSettings("lost", "no-such-command")) as servers:
        assert await servers.prompts() == (
            Prompt(
                "fake",
                "greet",
                "A greeting",
                "Greets.",
                (PromptArgument("whom", "Who is it?", required=True), PromptArgument("how")),
            ),
            Prompt("fake", "plain"),
        )


async def test_a_prompt_is_the_text_of_one_question() -> None:
    async with servers_of(fake()) as servers:
        text = await servers.get_prompt("fake", "greet", {"whom": "Ada"})
        assert text == "Hello Ada\\x07\n\n> Hi.\n>\n> And?\n\nHow are you?"
        with pytest.raises(
            ServerError, match="Prompt 'other' of MCP server 'fake' failed: no prompt other"
        ):
            await servers.get_prompt("fake", "other")
        with pytest.raises(ServerError, match="there is no MCP server 'none' in the settings"):
            await servers.get_prompt("none", "greet")


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
            "MCP server 'far' wants a page that cannot be opened: file:///etc/passwd" in reply_text
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
            == f"MCP server 'far' wants a page again and again: {', '.join(['sign.example'] * 4)}"
        )
        assert len(user.requests) == 4
        user.answer = "decline"
        told = await servers.call(locked, {})
        what = (
            "MCP server 'far' wants a page on sign.example to be opened first. The user did "
            "not open it."
        )
        assert told == Outcome("error", what)


async def test_a_resource_that_requires_a_page_is_read_after_it_was_opened(tmp_path: Path) -> None:
    user, done = Form("decline"), tmp_path / "done"
    async with servers_of(visiting(ADDRESS, str(done)), elicitor=user) as servers:
        with pytest.raises(ServerError, match=r"wants a page on sign\.example to be opened first"):
            await servers.read_resource("far", "note://a")
        done.touch()
        assert await servers.read_resource("far", "note://a") == "unlocked"


async def test_without_a_user_the_result_of_a_call_names_the_required_page() -> None:
    async with servers_of(visiting(ADDRESS)) as servers:
        told = await servers.call(await tool_of(servers, "locked"), {})
        assert told.status == "error"
        assert told.text.startswith(
            "MCP server 'far' wants a page on sign.example to be opened in a browser first: "
            f"{ADDRESS}\n"
            "It says: Sign in, \\x1b[31mplease\n"
        )


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
        assert (await servers.call(hang, {})).text.endswith("no answer within 0.3 s")
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
