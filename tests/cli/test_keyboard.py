"""Input during an answer is not shown, and the terminal is restored afterwards."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from parley.cli.keyboard import Keyboard
from tests.cli.glass import Glass
from tests.cli.shell import PARLEY, PATIENCE_S, Shell, is_stopped
from tests.nvim.harness import Child

WORDS = [f"word{number}" for number in range(120)]


STEPS = """
import asyncio, os, signal
from parley.cli.keyboard import Keyboard, hushed

async def run():
    loop, through = asyncio.get_running_loop(), asyncio.Event()
    say = lambda word: lambda: print(word, end=" ", flush=True)
    with {opened}:
        os.kill(os.getpid(), signal.SIGTSTP)
        loop.call_soon(say("step"))
        loop.call_later(0.1, through.set)
        await through.wait()

asyncio.run(run())
"""


def test_input_during_an_answer_is_not_drawn_into_it(shell: Shell, neovim: Child) -> None:
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


@pytest.mark.parametrize(
    "opened",
    [
        'hushed(0, say("stop"), say("return"))',
        'Keyboard(0).open(say("resize"), say("stop"), say("return"))',
    ],
)
def test_nothing_is_drawn_between_a_stop_and_the_return(opened: str) -> None:
    """Otherwise it would be drawn where the shell wrote, and then again."""
    ours, theirs = pty.openpty()
    line = [sys.executable, "-c", STEPS.replace("{opened}", opened)]
    with subprocess.Popen(
        line, stdin=theirs, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        end = time.monotonic() + PATIENCE_S
        while not is_stopped(process.pid):
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=PATIENCE_S)[0].split() == [b"stop", b"return", b"step"]
    os.close(theirs)
    os.close(ours)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT])
def test_a_signal_that_ends_an_answer_restores_the_terminal(
    shell: Shell, number: signal.Signals
) -> None:
    shell.ask("write 2000 words")
    with shell.terminal("respond", "chat.md", PARLEY_DEMO_PACE="0.01") as terminal:
        terminal.wait_for(lambda output: b"the file" in output)
        assert not terminal.is_by_lines()
        os.kill(terminal.process.pid, number)
        assert terminal.end() == (-number if number == signal.SIGQUIT else 130)
        assert terminal.is_by_lines()


def test_input_during_an_answer_is_not_a_question(shell: Shell, neovim: Child) -> None:
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


async def test_a_closed_terminal_ends_the_wait_for_a_key() -> None:
    """This also holds when the program continues after a stop, or ends."""
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
