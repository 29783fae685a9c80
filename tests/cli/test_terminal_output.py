"""Output that cannot be written causes no traceback, loses nothing, and sets the right exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.shell import PARLEY, PATIENCE_S, Shell
from tests.forks import ForkServer

CHAT = "💬: hello ☎\n\n🤖:[Demo]\n\nHow do you do?\n\n💬: \n"
BROKEN = "💬: hello\n\n🤖:[Demo]\n\n❓: `{no call}`\n"
PRINTING = {
    "messages": ("messages", "chat.md"),
    "parse": ("parse", "chat.md"),
    "export": ("export", "chat.md"),
    "log": ("log", "chat.md"),
    "help": ("--help",),
    "help on a command": ("respond", "--help"),
    "version": ("--version",),
    "tools": ("tools",),
}
"""Commands whose purpose is to print."""


@pytest.fixture
def shell(tmp_path: Path, forks: ForkServer) -> Shell:
    shell = Shell(tmp_path, forks)
    shell.chat.write_text(CHAT, encoding="utf-8")
    return shell


@pytest.fixture
def new(shell: Shell) -> Shell:
    """The same commands in new processes, to test Python's startup."""
    return Shell(shell.folder)


def error(process: subprocess.CompletedProcess[bytes]) -> str:
    return process.stderr.decode()


@pytest.mark.parametrize("arguments", PRINTING.values(), ids=PRINTING)
def test_a_printing_command_fails_if_nothing_can_be_written(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    closed, full = shell.run(*arguments, after=">&-"), shell.run(*arguments, after=">/dev/full")
    assert (closed.returncode, error(closed)) == (
        1,
        "parley: cannot write to standard output: it is closed\n",
    )
    assert full.returncode == 1
    assert error(full) == "parley: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("arguments", PRINTING.values(), ids=PRINTING)
def test_a_reader_that_stops_early_is_not_a_failure(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    done = through_a_closed_pipe(shell, *arguments)
    assert (done.returncode, error(done)) == (0, "")


def through_a_closed_pipe(shell: Shell, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command whose reader stops before the first byte."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [*shell.parley, *arguments],
            cwd=shell.folder,
            env=shell.environ,
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
        )
    finally:
        os.close(writer)


def test_the_exit_code_of_check_is_right_even_without_a_reader(shell: Shell) -> None:
    shell.chat.write_text(BROKEN, encoding="utf-8")
    assert through_a_closed_pipe(shell, "check", "chat.md").returncode == 1
    assert shell.run("check", "chat.md", after=">/dev/full").returncode == 1
    assert shell.run("check", "chat.md", after=">&- 2>&-").returncode == 1


@pytest.mark.parametrize(
    ("after", "code"), [("| head -c 1 >/dev/null", 0), (">&-", 1), (">&- 2>&-", 1)]
)
def test_an_answer_is_in_the_file_even_without_a_reader(
    shell: Shell, after: str, code: int
) -> None:
    shell.ask("write 300 words")
    script = (
        f'"$@" {after}'
        if after.startswith(">")
        else f'("$@"; echo $? >code) {after}; exit $(cat code)'
    )
    parley = PARLEY if after.startswith(">") else shell.parley
    line = ["/bin/sh", "-c", script, "sh", *parley, "respond", "chat.md"]
    done = subprocess.run(
        line, cwd=shell.folder, env=shell.environ, capture_output=True, timeout=PATIENCE_S
    )
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert len(shell.text.split()) > 300
    assert shell.text.endswith("💬: \n")


def test_a_full_disk_loses_the_output_but_not_the_answer(shell: Shell) -> None:
    shell.ask("say: as it is")
    done = shell.run("respond", "chat.md", after=">/dev/full")
    assert done.returncode == 1
    assert error(done).endswith(
        "parley: cannot write to standard output: No space left on device\n"
    )
    assert "as it is\n\n💬: \n" in shell.text


def test_messages_that_cannot_be_written_change_nothing(shell: Shell) -> None:
    for after in ("2>&-", "2>/dev/full"):
        done = shell.run("respond", "chat.md", after=after)
        assert done.returncode == 1
        assert shell.run("check", "none.md", after=after).returncode == 1
        assert shell.run("nonsense", after=after).returncode == 2


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_programs_get_utf_8_whatever_the_locale(new: Shell, encoding: str) -> None:
    new.chat.write_bytes("💬: caf\u00e9 ☎ \u202e ".encode() + b"\xff\n")
    other = {"PYTHONIOENCODING": encoding}
    assert json.loads(new.run("parse", "chat.md", **other).stdout.decode())["exchanges"]
    assert "caf\u00e9 ☎ \u202e ".encode() in new.run("export", "chat.md", **other).stdout


@pytest.mark.parametrize("arguments", [("check", "chat.md"), ("export", "chat.md"), ("--help",)])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_shows_characters_that_its_encoding_lacks_as_escapes(
    new: Shell, arguments: tuple[str, ...], encoding: str
) -> None:
    new.chat.write_text(BROKEN.replace("no call", "☎"), encoding="utf-8")
    with new.terminal(*arguments, PYTHONIOENCODING=encoding) as terminal:
        terminal.end()
    assert b"Traceback" not in terminal.output
    assert terminal.output


@pytest.mark.parametrize(
    "module", ["argparse", "parley.errors", "asyncio", "parley.engine.ports", "yaml"]
)
def test_ctrl_c_during_the_start_ends_the_command_silently(new: Shell, module: str) -> None:
    process = new.start("check", "chat.md", PYTHONPROFILEIMPORTTIME="1")
    assert process.stderr is not None
    for line in process.stderr:
        if line.rstrip().endswith(b" " + module.encode()):
            process.send_signal(signal.SIGINT)
            break
    rest = process.communicate(timeout=PATIENCE_S)[1].splitlines()
    # The code is 0 if the command was done before the signal. If Ctrl-C interrupts an `exec` of
    # text, as in dataclasses, Python before 3.14 ends by the signal even if it was caught; a shell
    # also reports 130.
    assert process.returncode in (130, -signal.SIGINT, 0)
    assert not [line for line in rest if b"import time:" not in line]


def test_check_continues_with_the_next_file(shell: Shell) -> None:
    os.mkfifo(shell.folder / "pipe.md")
    shell.chat.write_text(BROKEN, encoding="utf-8")
    done = shell.run("check", "none.md", "pipe.md", "chat.md")
    assert done.returncode == 1
    assert done.stdout.startswith(b"chat.md:5:")
    (shell.folder / "good.md").write_text(CHAT, encoding="utf-8")
    assert shell.run("check", "good.md").returncode == 0
    assert shell.run("check", "good.md", "none.md", "good.md").returncode == 1
    assert error(done) == (
        "parley: cannot read none.md: No such file or directory\n"
        "parley: cannot read pipe.md: it is a pipe or a device, not a file\n"
    )


def test_waiting_calls_are_printed_on_their_own_lines_each_time(shell: Shell) -> None:
    shell.ask("find the stock price of google")
    first, second = (shell.run("respond", "chat.md") for _ in range(2))
    assert first.returncode == second.returncode == 3
    line = b'\n\xe2\x9d\x93 web_search {"query":"google stock price"}\n'
    assert line in first.stdout
    assert second.stdout == line
    assert error(second).endswith(
        "parley: tool calls are waiting for your choice: "
        "--choose ya approves them, --choose yN declines them\n"
    )


def test_results_name_their_calls(shell: Shell) -> None:
    shell.ask("find the stock price of google and microsoft")
    assert shell.run("respond", "chat.md").returncode == 3
    out = shell.run("respond", "chat.md", "--choose", "yA").stdout.decode()
    lines = out.split("\n")
    assert lines.count('❓ web_search {"query":"google stock price"}') == 1
    results = [below for line, below in pairwise(lines) if line == "🛠️ web_search"]
    assert len(results) == 2
    assert all(result.startswith('{"matches"') for result in results)
    assert "mock/" not in out


def test_the_log_of_an_unknown_chat_is_an_error(shell: Shell) -> None:
    done = shell.run("log", "none.md")
    assert (done.returncode, done.stdout) == (1, b"")
    assert error(done) == "parley: cannot read none.md: No such file or directory\n"


def test_invalid_json_is_reported_with_its_source(shell: Shell) -> None:
    shell.ask("something")
    done = shell.run("convert", "--to", "openai", after="< chat.md")
    assert done.returncode == 1
    assert error(done).startswith("parley: standard input is not JSON: ")


def test_a_turn_succeeds_even_if_a_call_contains_half_a_character(shell: Shell) -> None:
    function = {"name": "web_search", "arguments": '{"query": "\ud83d"}'}
    call = json.dumps({"index": 0, "id": "call_1", "type": "function", "function": function})
    shell.chat.write_text(f"💬: hello\n\n🤖:[Demo]\n\n❓: `{call}`\n", encoding="utf-8")
    done = shell.run("respond", "chat.md")
    assert (done.returncode, error(done)) == (0, "")
    assert '❓ web_search {"query": "\ufffd"}\n' in done.stdout.decode()
