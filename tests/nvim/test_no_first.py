"""In every trust dialog, the first answer declines, so a user who types without reading declines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, cast

import pytest

from parley.nvim.dialogs import Dialogs
from parley.nvim.elicitation import Elicitation
from tests.nvim.harness import ROOT, Child, child

INIT = "require('parley').setup({ agent = 'Demo' })"
QUESTION = "\U0001f4ac: "
TRUST = {
    "lua/parley/pages.lua": "an agent that a file asks for, and one of a list",
    "python/parley/nvim/plugin.py": "a file outside the working directory, and a hidden file",
    "python/parley/nvim/trust_dialog.py": "a project's servers and texts",
    "python/parley/nvim/permission_dialog.py": "a permission to run calls without asking",
    "python/parley/nvim/elicitation.py": "a form of a server, and its fields",
}
LISTS = {
    "lua/parley/dialogs.lua": "what the host asks, of those above",
    "lua/parley/finder.lua": "chats",
    "python/parley/nvim/agent_choices.py": "modes and models of an agent",
    "python/parley/nvim/agent_login.py": "an agent's sign-in methods",
    "python/parley/nvim/prompt_insertion.py": "prompts of servers",
}
"""Dialogs in which the user picks from a list, and leaving the list declines."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with child(tmp_path_factory.mktemp("no-first"), init=INIT, width=200) as nvim:
        yield nvim


def asked(nvim: Child, question: str) -> None:
    """Check that the list's first line declines; dismiss the list."""
    nvim.until_screen(question)
    nvim.until_screen("Type number and <Enter>")
    (first,) = re.findall(r"^1: (.*)$", nvim.screen(), re.M)
    assert re.match(r"(No|Decline)\b", first), first
    nvim.keys("<CR>")
    nvim.until_idle()


def respond(nvim: Child, name: str, text: str) -> None:
    nvim.edit(name, text)
    nvim.command("normal! G")
    nvim.keys(":ParleyRespond<CR>")


def test_every_dialog_is_in_the_list() -> None:
    files = [*(ROOT / "lua").rglob("*.lua"), *(ROOT / "python" / "parley" / "nvim").glob("*.py")]
    calls = re.compile(
        r"vim\.ui\.select\(|\.pick\(items|require\(\"parley\.dialogs\"\)\.pick\(|ialogs\.select\("
    )
    places = {
        str(path.relative_to(ROOT))
        for path in files
        if calls.search(path.read_text(encoding="utf-8"))
    }
    assert places == TRUST.keys() | LISTS.keys()


def test_declining_is_first_for_an_agent_that_a_file_requests(desk: Child) -> None:
    respond(desk, "agent.md", f"---\nagent: Demo-OpenAI\n---\n\n{QUESTION}say: hello\n")
    asked(desk, "asks for agent Demo-OpenAI")
    assert "\U0001f916:" not in desk.text()


def test_declining_is_first_for_a_file_outside_the_working_directory(desk: Child) -> None:
    (desk.home / "in").mkdir()
    (desk.home / "outside.txt").write_text("outside\n", encoding="utf-8")
    desk.command(f"cd {desk.home}/in")
    respond(desk, "file.md", f"{QUESTION}say: hello @@../outside.txt@@\n")
    asked(desk, "outside the working directory")
    assert "\noutside\n" not in desk.text()
    desk.command(f"cd {desk.home}")


def test_declining_is_first_for_a_hidden_file(desk: Child) -> None:
    (desk.home / ".vimrc").write_text("hidden\n", encoding="utf-8")
    respond(desk, "hidden.md", f"{QUESTION}say: hello @@.vimrc@@\n")
    asked(desk, "Read the hidden file")
    assert "\nhidden\n" not in desk.text()


def test_declining_is_first_for_a_projects_servers(desk: Child) -> None:
    project = desk.home / "project"
    project.mkdir()
    servers = {"mcpServers": {"theirs": {"command": "/nowhere/server"}}}
    (project / ".mcp.json").write_text(json.dumps(servers), encoding="utf-8")
    desk.command(f"cd {project}")
    respond(desk, "project.md", f"{QUESTION}say: hello\n")
    asked(desk, "MCP servers in")
    desk.command(f"cd {desk.home}")


class Dismissed(Dialogs):
    """Dialogs that the user dismisses, and their questions."""

    def __init__(self) -> None:
        self.items = list[str]()

    async def select(self, prompt: str, items: Sequence[str]) -> int | None:
        self.items += items
        return None


@pytest.mark.parametrize("schema", [{}, {"properties": {"name": {"type": "string"}}}])
async def test_declining_is_first_for_a_servers_form(schema: dict[str, Any]) -> None:
    dialogs, no_editor = Dismissed(), cast("Any", None)
    form = Elicitation(no_editor, dialogs, lambda _: nullcontext(), lambda _: [])
    assert await form.ask("server", "tell me", schema) == "cancel"
    assert dialogs.items[0] == "Decline"
