"""Servers from other projects: each is listed, approved and called, and its result is in the chat."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from parley.mcp.callbacks import Left
from parley.mcp.servers import Servers
from parley.media import kind_of
from parley.settings.values import Mcp, Settings, Status
from parley.tools.server_settings import ServerSettings
from parley.tools.tasks import TaskHandle
from tests.defaults import new_servers
from tests.e2e.machine import Machine, Process, proposals, read
from tests.mcp_servers import NoVisitor, servers_of, tool_of, until, until_stderr

GUESTS = Path(__file__).parents[2] / ".tools" / "guests"
NPM, PYPI = GUESTS / "node_modules" / ".bin", GUESTS / "python" / "bin"

pytestmark = pytest.mark.guests


@dataclass(frozen=True)
class Guest:
    """A server, a call to one of its tools, and a part of the result; `~` is the test's folder.

    `program` is an unusual program's path, `script` a Node.js script that is not a command.
    """

    server: str
    tool: str
    arguments: Mapping[str, Any]
    result: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    app: Path = NPM
    script: str = ""
    program: str = ""

    def settings(self, folder: Path) -> ServerSettings:
        args = tuple(each.replace("~", str(folder)) for each in self.args)
        env = {name: value.replace("~", str(folder)) for name, value in self.env.items()}
        if self.script:
            return ServerSettings("guest", "node", (str(NPM.parent / self.script), *args), env)
        return ServerSettings(
            "guest", str(self.app / (self.program or f"mcp-server-{self.server}")), args, env
        )


THOUGHT = {"thought": "so", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
MEMORY = {"entities": [{"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}]}
ZONES = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
LOCAL = [
    Guest("everything", "get-sum", {"a": 20, "b": 22}, "42"),
    Guest("filesystem", "read_text_file", {"path": "~/note.txt"}, "what the note says", ("~",)),
    Guest(
        "memory",
        "create_entities",
        MEMORY,
        "wrote programs",
        env={"MEMORY_FILE_PATH": "~/memory.jsonl"},
    ),
    Guest("sequential-thinking", "sequentialthinking", THOUGHT, '"thoughtHistoryLength": 1'),
    Guest("time", "convert_time", ZONES, "T21:00:00+09:00", ("--local-timezone", "UTC"), app=PYPI),
    Guest("git", "git_status", {"repo_path": "~"}, "note.txt", app=PYPI),
    *(
        Guest(
            name,
            "evaluate",
            {"input": "40 + 2"},
            "42",
            ("--mcp",),
            {"HOME": "~"},
            script=f"{name}/lib/index.js",
        )
        for name in ("nushell", "nushell-next")
    ),
]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "note.txt").write_text("what the note says\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    return Machine(tmp_path)


def settings(server: ServerSettings) -> Settings:
    return Settings(agent="Demo", mcp=Mcp({server.name: server}), status=Status(llm=False))


async def ready(servers: Servers) -> None:
    """Wait for the server, however slow the machine is."""
    await servers.catalogue()
    await until(lambda: servers.status()[0].state in ("ready", "failed"), 30)
    assert servers.status()[0].state == "ready", servers.status()[0]


async def played(process: Process, path: Path) -> str:
    """The result of a chat's only call, after its approval."""
    await ready(process.app.servers)
    assert (await process.respond(path)).kind == "waiting"
    assert len(proposals(path)) == 1
    assert (await process.choose(path, "ya")).kind == "complete"
    result = proposals(path)[0].result
    assert result is not None
    assert result.status == "ok"
    return result.body


@pytest.mark.parametrize("guest", LOCAL, ids=lambda guest: guest.server)
async def test_a_server_over_stdio_is_called_from_a_chat(machine: Machine, guest: Guest) -> None:
    arguments = json.dumps(guest.arguments).replace("~", str(machine.folder))
    path = machine.chat(f"💬: call {guest.tool} {arguments}\n")
    async with machine.start(settings(guest.settings(machine.folder))) as process:
        assert guest.result in await played(process, path)


async def test_a_picture_is_kept_next_to_the_chat_and_sent_to_the_model(machine: Machine) -> None:
    path = machine.chat("💬: call get-tiny-image {}\n")
    async with machine.start(settings(LOCAL[0].settings(machine.folder))) as process:
        assert (
            await played(process, path)
            == "Here's the image you requested:\nThe image above is the MCP logo."
        )
    (proposal,) = proposals(path)
    assert proposal.result
    (picture,) = proposal.result.attachments
    assert kind_of((path.parent / picture.path).read_bytes()) == "png"
    assert "It shows me image/png." in path.read_text(encoding="utf-8")


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    """A server's address for Streamable HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        NPM / "mcp-server-everything",
        "streamableHttp",
        env={**os.environ, "PORT": str(port)},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(30):
            while b"listening on port" not in await process.stderr.readline():
                assert process.returncode is None
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.communicate()


async def test_a_server_over_http_is_called_from_a_chat(machine: Machine) -> None:
    path = machine.chat('💬: call echo {"message": "over the net"}\n')
    async with (
        served() as url,
        machine.start(settings(ServerSettings("guest", url=url))) as process,
    ):
        assert await played(process, path) == "Echo: over the net"


KILLED = """
import asyncio, sys
from parley.tools.server_settings import ServerSettings
from parley.tools.tasks import TaskHandle
from tests.mcp_servers import servers_of, tool_of

async def tell(task):
    print(task, flush=True)

async def main():
    async with servers_of(ServerSettings("guest", url=sys.argv[1])) as servers:
        tool = await tool_of(servers, "simulate-research-query")
        await servers.call(tool, {"topic": "owls"}, TaskHandle(on_begin=tell))

asyncio.run(main())
"""


async def test_a_task_outlives_the_process_that_began_it(tmp_path: Path) -> None:
    """The server keeps separate tasks for each session."""
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    async with served() as url:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, url, env=environ, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        task = (await process.stdout.readline()).decode().strip()
        process.kill()
        await process.communicate()
        async with servers_of(ServerSettings("guest", url=url), environ=environ) as servers:
            tool = await tool_of(servers, "simulate-research-query")
            outcome = await servers.call(tool, {"topic": "owls"}, TaskHandle(task))
    assert outcome.status == "ok", outcome
    assert "Research Report: owls" in outcome.text


async def test_a_resource_is_included_in_the_question(machine: Machine) -> None:
    path = machine.chat("💬: say: @@guest:demo://resource/static/document/features.md@@\n")
    async with machine.start(settings(LOCAL[0].settings(machine.folder))) as process:
        await ready(process.app.servers)
        assert (await process.respond(path)).kind == "complete"
    question = read(path).exchanges[0].question
    assert question is not None
    assert "# Everything Server - Features" in question.text


async def test_a_prompt_is_listed_and_filled_in(machine: Machine) -> None:
    servers = new_servers({"guest": LOCAL[0].settings(machine.folder)})
    await ready(servers)
    wanted = {
        prompt.name: [argument.name for argument in prompt.arguments]
        for prompt in await servers.prompts()
    }
    assert wanted["args-prompt"] == ["city", "state"]
    assert "Paris" in await servers.get_prompt("guest", "args-prompt", {"city": "Paris"})
    await servers.close()


class Red(NoVisitor):
    """A user who answers each question with a name."""

    async def ask(
        self, server: str, message: str, schema: Mapping[str, Any]
    ) -> dict[str, Any] | Left:
        return {"name": "Ada"}


async def test_a_form_is_filled_in(machine: Machine) -> None:
    servers = new_servers({"guest": LOCAL[0].settings(machine.folder)}, elicitor=Red())
    await ready(servers)

    def asking() -> list[Any]:
        return [
            tool for tool in servers.status()[0].tools if tool.name == "trigger-elicitation-request"
        ]

    await until(asking)  # offered when the server knows its client
    outcome = await servers.call(asking()[0], {})
    assert outcome.status == "ok"
    assert "Ada" in outcome.text
    await servers.close()


async def test_a_server_with_permission_works_in_the_working_directory(machine: Machine) -> None:
    server = ServerSettings("guest", str(NPM / "mcp-server-filesystem"))
    servers = new_servers({"guest": server}, folder=lambda: machine.folder)
    await ready(servers)
    # it asks after it is ready
    await until_stderr(servers, "Updated allowed directories from MCP roots")
    tool = await tool_of(servers, "list_allowed_directories")
    assert str(machine.folder) in (await servers.call(tool, {})).text
    await servers.close()
