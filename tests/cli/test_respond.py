"""`parley compact` and `parley respond`: the lines in the file, the messages, the exit code."""

from __future__ import annotations

import json
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


def test_a_reference_that_cannot_be_brought_stops_the_question_once(shell: Shell) -> None:
    shell.ask("say: hello @@none.txt@@")
    stopped = shell.run("respond", "chat.md")
    assert (stopped.returncode, stopped.stdout) == (1, b"")
    message = "@@none.txt@@: No such file or directory; asking again goes on without it"
    assert f"not asked: {message}" in stopped.stderr.decode()
    assert shell.text == "💬: say: hello @@none.txt@@\n"
    assert shell.run("respond", "chat.md").returncode == 0
    assert shell.text.startswith(
        "💬: say: hello @@none.txt@@\n\n`none.txt`: No such file or directory\n\n🤖:[Demo-OpenAI]\n\nhello"
    )


def test_a_program_is_told_of_a_reference_that_stops_the_question(shell: Shell) -> None:
    shell.ask("say: hello @@../out.txt@@")
    stopped = shell.run("respond", "chat.md", "--json")
    assert stopped.returncode == 1
    end = json.loads(stopped.stdout.splitlines()[-1])
    assert (end["type"], end["kind"]) == ("end", "nothing")
    assert "@@../out.txt@@: outside the working directory: not read" in end["message"]
