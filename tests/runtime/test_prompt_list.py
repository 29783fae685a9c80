"""The list of all prompts: files first, then servers'; a project's text only after a yes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp.server.mcpserver import MCPServer

from parley.errors import ParleyError
from parley.mcp.servers import Servers
from parley.runtime.prompt_list import PromptList
from parley.storage.prompt_folders import PromptFolders
from parley.storage.text_trust import TextTrust
from parley.tools.server_settings import ServerSettings
from tests.defaults import new_servers
from tests.ledgers import open_ledger
from tests.workspace.trees import write

OWN = {
    "greet.md": "---\ndescription: Greets\nagent: Writer\narguments: [name]\n---\n\nHello {{name}}\n"
}
PROJECT = {"commit.md": "Write a commit message."}


def team() -> MCPServer:
    server = MCPServer("team")

    @server.prompt(title="Reviews a file")
    def review(path: str) -> str:
        return f"\nReview {path}.\n"

    @server.prompt()
    def greet() -> str:
        return "Good day."

    @server.prompt()
    def silent() -> str:
        return " "

    return server


def other() -> MCPServer:
    server = MCPServer("other")

    @server.prompt()
    def review() -> str:
        return "Look at it."

    return server


@asynccontextmanager
async def listing(
    folder: Path, own: Mapping[str, str] = OWN, *others: str
) -> AsyncIterator[tuple[PromptList, TextTrust, Servers]]:
    """The prompts of the user, of a project, and of servers in this process."""
    write(folder, {f"config/parley/prompts/{name}": text for name, text in own.items()})
    write(folder, {f"project/.parley/prompts/{name}": text for name, text in PROJECT.items()})
    ledger = open_ledger()
    trust = TextTrust(lambda: ledger)
    environ = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
    folders = PromptFolders(environ, lambda: folder / "project", trust)
    objects = {"team": team(), **({"other": other()} if others else {})}
    servers = new_servers(
        {name: ServerSettings(name, builtin=True) for name in objects}, in_process=objects
    )
    try:
        yield PromptList(folders, servers), trust, servers
    finally:
        await servers.close()


async def test_files_come_before_the_prompts_of_servers(tmp_path: Path) -> None:
    async with listing(tmp_path) as (prompts, _, _):
        names = [(e.name, e.needs_trust, e.agent) for e in await prompts.all()]
    assert names[:2] == [("commit", True, ""), ("greet", False, "Writer")]
    assert sorted(names[2:]) == [
        (f"team/{name}", False, "") for name in ("greet", "review", "silent")
    ]


async def test_a_name_means_a_file_or_the_only_prompt_of_a_server(tmp_path: Path) -> None:
    async with listing(tmp_path, OWN, "other") as (prompts, _, _):
        assert (await prompts.named("greet")).file is not None
        assert (await prompts.named("team/greet")).file is None
        assert (await prompts.named("silent")).name == "team/silent"
        with pytest.raises(ParleyError, match="there are several prompts review: choose one of"):
            await prompts.named("review")
        with pytest.raises(ParleyError, match="there is no prompt nothing: choose one of commit, "):
            await prompts.named("nothing")


async def test_a_slash_starts_servers_only_for_the_name_of_a_server(tmp_path: Path) -> None:
    async with listing(tmp_path) as (prompts, _, servers):
        assert await prompts.at_slash("greet")
        assert await prompts.at_slash("usr/bin") is None
        assert {status.state for status in servers.status()} == {"stopped"}
        assert await prompts.at_slash("team/nothing") is None
        entry = await prompts.at_slash("team/review")
        assert entry
        assert entry.description == "Reviews a file"


async def test_arguments_are_words_with_the_names_of_the_prompt(tmp_path: Path) -> None:
    async with listing(tmp_path) as (prompts, _, _):
        entry = await prompts.named("greet")
        assert [argument.name for argument in entry.unset] == ["name"]
        assert entry.values(["name=a=b"]) == {"name": "a=b"}
        for wrong in ("nam=b", "name"):
            with pytest.raises(ParleyError, match=r"It accepts name=\.\.\."):
                entry.values([wrong])
        with pytest.raises(ParleyError, match="It accepts no arguments"):
            (await prompts.named("commit")).values(["a=b"])


async def test_a_text_has_no_blank_edges_and_needs_a_yes_in_a_project(tmp_path: Path) -> None:
    async with listing(tmp_path) as (prompts, trust, _):
        greet, review = await prompts.named("greet"), await prompts.named("review")
        assert await prompts.text(greet, {"name": "Ada"}) == "Hello Ada"
        assert await prompts.text(review, {"path": "a.py"}) == "Review a.py."
        commit = await prompts.named("commit")
        with pytest.raises(ParleyError, match="you have not agreed to this project's prompt"):
            await prompts.text(commit, {})
        assert commit.file
        trust.trust(commit.file.path, commit.file.content)
        assert await prompts.text(await prompts.named("commit"), {}) == PROJECT["commit.md"]
