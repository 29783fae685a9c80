"""A user at a machine, for end-to-end tests: files, a ledger, a counting server, the demo model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from parley import engine
from parley.chat.reader import parse
from parley.chat.transcript import Choice, Proposal, Transcript
from parley.policy.plan import waiting
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.values import Mcp, Settings, Status
from parley.storage.chat_file import FileDocument
from parley.tools.server_settings import ServerSettings
from tests.ledgers import open_ledger

SERVER = Path(__file__).parent / "counting_server.py"


class Machine:
    """One machine's files and programs; `start` starts the parts of a fresh process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "calls.jsonl"

    def chat(self, text: str, name: str = "chat.md") -> Path:
        """A chat file."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def calls(self) -> list[str]:
        """The texts of all calls that reached the server, in order."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [json.loads(line)["text"] for line in lines]

    def settings(self, **environ: str) -> Settings:
        """This machine's settings."""
        env = {"CALLS": str(self.log), **environ}
        server = ServerSettings("count", sys.executable, (str(SERVER),), env)
        return Settings(agent="Demo", mcp=Mcp({"count": server}), status=Status(llm=False))

    @asynccontextmanager
    async def start(self, settings: Settings | None = None) -> AsyncIterator[Process]:
        """Run a process that works on chats, until the block ends."""
        ledger = open_ledger(self.folder / "ledger.db")
        environ = {**os.environ, "PARLEY_DEMO_PACE": "0"}
        app = App(settings or self.settings(), environ, ledger)
        try:
            yield Process(app)
        finally:
            await app.close()


class Process:
    """One process, with a user's actions on a file in it."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.model: engine.Model | None = None
        """Replaces the demo model, if set."""

    def ports(self, path: Path) -> engine.Ports:
        ports = self.app.ports(FileDocument(path), str(path), Callbacks())
        return replace(ports, model=self.model) if self.model else ports

    async def respond(self, path: Path) -> engine.End:
        """`:ParleyRespond` on the last exchange."""
        return await engine.run_turn(self.ports(path), self.app.resolve(None))

    async def say_yes(self, path: Path, key: Choice = "ya") -> None:
        """Approve the file's first call, and nothing after it."""
        at = proposals(path)[0].span.start
        await engine.choose(self.ports(path), self.app.resolve(None), at, engine.Press(key, "key"))

    async def choose(self, path: Path, key: Choice, number: int = 0) -> engine.End:
        """Press a key on the n-th waiting call; return the end of the following turn."""
        ports, resolve = self.ports(path), self.app.resolve(None)
        seen = await engine.observe(ports, resolve)
        line = waiting(seen.snapshot.answer)[number].span.start
        await engine.choose(ports, resolve, line, engine.Press(key, "key"))
        return await engine.run_turn(self.ports(path), resolve)


def read(path: Path) -> Transcript:
    """The chat as stored on disk."""
    return parse(path.read_text(encoding="utf-8", errors="surrogateescape"))


def proposals(path: Path) -> list[Proposal]:
    """All proposals in the chat on disk."""
    return [p for e in read(path).exchanges for a in e.answers for p in a.proposals]
