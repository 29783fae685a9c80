"""The tool that runs commands: its result for the model, and the records of its changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from parley.errors import ParleyError
from parley.processes.reaper import Reaper
from parley.workspace.command_runs import MOST_SHOWN, Commands, CommandWatch
from parley.workspace.command_tool import CommandTool
from parley.workspace.sandbox import Sandbox
from parley.workspace.snapshots import SnapshotChange
from tests.child_processes import until
from tests.workspace.trees import work_tree


class Records:
    """A recorder in memory."""

    def __init__(self) -> None:
        self.changes = list[SnapshotChange]()

    async def record(self, root: Path, changes: Sequence[SnapshotChange]) -> None:
        self.changes += changes


async def ignore(line: str, seconds: float) -> None:
    pass


@pytest.fixture
async def reaper() -> AsyncIterator[Reaper]:
    reaper = Reaper()
    yield reaper
    await reaper.close()


def tool(root: Path, reaper: Reaper) -> CommandTool:
    commands = Commands(root, os.environ, reaper, Sandbox(os.environ), "off")
    return CommandTool(commands, os.environ)


async def test_a_command_in_a_work_tree_is_recorded_and_its_files_are_named(
    tmp_path: Path, reaper: Reaper
) -> None:
    root, records = work_tree(tmp_path / "tree", {"a.txt": "one\n", "b.txt": "b\n"}), Records()
    command = "echo two > a.txt; rm b.txt; echo new > c.txt; echo done; exit 3"
    text, whole = await tool(root, reaper).run(command, ".", 0, records, ignore)
    head, output, changed = text.splitlines()
    assert head.startswith("[exit code 3, ")
    assert head.endswith(" s, not sandboxed]")
    assert (output, whole) == ("done", "")
    assert changed == "(it changed 3 files: a.txt, b.txt, c.txt)"
    assert {change.path: (change.before, change.after) for change in records.changes} == {
        "a.txt": (b"one\n", b"two\n"),
        "b.txt": (b"b\n", None),
        "c.txt": (None, b"new\n"),
    }


async def test_outside_of_a_work_tree_the_result_says_that_nothing_is_tracked(
    tmp_path: Path, reaper: Reaper
) -> None:
    records = Records()
    text, _ = await tool(tmp_path, reaper).run("echo x > a", ".", 0, records, ignore)
    assert "changes by commands are not tracked here" in text
    assert records.changes == []


async def test_a_long_output_is_cut_for_the_model_and_whole_beside_it(
    tmp_path: Path, reaper: Reaper
) -> None:
    root = work_tree(tmp_path / "tree", {})
    text, whole = await tool(root, reaper).run("seq 1 20000", ".", 0, Records(), ignore)
    assert len(text) < MOST_SHOWN + 500
    assert whole.splitlines() == [str(n) for n in range(1, 20001)]
    assert "20000" in text


async def test_the_changes_of_a_stopped_command_are_recorded(
    tmp_path: Path, reaper: Reaper
) -> None:
    root, records = work_tree(tmp_path / "tree", {"a.txt": "one\n"}), Records()
    command = "echo two > a.txt; sleep 60; echo three > a.txt"
    running = asyncio.ensure_future(tool(root, reaper).run(command, ".", 0, records, None))
    await until(lambda: (root / "a.txt").read_text() == "two\n")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: records.changes != [])
    (change,) = records.changes
    assert (change.path, change.before, change.after) == ("a.txt", b"one\n", b"two\n")


async def test_a_command_that_is_stopped_early_never_begins(tmp_path: Path, reaper: Reaper) -> None:
    root, watch = work_tree(tmp_path / "tree", {}), CommandWatch()
    watch.stop.set()
    with pytest.raises(ParleyError, match="stopped before it began"):
        await tool(root, reaper).run("touch a", ".", 0, Records(), None, watch)
    assert not (root / "a").exists()
    assert watch.ended.is_set()


async def test_the_time_limit_ends_a_command(tmp_path: Path, reaper: Reaper) -> None:
    root = work_tree(tmp_path / "tree", {})
    text, _ = await tool(root, reaper).run("echo begun; sleep 60", ".", 1, Records(), ignore)
    head, output = text.splitlines()
    assert head.startswith("[ended by the time limit of 1 s, ")
    assert output == "begun"
