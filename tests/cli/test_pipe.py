"""`parley respond -`: a chat passes through pipes without loss."""

from __future__ import annotations

import re
import signal

import pytest

from parley.chat.reader import parse
from tests.cli.shell import Shell

STOCKS = "💬: can you find the latest stock price of google?\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_the_whole_chat_is_written_with_its_answer_and_keeps_its_spelling(
    shell: Shell, newline: str, bom: str
) -> None:
    lines = ("---", "x: 1", "---", "", "💬: say: a", "", "🤖:[B]", "", "\udcff", "", "💬: say: c")
    done = shell.feed(
        (bom + newline.join([*lines, ""])).encode("utf-8", "surrogateescape"), "respond", "-"
    )
    answer = ("", "🤖:[Demo-OpenAI]", "", "c", "", "💬: ", "")
    written = done.stdout.decode("utf-8", "surrogateescape")
    assert (done.returncode, done.stderr) == (0, b"")
    assert written == bom + newline.join([*lines, *answer])
    assert list(shell.folder.glob("*.assets")) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nothing",
        b"\xff\r\n\0",
        "---\nagent: Claude\n---\n\n💬: a".encode(),
        "💬: @@none.txt@@".encode(),
    ],
)
def test_a_chat_that_cannot_be_continued_is_written_unchanged(shell: Shell, content: bytes) -> None:
    done = shell.feed(content, "respond", "-")
    assert (done.returncode, done.stdout) == (1, content)
    assert done.stderr.startswith(b"parley: ")


def test_waiting_calls_are_in_the_output_and_need_a_file(shell: Shell) -> None:
    done = shell.feed(STOCKS.encode(), "respond", "-")
    assert done.returncode == 3
    (exchange,) = parse(done.stdout.decode()).exchanges
    assert exchange.answers[-1].segments[-1].call.name == "web_search"  # type: ignore[union-attr]
    call, how = done.stderr.decode().splitlines()
    assert call == '❓ web_search {"query":"google stock price"}'
    assert how.startswith(
        "parley: tool calls are waiting for your choice, but choices need a file. Save this chat"
    )
    again = shell.feed(done.stdout, "respond", "-")
    assert (again.returncode, again.stdout) == (3, done.stdout)
    shell.chat.write_bytes(done.stdout)
    shell.run("respond", "chat.md")
    assert shell.run("respond", "chat.md", "--choose", "ya").returncode == 0


def test_rules_decide_without_a_file(shell: Shell) -> None:
    shell.configure("approval.auto = ['mock/*']\n")
    done = shell.feed(STOCKS.encode(), "respond", "-", "--quiet")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Google (GOOGL) is at $911" in done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("-", "--choose", "ya"), "'respond -' does not accept --choose: choices need a file"),
        (("-", "--json"), "'respond -' does not accept --json: the output is already the chat"),
        (("-", "chat.md"), "- is a single chat. Do not add other files or --jobs"),
        (("-", "--jobs", "2"), "- is a single chat. Do not add other files or --jobs"),
    ],
)
def test_options_that_need_a_file_are_refused(
    shell: Shell, arguments: tuple[str, ...], problem: str
) -> None:
    done = shell.feed(STOCKS.encode(), "respond", *arguments)
    assert done.returncode == 2
    assert problem in (done.stderr + done.stdout).decode()


@pytest.mark.parametrize("files", [["chat.md"], ["chat.md", "b.md"]], ids=["one chat", "several"])
def test_a_note_reports_the_wait_for_the_rate_limit(shell: Shell, files: list[str]) -> None:
    shell.configure("safety.rate_limit_per_minute = 1\napproval.auto = ['mock/*']\n")
    for file in files:
        (shell.folder / file).write_text(STOCKS, encoding="utf-8")
    with shell.start("respond", *files) as process:
        assert process.stderr
        notes = (line.decode() for line in process.stderr)
        note = next(line for line in notes if "ate limit" in line)
        process.send_signal(signal.SIGINT)
        rest = list(notes)
    assert re.fullmatch(
        r"parley: (chat.md: )?Rate limit reached, waiting \d+s \(safety.rate_limit_per_minute\)\n",
        note,
    )
    assert [line for line in rest if "ate limit" in line] == []
