"""Edits in Neovim: each is shown as a diff, and decided, changed or declined there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child
from tests.workspace.trees import work_tree

CODE = "def add(a, b):\n    return a - b\n\n\nprint(add(1, 2))\n"
SETTINGS = {"status": {"llm": False}, "safety": {"rate_limit_per_minute": 100000}}
_number = count(1)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return work_tree(tmp_path_factory.mktemp("project") / "tree", {"app.py": CODE})


@pytest.fixture(scope="module")
def desk(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(SETTINGS))}))"
    env = {"PARLEY_DEMO_PACE": "0", "PARLEY_LEAST_SEEN_S": "0"}
    folder = tmp_path_factory.mktemp("review")
    with child(folder, init=init, env=env, width=80) as nvim:
        nvim.command(f"cd {project}")
        yield nvim


@pytest.fixture
def nvim(desk: Child, project: Path) -> Iterator[Child]:
    desk.clear()
    (project / "app.py").write_text(CODE)
    yield desk
    assert not desk.blocked(), desk.screen()


def propose(nvim: Child, *calls: tuple[str, object]) -> None:
    """Ask in a chat until calls with these names and arguments are drawn."""
    text = " and ".join(f"call {name} {json.dumps(arguments)}" for name, arguments in calls)
    nvim.edit(f"chat-{next(_number)}.md", f"💬: {text}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")
    nvim.until_screen(">> Please choose")
    nvim.until_idle()


def edit(old: str, new: str) -> tuple[str, object]:
    return "edit_file", {"path": "app.py", "edits": [{"old": old, "new": new}]}


def answered(nvim: Child) -> str:
    """The chat's text after the answer."""
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()
    return "\n".join(nvim.lines())


def test_an_edit_is_shown_as_a_diff_and_made_as_shown(nvim: Child, project: Path) -> None:
    propose(nvim, edit("a - b", "a + b"))
    screen = nvim.screen()
    assert re.search(r"edit_file\(app\.py\) \+1 −1 · workspace", screen), screen
    assert "-     return a - b" in screen
    assert "+     return a + b" in screen
    assert (project / "app.py").read_text() == CODE
    nvim.keys("ya")
    text = answered(nvim)
    assert (project / "app.py").read_text() == CODE.replace("a - b", "a + b")
    assert "changed app.py: +1 −1" in text
    nvim.until_screen(r"edit_file(app.py) +1 −1 → ")


def test_the_user_changes_the_edit_in_the_diff_and_approves_that(
    nvim: Child, project: Path
) -> None:
    propose(nvim, edit("a - b", "a + b"))
    nvim.keys("K")
    nvim.until_screen("d opens a diff")
    nvim.keys("d")
    nvim.until_screen("ya approve")
    nvim.keys("A  # checked<Esc>")
    nvim.keys("ya")
    text = answered(nvim)
    wanted = CODE.replace("a - b\n", "a + b  # checked\n", 1)
    made = (project / "app.py").read_text()
    assert made == wanted, made
    assert "The user edited this change before approving it." in text
    assert "# checked" in next(line for line in nvim.lines() if line.startswith("❓:"))


def test_a_decline_in_the_diff_asks_for_a_reason(nvim: Child, project: Path) -> None:
    propose(nvim, edit("a - b", "a + b"))
    nvim.keys("K")
    nvim.until_screen("d opens a diff")
    nvim.keys("d")
    nvim.until_screen("yn decline")
    nvim.keys("yn")
    nvim.until_screen("Decline this call. Reason (may be empty):")
    nvim.keys("too short<CR>")
    assert "The user declined this call. too short" in answered(nvim)
    assert (project / "app.py").read_text() == CODE


def test_a_file_that_changes_after_the_diff_is_asked_about_again(
    nvim: Child, project: Path
) -> None:
    propose(nvim, edit("a - b", "a + b"))
    (project / "app.py").write_text(f"# mine\n{CODE}")
    nvim.keys("ya")
    nvim.until_screen("has changed")
    nvim.until_screen("# mine")
    assert (project / "app.py").read_text() == f"# mine\n{CODE}"
    nvim.until_idle()
    nvim.keys("ya")
    answered(nvim)
    assert (project / "app.py").read_text() == f"# mine\n{CODE}".replace("a - b", "a + b")


def test_two_edits_of_one_file_are_shown_and_made_on_top_of_each_other(
    nvim: Child, project: Path
) -> None:
    propose(nvim, edit("a - b", "a + b"), edit("a + b", "b + a"))
    screen = nvim.screen()
    assert screen.count("-     return a - b") == 1
    assert screen.count("-     return a + b") == 1
    nvim.keys("ya")
    answered(nvim)
    assert (project / "app.py").read_text() == CODE.replace("a - b", "b + a")


def test_an_edit_that_fits_nowhere_is_answered_without_asking(nvim: Child, project: Path) -> None:
    nvim.edit(
        f"chat-{next(_number)}.md",
        "💬: call edit_file " + json.dumps(edit("    return a * b", "z")[1]) + "\n",
    )
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")
    text = answered(nvim)
    assert (project / "app.py").read_text() == CODE
    assert "app.py: " in text
    assert "return a - b" in text, "the nearest place"


@pytest.mark.parametrize("command", ["cd", "lcd"])
def test_the_next_turn_works_in_the_folder_that_the_user_has_changed_to(
    nvim: Child, project: Path, tmp_path: Path, command: str
) -> None:
    other = work_tree(tmp_path / "other", {"app.py": "a = 2\nb = a - b\n"})
    propose(nvim, edit("a - b", "a + b"))
    nvim.keys("ya")
    answered(nvim)
    made = (project / "app.py").read_text()
    assert "return a + b" in made
    nvim.command(f"{command} {other}")
    nvim.keys(f"Gicall edit_file {json.dumps(edit('a - b', 'b')[1])}<Esc>")
    nvim.command("ParleyRespond")
    nvim.until_screen("- b = a - b")
    nvim.until_idle()
    nvim.keys("ya")
    answered(nvim)
    assert (other / "app.py").read_text() == "a = 2\nb = b\n"
    assert (project / "app.py").read_text() == made
    nvim.command(f"cd {project}")


def test_an_open_buffer_is_changed_with_its_cursor_and_one_undo(nvim: Child, project: Path) -> None:
    nvim.command(f"edit {project}/app.py")
    nvim.keys("G")
    nvim.command("split")
    propose(nvim, edit("a - b", "a + b"))
    assert "+     return a + b" in nvim.screen(), "the changed lines fit into half of the screen"
    nvim.keys("ya")
    answered(nvim)
    nvim.command("wincmd j")
    assert nvim.lines() == CODE.replace("a - b", "a + b").splitlines()
    assert nvim.cursor[0] == len(CODE.splitlines())
    assert not nvim.lua("return vim.bo.modified")
    nvim.command("undo")
    assert nvim.lines() == CODE.splitlines()
    nvim.command("edit!")


def test_a_command_says_whether_it_is_sandboxed_and_how_it_failed(nvim: Child) -> None:
    propose(nvim, ("run_command", {"command": "echo out; exit 3"}))
    screen = nvim.screen()
    row = r'❓ run_command\(command: "echo out; exit 3"\) · workspace · (not )?sandboxed$'
    assert re.search(row, screen, re.MULTILINE), screen
    nvim.keys("ya")
    answered(nvim)
    nvim.until(lambda: re.search(r"→ 2 lines, \d+ B, exit 3", nvim.screen()), "the outcome")


def test_a_command_without_a_sandbox_says_why_even_if_the_command_is_long(nvim: Child) -> None:
    nvim.lua("require('parley').setup(...)", SETTINGS | {"workspace": {"sandbox": "off"}})
    propose(nvim, ("run_command", {"command": f"echo {'long ' * 20}"}))
    nvim.lua("require('parley').setup(...)", SETTINGS)
    shown = re.sub("\n +", "", nvim.screen())
    assert re.search(r'"echo [long ]+…"\) · workspace · not sandboxed', shown), shown
    assert f'"echo {"long " * 20}") · workspace · not sandboxed: workspace.sandbox is off' in shown


def test_a_stop_ends_all_processes_of_a_command_at_once(nvim: Child, project: Path) -> None:
    os.mkfifo(project / "held")
    held = os.open(project / "held", os.O_RDONLY | os.O_NONBLOCK)
    command = "trap '' TERM; exec 9>held; echo first; sleep 600 & echo last; wait"
    propose(nvim, ("run_command", {"command": command}))
    nvim.keys("ya")
    nvim.until(lambda: re.search(r"running \d+ s \(last\)", nvim.screen()), "the last line")
    assert is_held(held)
    nvim.keys("<C-g>x")
    nvim.until(lambda: not is_held(held), "the end of the shell and of its child")
    nvim.until_idle()
    assert "`The call was cancelled: the user stopped it`" in nvim.text()
    os.close(held)
    (project / "held").unlink()


def is_held(pipe: int) -> bool:
    """Whether a process has the other end of a pipe open."""
    try:
        return os.read(pipe, 1) != b""
    except BlockingIOError:
        return True
