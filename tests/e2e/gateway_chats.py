"""Chats with mock models of other projects: the programs, the settings, and what a file must say."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import httpx2

from parley.chat.transcript import Note, Text
from parley.settings.read import read_settings
from parley.settings.values import Settings
from tests.e2e.machine import SERVER, Machine, Process, proposals, read

START_S = 120
"""A program's longest start: a slow machine compiles LiteLLM's modules when it starts first."""
AT_ONCE = 16
"""How many turns run at the same time; with more, each would notice its server's events too late."""
FORMATS = ("anthropic", "chat", "responses")
CALLS, ANSWERS = "Let me look at the notes first.", "The note was written, and all is well now."
CALL = {"name": "note", "arguments": {"text": "it rains"}}
Fault: TypeAlias = Mapping[str, Any]
T = TypeVar("T")


# --- Programs -------------------------------------------------------------------------------------


@asynccontextmanager
async def running(
    command: Sequence[str | Path], health: str, **environ: str
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a server that this command starts; `{port}` in it is the server's port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(word).replace("{port}", str(port)) for word in command]
    process = await asyncio.create_subprocess_exec(
        *words,
        env={**os.environ, **environ},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            async with asyncio.timeout(START_S):
                while not await _is_ready(client, health):
                    assert process.returncode is None
                    await asyncio.sleep(0.05)
            yield client
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _is_ready(client: httpx2.AsyncClient, health: str) -> bool:
    try:
        return (await client.get(health)).status_code == 200
    except httpx2.HTTPError:
        return False


def address(client: httpx2.AsyncClient) -> str:
    return str(client.base_url).rstrip("/")


# --- Parley ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A chat: the faults of the reply with a call, and of the answer after its result."""

    name: str
    format: str
    first: Sequence[Fault] = ()
    then: Sequence[Fault] = ()
    model: str = ""
    """The model's name for Parley; by default, the agent's name."""

    @property
    def agent(self) -> str:
        return f"{self.name}-{self.format}"


def settings(
    machine: Machine, url: str, cases: Iterable[Case], anthropic: str, key: str
) -> Settings:
    """One agent for each case, and the MCP server that counts its calls."""
    providers = {
        "anthropic": {"kind": "anthropic", "base_url": url + anthropic},
        "chat": {"kind": "openai", "base_url": f"{url}/v1", "api": "chat"},
        "responses": {"kind": "openai", "base_url": f"{url}/v1", "api": "responses"},
    }
    server = {"command": sys.executable, "args": [str(SERVER)], "env": {"CALLS": str(machine.log)}}
    settings, problems = read_settings(
        {
            "agents": [
                {"name": case.agent, "provider": case.format, "model": case.model or case.agent}
                for case in cases
            ],
            "providers": {
                name: {**provider, "api_key_command": ["echo", key]}
                for name, provider in providers.items()
            },
            "mcp": {"servers": {"count": server}},
            "safety": {"rate_limit_per_minute": 100_000},
            "status": {"llm": False},
        }
    )
    assert problems == ()
    return settings


def chat(machine: Machine, case: Case) -> Path:
    text = f"---\nagent: {case.agent}\n---\n\n💬: Write a note, please.\n"
    return machine.chat(text, f"{case.agent}.md")


@dataclass
class Said:
    """What the answers in a chat say, and the notice below them."""

    texts: list[str] = field(default_factory=list)
    notice: str = ""

    @classmethod
    def of(cls, path: Path) -> Said:
        transcript, said = read(path), cls()
        assert not transcript.problems, path.read_text(encoding="utf-8")
        for segment in transcript.exchanges[0].answers[0].segments:
            match segment:
                case Text(text):
                    said.texts.append(text)
                case Note(text):
                    said.notice = text
        return said


async def all_of(turns: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of turns that run at the same time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def run(turn: Coroutine[Any, Any, T]) -> T:
        async with slots:
            return await turn

    return await asyncio.gather(*map(run, turns))


async def called(process: Process, path: Path) -> None:
    """Ask; the reply has its whole text and the call, or the chat says that it was interrupted."""
    end, said = await process.respond(path), Said.of(path)
    if end.kind == "waiting":
        assert (said.texts, said.notice) == ([CALLS], ""), path.name
        (proposal,) = proposals(path)
        assert proposal.call.name == CALL["name"]
        assert json.loads(proposal.call.arguments) == CALL["arguments"]
    else:
        assert end.kind == "interrupted", (path.name, end)
        check_interrupted(path, CALLS, said)


async def answered(process: Process, path: Path) -> None:
    """Approve the call; the answer is whole, or the chat says that it was interrupted."""
    end, said = await process.choose(path, "ya"), Said.of(path)
    (proposal,) = proposals(path)
    assert proposal.result
    assert proposal.result.body == "noted it rains"
    assert said.texts[0] == CALLS
    if end.kind == "complete":
        assert (said.texts[1:], said.notice) == ([ANSWERS], ""), path.name
    else:
        assert end.kind == "interrupted", (path.name, end)
        check_interrupted(path, ANSWERS, Said(said.texts[1:], said.notice))


def check_interrupted(path: Path, whole: str, said: Said) -> None:
    assert said.notice.startswith("[Interrupted: "), path.name
    assert whole.startswith("".join(said.texts)), path.name
