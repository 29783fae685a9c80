"""The agents of other programs, as their makers publish them: asked, decided on, stopped and killed.

Each agent works in a project of its own, with a model that says what the test wants. A file is
compared before and after each choice, so nothing is written before a yes.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from parley import engine
from parley.chat.reader import parse
from parley.runtime.app import App
from parley.settings.read import read_settings
from parley.storage.chat_file import TextDocument
from parley.storage.ledger import LedgerFile
from parley.tools.agent_calls import NOT_AWAITED
from parley.workspace.editor_files import OpenText
from tests.e2e.gateway_chats import address, running
from tests.e2e.guest_agents import (
    AGENTS,
    AIMOCK,
    GEMINI,
    LOUD,
    OPENCODE,
    READS,
    TEXT,
    GuestAgent,
    fixtures,
    processes_of,
)
from tests.runtime.test_chat_agents import AgentDesk
from tests.workspace.open_files import FakeEditor
from tests.workspace.trees import work_tree

pytestmark = [pytest.mark.guests, pytest.mark.timeout(180)]
STOPPED_S = 30.0
KILLS = int(os.environ.get("PARLEY_KILLS", "2"))
"""How often each agent is killed; more often takes long."""
LATEST_S = 3.0
"""The latest moment of a kill, in seconds after a question."""


class GuestDesk(AgentDesk):
    """A user with another project's agent."""

    def __init__(self, folder: Path, guest: GuestAgent, url: str) -> None:
        self.folder, self.guest = folder, guest
        self.root = folder / "project"
        self.home = folder / "home"
        self.home.mkdir()
        self.own = guest.prepare(self.home, url)
        self.chat = str(folder / "chat.md")
        self.document = TextDocument("", 10**6)
        self.news, self.statuses = list[str](), list[str]()
        self.app = self.restart()

    def restart(self) -> App:
        table = {
            "agent": "Guest",
            "agents": [{"name": "Guest", "provider": self.guest.name}],
            "providers": {
                self.guest.name: {
                    "kind": "acp",
                    "command": list(self.guest.command),
                    "env": self.own,
                }
            },
            "approval": READS,
        }
        settings, problems = read_settings(table)
        assert problems == ()
        environ = {
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PATH": os.environ["PATH"],
        }
        ledger = LedgerFile(self.folder / "ledger.db")
        self.app = App(settings, environ, ledger, folder=lambda: self.root)
        return self.app

    def write(self, text: str) -> None:
        """Add a question to the chat."""
        said = self.text.rstrip().removesuffix("💬:").rstrip()
        self.document = TextDocument(f"{said}\n\n💬: {text}\n".lstrip(), 10**6)

    async def ask(self, text: str, agent: str | None = None) -> engine.End:
        self.write(text)
        return await engine.run_turn(self.ports(), self.app.resolve(agent))

    async def waits(self, text: str) -> None:
        """Ask, and check that a call waits and that nothing has happened."""
        before = self.files()
        assert (await self.ask(text)).kind == "waiting", self.text
        assert self.files() == before

    def files(self) -> dict[str, str]:
        return {each.name: each.read_text() for each in self.root.iterdir() if each.is_file()}

    async def kill(self) -> None:
        """Kill all of the agent's processes, and wait until Parley has noticed it."""
        killed = list(processes_of(self.home))
        assert killed
        for each in killed:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        (call,) = (each.call.id for each in self.calls if each.undecided)
        async with asyncio.timeout(STOPPED_S):
            while self.app.agent_processes.awaits(self.chat, call):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def diff(self) -> list[tuple[str | None, str | None]]:
        """The texts of the diff of the call that waits."""
        observed = await engine.observe(self.ports(), self.app.resolve(None))
        (preview,) = observed.previews.values()
        return [(each.before, each.after) for each in preview.changes]

    async def revert(self) -> None:
        reverter = self.app.reverter(self.chat)
        left = [each for each in await reverter.histories() if not each.is_reverted]
        outcome = await reverter.revert(left)
        assert (outcome.conflicts, outcome.problems) == ([], [])

    async def stopped(self, text: str) -> None:
        """Ask, and stop in the middle of the answer."""
        turn = asyncio.ensure_future(self.ask(text))
        async with asyncio.timeout(STOPPED_S):
            while "upon a time" not in self.text:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        turn.cancel()
        with suppress(asyncio.CancelledError):
            await turn
        assert "Interrupted" in self.text


@asynccontextmanager
async def working(folder: Path, guest: GuestAgent) -> AsyncIterator[GuestDesk]:
    root = work_tree(folder / "project", {"a.txt": TEXT})
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": fixtures(guest, root / "a.txt")}))
    options = ("--fixtures", file, "--journal-max", "0")
    async with running((AIMOCK, "--port", "{port}", *options), "/health") as mock:
        desk = GuestDesk(folder, guest, address(mock))
        try:
            yield desk
        finally:
            await desk.app.close()


@pytest.mark.parametrize("guest", AGENTS.values(), ids=AGENTS)
async def test_a_real_agent_acts_only_after_a_yes(tmp_path: Path, guest: GuestAgent) -> None:
    async with working(tmp_path, guest) as desk:
        assert (await desk.ask("Say hello.")).kind == "complete"
        await desk.waits("Make it loud.")
        assert await desk.diff() == [(TEXT, LOUD)]
        assert (await desk.press("yn")).kind == "complete"
        assert desk.files() == {"a.txt": TEXT}
        await desk.waits("Make it loud.")
        assert (await desk.press("ya")).kind == "complete"
        assert desk.files() == {"a.txt": LOUD}
        assert desk.news == []  # all in one session
        await desk.stopped("Tell a story.")
        await desk.waits("Run it.")
        assert (await desk.press("yn")).kind == "complete"
        assert desk.files() == {"a.txt": LOUD}
        await desk.waits("Run it.")
        assert (await desk.press("ya")).kind == "complete"
        assert desk.files() == {"a.txt": LOUD, "made.txt": ""}
        result = desk.calls[-1].result
        assert result
        assert "it was" in result.body or guest is GEMINI  # Gemini sends no output
        await desk.revert()
        assert desk.files() == {"a.txt": TEXT}
        assert (await desk.ask("Say goodbye.")).kind == "complete"
        assert len(desk.news) <= 1  # a stop may lose the session


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("guest", AGENTS.values(), ids=AGENTS)
async def test_a_real_agent_that_is_killed_or_does_not_know_the_chat_begins_anew(
    tmp_path: Path, guest: GuestAgent
) -> None:
    async with working(tmp_path, guest) as desk:
        await desk.waits("Make it loud.")
        await desk.kill()
        assert (await desk.press("ya")).kind == "waiting"  # the agent asks again
        lost = next(p for p in desk.calls if p.choice == "ya" and p.call.name != "read_file")
        assert lost.result
        assert lost.result.body.startswith(NOT_AWAITED)
        assert desk.files() == {"a.txt": TEXT}
        assert len(desk.news) == 1
        assert (await desk.press("yn")).kind == "complete"
        assert desk.files() == {"a.txt": TEXT}
        assert (await desk.ask("Say hello.", "Demo")).kind == "complete"
        await desk.waits("Do it loudly.")
        assert (await desk.press("ya")).kind == "complete"
        assert desk.files() == {"a.txt": LOUD}
        await desk.revert()
        desk.document = TextDocument(desk.text.replace("Say hello", "Say it"), 10**6)
        await desk.waits("Once more, loudly.")
        assert (await desk.press("yn")).kind == "complete"
        assert desk.files() == {"a.txt": TEXT}
        assert len(desk.news) == 1


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("guest", AGENTS.values(), ids=AGENTS)
async def test_a_real_agent_may_be_killed_at_any_moment(tmp_path: Path, guest: GuestAgent) -> None:
    chance = random.Random(guest.name)
    async with working(tmp_path, guest) as desk:
        for _ in range(KILLS):
            turn = asyncio.ensure_future(desk.ask("Make it loud."))
            await asyncio.sleep(chance.uniform(0, LATEST_S))
            for each in list(processes_of(desk.home)):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            async with asyncio.timeout(STOPPED_S):
                await turn
            assert desk.files() == {"a.txt": TEXT}
            assert not [each for each in parse(desk.text).problems if each.severity == "error"]
            assert not [
                call for call in desk.calls if call.choice and call.call.name != "read_file"
            ]
        await desk.waits("Make it loud.")
        assert (await desk.press("ya", which=-1)).kind == "complete"
        assert desk.files() == {"a.txt": LOUD}


@pytest.mark.parametrize("guest", [GEMINI, OPENCODE], ids=lambda guest: guest.name)
async def test_a_real_agent_writes_through_the_workspace(tmp_path: Path, guest: GuestAgent) -> None:
    """Tried on 2026-11-26: Gemini reads and writes with the client's methods, and OpenCode writes
    with them what it also writes itself. Claude's and Codex's agents use none of them."""
    async with working(tmp_path, guest) as desk:
        file, editor = desk.root / "a.txt", FakeEditor()
        desk.app.workspace.use(editor, None, desk.app._ledger_file)
        if guest is GEMINI:  # the buffer's text proves who reads and writes
            editor.texts[file] = OpenText(TEXT)
        await desk.waits("Make it loud.")
        assert await desk.diff() == [(TEXT, LOUD)]
        assert (await desk.press("ya")).kind == "complete"
        assert desk.files() == {"a.txt": LOUD}
        assert not any(call.call.name == "write_file" for call in desk.calls)
        if guest is GEMINI:
            assert editor.texts[file] == OpenText(LOUD)
            assert "from the editor's buffer" in desk.text
        histories = await desk.app.reverter(desk.chat).histories()
        assert [each.change.kind for each in histories] == ["edit"]
        await desk.revert()
        assert desk.files() == {"a.txt": TEXT}
        if guest is GEMINI:
            file.unlink()
            editor.texts.clear()
            await desk.waits("Do it loudly.")
            assert await desk.diff() == [(None, LOUD)]
            assert (await desk.press("ya")).kind == "complete"
            assert desk.files() == {"a.txt": LOUD}
            await desk.revert()
            assert desk.files() == {}
