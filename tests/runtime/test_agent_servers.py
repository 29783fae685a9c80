"""The user's MCP servers that an agent of another program may start itself."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.settings.values import Settings
from parley.tools.passed_servers import PassedServer
from tests.runtime.test_chat_agents import AgentDesk, desk_with, desks

__all__ = ["desks"]

HTTP = {"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"http": True}}}
SERVERS: dict[str, Any] = {
    "files": {"command": "sh", "args": ["-c", 'pwd; echo "$WORD"'], "env": {"WORD": "${SECRET}"}},
    "here": {"command": "sh", "cwd": "."},
    "web": {"url": "https://web.example/mcp", "headers": {"X-Key": "${SECRET}"}},
    "old": {"url": "https://old.example/sse", "protocol": "2024-11-05"},
    "other": {"command": "sh"},
    "part": {"command": "sh", "disabled_tools": ["x"]},
    "off": {"command": "sh", "enabled": False},
    "token": {"url": "https://t.example/mcp", "token_command": ["cat"]},
    "gone": {"command": "no-such-program"},
    "nowhere": {"command": "sh", "cwd": "/no/such"},
    "unset": {"command": "sh", "args": ["${NO_SUCH_VARIABLE}"]},
}


def passing(desks: list[AgentDesk], folder: Path, names: list[str], **script: Any) -> AgentDesk:
    desk = desk_with(desks, folder, {"say": "Ok."}, **script)
    command = list(desk.run.provider.command)
    desk.settings = {
        "providers": {"coder": {"kind": "acp", "command": command, "servers": names}},
        "mcp": {"servers": SERVERS},
    }
    desk.run.environ["SECRET"] = "s3cret"
    desk.restart()
    return desk


def received(desk: AgentDesk) -> list[dict[str, Any]]:
    return list(desk.run.received("session/new")[0]["mcpServers"])


async def test_only_named_servers_are_passed_on_and_the_others_are_reported(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    names = [*(name for name in SERVERS if name != "other"), "unknown"]
    desk = passing(desks, tmp_path, names, initialize=HTTP)
    assert (await desk.respond()).kind == "complete"
    files, here, web = received(desk)
    assert (files["name"], files["env"]) == ("files", [{"name": "WORD", "value": "s3cret"}])
    assert (web["type"], web["headers"]) == ("http", [{"name": "X-Key", "value": "s3cret"}])
    ran = await asyncio.to_thread(
        subprocess.run,
        [files["command"], *files["args"]],
        env={"WORD": "w"},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    place, word = ran.stdout.split()
    assert (place.endswith("/parley/work"), word) == (True, "w")
    assert here["args"][2] == str(desk.root)
    (news,) = desk.news
    assert "s3cret" not in news
    for part in (
        "coder does not receive these servers: old (the agent does not support its transport)",
        "part (an agent would not respect",
        "off (it is switched off)",
        "token (only Parley runs its token_command)",
        "gone (no-such-program was not found or is not executable)",
        "nowhere (there is no directory /no/such)",
        "unset (mcp.servers.unset.args[0]: the environment variable NO_SUCH_VARIABLE",
        "unknown (your settings have no such server)",
    ):
        assert part in news


async def test_the_files_tools_can_leave_a_server_out(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = passing(desks, tmp_path, ["files", "other"])
    desk.document.lines = ["---", 'tools: ["!files/*"]', "---", "", "💬: q", ""]
    assert (await desk.respond()).kind == "complete"
    assert [each["name"] for each in received(desk)] == ["other"]
    assert desk.news == []


async def test_no_server_is_passed_on_unless_it_is_named_and_never_one_of_the_project(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = passing(desks, tmp_path, ["mine"])
    (desk.root / ".mcp.json").write_text('{"mcpServers": {"mine": {"command": "sh"}}}')
    (path,) = desk.app.untrusted()
    desk.app.trust(path)
    assert "mine" in desk.app.settings.mcp.servers
    assert (await desk.respond()).kind == "complete"
    assert received(desk) == []
    assert desk.news == ["coder does not receive these servers: mine (it comes from the project)"]
    assert Settings().all_providers()["codex"].servers == ()


def test_a_passed_server_hides_its_entry() -> None:
    assert "s3cret" not in repr(PassedServer("x", "http", {"headers": "s3cret"}))


@pytest.mark.parametrize("name", ["sse", "http"])
async def test_an_agent_receives_only_the_transports_that_it_declares(
    desks: list[AgentDesk], tmp_path: Path, name: str
) -> None:
    start = {"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {name: True}}}
    desk = passing(desks, tmp_path, ["web", "old"], initialize=start)
    await desk.respond()
    assert [each["type"] for each in received(desk)] == [name]
    assert parse(desk.text).exchanges
