"""The files that calls changed, in Neovim: their page, their diffs, and their reverts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.nvim.harness import Child, child
from tests.workspace.trees import work_tree

CODE = "def add(a, b):\n    return a - b\n\n\nprint(add(1, 2))\n"
FIXED = CODE.replace("a - b", "a + b")
SETTINGS = {
    "status": {"llm": False},
    "safety": {"rate_limit_per_minute": 100000},
    "approval": {"auto": ["workspace/*"]},
}
_number = count(1)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return work_tree(tmp_path_factory.mktemp("project") / "tree", {"app.py": CODE})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def start(home: Path) -> Any:
    init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(SETTINGS))}))"
    return child(home, init=init, env={"PARLEY_DEMO_PACE": "0"}, width=80, height=24)


@pytest.fixture(scope="module")
def desk(project: Path, home: Path) -> Iterator[Child]:
    with start(home) as nvim:
        nvim.command(f"cd {project}")
        yield nvim


@pytest.fixture
def nvim(desk: Child, project: Path) -> Iterator[Child]:
    desk.clear()
    for path in project.glob("*.py"):
        path.unlink()
    (project / "app.py").write_text(CODE)
    yield desk
    assert not desk.blocked(), desk.screen()


def edit(old: str, new: str) -> tuple[str, object]:
    return "edit_file", {"path": "app.py", "edits": [{"old": old, "new": new}]}


def new(path: str) -> tuple[str, object]:
    return "write_file", {"path": path, "content": "x = 1\n"}


def ask(nvim: Child, *exchanges: tuple[str, object]) -> Path:
    """A chat with an exchange for each call."""
    chat = nvim.edit(f"chat-{next(_number)}.md", "💬: ")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    for name, arguments in exchanges:
        nvim.lua(
            "vim.api.nvim_buf_set_lines(0, -2, -1, true, { ... })",
            f"💬: call {name} {json.dumps(arguments)}",
        )
        nvim.command("normal! G")
        nvim.command("ParleyRespond")
        nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
        nvim.until_idle()
    nvim.command("silent write")
    return chat


def page(nvim: Child) -> list[str]:
    """The rows of the open page."""
    nvim.command("ParleyChanges")
    nvim.until(lambda: nvim.name.endswith("parley://changes"), "the page")
    return nvim.lines()[4:]


def windows(nvim: Child) -> list[str]:
    """The names of the buffers in the windows of this tab page."""
    names: list[str] = nvim.lua("""
        return vim.tbl_map(function(win)
          return vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win))
        end, vim.api.nvim_tabpage_list_wins(0))
    """)
    return names


def test_the_page_shows_each_changed_file_its_diff_and_its_hunks_and_reverts_it(
    nvim: Child, project: Path
) -> None:
    nvim.command(f"edit {project}/app.py | belowright new")
    ask(nvim, edit("a - b", "a + b"), new("new.py"), edit("2))", "3))"))
    after = FIXED.replace("2))", "3))")
    assert (project / "app.py").read_text() == after
    assert page(nvim) == [
        "app.py  +2 −2       exchange 1: edit_file; exchange 3: edit_file",
        "new.py  +1 −0  new  exchange 2: write_file",
    ]
    assert "u: revert, or repeat" in nvim.until_screen("q: close")
    nvim.keys("<CR>")
    nvim.until_screen("app.py (before)")
    left, right = windows(nvim)
    assert "dp" not in nvim.screen(), "nothing can be taken"
    assert nvim.lines(nvim.lua("return vim.fn.bufnr(...)", left)) == CODE.splitlines()
    assert nvim.lines(nvim.lua("return vim.fn.bufnr(...)", right)) == after.splitlines()
    nvim.keys("q")
    nvim.until(lambda: nvim.name.endswith("parley://changes"), "the page again")
    buf = nvim.lua("return vim.fn.bufnr(...)", f"{project}/app.py")
    nvim.nvim.api.buf_set_lines(buf, 0, 0, True, ["# mine", ""])
    nvim.keys("gq")
    nvim.until(lambda: nvim.lua("return vim.bo.buftype") == "quickfix", "the quickfix list")
    items = nvim.lua("return vim.fn.getqflist()")
    assert [(item["lnum"], item["text"]) for item in items] == [
        (4, "+1 −1  return a + b"),
        (7, "+1 −1  print(add(1, 3))"),
        (1, "+1 −0  x = 1"),
    ]
    nvim.command(f"cclose | call setbufvar({buf}, '&modified', 0) | bufdo if &ft == '' | endif")
    nvim.lua("vim.api.nvim_buf_call(..., function() vim.cmd('edit!') end)", buf)
    page(nvim)
    nvim.keys("u")
    nvim.until_screen("reverted app.py")
    assert (project / "app.py").read_text() == CODE
    assert nvim.lines(buf) == CODE.splitlines()
    nvim.until(lambda: nvim.lines()[4].startswith("app.py         reverted  "), "the row")
    nvim.keys("u")
    nvim.until_screen("repeated app.py")
    assert (project / "app.py").read_text() == after
    nvim.keys("ju")
    nvim.until_screen("reverted new.py")
    assert not (project / "new.py").exists()
    nvim.keys("q")
    nvim.command(f"buffer {buf}")
    assert page(nvim)[1].startswith("app.py  +2 −2"), "the chat used last"
    assert not nvim.lua("return require('parley.chat').is_attached(...)", buf)
    nvim.keys("q")


def test_an_exchange_is_reverted_after_a_restart_and_repeated(
    nvim: Child, project: Path, home: Path
) -> None:
    chat = ask(nvim, edit("a - b", "a + b"), new("new.py"))
    with start(home) as later:
        later.command(f"edit {chat}")
        later.command("ParleyRevert")
        later.until_screen("reverted app.py")
        assert (project / "app.py").read_text() == CODE
        assert (project / "new.py").exists()
        later.command("ParleyRevert")
        later.until_screen("already reverted. :ParleyRevert! repeats the changes")
        later.command("ParleyRevert!")
        later.until_screen("repeated app.py")
        assert (project / "app.py").read_text() == FIXED
        later.command("normal! G")  # the empty question below the last answer
        later.command("ParleyRevert")
        later.until_screen("reverted new.py")
        later.keys("Anever mind<Esc>")
        later.command("ParleyRevert")
        later.until_screen("no call in this exchange changed a file")
        later.command("ParleyLog")
        log = later.until_text("repeated")
        assert re.search(r"reverted  workspace/edit_file .*  app\.py", log), log


def test_a_file_that_has_changed_since_is_shown_with_both_other_texts(
    nvim: Child, project: Path
) -> None:
    ask(nvim, edit("a - b", "a + b"))
    mine = f"# mine\n{FIXED}"
    (project / "app.py").write_text(mine)
    nvim.command("1")
    nvim.command("ParleyRevert")
    nvim.until_screen("not reverted, because of later changes: app.py")
    bars = nvim.until_screen("after call   dp take").split("\n")[1]
    assert nvim.lua("return vim.fn.tabpagenr('$')") == 2
    now, left, restored = windows(nvim)
    assert [now, left, restored] == [
        f"{project}/app.py{title}" for title in ("", " (after call)", " (before)")
    ]
    number = nvim.lua("return vim.fn.bufnr(...)", restored)
    assert bars.startswith(f" now   {number}do take  ]c next ")
    assert bars.endswith(" before   dp take  q close")
    nvim.command("call search('a + b')")
    nvim.keys(f"{number}do")
    wanted = f"# mine\n{CODE}".splitlines()
    nvim.until(lambda: nvim.lines() == wanted, "the old line")
    nvim.keys("<C-w>l<C-w>l")
    nvim.keys("q")
    nvim.until_screen("app.py has unsaved changes")
    assert nvim.lua("return vim.fn.tabpagenr('$')") == 1
    assert nvim.lua("return vim.fn.bufnr(...)", left) == -1
    assert (project / "app.py").read_text() == mine
