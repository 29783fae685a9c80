"""What is typed while an answer is drawn: nothing of it stands there, and the terminal is given back."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
from pathlib import Path

import pytest

from parley.cli.keyboard import Keyboard
from tests.cli.glass import Glass
from tests.cli.shell import PARLEY, PATIENCE_S, Shell
from tests.nvim.harness import Child

WORDS = [f"word{number}" for number in range(120)]


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"


def test_what_is_typed_while_an_answer_comes_is_not_drawn_into_it(shell: Shell, neovim: Child) -> None:
    shell.ask(f"say: {' '.join(WORDS)}")
    with shell.terminal("respond", "chat.md", PARLEY_DEMO_PACE="0.004") as terminal:
        glass, pid = Glass(neovim, terminal, 80, 24), terminal.process.pid
        glass.until_row("word3")
        assert not terminal.is_by_lines()
        glass.press("typed\r\rls\r")
        glass.until_row("word20")
        os.kill(pid, signal.SIGTSTP)
        glass.until(lambda _: is_stopped(pid), "the stop")
        assert terminal.is_by_lines()
        os.kill(pid, signal.SIGCONT)
        glass.until(lambda _: not terminal.is_by_lines(), "silence")
        assert glass.end() == 0
        assert terminal.is_by_lines()
        assert "\n".join(glass.rows()).split() == WORDS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT])
def test_a_signal_that_ends_an_answer_gives_the_terminal_back(shell: Shell, number: signal.Signals) -> None:
    shell.ask("write 2000 words")
    with shell.terminal("respond", "chat.md", PARLEY_DEMO_PACE="0.01") as terminal:
        terminal.wait_for(lambda output: b"the file" in output)
        assert not terminal.is_by_lines()
        os.kill(terminal.process.pid, number)
        assert terminal.end() == (-number if number == signal.SIGQUIT else 130)
        assert terminal.is_by_lines()


def test_what_is_typed_while_an_answer_comes_is_no_question(shell: Shell, neovim: Child) -> None:
    with shell.terminal("chat", program=PARLEY, PARLEY_DEMO_PACE="0.004") as terminal:
        glass = Glass(neovim, terminal, 80, 24)
        glass.until(lambda text: text.endswith("💬:"), "the prompt")
        glass.press(f"say: {' '.join(WORDS)}\r")
        glass.until_row("\nword0")
        glass.press("say: more\r")
        rows = glass.until(lambda text: text.count("💬:") == 2, "the next prompt")
        glass.press("\x04")
        assert glass.end() == 0
        assert rows[-1] == "💬:"
        assert not any("more" in row for row in rows)
    assert "more" not in shell.chats[0].read_text(encoding="utf-8")


async def test_no_key_is_waited_for_at_a_terminal_that_has_gone() -> None:
    """Also when the program goes on after a stop, or is left."""
    problems, news = list[object](), asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
    ours, theirs = pty.openpty()
    keyboard = Keyboard(theirs, theirs)
    with keyboard.open(news.clear, news.clear, news.set):
        os.close(ours)
        signal.raise_signal(signal.SIGCONT)
        await asyncio.wait_for(news.wait(), PATIENCE_S)
        assert await keyboard.key() == "end of input"
    os.close(theirs)
    assert problems == []
