"""Changes of files from the plan to the file, on real files: exactly as planned, or not at all."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.errors import ParleyError
from parley.tools.file_edits import file_edits
from parley.workspace.boundary import Boundary
from parley.workspace.change_tools import CallOrigin, ChangeTools
from parley.workspace.editor_files import NoEditor, OpenText
from parley.workspace.planning import LARGEST_FILE, Plan, PlanError, PlannedChange, after, plan_of
from parley.workspace.writing import ChangedError
from tests.workspace.open_files import FakeEditor


@dataclass
class Records:
    """A recorder in memory."""

    begun: list[tuple[str, bytes | None, bytes | None]] = field(default_factory=list)
    outcomes: list[tuple[int, bool]] = field(default_factory=list)

    async def begin(self, boundary: Boundary, change: PlannedChange) -> int:
        self.begun.append((change.place, change.before.content, change.after))
        return len(self.begun)

    def end(self, number: int, *, is_done: bool) -> None:
        self.outcomes.append((number, is_done))


@dataclass
class Desk:
    """A workspace in a folder."""

    root: Path
    editor: FakeEditor = field(default_factory=FakeEditor)
    records: Records = field(default_factory=Records)

    @property
    def boundary(self) -> Boundary:
        return Boundary(self.root)

    async def plan(self, tool: str, arguments: Mapping[str, Any]) -> Plan:
        edits = file_edits(tool, arguments, is_own=True)
        return await plan_of(edits, self.boundary, self.editor, {})

    async def run(self, tool: str, base: str, **arguments: Any) -> str:
        tools = ChangeTools(self.boundary, self.editor, lambda _: self.records)
        return await tools.run(tool, arguments, CallOrigin("chat.md", "c1", base))

    async def approved(self, tool: str, **arguments: Any) -> str:
        """Run a call as the user approved it."""
        return await self.run(tool, (await self.plan(tool, arguments)).base, **arguments)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/app.py").write_bytes(b"one\ntwo\nthree\n")
    return Desk(tmp_path)


def edit(old: str, new: str, path: str = "src/app.py") -> dict[str, Any]:
    return {"path": path, "edits": [{"old": old, "new": new}]}


async def test_an_edit_is_made_as_planned_and_reported_with_its_diff(desk: Desk) -> None:
    plan = await desk.plan("edit_file", edit("two", "2"))
    (change,) = plan.changes
    assert (change.place, change.after) == ("src/app.py", b"one\n2\nthree\n")
    result = await desk.run("edit_file", plan.base, **edit("two", "2"))
    assert (desk.root / "src/app.py").read_bytes() == change.after
    assert result == (
        "changed src/app.py: +1 −1\n--- a/src/app.py\n+++ b/src/app.py\n"
        "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    )
    assert desk.records.begun == [("src/app.py", b"one\ntwo\nthree\n", b"one\n2\nthree\n")]
    assert desk.records.outcomes == [(1, True)]


@pytest.mark.parametrize("how", ["other text", "deleted", "a folder", "a link", "a fifo"])
async def test_a_file_that_changed_after_the_diff_is_not_touched(desk: Desk, how: str) -> None:
    path, plan = desk.root / "src/app.py", await desk.plan("edit_file", edit("two", "2"))
    path.unlink()
    if how == "other text":
        path.write_bytes(b"one\ntwo\nthree\nfour\n")
    elif how == "a folder":
        path.mkdir()
    elif how == "a link":
        (desk.root / "other").write_bytes(b"one\ntwo\nthree\n")
        path.symlink_to(desk.root / "other")
    elif how == "a fifo":
        os.mkfifo(path)
    with pytest.raises(ParleyError):
        await desk.run("edit_file", plan.base, **edit("two", "2"))
    assert desk.records.begun == []
    if how == "other text":
        assert path.read_bytes() == b"one\ntwo\nthree\nfour\n"
    if how == "a link":
        assert (desk.root / "other").read_bytes() == b"one\ntwo\nthree\n"


async def test_a_call_that_parley_did_not_send_changes_nothing(desk: Desk) -> None:
    tools = ChangeTools(desk.boundary, NoEditor(), lambda _: desk.records)
    for meta in ({}, {"chat": "c", "call": "c1", "base": ""}, {"chat": 1}):
        with pytest.raises(ParleyError, match="was not approved"):
            await tools.run("write_file", {"path": "x", "content": "y"}, CallOrigin.of(meta))
    assert not (desk.root / "x").exists()


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("edit_file", edit("four", "4"), "src/app.py: "),
        ("edit_file", edit("two", "2", "src/no.py"), "src/no.py: "),
        ("edit_file", edit("two", "2", "../out.py"), "outside the workspace"),
        ("write_file", {"path": "src/app.py", "content": "one\ntwo\nthree\n"}, "changes nothing"),
        ("write_file", {"path": ".git/config", "content": "x"}, "no tool may change"),
        ("write_file", {"path": "src", "content": "x"}, "src"),
        ("write_file", {"path": "big", "content": "x" * (LARGEST_FILE + 1)}, "is larger than"),
        ("move_file", {"path": "src/app.py", "to": "src/app.py"}, "is the same as the old one"),
        ("move_file", {"path": "src/app.py", "to": "taken"}, "already exists"),
        ("move_file", {"path": "no", "to": "b"}, "no such file"),
        ("delete_file", {"path": "no"}, "no such file"),
        ("delete_file", {"path": "src"}, "src"),
    ],
)
async def test_an_impossible_change_is_refused_before_anybody_is_asked(
    desk: Desk, tool: str, arguments: dict[str, Any], problem: str
) -> None:
    (desk.root / "taken").write_bytes(b"theirs")
    with pytest.raises(PlanError, match=problem):
        await desk.plan(tool, arguments)


async def test_files_are_created_with_their_folders_moved_and_deleted(desk: Desk) -> None:
    root = desk.root
    assert await desk.approved("write_file", path="new/deep/a.txt", content="x\ny") == (
        "created new/deep/a.txt with 2 lines"
    )
    (root / "new/deep/a.txt").chmod(0o750)
    assert await desk.approved("move_file", path="new/deep/a.txt", to="b/c.txt") == (
        "moved new/deep/a.txt to b/c.txt"
    )
    assert (root / "b/c.txt").read_bytes() == b"x\ny"
    assert stat.S_IMODE((root / "b/c.txt").stat().st_mode) == 0o750
    assert await desk.approved("delete_file", path="b/c.txt") == "deleted b/c.txt"
    assert list((root / "b").iterdir()) == []
    assert desk.editor.moved == [(root / "new/deep/a.txt", root / "b/c.txt")]


async def test_binary_files_are_moved_and_deleted_but_not_edited(desk: Desk) -> None:
    (desk.root / "x.png").write_bytes(b"\x89PNG\0\0")
    with pytest.raises(PlanError, match="binary"):
        await desk.plan("edit_file", edit("a", "b", "x.png"))
    await desk.approved("move_file", path="x.png", to="y.png")
    (change,) = (await desk.plan("delete_file", {"path": "y.png"})).changes
    assert change.texts() == ("", None)
    await desk.approved("delete_file", path="y.png")
    assert not (desk.root / "y.png").exists()


async def test_an_open_file_is_changed_in_the_editor(desk: Desk) -> None:
    path = desk.root / "src/app.py"
    desk.editor.texts[path] = OpenText("one\ntwo\nthree\n")
    await desk.approved("edit_file", **edit("two", "2"))
    assert path.read_bytes() == b"one\n2\nthree\n"
    desk.editor.texts[path] = OpenText("one\n2\nthree\nmine\n", is_modified=True)
    result = await desk.approved("edit_file", **edit("one", "1"))
    assert path.read_bytes() == b"one\n2\nthree\n"
    assert desk.editor.texts[path].text == "1\n2\nthree\nmine\n"
    assert result.splitlines()[-1] == (
        "src/app.py: changed in the editor, but not saved, because its buffer has other unsaved "
        "changes"
    )
    for tool, arguments in {"delete_file": {}, "move_file": {"to": "x"}}.items():
        with pytest.raises(PlanError, match="unsaved changes"):
            await desk.plan(tool, {"path": "src/app.py", **arguments})


async def test_a_buffer_that_changed_after_the_diff_is_not_touched(desk: Desk) -> None:
    path = desk.root / "src/app.py"
    desk.editor.texts[path] = OpenText("one\ntwo\nthree\n")
    plan = await desk.plan("edit_file", edit("two", "2"))
    desk.editor.texts[path] = OpenText("one\ntwo\nthree!\n", is_modified=True)
    with pytest.raises(ChangedError):
        await desk.run("edit_file", plan.base, **edit("two", "2"))
    assert desk.editor.texts[path].text == "one\ntwo\nthree!\n"


async def test_calls_of_one_reply_are_planned_on_top_of_each_other(desk: Desk) -> None:
    first = await desk.plan("edit_file", edit("two", "2"))
    edits = file_edits("edit_file", edit("2\n", "2\n2b\n"), is_own=True)
    second = await plan_of(edits, desk.boundary, desk.editor, after(first, {}))
    assert second.changes[0].before.content == first.changes[0].after
    await desk.run("edit_file", first.base, **edit("two", "2"))
    await desk.run("edit_file", second.base, **edit("2\n", "2\n2b\n"))
    assert (desk.root / "src/app.py").read_bytes() == b"one\n2\n2b\nthree\n"


async def test_a_guarded_path_is_planned_with_the_reason(desk: Desk) -> None:
    plan = await desk.plan("write_file", {"path": ".env", "content": "x"})
    assert plan.guards == {".env": "named like a secret"}


_LINES = st.lists(st.text("aä€\t", max_size=4), min_size=1, max_size=6)
_ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"])


@given(_LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), _ENCODINGS, st.data())
@example(["a"], "\r\n", False, "utf-16", None)
def test_an_edit_keeps_every_byte_outside_of_it_and_the_mode(
    lines: list[str], newline: str, has_end: bool, encoding: str, data: st.DataObject | None
) -> None:
    text = newline.join([*lines, "UNIQUE", "end"]) + (newline if has_end else "")
    raw = text.encode(encoding, "replace")
    root = Path(os.environ["XDG_STATE_HOME"]) / "laws"
    root.mkdir(exist_ok=True)
    path = root / "file.txt"
    path.write_bytes(raw)
    mode = data.draw(st.sampled_from([0o600, 0o644, 0o755])) if data else 0o640
    path.chmod(mode)
    asyncio.run(Desk(root).approved("edit_file", **edit("UNIQUE", "changed", "file.txt")))
    expected = text.encode(encoding, "replace").decode(encoding).replace("UNIQUE", "changed")
    assert path.read_bytes() == expected.encode(encoding)
    assert stat.S_IMODE(path.stat().st_mode) == mode
