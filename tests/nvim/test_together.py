"""Several processes share a chat: an approved call runs once, and no process overwrites others'
text.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from parley.runtime.app import App
from parley.settings.load import load_settings
from tests.e2e.machine import Process
from tests.forks import forks
from tests.nvim.counting import Chat, environ, furnish, is_complete, opened, problems, until, waits
from tests.nvim.harness import Child, child

PACE = "0.05"
"""Seconds between two pieces of a reply, so that a turn lasts until the others meet it."""


async def approve(home: Path, chat: Chat) -> None:
    """Approve the chat's call, and leave before it runs."""
    env = environ(home, PARLEY_DEMO_PACE="0")
    here = Process(App(load_settings(env)[0], env))
    try:
        await here.respond(chat.path)
        await here.say_yes(chat.path)
    finally:
        await here.app.close()
    assert "❓:[ya]" in chat.path.read_text(encoding="utf-8")


def outcome(nvim: Child) -> str:
    """How the turn ended, as this Neovim shows it; "" before its end."""
    if nvim.lua("return require('parley.handle').busy(0)"):
        return ""
    nvim.flush()
    if "another Neovim or command is running a turn" in nvim.messages():
        return "told that another runs it"
    if waits(nvim) and any("may already have run" in problem for problem in problems(nvim)):
        return "told that it may have run"
    return "complete" if is_complete(nvim) else ""


def what_came(nvim: Child) -> str:
    """The outcome, as soon as it is known: the turn may not even have begun."""
    until(nvim, lambda: outcome(nvim) != "", "the end of the turn")
    return outcome(nvim)


def goes_on(nvim: Child, chat: Chat, word: str) -> None:
    """Read the others' changes, and ask the next question."""
    opened(nvim, chat)
    assert is_complete(nvim), nvim.report()
    nvim.nvim.api.win_set_cursor(0, (len(nvim.lines()), 0))
    nvim.keys(f"Asay: {word}<Esc><C-g><C-g>")
    until(nvim, lambda: f"\n{word}\n" in nvim.text() and is_complete(nvim), f"the answer {word}")
    nvim.command("write")


@pytest.mark.timeout(300)
def test_two_neovims_and_a_command_run_an_approved_call_once_and_each_continues(
    tmp_path: Path,
) -> None:
    furnish(tmp_path)
    chat = Chat(tmp_path, "one")
    asyncio.run(approve(tmp_path, chat))
    assert chat.calls() == 0
    command = [forks().python, "-m", "parley", "respond", str(chat.path)]
    env = environ(tmp_path, PARLEY_DEMO_PACE=PACE)
    with (
        child(tmp_path, env={"PARLEY_DEMO_PACE": PACE}) as one,
        child(tmp_path, env={"PARLEY_DEMO_PACE": PACE}) as other,
    ):
        for nvim in (one, other):
            opened(nvim, chat)
        shell = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for nvim in (one, other):
            nvim.command("ParleyRespond")
        came = [what_came(nvim) for nvim in (one, other)]
        _, complaint = shell.communicate(timeout=120)
        came.append("complete" if shell.returncode == 0 else complaint)
        assert chat.calls() == 1, came
        assert "complete" in came
        assert all(
            each in ("complete", "told that another runs it", "told that it may have run")
            or "another Neovim or command is running a turn" in each
            or "wait for a choice" in each
            or "nothing is asked here" in each  # it came when the answer was complete
            for each in came
        ), came
        for nvim, word in ((one, "first"), (other, "second")):
            goes_on(nvim, chat, word)
        chat.path.write_text(
            chat.path.read_text(encoding="utf-8").rstrip() + " say: third\n", encoding="utf-8"
        )
        subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, timeout=120)
        assert "\nthird\n" in chat.path.read_text(encoding="utf-8")
    assert chat.calls() == 1


CHANGED = "another program wrote this file at "
NEWER_HERE = ". The answer here is newer: :w! keeps it, :e! loads the file's text"
NEWER_THERE = ", after the last answer here. :e! loads the file's text, :w! keeps this text"


@pytest.mark.timeout(120)
def test_a_turn_never_overwrites_another_programs_text_and_says_which_answer_is_newer(
    nvim: Child, home: Path
) -> None:
    path = home / "data" / "parley" / "chats" / "shared.md"
    nvim.edit(str(path), "💬: say: one\n")
    until(nvim, lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    path.write_text("💬: something else\n", encoding="utf-8")
    nvim.command("ParleyRespond")
    until(nvim, lambda: NEWER_HERE in nvim.messages(), "the message")
    assert CHANGED in nvim.messages()
    assert path.read_text(encoding="utf-8") == "💬: something else\n"
    assert nvim.text().endswith("\none\n\n💬: ")
    nvim.command("messages clear | write! | call append('$', 'and more')")
    later = path.stat().st_mtime + 100
    path.write_text("💬: something else\n\n🤖:[A]\n\ntheirs\n", encoding="utf-8")
    os.utime(path, (later, later))
    nvim.lua("require('parley.chat').keep(vim.api.nvim_get_current_buf())")
    until(nvim, lambda: NEWER_THERE in nvim.messages(), "the message")
    path.unlink()
    nvim.lua("require('parley.chat').keep(vim.api.nvim_get_current_buf())")
    until(
        nvim,
        lambda: "this chat's file was deleted. :w writes it again" in nvim.messages(),
        "the message",
    )
    assert not path.exists()
