"""Attacks on the workspace's files, through the tools' real server: each is refused, or needs a yes
for its very path. Where an attack needs time between two steps, the test takes that time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from parley.chat.transcript import Proposal
from parley.errors import ParleyError
from parley.policy.approval import written_key
from parley.policy.previews import CallPreview
from parley.runtime.call_previews import CallPreviews
from parley.tools.catalogue import Tool
from parley.tools.server_settings import WORKSPACE, ServerSettings
from parley.tools.tasks import ORIGIN
from parley.workspace.boundary import GIT, HIDDEN, PARLEYS, SECRET, Boundary
from parley.workspace.editor_files import NoEditor
from parley.workspace.listing import list_files
from parley.workspace.searching import search_text
from parley.workspace.tool_server import create_workspace_server
from parley.workspace.toolbox import Workspace
from tests.chats import asked
from tests.workspace.test_tool_server import text
from tests.workspace.trees import work_tree, write

MARK = "the secret"


async def no_note() -> str:
    return ""


@dataclass(frozen=True)
class Target:
    """A project next to a folder that no tool may reach, with Parley's own folders in the project."""

    root: Path
    boundary: Boundary

    def previews(self) -> CallPreviews:
        return CallPreviews(lambda: self.boundary, NoEditor(), self.root, no_note)

    async def preview(self, name: str, arguments: Mapping[str, Any]) -> CallPreview | None:
        settings = ServerSettings(WORKSPACE, cwd=str(self.root), builtin=True)
        tool = Tool(WORKSPACE, name, identity=settings.identity)
        call = Proposal(asked(1, name=name, arguments=json.dumps(arguments)).call)
        return (await self.previews().of([(call, tool)])).get(written_key(call))

    async def run(self, name: str, arguments: Mapping[str, Any], base: str = "") -> str:
        """The result of a call as Parley sends it."""
        server = create_workspace_server(lambda: Workspace(self.boundary))
        origin: Any = {ORIGIN: {"chat": "/c.md", "call": "c1", "base": base}}
        async with Client(server) as client:
            return text(await client.call_tool(name, dict(arguments), meta=origin))


@pytest.fixture
def target(tmp_path: Path) -> Target:
    write(tmp_path, {"outside/a.py": f"{MARK}\n", "outside/.env": MARK})
    root = work_tree(
        tmp_path.resolve() / "root",
        {
            "a.py": "one\ntwo\n",
            "src/b.py": "one\ntwo\n",
            ".env": MARK,
            "state/parley/ledger.db": MARK,
            "config/parley/config.toml": MARK,
        },
    )
    own, settings = root / "state/parley", root / "config/parley"
    return Target(root, Boundary(root, [own], [settings]))


WRITE = {"content": "evil\n"}
EDIT = {"edits": [{"old": "two", "new": "evil"}]}

REACHED: dict[str, tuple[str, str]] = {
    "a link to a secret": ("plain.txt", SECRET),
    "a secret through ..": ("src/../.env", SECRET),
    "a secret through a link and ..": ("inner/../.env", SECRET),
    "a secret in capitals": (".ENV.local", SECRET),
    "a secret with a Kelvin sign": ("x.\u212aEY", SECRET),
    "a secret with an invisible character": ("server.k\u200bey", SECRET),
    "a hidden file": ("src/.cache", HIDDEN),
    "Git's settings by a link": ("git/config", GIT),
    "Git's folder with an invisible character": (".g\u200cit/config", GIT),
    "through /proc": ("/proc/self/root{root}/.env", SECRET),
    "Parley's ledger": ("state/parley/ledger.db", PARLEYS),
    "Parley's settings": ("config/parley/config.toml", PARLEYS),
    "Parley's ledger by a link": ("kept/ledger.db", PARLEYS),
}
"""Paths that mean a guarded file, and why it is guarded."""


@pytest.mark.parametrize("attack", REACHED)
async def test_a_guarded_file_is_recognized_by_any_path(target: Target, attack: str) -> None:
    root, (path, why) = target.root, REACHED[attack]
    for name, link in (("plain.txt", ".env"), ("inner", "src"), ("git", ".git"), ("kept", "state")):
        (root / name).symlink_to(link if name != "kept" else "state/parley")
    path = path.format(root=root)
    for name, more in (("read_file", {}), ("list_files", {}), ("search_text", {"pattern": "x"})):
        found = await target.preview(name, {"path": path, **more})
        assert found
        assert found.guard == f"{path} is {why}, so it needs your approval each time"
        assert found.is_binding
        assert found.base
    written = await target.preview("write_file", {"path": path, **WRITE})
    assert written
    assert written.guard or "which no tool may change" in written.problem


def test_parleys_own_data_is_never_written_found_or_listed(target: Target) -> None:
    with pytest.raises(ParleyError, match="no tool may change"):
        target.boundary.place_to_write("state/parley/ledger.db")
    assert target.boundary.place_to_write("config/parley/config.toml")
    assert MARK not in search_text(target.boundary, MARK).replace("no match", "")
    assert "ledger" not in list_files(target.boundary)
    assert "config.toml" not in list_files(target.boundary)


UNUSABLE = [
    *("../outside/a.py", "/etc/passwd", "away/a.py", "a\0b", "\ud800", "a" * 300, "x/" * 3000),
    *(
        "loop",
        "pipe",
        "/dev/zero",
        "/proc/self/mem",
        "~root/x",
        "src",
        "a.py/b",
        "src/" + "é" * 200,
    ),
]


@pytest.mark.parametrize("path", UNUSABLE, ids=lambda path: ascii(path)[:20])
async def test_no_path_makes_a_tool_read_elsewhere_hang_or_fail_badly(
    target: Target, path: str
) -> None:
    root = target.root
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    (root / "away").symlink_to("../outside")
    for name, more in (
        *(("read_file", {}), ("list_files", {}), ("search_text", {"pattern": MARK})),
        *(("edit_file", EDIT), ("delete_file", {}), ("move_file", {"to": "new"})),
    ):
        arguments = {"path": path, **more}
        found = await target.preview(name, arguments)
        assert not found or found.problem or not found.changes
        if path.isprintable():
            result = await target.run(name, arguments)
            assert MARK not in result.replace(f"'{MARK}'", "")
    for tool in ("Write", "Edit"):
        foreign = {"file_path": path, "content": "", "old_string": "a", "new_string": "b"}
        call = asked(1, name=tool, arguments=json.dumps(foreign))
        await target.previews().of([(call, Tool("files", tool))])
    assert sorted(each.name for each in root.parent.joinpath("outside").iterdir()) == [
        ".env",
        "a.py",
    ]


def swap_file(root: Path) -> None:
    (root / "src/b.py").unlink()
    (root / "src/b.py").symlink_to(root.parent / "outside/a.py")


def swap_folder(root: Path) -> None:
    (root / "src").rename(root / "old")
    (root / "src").symlink_to("old")


def swap_for_a_folder_outside(root: Path) -> None:
    (root / "src").rename(root / "old")
    (root / "src").symlink_to(root.parent / "outside")


def change_text(root: Path) -> None:
    (root / "src/b.py").write_text("one\ntwo\nthree\n", encoding="utf-8")


def remove(root: Path) -> None:
    (root / "src/b.py").unlink()


SWAPS = [swap_file, swap_folder, swap_for_a_folder_outside, change_text, remove]
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("edit_file", EDIT),
    ("write_file", WRITE),
    ("delete_file", {}),
    ("move_file", {"to": "new/c.py"}),
]


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize(("name", "more"), CHANGES, ids=[name for name, _ in CHANGES])
async def test_a_swap_between_diff_and_run_is_noticed(
    target: Target, swap: Callable[[Path], None], name: str, more: Mapping[str, Any]
) -> None:
    arguments = {"path": "src/b.py", **more}
    found = await target.preview(name, arguments)
    assert found
    assert found.changes
    swap(target.root)
    before = _contents(target.root.parent)
    await target.run(name, arguments, found.base)
    assert _contents(target.root.parent) == before


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


async def test_a_yes_in_one_project_is_not_a_yes_in_another(target: Target) -> None:
    arguments = {"path": "new.py", **WRITE}
    found = await target.preview("write_file", arguments)
    assert found
    other = work_tree(target.root.parent / "other", {"a.py": ""})
    elsewhere = Target(other, Boundary(other))
    assert "has changed since" in await elsewhere.run("write_file", arguments, found.base)
    assert not (other / "new.py").exists()
    assert "created" in await target.run("write_file", arguments, found.base)


FORGED = [
    {"edits": json.dumps(EDIT["edits"])},
    {"edits": [{"old": "two", "new": "evil", "all": "true"}]},
    {"edits": [{"old": "two", "new": "evil"}, 7]},
    {"edits": [{"old": "two", "new": "evil"}], "path": ["src/b.py"]},
    {"edits": [], "_meta": {ORIGIN: {"chat": "c", "call": "d", "base": "e"}}},
]
"""Arguments from which no diff is computed, although a lenient server might accept them."""


@pytest.mark.parametrize("more", FORGED, ids=lambda more: json.dumps(more)[:40])
async def test_a_call_without_a_diff_changes_nothing(
    target: Target, more: Mapping[str, Any]
) -> None:
    arguments = {"path": "src/b.py", **more}
    found = await target.preview("edit_file", arguments)
    assert found is None or not found.changes
    before = _contents(target.root)
    for base in ("", hashlib.sha256(b"").hexdigest()):
        await target.run("edit_file", arguments, base)
    assert _contents(target.root) == before


async def test_a_path_through_a_link_is_bound_to_the_file_that_it_led_to(target: Target) -> None:
    (target.root / "link").symlink_to(".env")
    found = await target.preview("read_file", {"path": "link"})
    (target.root / "link").unlink()
    (target.root / "link").symlink_to(".git/config")
    now = await target.preview("read_file", {"path": "link"})
    assert found
    assert now
    assert found.base != now.base


async def test_a_slow_edit_leaves_time_for_others(target: Target) -> None:
    (target.root / "long.txt").write_text("  a b c\n" * 60_000, encoding="utf-8")
    edits = [{"old": f"a b c\n a b c\n{number}", "new": "x"} for number in range(5)]
    waits, begun = (
        0,
        asyncio.ensure_future(target.preview("edit_file", {"path": "long.txt", "edits": edits})),
    )
    while not begun.done():
        await asyncio.sleep(0)
        waits += 1
    found = await begun
    assert found
    assert found.problem
    assert waits > 20
