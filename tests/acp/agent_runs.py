"""Runs the agents of tests: a script becomes a provider, and a chat's text becomes requests."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parley.acp.agent_processes import AgentProcesses
from parley.chat.reader import parse
from parley.models.events import Call, Event, TextDelta
from parley.models.request import Request
from parley.settings.values import ProviderSettings

AGENT = Path(__file__).parent / "scripted_agent.py"
CHAT = "chat.md"


@dataclass
class AgentRun:
    """One scripted agent, and what it has received."""

    folder: Path
    script: Mapping[str, Any]
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "script.json").write_text(json.dumps(self.script))
        (self.folder / "log").touch()
        self.environ = {"HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state")}

    @property
    def provider(self) -> ProviderSettings:
        command = (
            sys.executable,
            "-I",
            str(AGENT),
            *map(str, (self.folder / "script.json", self.log)),
        )
        return ProviderSettings("scripted", "acp", command=command)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def received(self, method: str = "") -> list[Any]:
        """The parameters of the messages with this method; without one, all messages."""
        messages = [json.loads(line) for line in self.log.read_text().splitlines()]
        return (
            [m.get("params") for m in messages if m.get("method") == method] if method else messages
        )

    def answers(self) -> list[Any]:
        """The outcomes of permissions, and the errors."""
        return [m.get("result", m.get("error")) for m in self.received() if "method" not in m]

    def request(self, text: str, **fields: Any) -> Request:
        transcript = parse(text)
        at = len(transcript.exchanges) - 1
        return Request(transcript, at, "scripted", "default", **fields)

    async def reply(self, agents: AgentProcesses, text: str, **fields: Any) -> list[Event]:
        """The events of the next reply in a chat with this text."""
        request = self.request(text, **fields)
        return [e async for e in agents.stream(self.provider, request, CHAT, self.folder)]


@asynccontextmanager
async def running(run: AgentRun, **options: Any) -> AsyncIterator[AgentProcesses]:
    """The agents of a test, which all end with it."""
    agents = AgentProcesses(run.environ, 10_000, **options)
    try:
        yield agents
    finally:
        await agents.close()


def said(events: list[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def calls(events: list[Event]) -> list[Call]:
    return [e for e in events if isinstance(e, Call)]
