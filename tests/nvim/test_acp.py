"""An agent of another program in Neovim: its permission waits for a key, and the key decides."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.acp.agent_runs import AgentRun
from tests.nvim.harness import Child, child
from tests.nvim.test_rows import shown
from tests.workspace.trees import work_tree

TEXT = "one\ntwo\n"
_number = count(1)


class Place:
    """A project with a file, and an agent that wants to edit it."""

    def __init__(self, folder: Path) -> None:
        self.root = work_tree(folder / "project", {"a.txt": TEXT})
        (folder / "agent").mkdir()
        path = str(self.root / "a.txt")
        diff = {"type": "diff", "path": path, "oldText": "two\n", "newText": "TWO\n"}
        call = {"toolCallId": "t", "title": "Edit a.txt", "kind": "edit", "content": [diff]}
        update = {"sessionUpdate": "plan", "entries": [{"content": "Edit it", "status": "pending"}]}
        read = {"sessionUpdate": "tool_call", "toolCallId": "r", "title": "Look", "kind": "read",
                "status": "completed", "rawOutput": "seen"}  # fmt: skip
        write = {"write": path, "text": "one\nTWO\n"}
        steps: list[Any] = [
            {"say": "Look:"}, {"update": read}, {"update": update},
            {"ask": call, "then": [write]}, {"complain": "a remark"}, {"say": "The end."},
        ]  # fmt: skip
        self.run = AgentRun(folder / "agent", {"prompts": [steps]})

    def settings(self) -> str:
        table = {
            "agent": "Coder",
            "agents": [{"name": "Coder", "provider": "coder"}],
            "providers": {"coder": {"kind": "acp", "command": list(self.run.provider.command)}},
            "status": {"llm": False},
        }
        return f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(table))}))"

    @property
    def file(self) -> str:
        return (self.root / "a.txt").read_text()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("agents"))


@pytest.fixture(scope="module")
def desk(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    folder = tmp_path_factory.mktemp("nvim")
    with child(folder, init=place.settings(), env={"PARLEY_LEAST_SEEN_S": "0"}, width=80) as nvim:
        nvim.command(f"cd {place.root}")
        yield nvim


@pytest.fixture
def nvim(desk: Child, place: Place) -> Child:
    desk.clear()
    (place.root / "a.txt").write_text(TEXT)
    place.run.log.write_text("")
    return desk


def asked(nvim: Child) -> None:
    nvim.edit(f"chat-{next(_number)}.md", "💬: Make it loud.\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")
    nvim.until_screen(">> Please choose")
    nvim.until_idle()


def test_a_key_allows_the_call_once_and_its_change_can_be_reverted(
    nvim: Child, place: Place
) -> None:
    asked(nvim)
    rows = [line.strip() for line in shown(nvim) if line.startswith(("❓", "🛠"))]
    row = '🛠 read(title: "Look") · run by the agent → 4 B, ok'  # a slow call's time may follow
    assert rows[0].startswith(row)
    assert rows[1:] == ["❓ edit(a.txt) +1 −1 · coder"]
    assert "- two" in nvim.screen()
    assert "+ TWO" in nvim.screen()
    assert place.file == TEXT
    nvim.keys("ya")
    nvim.until_screen("The end.")
    nvim.until_idle()
    assert place.file == "one\nTWO\n"
    (row,) = [line for line in shown(nvim) if " edit(" in line]
    assert "a.txt) +1 −1 → " in row
    assert "🔒: [Plan]" in nvim.text()
    assert place.run.answers() == [{"outcome": {"outcome": "selected", "optionId": "yes"}}]
    nvim.command("ParleyRevert")
    nvim.until(lambda: place.file == TEXT, "the revert")
    nvim.command("ParleyTools")
    page = nvim.until_text("## coder: agent of another program, running")
    assert "stderr, 1 line: a remark" in page
    nvim.command("normal! G")
    nvim.keys("R")  # no key of a server acts on an agent
    nvim.command("close")


def test_a_key_declines_the_call(nvim: Child, place: Place) -> None:
    asked(nvim)
    nvim.keys("yn")
    nvim.until_screen("Reason")
    nvim.keys("\r")
    nvim.until_screen("The end.")
    nvim.until_idle()
    assert place.file == TEXT
    assert place.run.answers() == [{"outcome": {"outcome": "selected", "optionId": "no"}}]


def test_a_killed_agent_never_gets_a_late_yes(nvim: Child, place: Place) -> None:
    asked(nvim)
    for pid in _agents(place):
        os.kill(pid, signal.SIGKILL)
    nvim.until(lambda: not list(_agents(place)), "the end of the agent")
    nvim.keys("ya")
    nvim.until(lambda: "was cancelled" in nvim.text(), "the result")
    nvim.until_screen(">> Please choose")  # the new session asks again
    assert place.file == TEXT
    assert all(answer["outcome"]["outcome"] == "cancelled" for answer in place.run.answers())


def _agents(place: Place) -> Iterator[int]:
    """The processes of the agent."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(place.run.log).encode() in words and b"-c" not in words:
            yield int(path.parent.name)


def test_the_mode_of_the_file_is_in_the_status_and_the_answers_line(
    nvim: Child, place: Place
) -> None:
    nvim.edit("mode.md", "---\nmode: default\n---\n\n💬: Make it loud.\n")
    nvim.until(lambda: nvim.lua("return vim.b.parley_agent") == "Coder, mode default", "the status")
