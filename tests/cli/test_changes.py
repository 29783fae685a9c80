"""`parley changes` and `parley revert`: what calls changed, and the way back, days later."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from parley.chat.transcript import Proposal, Result, ToolCall
from parley.chat.writer import render
from parley.paths import state_folder
from parley.storage.ledger import default_path
from tests.chats import answer, chat
from tests.cli.shell import Shell
from tests.forks import ForkServer
from tests.json_schema import types_of
from tests.ledgers import open_ledger
from tests.workspace.recorded_changes import Project

_CALLS = "exchange 1: write_file; exchange 2: edit_file; exchange 3: move_file"
_HINT = "`parley changes --diff` shows the calls' changes"
FIRST = b"one\r\ntwo\r\n"


class Desk:
    """A chat whose calls have changed a project's files, and a shell that knows only the files."""

    def __init__(self, folder: Path, forks: ForkServer) -> None:
        self.shell = Shell(folder, forks)
        self.root = folder / "root"
        self.root.mkdir()
        (self.root / "a.txt").write_bytes(FIRST)
        self.project = Project(
            self.root,
            state_folder(self.shell.environ) / "checkpoints",
            open_ledger(default_path(self.shell.environ)),
            chat=str(self.shell.chat),
        )

    def run(self, *calls: tuple[str, str, dict[str, Any]]) -> None:
        """Run calls, each in an exchange of its own."""
        exchanges = []
        for call, tool, arguments in calls:
            text = json.dumps(arguments)
            self.project.start(call, tool, text)
            asyncio.run(self.project.run(call, tool, **arguments))
            made = ToolCall(call, tool, text, 0)
            exchanges.append(answer(Proposal(made, "ya", Result("ok", "done"))))
        self.shell.chat.write_text(render(chat(*exchanges)), encoding="utf-8")

    def lines(self, *arguments: str, code: int = 0, **environ: str) -> list[str]:
        """The lines that a command prints."""
        done = self.shell.run(*arguments, **environ)
        assert done.returncode == code, done.stderr
        return (done.stdout + done.stderr).decode().splitlines()

    def json(self, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        """The objects that a command prints, without the last one."""
        lines = self.lines(*arguments, "--json", code=code)
        types_of(lines)
        return [json.loads(line) for line in lines[:-1]]


@pytest.fixture
def desk(tmp_path: Path, forks: ForkServer) -> Desk:
    return Desk(tmp_path, forks)


def _three(desk: Desk) -> None:
    desk.run(
        ("c1", "write_file", {"path": "a.txt", "content": "1\n2\n"}),
        ("c2", "edit_file", {"path": "a.txt", "edits": [{"old": "2", "new": "3"}]}),
        ("c3", "move_file", {"path": "a.txt", "to": "sub/b.txt"}),
    )


def test_a_file_is_listed_once_with_all_its_calls_under_its_present_name(desk: Desk) -> None:
    _three(desk)
    asyncio.run(desk.project.run("c4", "write_file", path="new.txt", content="x\n"))
    assert desk.lines("changes", "chat.md") == [
        "new.txt  +1 −0  new  removed from the chat: a call",
        f"sub/b.txt  +2 −2  moved from a.txt  {_CALLS}",
    ]
    new, moved = desk.json("changes", "chat.md", "--diff")
    assert (new["path"], new["added"], new["removed"]) == ("new.txt", 1, 0)
    assert new["diff"] == "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x"
    assert [(c["exchange"], c["call"], c["tool"]) for c in moved["calls"]] == [
        (1, "c1", "write_file"),
        (2, "c2", "edit_file"),
        (3, "c3", "move_file"),
    ]


def test_the_diff_can_be_taken_back_with_patch(desk: Desk) -> None:
    desk.run(("c1", "write_file", {"path": "a.txt", "content": "1\ntwo\n3\n"}))
    diff = desk.shell.run("changes", "chat.md", "--diff").stdout
    command = ["git", "apply", "-R", "-p1", "-"]
    subprocess.run(command, cwd=desk.root, input=diff, check=True, timeout=30)
    assert (desk.root / "a.txt").read_bytes() == FIRST


def test_reverts_go_back_exchange_by_exchange_and_can_be_repeated(desk: Desk) -> None:
    _three(desk)
    assert desk.lines("revert", "chat.md") == ["reverted a.txt"]
    assert desk.lines("revert", "chat.md", "--exchange", "2") == ["reverted a.txt"]
    assert (desk.root / "a.txt").read_bytes() == b"1\r\n2\r\n"
    again = "all changes are already reverted. --repeat repeats them"
    assert desk.lines("revert", "chat.md", "--exchange", "2") == [again]
    assert desk.lines("revert", "chat.md") == ["reverted a.txt"]
    assert (desk.root / "a.txt").read_bytes() == FIRST
    (listed,) = desk.json("changes", "chat.md")
    assert (listed["path"], listed["state"], listed["added"]) == ("a.txt", "reverted", 0)
    path = str(desk.root / "a.txt")
    (repeated,) = desk.json("revert", "chat.md", "--repeat", "--file", path)
    assert (repeated["path"], repeated["outcome"]) == ("sub/b.txt", "repeated")
    assert (desk.root / "sub/b.txt").read_bytes() == b"1\r\n3\r\n"
    kinds = [line["kind"] for line in desk.json("log", "chat.md") if line["type"] == "record"]
    assert kinds[-6:] == ["reverted"] * 3 + ["repeated"] * 3


def test_a_file_that_has_changed_since_stays_and_the_command_fails(desk: Desk) -> None:
    desk.run(("c1", "write_file", {"path": "a.txt", "content": "1\n"}))
    (desk.root / "a.txt").write_bytes(b"mine\n")
    assert desk.lines("revert", "chat.md", code=1) == [
        f"parley: a.txt has changed since, so it was not reverted. {_HINT}"
    ]
    conflict, error = desk.json("revert", "chat.md", code=1)
    assert (conflict["path"], conflict["outcome"]) == ("a.txt", "changed since")
    assert error["type"] == "error"
    assert (desk.root / "a.txt").read_bytes() == b"mine\n"


def test_nothing_is_reverted_while_a_turn_runs_in_the_chat(desk: Desk) -> None:
    desk.run(("c1", "write_file", {"path": "a.txt", "content": "1\n"}))
    with desk.project.ledger.chat(str(desk.shell.chat)).lease():
        (line,) = desk.lines("revert", "chat.md", code=1)
        assert "is running a turn in this chat" in line
    assert (desk.root / "a.txt").read_bytes() == b"1\r\n"


def test_wrong_names_are_errors_and_a_chat_without_changes_is_not(desk: Desk) -> None:
    desk.shell.ask("hello")
    assert desk.lines("changes", "chat.md") == ["No changes yet."]
    assert desk.json("changes", "chat.md") == []
    assert [line["type"] for line in desk.json("revert", "chat.md")] == ["note"]
    assert desk.lines("revert", "chat.md") == ["nothing to revert"]
    assert "there is no exchange 2" in desk.lines("revert", "chat.md", "--exchange", "2", code=1)[0]
    assert (
        "no call in this chat changed b"
        in desk.lines("revert", "chat.md", "--file", "b", code=1)[0]
    )
    assert "none.md" in desk.lines("changes", "none.md", code=1)[0]
    desk.run(("c1", "write_file", {"path": "a.txt", "content": "1\n"}))
    desk.shell.chat.unlink()
    (line,) = desk.lines("changes", "chat.md")
    assert line == "a.txt  +1 −2  removed from the chat: write_file"
