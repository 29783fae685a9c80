"""A reply cut in a buffer by a kill, a quit or an undo: every reader can see that it is incomplete."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.rounds import UNFINISHED, Notice
from parley.policy import plan
from parley.policy.approval import LedgerView
from parley.policy.plan import Situation, next_step
from parley.tools.catalogue import Catalogue
from tests.defaults import limits_with
from tests.forks import forks
from tests.nvim.counting import environ
from tests.nvim.harness import Child, child
from tests.nvim.test_host import host_pid
from tests.nvim.test_turn import MARKER

QUESTION = f"{MARKER} write 400 words"
NOTICE = f"🔒: {UNFINISHED.text}"
REMOVED = "the answer was removed"
RECORD = """
_G.texts = {}
local remote = require('parley.remote')
package.loaded['parley.remote'] = function(...)
  local answer = { pcall(remote, ...) }
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')
  if text ~= _G.texts[#_G.texts] then
    table.insert(_G.texts, text)
  end
  return unpack(answer, 2, table.maxn(answer))
end
"""


def editor(home: Path, pace: str = "0.003") -> Any:
    return child(
        home,
        init="require('parley').setup({ agent = 'Demo-OpenAI' })",
        env={"PARLEY_DEMO_PACE": pace},
    )


@pytest.fixture
def nvim(tmp_path: Path) -> Iterator[Child]:
    with suppress(EOFError, OSError), editor(tmp_path) as nvim:
        yield nvim


def is_complete(text: str) -> bool:
    """Whether a program that continues the text takes its answer for complete."""
    step = next_step(Situation(parse(text), 0, Catalogue(), LedgerView(), limits_with()))
    return isinstance(step, plan.Complete)


def streaming(nvim: Child, question: str = QUESTION, below: str = "") -> Path:
    """A chat whose answer is being written."""
    path = nvim.edit("cut.md", f"{question}\n{below}")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("1 | ParleyRespond")
    nvim.until(lambda: "the file is the" in nvim.text(), "some words")
    return path


def test_only_a_replys_last_text_is_complete(nvim: Child) -> None:
    nvim.edit("chat.md", f"{MARKER} write 60 words\n")
    nvim.lua(RECORD)
    nvim.command("ParleyRespond")
    nvim.until(lambda: nvim.lines()[-1] == f"{MARKER} ", "the next question")
    texts: list[str] = nvim.lua("return _G.texts")
    complete = [text for text in texts if is_complete(text)]
    assert len(texts) > 5
    assert len({text.removesuffix(f"\n\n{MARKER} ") for text in complete}) == 1
    assert NOTICE not in complete[0]
    assert all(NOTICE in text for text in texts if "the file" in text and text not in complete)


@pytest.mark.parametrize("ends", ["wqa", "w | qa!", "w | bwipeout!", "SIGKILL", "SIGTERM"])
def test_the_file_of_a_cut_reply_says_that_it_was_cut(tmp_path: Path, ends: str) -> None:
    with suppress(EOFError, OSError), editor(tmp_path) as nvim:
        path = streaming(nvim)
        if ends.startswith("SIG"):
            os.kill(host_pid(nvim), getattr(signal, ends))
            nvim.until(
                lambda: not nvim.lua("return require('parley.host').state().channel"), "the end"
            )
            assert NOTICE in nvim.screen() + nvim.screen().replace("\n", "")
            ends = "w"
        nvim.command(ends)
    text = path.read_text(encoding="utf-8")
    assert text.endswith(f"\n{NOTICE}\n")
    assert "the file is" in text
    assert not is_complete(text)


def shell(home: Path, path: Path) -> str:
    """The output of `parley respond`, after every other process has released the chat."""
    env = environ(home, PARLEY_DEMO_PACE="0")
    command = [forks().python, "-m", "parley", "respond", "--agent", "Demo-OpenAI", str(path)]
    while True:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        if "another Neovim" not in done.stderr:
            assert done.returncode == 0, done.stderr
            return done.stdout + done.stderr


@pytest.mark.parametrize("ends", ["bwipeout!", "w | bwipeout!", "w | SIGKILL"])
def test_the_shell_continues_a_reply_that_was_cut_in_neovim(tmp_path: Path, ends: str) -> None:
    with suppress(EOFError, OSError), editor(tmp_path) as nvim:
        path = streaming(nvim)
        for each in ends.split(" | "):
            if each == "SIGKILL":
                os.kill(nvim.pid, signal.SIGKILL)
            nvim.command(each)
        nvim.until(
            lambda: not nvim.lua("return require('parley.handle').busy()"), "the end of the turn"
        )
    left = path.read_text(encoding="utf-8")
    assert left.endswith(f"\n{NOTICE}\n") == ("w" in ends.split(" | "))
    assert not is_complete(left)
    assert "already answered" not in shell(tmp_path, path)
    text = path.read_text(encoding="utf-8")
    assert is_complete(text.removesuffix(f"\n{MARKER} \n"))
    assert NOTICE not in text
    assert text.count("🤖:") == 1
    assert len(text.split()) > 400


def test_an_undo_and_redo_in_mid_stream_leave_a_cut_reply(nvim: Child) -> None:
    streaming(nvim)
    nvim.keys("u")
    nvim.until_idle()
    assert nvim.text() == QUESTION
    nvim.keys("<C-r>")
    assert "the file is" in nvim.text()
    assert nvim.lines()[-1] == NOTICE
    assert not is_complete(nvim.text())


def test_an_ended_turns_message_disappears_when_the_next_one_begins(nvim: Child) -> None:
    streaming(nvim)
    nvim.keys("u")
    nvim.until_screen(REMOVED)
    nvim.keys("<C-g><C-g>")
    nvim.until(lambda: "Writing a reply" in nvim.screen(), "a new answer")
    assert REMOVED not in nvim.screen()
    nvim.command("ParleyStop")
    nvim.until_idle()


@pytest.mark.parametrize("keys", ["Gdd", "GAmine<Esc>", "Gomine<Esc>", "Gcc🔒: mine<Esc>"])
def test_edits_below_the_tip_remove_no_replys_notice(nvim: Child, keys: str) -> None:
    streaming(nvim)
    nvim.keys(keys)
    before = len(nvim.text())
    nvim.until(lambda: len(nvim.text()) > before + 100, "more words")
    assert not is_complete(nvim.text())
    assert ("mine" in nvim.text()) == ("mine" in keys)
    nvim.command("ParleyStop")
    nvim.until_idle()
    assert Notice("Stopped", "by the user").text in nvim.text()
    assert NOTICE not in nvim.text()
    assert ("mine" in nvim.text()) == ("mine" in keys)


def test_the_displayed_text_is_in_the_swap_file(tmp_path: Path) -> None:
    with suppress(EOFError, OSError), editor(tmp_path) as nvim:
        nvim.command("set swapfile updatecount=100000 updatetime=100000")
        path = streaming(nvim)
        nvim.command("set noautoread")
        seen = nvim.text()
        nvim.until(lambda: len(nvim.text()) > len(seen) + 1500, "more words")
        os.kill(nvim.pid, signal.SIGKILL)
        nvim.text()
    with editor(tmp_path) as nvim:
        nvim.command(f"silent! recover {path}")
        text = nvim.text()
        assert len(text) >= len(seen)
        assert text.startswith(seen.partition(NOTICE)[0].rstrip("\n")[:-20])
        assert NOTICE in text
        assert not is_complete(text)
