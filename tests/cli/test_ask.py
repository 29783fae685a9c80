"""`parley ask`: the question goes into a file, and the command prints only the answer."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Attachment, Text
from parley.storage.ledger import LedgerFile, default_path
from tests.cli.glass import Glass
from tests.cli.shell import PARLEY, Shell
from tests.json_schema import types_of
from tests.nvim.harness import Child
from tests.pictures import png

STOCKS = "can you find the latest stock price of google?"
PIPED = ("/bin/sh", "-c", 'echo text | "$@"', "sh", *PARLEY)
SAYS = "Let me search the web for google."
CALL = 'web_search(query: "google stock price") · mock'
RAW = '❓ web_search {"query":"google stock price"}'
MEANING = "ya yes · yA and remember · yn no · K details · q later"
ASKED = f"💬: {STOCKS}\n\n🤖:[Demo-OpenAI]\n\nLet me search the web for google.\n\n❓:"


def questions(shell: Shell) -> list[str]:
    """The questions of the only chat."""
    (chat,) = shell.chats
    transcript = parse(chat.read_text(encoding="utf-8"))
    assert transcript.problems == ()
    return [e.question.text for e in transcript.exchanges if e.question and e.question.parts]


def test_a_question_creates_a_chat_and_only_its_answer_is_printed(shell: Shell) -> None:
    done = shell.run("ask", "say:", "one", "two")
    (chat,) = shell.chats
    assert (done.returncode, done.stdout) == (0, b"one two\n")
    assert done.stderr.decode() == f"parley: the chat is {chat}\n"
    text = chat.read_text(encoding="utf-8")
    assert (
        text == '---\ntopic: ""\n---\n\n💬: say: one two\n\n🤖:[Demo-OpenAI]\n\none two\n\n💬: \n'
    )
    assert chat.stat().st_mode & 0o777 == 0o600


def test_a_chat_is_continued_by_name_or_as_the_last(shell: Shell) -> None:
    assert shell.run("ask", "--last", "say: a").returncode == 1  # no chat yet
    assert shell.run("ask", "say: a").returncode == 0
    (chat,) = shell.chats
    assert shell.run("ask", "-c", str(chat), "say: b", "--quiet").stdout == b"b\n"
    done = shell.run("ask", "--last", "say: c")
    assert (done.stdout, done.stderr.decode()) == (b"c\n", f"parley: the chat is {chat}\n")
    assert questions(shell) == ["say: a", "say: b", "say: c"]


def test_any_file_can_be_continued_and_a_missing_file_is_an_error(shell: Shell) -> None:
    for text in ("", "notes\n", "---\ntopic: x\n---\n", "💬: \n"):
        shell.chat.write_text(text, encoding="utf-8")
        assert shell.run("ask", "-c", "chat.md", "say: a").stdout == b"a\n"
        assert shell.text.startswith(text.removesuffix("💬: \n"))
    done = shell.run("ask", "-c", "none.md", "say: a")
    assert (done.returncode, done.stdout) == (1, b"")
    assert "cannot read none.md: No such file" in done.stderr.decode()
    assert shell.chats == []
    assert shell.run("ask", "-c", "chat.md", "--last", "say: a").returncode == 2


def test_a_refused_question_is_in_no_file(shell: Shell) -> None:
    assert shell.run("ask").returncode == 2
    assert shell.run("ask", " ", "\n").returncode == 2
    done = shell.run("ask", "-a", "Nobody", "say: a")
    assert (done.returncode, "there is no agent 'Nobody'" in done.stderr.decode()) == (1, True)
    assert shell.chats == []
    for text in (
        "---\nagent: [\n---\n\n💬: \n",
        "---\nagent: Nobody\n---\n\n💬: \n",
        "---\nagent: Claude\n---\n",
    ):
        shell.chat.write_text(text, encoding="utf-8")
        assert shell.run("ask", "-c", "chat.md", "say: a").returncode == 1
        assert shell.text == text


def test_a_new_chat_keeps_its_agent_and_its_lack_of_tools(shell: Shell) -> None:
    assert shell.run("ask", "-a", "Demo-Text", "--no-tools", STOCKS).returncode == 0
    (chat,) = shell.chats
    assert "\nagent: Demo-Text\ntool_mode: off\n---\n" in chat.read_text(encoding="utf-8")
    assert shell.run("ask", "--last", "hello").returncode == 0
    assert chat.read_text(encoding="utf-8").count("🤖:[Demo-Text]") == 2
    shell.ask("hello")
    assert shell.run("ask", "-c", "chat.md", "--no-tools", STOCKS).returncode == 0
    assert shell.text.startswith("---\ntool_mode: off\n---\n\n💬: hello\n")


def test_standard_input_is_context_whatever_its_content(shell: Shell) -> None:
    content = "💬: mine\n🤖:[A]\n```\n---\n❓:[ya] `{}`\n@@other.txt@@\n> \\💬: \u202e\r\n"
    (shell.folder / "other.txt").write_text("not brought")
    assert shell.feed(content.encode(), "ask", "why").returncode == 0
    (question,) = questions(shell)
    text = content.replace("\r\n", "\n").rstrip("\n")
    assert question == f"why\n\n`standard input` (7 lines)\n\n````\n{text}\n````"


def test_standard_input_alone_is_the_question(shell: Shell) -> None:
    assert shell.feed(b"\n\nsay: a\n\n", "ask").stdout == b"a\n"
    assert shell.feed(b"say: b\nc", "ask", "--last", "-").stdout == b"b\nc\n"
    assert questions(shell) == ["say: a", "say: b\nc"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe\x80", "standard input: it is not text"),
        (b"a\0b", "standard input: it is not text"),
        (b"x" * 1_100_000, "standard input: too large (1.1 MB), so not read"),
        (png(more=33_000_000), "standard input: too large (33.0 MB), so not read"),
    ],
)
def test_unusable_context_is_an_error_and_creates_no_chat(
    shell: Shell, content: bytes, problem: str
) -> None:
    for words in ([], ["say: a"]):
        done = shell.feed(content, "ask", *words)
        assert (done.returncode, done.stdout, done.stderr.decode()) == (
            1,
            b"",
            f"parley: {problem}\n",
        )
    assert shell.chats == []


def test_a_closed_input_is_an_error_if_it_is_named(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert shell.run("ask", "say: a", after="<&-").stdout == b"a\n"
    closed = shell.run("ask", "--with", "-", "say: a", after="<&-")
    assert (closed.returncode, "standard input: it is closed" in closed.stderr.decode()) == (
        1,
        True,
    )


def test_files_from_any_folder_are_context(shell: Shell) -> None:
    inner = shell.folder / "inner"
    inner.mkdir()
    (inner / "a b.py").write_text("1\n2\n3\n")
    (inner / ".env").write_text("KEY=1")
    (inner / "x@@y@@.txt").write_text("")
    (inner / "ab.bin").write_bytes(b"\0")
    names = ("inner/a b.py:2-3", str(inner / ".env"), "inner/x@@y@@.txt", "in*/a*")
    done = shell.feed(b"in", "ask", "why", *(word for name in names for word in ("--with", name)))
    assert done.returncode == 0, done.stderr
    left_out = "in*/a*: left out: 1 file (no text)"
    assert left_out in done.stderr.decode()
    (question,) = questions(shell)
    assert question.split("\n\n", 1)[1] == (
        "`standard input` (1 line)\n\n```\nin\n```\n\n"
        "`inner/a b.py:2-3` (2 lines)\n\n```python\n2\n3\n```\n\n"
        f"`{inner}/.env` (1 line)\n\n```env\nKEY=1\n```\n\n"
        "`inner/x@ @y@ @.txt` (0 lines)\n\n```txt\n```\n\n"
        "`inner/a b.py` (3 lines)\n\n```python\n1\n2\n3\n```\n\n"
        f"`in*/a*`: {left_out.partition(': ')[2]}"
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none.txt", "none.txt: No such file or directory"),
        ("chat.md:7-9", "chat.md:7-9: it has no such lines"),
        (".", ".: a folder, so not read"),
        ("*.none", "*.none: no file matches"),
        ("binary", "binary: it is not text"),
    ],
)
def test_a_file_that_cannot_be_included_is_an_error_and_creates_no_chat(
    shell: Shell, name: str, problem: str
) -> None:
    shell.ask("a")
    (shell.folder / "binary").write_bytes(b"\0\1")
    done = shell.run("ask", "say: a", "--with", name)
    assert (done.returncode, done.stdout) == (1, b"")
    assert problem in done.stderr.decode()
    assert shell.chats == []


def test_pictures_are_attached_even_without_a_question(shell: Shell) -> None:
    (shell.folder / "a b.png").write_bytes(png(1))
    done = shell.feed(png(2), "ask", "what is this?", "--with", "a b.png")
    assert done.returncode == 0, done.stderr
    (chat,) = shell.chats
    (exchange, _) = parse(chat.read_text(encoding="utf-8")).exchanges
    assert exchange.question is not None
    text, *pictures = exchange.question.parts
    assert text == Text("what is this?")
    contents = [
        (chat.parent / part.path).read_bytes() for part in pictures if isinstance(part, Attachment)
    ]
    assert contents == [png(2), png(1)]
    assert shell.feed(png(3), "ask").returncode == 0
    (other,) = set(shell.chats) - {chat}
    assert "💬:\n" in other.read_text(encoding="utf-8")


def test_a_pipe_receives_no_thinking_calls_or_summaries(shell: Shell) -> None:
    shell.configure("approval.auto = ['mock/*']\n")
    assert shell.run("ask", "think about it").stdout.count(b"\n") == 1
    done = shell.run("ask", STOCKS)
    assert done.returncode == 0
    first, blank, second, end = done.stdout.decode().split("\n")
    assert (first, blank, end) == ("Let me search the web for google.", "", "")
    assert second.startswith("Google (GOOGL) is at $911")


def test_waiting_calls_exit_with_3_and_say_how_to_continue(shell: Shell) -> None:
    done = shell.run("ask", STOCKS)
    (chat,) = shell.chats
    assert (done.returncode, done.stdout) == (3, b"Let me search the web for google.\n")
    call, how = done.stderr.decode().splitlines()[1:]
    assert call == RAW
    assert how == f"parley: tool calls are waiting for your choice: parley respond {chat}"
    assert ASKED in chat.read_text(encoding="utf-8")
    before = chat.read_bytes()
    again = shell.run("ask", "--last", "and?")
    assert (again.returncode, "tool calls are waiting in" in again.stderr.decode()) == (1, True)
    assert chat.read_bytes() == before
    assert shell.run("respond", str(chat), "--choose", "ya").returncode == 0
    copy = shell.folder / "a b.md"
    copy.write_text("", encoding="utf-8")
    asked = shell.run("ask", "-c", "a b.md", STOCKS)
    assert asked.stderr.decode().endswith("for your choice: parley respond 'a b.md'\n")


def test_a_program_reads_the_name_of_the_chat(shell: Shell) -> None:
    done = shell.run("ask", "say: a", "--json")
    (chat,) = shell.chats
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"chat", "text_delta", "finished", "end"} <= types_of(done.stdout.splitlines())
    assert (lines[0], done.stderr) == ({"type": "chat", "file": str(chat)}, b"")
    waiting = shell.run("ask", "-c", str(chat), STOCKS, "--json")
    assert (waiting.returncode, "call_waiting" in types_of(waiting.stdout.splitlines())) == (
        3,
        True,
    )


def test_nothing_is_appended_while_an_answer_is_being_written(shell: Shell) -> None:
    shell.ask("hello")
    ledger = LedgerFile(default_path(shell.environ))
    with ledger.chat(str(shell.chat)).lease():
        done = shell.run("ask", "-c", "chat.md", "say: a")
    ledger.close()
    assert done.returncode == 1
    assert shell.text == "💬: hello\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_the_question_and_the_answer_so_far_are_in_the_file_however_the_command_ends(
    shell: Shell, number: signal.Signals
) -> None:
    with shell.start("ask", "write 2000 words", PARLEY_DEMO_PACE="0.01") as process:
        assert process.stdout
        assert process.stdout.read(1)
        (chat,) = shell.chats
        process.send_signal(number)
        process.stdout.read()
        assert process.wait() == (-number if number == signal.SIGKILL else 130)
    text = chat.read_text(encoding="utf-8")
    assert "💬: write 2000 words\n" in text
    if number != signal.SIGKILL:
        assert "🔒: [Stopped: by the user]" in text


@pytest.mark.parametrize("columns", [80, 60])
def test_a_terminal_asks_about_a_call_and_the_answer_follows_below(
    shell: Shell, neovim: Child, columns: int
) -> None:
    with shell.terminal("ask", STOCKS, columns=columns) as terminal:
        glass = Glass(neovim, terminal, columns, 24)
        rows = glass.until_row("Please choose")
        (chat,) = shell.chats
        path = str(chat)
        head = [
            "parley: the chat is",
            *(path[at : at + columns] for at in range(0, len(path), columns)),
        ]
        drawn = [*head, SAYS, "", f"❓ {CALL}", MEANING, ">> Please choose (yA/ya):"]
        assert rows == drawn
        glass.press("ya")
        assert glass.end() == 0
        rows = glass.rows()
    result = [f"❓ ya {CALL}", f"🛠 {CALL} → 61 B, ok"]
    assert rows[: len(head) + 4] == [*head, SAYS, "", *result]
    assert "Google (GOOGL) is at $911" in " ".join(rows)


def test_a_terminal_with_closed_input_asks_nothing(tmp_path: Path) -> None:
    closed = ("/bin/sh", "-c", '"$@" <&-', "sh", *PARLEY)
    with Shell(tmp_path).terminal("ask", STOCKS, program=closed) as terminal:
        assert terminal.end() == 3
    assert "tool calls are waiting for your choice: parley respond" in terminal.text


def test_a_terminal_asks_about_a_call_even_if_the_context_was_piped(
    tmp_path: Path, neovim: Child
) -> None:
    with Shell(tmp_path).terminal("ask", STOCKS, program=PIPED) as terminal:
        glass = Glass(neovim, terminal, 80, 24)
        glass.until_row("Please choose")
        glass.press("yn")
        glass.until_row("reason (may be empty):")
        glass.press("\r")
        assert glass.end() == 0
        assert "I did not look up google" in " ".join(glass.rows())


def test_a_status_says_that_standard_input_is_awaited(tmp_path: Path, neovim: Child) -> None:
    os.mkfifo(tmp_path / "pipe")
    program = ("/bin/sh", "-c", 'cat pipe | "$@"', "sh", *PARLEY)
    with Shell(tmp_path).terminal("ask", program=program) as terminal:
        glass = Glass(neovim, terminal, 80, 24)
        with (tmp_path / "pipe").open("w", encoding="utf-8") as pipe:
            assert glass.until_row("reading") == ["reading standard input..."]
            pipe.write("say: hello")
        assert glass.end() == 0
        assert "reading" not in "\n".join(glass.until_row("hello"))
