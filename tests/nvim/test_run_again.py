"""Approving a call that may already have run first warns: in a second Neovim, in the shell, after
an undo.

Every case counts the calls at a real stdio server.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.forks import forks
from tests.nvim.counting import (
    BOUND_S,
    Chat,
    environ,
    furnish,
    is_complete,
    opened,
    problems,
    until,
    waits,
)
from tests.nvim.harness import Child, child

SAYS = "may already have run"
TELLS = "may have run: no result in the file"
_number = count(1)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home for both Neovims and a shell."""
    home = tmp_path_factory.mktemp("run-again")
    furnish(home)
    return home


@pytest.fixture(scope="module")
def first(home: Path) -> Iterator[Child]:
    with child(home) as nvim:
        yield nvim


@pytest.fixture(scope="module")
def second(home: Path) -> Iterator[Child]:
    with child(home) as nvim:
        yield nvim


@pytest.fixture
def one(first: Child) -> Child:
    return cleared(first)


@pytest.fixture
def other(second: Child) -> Child:
    return cleared(second)


def cleared(nvim: Child) -> Child:
    """A Neovim in that home, with no file open."""
    nvim.clear()
    return nvim


@pytest.fixture
def chat(home: Path) -> Chat:
    return Chat(home, f"chat-{next(_number)}")


def shell(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Parley command."""
    command = [forks().python, "-m", "parley", *arguments]
    return subprocess.run(
        command, env=environ(home), capture_output=True, text=True, timeout=60, check=False
    )


def ask(nvim: Child) -> None:
    """Ask the model, which makes its call."""
    nvim.command("ParleyRespond")
    until(nvim, lambda: waits(nvim), "the choice")


def say_yes(nvim: Child, how: str) -> None:
    nvim.keys("ya" if how == "key" else ":ParleyApprove ya<CR>")


def is_told(nvim: Child, how: str, chat: Chat, calls: int) -> None:
    """Check that the first approval only warns that the call may have run, and the next runs it."""
    nvim.command("messages clear")
    say_yes(nvim, how)
    until(nvim, lambda: TELLS in nvim.messages(), "the message")
    until(nvim, lambda: any("The next approval" in said for said in problems(nvim)), "the problem")
    until(nvim, lambda: waits(nvim), "the choice")
    assert chat.calls() == calls
    say_yes(nvim, how)
    until(nvim, lambda: is_complete(nvim), "the answer")
    assert chat.calls() == calls + 1


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["key", "command"])
def test_a_second_neovim_with_the_old_text_warns_that_the_call_ran(
    one: Child, other: Child, chat: Chat, how: str
) -> None:
    opened(one, chat)
    ask(one)
    opened(other, chat)
    other.command("setlocal noautoread")  # Neovim 0.13 would reload the chat when it changes
    until(other, lambda: waits(other), "the choice")
    one.keys("ya")
    until(one, lambda: is_complete(one), "the answer")
    assert not [said for said in problems(other) if SAYS in said]
    is_told(other, how, chat, 1)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["key", "command"])
def test_after_undo_or_regeneration_a_call_says_that_it_ran(
    one: Child, chat: Chat, how: str
) -> None:
    opened(one, chat)
    ask(one)
    asked = one.text()
    one.keys("ya")
    until(one, lambda: is_complete(one), "the answer")
    one.command("1")
    one.command("ParleyRespond!")
    until(one, lambda: waits(one) and one.text() != asked, "the new answer")
    undo_to(one, asked)
    until(one, lambda: any(SAYS in said for said in problems(one)), "the problem")
    is_told(one, how, chat, 1)


@pytest.mark.timeout(180)
def test_after_undo_and_saving_under_another_name_a_call_says_that_it_ran(
    one: Child, chat: Chat
) -> None:
    opened(one, chat)
    ask(one)
    asked = one.text()
    one.keys("ya")
    until(one, lambda: is_complete(one), "the answer")
    undo_to(one, asked)
    one.command(f"saveas {chat.path.with_name('other.md')}")
    until(one, lambda: any(SAYS in said for said in problems(one)), "the problem")
    is_told(one, "key", chat, 1)


def undo_to(nvim: Child, text: str) -> None:
    """Undo until the buffer contains a text again."""
    for _ in range(20):
        if nvim.text() == text:
            return
        nvim.command("silent undo")
    raise AssertionError(nvim.report())


@pytest.mark.timeout(180)
def test_the_shell_warns_of_a_call_that_an_unsaved_neovim_ran_and_check_reports_it(
    home: Path, one: Child, chat: Chat
) -> None:
    file = str(chat.path)
    assert shell(home, "respond", file).returncode == 3
    assert SAYS not in shell(home, "check", file).stdout
    opened(one, chat)
    one.command("set readonly")  # a chat that is not saved automatically
    until(one, lambda: waits(one), "the choice")
    one.keys("ya")
    until(one, lambda: is_complete(one), "the answer")
    one.command("bwipeout!")
    assert chat.calls() == 1
    asked = chat.path.read_text(encoding="utf-8")
    assert "\U0001f6e0" not in asked
    assert f": warning: this call {SAYS}" in shell(home, "check", file).stdout
    assert f"this call {SAYS}" in shell(home, "respond", file).stdout
    told = shell(home, "respond", file, "--choose", "ya", "--choose", "ya")
    assert (told.returncode, chat.calls()) == (3, 1)
    assert f"{TELLS}. --choose ya reruns it" in told.stderr
    assert "The next approval runs it again" in shell(home, "check", file).stdout
    assert shell(home, "respond", file, "--choose", "ya").returncode == 0
    assert chat.calls() == 2
    chat.path.write_text(asked, encoding="utf-8")
    assert shell(home, "respond", file, "--choose", "yA").returncode == 3
    assert chat.calls() == 2
    said = shell(home, "log", file).stdout
    assert "warned" in said


@pytest.mark.timeout(180)
def test_after_a_shell_was_killed_in_mid_call_the_next_warns_before_it_runs_the_call(
    tmp_path: Path,
) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    furnish(tmp_path, HOLD=str(hold))
    chat = Chat(tmp_path, "one")
    file = str(chat.path)
    assert shell(tmp_path, "respond", file).returncode == 3
    command = [forks().python, "-m", "parley", "respond", file, "--choose", "ya"]
    with subprocess.Popen(command, env=environ(tmp_path), stdout=subprocess.DEVNULL) as killed:
        try:
            end = time.monotonic() + BOUND_S
            while chat.calls() == 0:
                assert killed.poll() is None
                assert time.monotonic() < end, "the call did not reach the server"
                time.sleep(0.02)
        finally:
            killed.kill()
    hold.unlink()
    text = chat.path.read_text(encoding="utf-8")
    assert "[ya]" in text
    assert "\U0001f6e0" not in text
    assert f": warning: this call {SAYS}" in shell(tmp_path, "check", file).stdout
    told = shell(tmp_path, "respond", file, "--choose", "ya", "--choose", "ya")
    assert f"{TELLS}. --choose ya reruns it" in told.stderr
    assert (told.returncode, chat.calls()) == (3, 1)
    assert shell(tmp_path, "respond", file, "--choose", "ya").returncode == 0
    assert chat.calls() == 2


@pytest.mark.timeout(180)
def test_a_ledger_deleted_under_neovim_is_reported_and_later_runs_are_recorded(
    tmp_path: Path,
) -> None:
    furnish(tmp_path)
    chat = Chat(tmp_path, "one")
    ledger = tmp_path / "state" / "parley" / "ledger.db"
    with child(tmp_path) as nvim:
        opened(nvim, chat)
        ask(nvim)
        asked = nvim.text()
        ledger.unlink()
        nvim.keys("ya")
        until(nvim, lambda: is_complete(nvim), "the answer")
        assert chat.calls() == 1
        assert nvim.messages().count("was deleted or replaced") == 1
        chat.path.write_text(asked, encoding="utf-8")
        assert SAYS in shell(tmp_path, "check", str(chat.path)).stdout
