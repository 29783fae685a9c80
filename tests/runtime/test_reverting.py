"""Reverting what calls changed: byte for byte, again and again, and never over later changes."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.atomic_files import replace_file
from parley.policy.reverts import histories, of_file
from parley.runtime.recording import CallRecorder
from parley.tools.file_edits import file_edits
from parley.workspace import writing
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import OpenText
from parley.workspace.planning import PlanError, plan_of
from tests.workspace.recorded_changes import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/a").write_bytes(b"one\r\ntwo")
    (tmp_path / "root/a").chmod(0o750)
    return Project(tmp_path / "root", tmp_path / "state")


_NAMES = st.sampled_from(["a", "b", "c/d"])
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write_file"), _NAMES, st.sampled_from(["", "x\n", "é\r\ny"])),
        st.tuples(st.just("delete_file"), _NAMES, st.just("")),
        st.tuples(st.just("move_file"), _NAMES, _NAMES),
    ),
    min_size=1,
    max_size=8,
)


@given(_STEPS)
@example([("delete_file", "a", ""), ("write_file", "a", "x\n")])
@example([("move_file", "a", "b"), ("write_file", "a", "x\n"), ("move_file", "b", "c/d")])
def test_a_revert_restores_every_byte_and_mode_and_its_revert_repeats_the_changes(
    steps: list[tuple[str, str, str]],
) -> None:
    async def law(folder: Path) -> None:
        project = Project(folder / "root", folder / "state")
        project.root.mkdir()
        (project.root / "a").write_bytes(b"\xff\xfeo\0n\0")
        (project.root / "a").chmod(0o751)
        before, ran = project.files(), 0
        for number, (tool, path, other) in enumerate(steps):
            more = {"write_file": {"content": other}, "move_file": {"to": other}}.get(tool, {})
            try:
                await project.run(f"c{number}", tool, path=path, **more)
                ran += 1
            except PlanError:
                continue
        after = project.files()
        for expected, is_reverted in ((before, True), (after, False)) * 2:
            outcome = await project.revert()
            assert (outcome.conflicts, outcome.problems) == ([], [])
            assert bool(outcome.reverted) == bool(ran)
            assert project.files() == expected
            known = histories(project.changes.all())
            assert [each.is_reverted for each in known] == [is_reverted] * ran

    with tempfile.TemporaryDirectory(dir=os.environ["XDG_STATE_HOME"]) as folder:
        asyncio.run(law(Path(folder)))


async def test_a_file_that_has_changed_since_is_a_conflict_and_earlier_changes_stay(
    project: Project,
) -> None:
    await project.run("c1", "write_file", path="a", content="1\n")
    await project.run("c2", "write_file", path="b", content="new\n")
    await project.run("c3", "write_file", path="a", content="2\n")
    (project.root / "a").write_bytes(b"mine\n")
    outcome = await project.revert()
    assert outcome.reverted == [project.root / "b"]
    (conflict,) = outcome.conflicts
    assert (conflict.path, conflict.left, conflict.now, conflict.restored) == (
        project.root / "a",
        b"2\r\n",
        b"mine\n",
        b"1\r\n",
    )
    assert {name: content for name, (content, _) in project.files().items()} == {"a": b"mine\n"}


async def test_only_the_changes_of_the_given_calls_are_reverted(project: Project) -> None:
    await project.run("c1", "write_file", path="a", content="1\n")
    await project.run("c2", "write_file", path="b", content="new\n")
    assert (await project.revert("c2")).reverted == [project.root / "b"]
    assert sorted(project.files()) == ["a"]
    left = of_file(project.changes.all(), project.root / "a")
    assert [change.call_id for change in left] == ["c1"]


async def test_a_change_that_was_recorded_but_not_made_is_no_conflict(project: Project) -> None:
    """As after a kill between the record and the write."""
    boundary = Boundary(project.root)
    edits = file_edits("write_file", {"path": "a", "content": "1\n"}, is_own=True)
    plan = await plan_of(edits, boundary, project.editor, {})
    await CallRecorder(project.changes, project.kept, "c1").begin(boundary, plan.changes[0])
    before = project.files()
    outcome = await project.revert()
    assert (outcome.reverted, outcome.conflicts, outcome.problems) == ([], [], [])
    assert project.files() == before


async def test_a_write_that_ends_after_its_call_was_stopped_can_be_reverted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, may_write, file = threading.Event(), threading.Event(), project.root / "a"

    def slow(*arguments: Any) -> list[str]:
        writes.set()
        may_write.wait(5)
        return replace_file(*arguments)

    monkeypatch.setattr(writing, "replace_file", slow)
    running = asyncio.ensure_future(project.run("c", "write_file", path="a", content="new"))
    assert await asyncio.to_thread(writes.wait, 5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    may_write.set()
    while file.read_bytes() != b"new":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    reverter = project.reverter()
    outcome = await reverter.revert(await reverter.histories())
    assert outcome.reverted == [file]
    assert file.read_bytes() == b"one\r\ntwo"


async def test_an_old_content_that_was_deleted_is_reported(project: Project) -> None:
    await project.run("c1", "write_file", path="a", content="1\n")
    for path in project.state.rglob("*"):
        if path.is_file():
            path.unlink()
    outcome = await project.revert()
    assert outcome.reverted == []
    assert outcome.problems == [
        "a: the old content was deleted: Parley keeps old content for at most 30 days"
    ]


async def test_an_open_file_is_reverted_in_the_editor(project: Project) -> None:
    path = project.root / "a"
    project.editor.texts[path] = OpenText("one\r\ntwo")
    await project.run("c1", "write_file", path="a", content="1\n")
    assert project.editor.texts[path].text == "1\r\n"
    await project.revert()
    assert project.editor.texts[path].text == "one\r\ntwo"
    assert path.read_bytes() == b"one\r\ntwo"
