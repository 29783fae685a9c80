"""Servers' offers besides tools, their requests to Parley, and failures that do no harm."""

from pathlib import Path

import pytest

from parley.chat import references
from parley.chat.references import ReferenceText
from parley.errors import ServerError
from parley.storage.reference_texts import FileReferences
from parley.tools.prompts import Prompt, PromptArgument
from parley.tools.resources import Resource, ResourceList
from parley.tools.server_settings import ServerSettings
from tests.defaults import new_servers
from tests.mcp_servers import MOCK, fake, servers_of

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
            "Resource 'hang://a' of MCP server 'fake' did not answer within 0.3 s",
        ),
        ("fake", "die://a", "MCP server 'fake' ended during the call"),
        ("none", "note://a", "there is no MCP server 'none' in the settings"),
        ("mock", "note://a", "Resource 'note://a' of MCP server 'mock' failed: "),
        (
            "lost",
            "note://a",
            "mcp.servers.lost.command: no-such-command was not found or is not executable",
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
            [references.ResourceReference(server, uri)]
        )
        assert (brought.title, brought.kind) == (f"{server}:{uri}", "missing")
        assert brought.text.startswith(complaint)


async def test_a_resource_goes_into_the_question_as_text() -> None:
    async with servers_of(fake()) as servers:
        brought = await FileReferences(Path.cwd, servers.read_resource).bring(
            [references.ResourceReference("fake", "note://a.py")]
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
