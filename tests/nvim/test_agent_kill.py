"""Neovim or its host is killed at any step of a turn of an agent: the file continues, a permission that
waits is never granted, and no agent is left.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from parley.chat.reader import parse
from tests.acp.agent_runs import AgentRun
from tests.acp.killed_turns import is_running, yeses
from tests.nvim.counting import Chat, has_ended, opened, until, waits
from tests.nvim.harness import Child
from tests.nvim.test_kill import SEEDS, Death, deaths, editor, live, respond
from tests.workspace.trees import work_tree

TEXT, LOUD = "one\ntwo\n", "one\nTWO\n"


class Life:
    """A chat, with an agent and a file of its own."""

    def __init__(self, home: Path, name: str, death: Death) -> None:
        self.death = death
        self.chat = Chat(home, name)
        self.file = work_tree(home / name / "project", {"a.txt": TEXT}) / "a.txt"
        diff = {"type": "diff", "path": str(self.file), "oldText": "two\n", "newText": "TWO\n"}
        call = {"toolCallId": "t", "title": "Edit a.txt", "kind": "edit", "content": [diff]}
        then = [{"write": str(self.file), "text": LOUD}]
        steps: list[Any] = [{"say": "Look:"}, {"ask": call, "then": then}, {"say": "Done."}]
        self.run = AgentRun(home / name, {"prompts": [steps]})
        self.name = name

    def configure(self, home: Path) -> None:
        """Make the agent the default."""
        path = home / "config" / "parley" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        command = json.dumps(list(self.run.provider.command))
        path.write_text(
            f'agent = "{self.name}"\nstatus.llm = false\n'
            f'agents = [{{ name = "{self.name}", provider = "{self.name}" }}]\n'
            f'[providers.{self.name}]\nkind = "acp"\ncommand = {command}\n'
        )

    def go_on(self, nvim: Child) -> None:
        """Check the file that is left, continue without a yes, and ask another question."""
        left = self.chat.path.read_text(encoding="utf-8")
        assert left.startswith(self.chat.question), self.death
        assert not [p for p in parse(left).problems if p.severity == "error"], self.death
        until(nvim, lambda: not is_running(self.run.log), "the end of the agent")
        before = yeses(self.run.log)  # a yes from before the death may have been on its way
        assert before <= 1, self.death
        assert self.file.read_text() == TEXT or before == 1, self.death
        opened(nvim, self.chat)
        self.decline_all(nvim)
        nvim.nvim.api.buf_set_lines(0, -2, -1, True, ["💬: Still there?"])
        self.decline_all(nvim)
        assert "Done." in nvim.text().partition("Still there?")[2], self.death
        assert yeses(self.run.log) == before, self.death
        nvim.command("write")

    def decline_all(self, nvim: Child) -> None:
        """Continue to the end of the answer."""
        nvim.command("normal! G")
        respond(nvim)
        while not has_ended(nvim):
            until(nvim, lambda: waits(nvim) or has_ended(nvim), f"an end after {self.death}")
            if waits(nvim):
                nvim.command("ParleyApprove yN")
                nvim.until_idle()


@pytest.mark.timeout(300)
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_death_at_any_step_of_an_agents_turn_grants_nothing(tmp_path: Path, seed: int) -> None:
    lives = [Life(tmp_path, f"life{n}", death) for n, death in enumerate(deaths(seed))]
    for before, now in pairwise([None, *lives, None]):
        if before:
            before.configure(tmp_path)
            with editor(tmp_path) as nvim:
                before.go_on(nvim)
        if now:
            now.configure(tmp_path)
            with editor(tmp_path) as nvim:
                live(nvim, now.chat, now.death)
