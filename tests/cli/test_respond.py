"""`parley compact`: the lines in the file, the messages, the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.fork_server import ForkServer
from tests.cli.shell import Shell

CHAT = "".join(f"💬: question {n}\n\n🤖:[Demo]\n\nanswer {n}\n\n" for n in range(5))


@pytest.fixture
def shell(tmp_path: Path, forks: ForkServer) -> Shell:
    return Shell(tmp_path, forks)


def test_older_exchanges_are_summed_up(shell: Shell) -> None:
    shell.chat.write_text(CHAT, encoding="utf-8")
    done = shell.run("compact", "chat.md")
    assert (done.returncode, done.stdout) == (0, b"")
    assert "2 of 2 older exchanges are summed up" in done.stderr.decode()
    text = CHAT
    for number in range(2):
        line = f"📝: you said “question {number}”, and I answered."
        text = text.replace(f"answer {number}\n", f"answer {number}\n\n{line}\n")
    assert shell.text == text
    assert shell.run("compact", "chat.md").returncode == 0
    assert shell.text == text


def test_a_number_says_how_many_are_left(shell: Shell) -> None:
    shell.chat.write_text(CHAT, encoding="utf-8")
    assert shell.run("compact", "chat.md", "-n", "0").returncode == 0
    assert shell.text.count("📝:") == 5
    assert shell.run("compact", "chat.md", "-n", "some").returncode == 2


def test_a_file_without_a_question_is_an_error(shell: Shell) -> None:
    shell.chat.write_text("nothing\n", encoding="utf-8")
    assert shell.run("compact", "chat.md").returncode == 1
