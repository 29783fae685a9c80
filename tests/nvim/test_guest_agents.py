"""Another project's agent in a real Neovim: a key decides on its edit, and nothing else does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.gateway_chats import address, running
from tests.e2e.guest_agents import AIMOCK, CODEX, GEMINI, LOUD, TEXT, GuestAgent, fixtures
from tests.nvim.harness import Child, child
from tests.nvim.test_rows import shown
from tests.workspace.trees import work_tree

pytestmark = [pytest.mark.guests, pytest.mark.timeout(180)]
BOUND_S = 60.0


@contextmanager
def mock(file: Path) -> Iterator[str]:
    """The address of the agents' model, which answers as a file says."""
    found, ready, over = list[str](), threading.Event(), threading.Event()

    async def run() -> None:
        options = ("--fixtures", file, "--journal-max", "0")
        async with running((AIMOCK, "--port", "{port}", *options), "/health") as client:
            found.append(address(client))
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert ready.wait(BOUND_S)
        yield found[0]
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("guest", [CODEX, GEMINI], ids=lambda guest: guest.name)
def test_a_key_decides_on_a_real_agents_edit(tmp_path: Path, guest: GuestAgent) -> None:
    root, home = work_tree(tmp_path / "project", {"a.txt": TEXT}), tmp_path / "home"
    home.mkdir()
    (tmp_path / "nvim").mkdir()
    file, changed = tmp_path / "fixtures.json", root / "a.txt"
    file.write_text(json.dumps({"fixtures": fixtures(guest, changed)}))
    with mock(file) as url:
        env = {**guest.prepare(home, url), "HOME": str(home)}
        table = {
            "agent": "Guest",
            "agents": [{"name": "Guest", "provider": guest.name}],
            "providers": {
                guest.name: {"kind": "acp", "command": list(guest.command), "env": env},
            },
            "status": {"llm": False},
        }
        init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(table))}))"
        with child(
            tmp_path / "nvim", init=init, env={"PARLEY_LEAST_SEEN_S": "0"}, width=80
        ) as nvim:
            nvim.command(f"cd {root}")
            asked(nvim, "one.md", "Make it loud.")
            assert "❓ edit(a.txt) +1 −1" in "\n".join(shown(nvim))
            assert "- two" in nvim.screen()
            assert "+ TWO" in nvim.screen()
            nvim.keys("yn")
            nvim.until_screen("Reason")
            nvim.keys("\r")
            nvim.until_idle()
            assert changed.read_text() == TEXT
            asked(nvim, "two.md", "Make it loud.")
            assert changed.read_text() == TEXT
            nvim.keys("ya")
            nvim.until_screen("It is loud.", BOUND_S)
            nvim.until_idle()
            assert changed.read_text() == LOUD
            nvim.command("ParleyRevert")
            nvim.until(lambda: changed.read_text() == TEXT, "the revert")
            asked(nvim, "three.md", "Run it.")
            nvim.command("ParleyStop")
            nvim.until_idle()
            assert not (root / "made.txt").exists()


def asked(nvim: Child, name: str, question: str) -> None:
    """Ask, and wait until a call waits for a key."""
    nvim.edit(name, f"💬: {question}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")
    nvim.until_screen(">> Please choose", BOUND_S)
    nvim.until_idle()
