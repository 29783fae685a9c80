"""A task in a shell, with real parts: a model finds a bug in a Git project, fixes it and runs the
tests, a script approves each call, and the user takes the fix back.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.forks import forks
from tests.json_schema import types_of
from tests.workspace.trees import git, work_tree

BUG = "def mean(numbers):\n    return sum(numbers) / len(numbers) + 1\n"
FIXED = BUG.replace(" + 1", "")
TEST = "from mean import mean\n\nassert mean([1, 3]) == 2, 'wrong mean'\nprint('all is well')\n"
RUN = f"call run_command {json.dumps({'command': f'{sys.executable} -B test_mean.py'})}"
FIX = {"path": "src/mean.py", "edits": [{"old": "len(numbers) + 1", "new": "len(numbers)"}]}
TASK = " ".join(
    (
        "one after another:",
        RUN.replace("test_mean", "src/test_mean"),
        'call search_text {"pattern": "def mean"}',
        'call read_file {"path": "src/mean.py"}',
        f"call edit_file {json.dumps(FIX)}",
        RUN.replace("test_mean", "src/test_mean"),
    )
)
DIFF = """\
--- a/src/mean.py
+++ b/src/mean.py
@@ -1,2 +1,2 @@
 def mean(numbers):
-    return sum(numbers) / len(numbers) + 1
+    return sum(numbers) / len(numbers)"""


class Task:
    """A Git project with a bug, and a shell in its folder."""

    def __init__(self, folder: Path) -> None:
        self.shell = Shell(folder, forks())
        self.root = work_tree(
            folder / "project", {"src/mean.py": BUG, "src/test_mean.py": TEST, "notes.txt": "mean"}
        )
        self.source = self.root / "src" / "mean.py"
        self.shell.folder = self.root
        git(self.root, "add", ".")

    @property
    def file(self) -> str:
        (chat,) = self.shell.chats
        return str(chat)

    def run(self, *arguments: str, code: int) -> dict[str, list[dict[str, Any]]]:
        """The objects that a command prints, by type, if it ends with this code."""
        done = self.shell.run(*arguments, "--json")
        assert done.returncode == code, (done.stdout, done.stderr)
        assert done.stderr == b""
        lines = done.stdout.decode().splitlines()
        types_of(lines)
        found = dict[str, list[dict[str, Any]]]()
        for line in map(json.loads, lines):
            found.setdefault(line["type"], []).append(line)
        assert found["end"][0]["code"] == code
        return found

    def approve(self, code: int = 3) -> tuple[str, dict[str, list[dict[str, Any]]]]:
        """Approve the call that an earlier run printed; returns its result, and all objects."""
        found = self.run("respond", self.file, "--choose", "ya", code=code)
        return found["call_ended"][0]["result"]["body"], found


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(tmp_path)


def waiting(found: dict[str, list[dict[str, Any]]]) -> tuple[str, list[dict[str, Any]]]:
    """The name and changes of the only waiting call."""
    (call,) = found["call_waiting"]
    return call["call"]["name"], call["changes"]


def test_a_script_has_a_bug_fixed_and_takes_the_fix_back(task: Task) -> None:
    assert waiting(task.run("ask", TASK, code=3)) == ("run_command", [])
    failed, found = task.approve()
    assert failed.startswith("[exit code 1, ")
    assert "AssertionError: wrong mean" in failed
    assert waiting(found) == ("search_text", [])
    place, found = task.approve()
    assert "src/mean.py:1: def mean(numbers):" in place
    assert waiting(found) == ("read_file", [])
    text, found = task.approve()
    assert "2\t    return sum(numbers) / len(numbers) + 1" in text
    change = {"path": "src/mean.py", "moved_to": "", "diff": DIFF}
    assert waiting(found) == ("edit_file", [change])
    assert task.source.read_text() == BUG

    task.source.write_text(f"# mine\n{BUG}")  # the printed diff does not show this line
    found = task.run("respond", task.file, "--choose", "ya", code=3)
    assert [note["message"] for note in found["note"]] == [
        "the file has changed: look at the new diff of edit_file, then pass --choose ya again"
    ]
    assert " # mine" in waiting(found)[1][0]["diff"].splitlines()
    assert task.source.read_text() == f"# mine\n{BUG}"
    done, found = task.approve()
    assert "+    return sum(numbers) / len(numbers)" in done.splitlines()
    assert waiting(found) == ("run_command", [])
    passed, _ = task.approve(code=0)
    assert passed.startswith("[exit code 0, ")
    assert "all is well" in passed

    assert task.source.read_text() == f"# mine\n{FIXED}"
    (changed,) = task.run("changes", task.file, code=0)["changed_file"]
    assert (changed["path"], changed["state"]) == ("src/mean.py", "standing")
    assert (changed["added"], changed["removed"]) == (1, 1)
    assert task.run("revert", task.file, code=0)["revert"][0]["outcome"] == "reverted"
    assert task.source.read_text() == f"# mine\n{BUG}"
    task.run("revert", task.file, "--repeat", code=0)
    assert task.source.read_text() == f"# mine\n{FIXED}"
    task.source.write_text("my own\n")
    found = task.run("revert", task.file, code=1)
    assert found["revert"][0]["outcome"] == "changed since"
    assert task.source.read_text() == "my own\n"


def test_an_edit_that_does_not_fit_asks_nobody_and_tells_the_model_the_nearest_place(
    task: Task,
) -> None:
    edit = {**FIX, "edits": [{"old": "sum(numbers) / len(number)", "new": "x"}]}
    found = task.run("ask", f"call edit_file {json.dumps(edit)}", code=0)
    assert "call_waiting" not in found
    (refused,) = found["call_refused"]
    assert "\nline 2:\n    return sum(numbers) / len(numbers) + 1\n" in refused["result"]["body"]
    assert task.source.read_text() == BUG
    assert "changed_file" not in task.run("changes", task.file, code=0)
    assert "revert" not in task.run("revert", task.file, code=0)
