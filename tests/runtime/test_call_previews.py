"""What waiting calls would do to files: Parley's own tools, and edit tools of other servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley.chat.transcript import Proposal
from parley.errors import ParleyError
from parley.policy.approval import written_key
from parley.policy.previews import CallPreview, FilePreview
from parley.runtime.call_previews import CallPreviews
from parley.tools.agent_calls import agent_catalogue, agent_identity
from parley.tools.catalogue import Tool
from parley.tools.server_settings import WORKSPACE, ServerSettings
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import NoEditor, OpenText
from tests.chats import asked
from tests.workspace.open_files import FakeEditor

CODE = "one\ntwo\n"


async def sandboxed() -> str:
    return "sandboxed"


async def refused() -> str:
    raise ParleyError("not run: there is no sandbox")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text(CODE)
    (tmp_path / ".env").write_text("KEY=1\n")
    return tmp_path


def own(name: str, root: Path) -> Tool:
    settings = ServerSettings(WORKSPACE, cwd=str(root), builtin=True)
    return Tool(WORKSPACE, name, identity=settings.identity)


def call(number: int, name: str, **arguments: Any) -> Proposal:
    return asked(number, name=name, arguments=json.dumps(arguments))


async def preview(root: Path, tool: Tool, **arguments: Any) -> CallPreview | None:
    previews = CallPreviews(lambda: Boundary(root), NoEditor(), root, sandboxed)
    proposal = call(1, tool.name, **arguments)
    return (await previews.of([(proposal, tool)])).get(written_key(proposal))


def edit(old: str, new: str) -> dict[str, Any]:
    return {"path": "a.py", "edits": [{"old": old, "new": new}]}


async def test_an_own_edit_binds_to_the_present_text(root: Path) -> None:
    found = await preview(root, own("edit_file", root), **edit("two", "2"))
    assert found
    assert found.changes == (FilePreview("a.py", CODE, "one\n2\n"),)
    assert (found.is_binding, found.problem, found.guard) == (True, "", "")
    again = await preview(root, own("edit_file", root), **edit("two", "2"))
    assert again == found
    (root / "a.py").write_text(f"{CODE}three\n")
    changed = await preview(root, own("edit_file", root), **edit("two", "2"))
    assert changed
    assert changed.base != found.base


async def test_an_impossible_own_edit_is_a_problem_for_the_model(root: Path) -> None:
    found = await preview(root, own("edit_file", root), **edit("four", "4"))
    assert found
    assert found.problem.startswith("a.py: ")
    assert not found.changes


async def test_each_call_is_on_top_of_the_earlier_ones_that_are_not_declined(root: Path) -> None:
    tool = own("edit_file", root)
    first, second = (
        call(n, "edit_file", **edit(*e)) for n, e in ((1, ("two", "2")), (2, ("2", "zwei")))
    )
    source = CallPreviews(lambda: Boundary(root), NoEditor(), root, sandboxed)
    found = await source.of([(first, tool), (second, tool)])
    assert found[written_key(second)].changes == (FilePreview("a.py", "one\n2\n", "one\nzwei\n"),)
    declined = Proposal(first.call, "yn")
    found = await source.of([(declined, tool), (second, tool)])
    assert written_key(first) not in found
    assert found[written_key(second)].problem


async def test_a_guarded_path_needs_an_approval_to_read_and_to_write(root: Path) -> None:
    why = ".env is named like a secret, so it needs your approval each time"
    for name, arguments in (
        ("read_file", {"path": ".env"}),
        ("write_file", {"path": ".env", "content": "x"}),
        ("delete_file", {"path": ".env"}),
    ):
        found = await preview(root, own(name, root), **arguments)
        assert found
        assert found.guard == why
    assert await preview(root, own("read_file", root), path="a.py") is None
    assert await preview(root, own("read_file", root), path="../x") is None
    assert await preview(root, own("read_file", root), path=7) is None


async def test_unsaved_changes_are_named(root: Path) -> None:
    editor = FakeEditor({root / "a.py": OpenText("one\nmine\n", is_modified=True)})
    proposal, tool = call(1, "edit_file", **edit("mine", "m")), own("edit_file", root)
    source = CallPreviews(lambda: Boundary(root), editor, root, sandboxed)
    found = (await source.of([(proposal, tool)]))[written_key(proposal)]
    assert found.changes == (FilePreview("a.py", "one\nmine\n", "one\nm\n"),)
    assert found.notes == (
        "a.py has unsaved changes in the editor, so the edit goes into its buffer and is not saved",
    )


async def test_a_command_says_whether_it_is_sandboxed_or_may_not_run(root: Path) -> None:
    tool = own("run_command", root)
    assert await preview(root, tool, command="ls") == CallPreview(sandbox="sandboxed")
    source = CallPreviews(lambda: Boundary(root), NoEditor(), root, refused)
    proposal = call(1, "run_command", command="ls")
    found = (await source.of([(proposal, tool)]))[written_key(proposal)]
    assert (found.is_binding, found.problem) == (True, "not run: there is no sandbox")


async def test_another_servers_edit_is_only_a_preview(root: Path) -> None:
    tool = Tool("files", "edit_file")
    edits = [{"oldText": "two", "newText": "2"}]
    for path in ("a.py", str(root / "a.py")):
        found = await preview(root, tool, path=path, edits=edits)
        assert found
        assert found.changes == (FilePreview(path, CODE, "one\n2\n"),)
        assert (found.is_binding, found.base, found.problem) == (False, "", "")
    missing = await preview(root, tool, path="a.py", edits=[{"oldText": "no", "newText": "2"}])
    assert missing
    assert missing.notes[0].startswith("a.py: ")
    assert await preview(root, tool, path="/dev/zero", edits=edits) is None
    assert await preview(root, tool, anything="else") is None
    impostor = Tool(WORKSPACE, "edit_file")
    found = await preview(root, impostor, **edit("two", "2"))
    assert found is None or not found.is_binding


CODER = agent_catalogue("coder", agent_identity(["coder"], "project"))


async def of_agent(
    root: Path, kind: str, path: str, old: str | None, new: str
) -> CallPreview | None:
    tool = CODER.get(kind)
    assert tool
    diffs = [{"path": path, "oldText": old, "newText": new}]
    return await preview(root, tool, title="x", diffs=diffs)


async def test_an_agents_edit_is_bound_to_the_present_text(root: Path) -> None:
    found = await of_agent(root, "edit", f"{root}/a.py", "two", "2")
    assert found
    assert found.changes == (FilePreview("a.py", CODE, "one\n2\n"),)
    assert (found.is_binding, found.is_one_text, found.guard) == (True, False, "")
    (root / "a.py").write_text("two")
    changed = await of_agent(root, "edit", f"{root}/a.py", "two", "2")
    assert changed
    assert changed.base != found.base


@pytest.mark.parametrize(
    ("path", "why"),
    [("/etc/hosts", "not in"), ("ROOT/.env", "secret"), ("file:///etc/hosts", "not in")],
)
async def test_an_agents_edit_elsewhere_needs_an_approval_each_time(
    root: Path, path: str, why: str
) -> None:
    found = await of_agent(root, "edit", path.replace("ROOT", str(root)), None, "x")
    assert found
    assert why in found.guard


async def test_an_agents_edit_whose_input_names_another_file_needs_an_approval_each_time(
    root: Path,
) -> None:
    tool = CODER.get("edit")
    assert tool
    fields = {"title": "x", "diffs": [{"path": f"{root}/a.py", "oldText": "two", "newText": "2"}]}
    own = {"file_path": f"{root}/a.py", "new_string": "// 2", "old_string": "~two"}
    found = await preview(root, tool, **fields, rawInput=own)
    assert found
    assert found.guard == ""
    found = await preview(root, tool, **fields, rawInput={"file_path": "/etc/hosts"})
    assert found
    assert "/etc/hosts is not in" in found.guard


async def test_an_agents_path_means_the_same_file_for_diff_guard_and_yes(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / "notes").write_text("one\n")
    monkeypatch.setenv("HOME", str(home))
    found = await of_agent(root, "edit", "~/notes", "one", "1")
    assert found
    assert [each.before for each in found.changes] == ["one\n"]
    assert "not in" in found.guard
    (home / "notes").write_text("one\ntwo\n")
    changed = await of_agent(root, "edit", "~/notes", "one", "1")
    assert changed
    assert changed.base != found.base


async def test_an_agents_edit_that_does_not_fit_says_so_and_may_still_run(root: Path) -> None:
    found = await of_agent(root, "edit", f"{root}/a.py", "missing", "2")
    assert found
    assert (found.changes, found.problem) == ((), "")
    assert any("a.py" in note for note in found.notes)
    tool = CODER.get("execute")
    assert tool
    assert await preview(root, tool, title="ls") is None


@pytest.mark.parametrize("kind", ["read", "search", "fetch", "delete", "move", "edit"])
@pytest.mark.parametrize(
    ("named", "why"),
    [
        ({"paths": ["/etc/hosts"]}, "/etc/hosts is not in"),
        ({"rawInput": {"file_path": "../x"}}, "not in"),
        ({"rawInput": {"uri": "file:///etc/hosts"}}, "not in"),
        ({"rawInput": {"any": ["~/x"]}}, "not in"),
        ({"rawInput": {"path": "a\0b"}}, "not in"),
        ({"rawInput": {"path": "file://["}}, ""),
        ({"paths": [".env"]}, "secret"),
        ({"paths": ["link"]}, "not in"),
        ({"rawInput": {"files": [f"{n}" for n in range(200)]}}, "more than 100 files"),
        ({"rawInput": {"file": "a.py"}}, ""),
    ],
)
async def test_an_agents_call_that_names_a_guarded_file_needs_an_approval_each_time(
    root: Path, kind: str, named: dict[str, Any], why: str
) -> None:
    (root / "link").symlink_to("/etc/hosts")
    tool = CODER.get(kind)
    assert tool
    found = await preview(root, tool, title="x", **named)
    assert (why in found.guard and found.is_binding) if found else not why


async def test_an_agents_read_that_names_no_file_needs_an_approval_each_time(root: Path) -> None:
    read, think = CODER.get("read"), CODER.get("think")
    assert read
    assert think
    found = await preview(root, read, title="Read a.py")
    assert found
    assert "names no file" in found.guard
    assert await preview(root, think, title="x", paths=["/etc"]) is None


async def test_a_yes_to_a_read_elsewhere_is_for_the_file_to_which_its_link_leads(
    root: Path,
) -> None:
    read, link = CODER.get("read"), root / "link"
    assert read
    bases = set[str]()
    for target in ("/etc/hosts", "/etc/passwd"):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        found = await preview(root, read, title="x", paths=["link"])
        assert found
        bases.add(found.base)
    assert len(bases) == 2
