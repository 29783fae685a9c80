"""The terminal during an answer: the finished text above, the rest and the status below."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from parley.cli.screen import Screen
from tests.cli.glass import Glass
from tests.cli.shell import PATIENCE_S, Shell
from tests.nvim.harness import Child

TERMINAL = {"TERM": "xterm"}
STATUS = "Writing a reply..."


def test_an_answer_longer_than_the_terminal_appears_once_and_complete(
    shell: Shell, neovim: Child
) -> None:
    code = "\n".join(f"line = {number}" for number in range(40))
    words = " ".join(f"word{number}" for number in range(300))
    items = "\n".join(f"- item {number}" for number in range(30))
    shell.chat.write_text(
        f"💬: say: {words}\n\n{items}\n\n```\n{code}\n```\n\nThe end.\n", encoding="utf-8"
    )
    with shell.terminal(
        "respond", "chat.md", columns=60, rows=12, PARLEY_DEMO_PACE="0.002"
    ) as terminal:
        glass = Glass(neovim, terminal, 60, 12)
        rows = glass.until(lambda text: "word120" in text, "half of the words")
        assert len(rows) <= 12  # the window contains the end of the unfinished text
        assert rows[-1] == STATUS
        glass.until_row("item 20")
        glass.resize(50, 10)
        assert glass.end() == 0
        text = "\n".join(glass.until_row("The end."))
    assert text.split().count("word0") == 1
    assert [word for word in text.split() if word.startswith("word")] == words.split()
    assert [row.strip(" •") for row in text.split("\n") if "item" in row] == [
        f"item {n}" for n in range(30)
    ]
    assert [row.strip() for row in text.split("\n") if "line =" in row] == code.split("\n")
    assert STATUS not in text


class Both:
    """A terminal in this process as standard output and standard error, with its output."""

    def __init__(self, stack: ExitStack, encoding: str = "utf-8") -> None:
        self._ours, theirs = pty.openpty()
        stack.callback(os.close, self._ours)
        self.stream = stack.enter_context(os.fdopen(theirs, "w", encoding=encoding))

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def text(self) -> str:
        """The output since the last call."""
        content = b""
        while select.select([self._ours], [], [], 0.1)[0]:
            content += os.read(self._ours, 65_536)
        return content.decode("utf-8", "replace").replace("\r\n", "\n")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    ("environ", "encoding", "text"),
    [
        (TERMINAL, "utf-8", "a \x1b[1mb\x1b[0m\n"),
        ({"TERM": "dumb"}, "utf-8", "a **b**"),
        ({}, "utf-8", "a **b**"),
        (TERMINAL, "latin-1", "a **b**"),
        (TERMINAL, "ascii", "a **b**"),
    ],
)
def test_an_answer_has_styles_if_the_terminal_can_show_them(
    stack: ExitStack, environ: dict[str, str], encoding: str, text: str
) -> None:
    both = Both(stack, encoding)
    screen = Screen(both.stream, both.stream, environ)
    screen.stream("a **b**")
    screen.end(0)
    assert text in both.text()


def test_colours_are_used_unless_the_user_refuses_them(stack: ExitStack) -> None:
    for environ, code in ((TERMINAL, "\x1b[1;36mb"), (TERMINAL | {"NO_COLOR": "1"}, "\x1b[1mb")):
        both = Both(stack)
        screen = Screen(both.stream, both.stream, environ)
        screen.stream("`b`")
        screen.end(0)
        assert code in both.text()


def test_a_status_is_written_only_if_it_is_visible(stack: ExitStack) -> None:
    both, pipe = Both(stack).stream, io.StringIO()
    assert Screen(pipe, both, TERMINAL).shows_status
    assert not Screen(both, pipe, TERMINAL).shows_status
    assert not Screen(pipe, pipe, TERMINAL).shows_status
    quiet, program = Screen(both, both, TERMINAL), Screen(pipe, pipe, {})
    quiet.is_quiet = program.as_json = True
    assert not quiet.shows_status
    assert program.shows_status


def test_only_changed_rows_below_the_output_are_rewritten(stack: ExitStack) -> None:
    both = Both(stack)
    screen = Screen(both.stream, both.stream, TERMINAL)
    screen.ask(["one", "two", "three"])
    assert both.text() == "\r\x1b[Kone\x1b[K\ntwo\x1b[K\nthree\x1b[K"
    screen.ask(["one", "two", "three"])
    screen.ask(["one", "two", "3"])
    assert both.text() == "\r\x1b[K3\x1b[K"
    screen.ask(["one"])
    assert both.text() == "\x1b[2A\r\x1b[Kone\x1b[K\x1b[J"
    screen.complain("below")
    assert both.text() == "\r\x1b[Kbelow\n\r\x1b[Kone\x1b[K"
    screen.ask([])
    assert both.text() == "\r\x1b[K"


def test_a_pipe_does_not_pay_for_terminal_features(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ask("say: **as it is**")
    code = "import sys; from parley.cli import main; main(['respond', 'chat.md'])"
    code += "; print('rich.markdown' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=shell.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout == b"**as it is**\nFalse\n"


@pytest.mark.parametrize("columns", [1, 2, 6])
def test_no_terminal_is_too_narrow(stack: ExitStack, columns: int) -> None:
    both = Both(stack)
    both.resize(columns, 1)
    screen = Screen(both.stream, both.stream, TERMINAL)
    screen.status(STATUS)
    screen.stream("some text\n\n| a | b |\n|---|---|\n| c | d |\n\n> a word")
    screen.complain("two words")
    assert screen.end(0) == 0
    assert "two\nwords\n" in both.text()


def test_half_a_character_does_not_end_piped_output() -> None:
    """Bytes that are not UTF-8 stay unchanged."""
    content = io.BytesIO()
    screen = Screen(io.TextIOWrapper(content), None, {})
    screen.say("say \ud83d \udcff\n")
    screen.stream("stream \ude00\n")
    assert screen.end(0) == 0
    assert content.getvalue() == "say \ufffd ".encode() + b"\xff\n" + "stream \ufffd\n".encode()


def test_a_stop_and_an_end_write_only_to_a_terminal() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(out, err, TERMINAL)
    screen.status(STATUS)
    screen.give_way()
    screen.go_on()
    screen.end(0)
    assert out.getvalue() == err.getvalue() == ""


def test_a_note_is_broken_between_words_only_on_a_terminal(stack: ExitStack) -> None:
    note = " ".join(["parley: a note", *["word"] * 30, f"/{'path' * 30}", "end"])
    both, file = Both(stack), io.StringIO()
    Screen(both.stream, both.stream, TERMINAL).complain(note)
    rows = both.text().rstrip("\n").split("\n")
    assert " ".join(rows) == note
    assert all(len(row) < 80 or row.startswith("/") for row in rows)
    Screen(both.stream, file, TERMINAL).complain(note)
    assert file.getvalue() == f"{note}\n"
