"""`parley respond` with several chats: isolated errors, a shared rate limit, a few chats at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess

from parley.chat.reader import parse
from tests.cli.shell import PATIENCE_S, Shell
from tests.json_schema import types_of


def ask(shell: Shell, **questions: str) -> None:
    """Write chats, each with one question."""
    for name, question in questions.items():
        (shell.folder / f"{name}.md").write_text(f"💬: {question}\n", encoding="utf-8")


def test_each_chat_continues_even_if_others_fail(shell: Shell) -> None:
    ask(
        shell,
        a="say: one",
        b="say: two",
        wait="find the stock price of google",
        broken="@@none.txt@@",
        empty="",
    )
    (shell.folder / "link.md").symlink_to("a.md")
    (shell.folder / "foreign.md").write_text(
        "---\nagent: Nobody\n---\n\n💬: hi\n", encoding="utf-8"
    )
    names = [
        f"{name}.md" for name in ("broken", "a", "none", "link", "wait", "foreign", "empty", "b")
    ]
    done = shell.run("respond", *names, "--jobs", "3")
    assert done.returncode == 1
    assert sorted(done.stdout.decode().splitlines()) == [
        "a.md: complete",
        "b.md: complete",
        "empty.md: nothing to answer",
        "wait.md: waiting",
    ]
    told = done.stderr.decode().splitlines()
    assert told[-1] == (
        "parley: calls are waiting in wait.md. Decide on them one chat at a time: parley "
        "respond FILE"
    )
    assert sorted(line.partition(": ")[2].partition(":")[0] for line in told[:-1]) == [
        "broken.md",
        "cannot read none.md",
        "foreign.md",
    ]
    assert all("\n\none\n" in (shell.folder / f"{name}.md").read_text() for name in ("a", "link"))
    again = shell.run("respond", "a.md", "b.md", "empty.md")
    assert (again.returncode, again.stdout.count(b": nothing to answer\n")) == (0, 3)
    assert shell.run("respond", "wait.md", "a.md", "--quiet").stdout == b""
    assert shell.run("respond", "wait.md", "a.md").returncode == 3


def test_lines_for_programs_name_their_chat_and_jobs_limits_the_active_chats(shell: Shell) -> None:
    names = [f"c{number}" for number in range(12)]
    ask(shell, **{name: f"say: {name}" for name in names}, wait="find the stock price of google")
    files = [f"{name}.md" for name in (*names, "wait", "none")]
    done = shell.run("respond", *files, "--jobs", "3", "--json")
    assert (done.returncode, done.stderr) == (1, b"")
    assert {"chat_end", "call_waiting", "text_delta", "error", "end"} <= types_of(
        done.stdout.splitlines()
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["file"] for line in lines[:-1] if line["type"] != "note"} == set(files)
    ends = {line["file"]: line["kind"] for line in lines if line["type"] == "chat_end"}
    assert ends == {
        **{f"{name}.md": "complete" for name in names},
        "wait.md": "waiting",
        "none.md": "failed",
    }
    at_work, most = set[str](), 0
    for line in lines[:-1]:
        if line["type"] == "chat_end":
            at_work.discard(line["file"])
        elif "file" in line:
            at_work.add(line["file"])
        most = max(most, len(at_work))
    assert (most, at_work) == (3, set())
    assert lines[-1] == {"type": "end", "code": 1, "kind": "failed"}


def test_chats_share_the_rate_limit_and_stay_valid_after_ctrl_c(shell: Shell) -> None:
    shell.configure("safety.rate_limit_per_minute = 2\n")
    ask(shell, a="say: one", b="say: two", c="say: three", d="say: four")
    with shell.terminal("respond", "a.md", "b.md", "c.md", "d.md", "--jobs", "3") as terminal:
        terminal.wait_for(lambda output: b"2 of 4" in output and b"ate limit" in output)
        os.kill(terminal.process.pid, signal.SIGINT)
        assert terminal.end() == 130
    assert "parley: stopped with 2 of 4 chats done" in terminal.text
    texts = [(shell.folder / f"{name}.md").read_text(encoding="utf-8") for name in "abcd"]
    assert sum(text.count("\n🤖:") for text in texts) <= 4
    assert sum("\n\none\n" in text or "\n\ntwo\n" in text for text in texts) == 2
    assert all(problem.severity != "error" for text in texts for problem in parse(text).problems)


def test_options_for_a_single_chat_are_refused(shell: Shell) -> None:
    ask(shell, a="say: one", b="say: two")
    for arguments in (
        ("a.md", "b.md", "--choose", "ya"),
        ("a.md", "--jobs", "2", "--choose", "ya"),
    ):
        done = shell.run("respond", *arguments)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"Name one file" in done.stderr
    assert b"expected a number of at least 1" in shell.run("respond", "a.md", "--jobs", "0").stderr
    assert all((shell.folder / f"{name}.md").read_text().count("\n") == 1 for name in "ab")


def test_chats_stay_valid_when_a_background_command_is_ended(shell: Shell) -> None:
    names = ["a", "b", "c"]
    ask(shell, **dict.fromkeys(names, "write 400 words"))
    files = [f"{name}.md" for name in names]
    line = [
        "/bin/sh",
        "-c",
        'trap "" INT; exec "$@"',
        "sh",
        *shell.parley,
        "respond",
        *files,
        "--jobs",
        "2",
        "--json",
    ]
    environ = {**shell.environ, "PARLEY_DEMO_PACE": "0.02"}
    with subprocess.Popen(line, cwd=shell.folder, env=environ, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        speaking = set[str]()
        while len(speaking) < 2:
            told = json.loads(process.stdout.readline())
            speaking |= {told["file"]} if told["type"] == "text_delta" else set()
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    (error,) = (
        told["message"] for told in map(json.loads, rest.splitlines()) if told["type"] == "error"
    )
    assert set(error.partition("so far is in ")[2].split(", ")) == speaking
    texts = {name: (shell.folder / name).read_text(encoding="utf-8") for name in files}
    assert {
        name for name, text in texts.items() if "🔒: [Stopped: by the user]" in text
    } == speaking
    assert {text for name, text in texts.items() if name not in speaking} == {
        "💬: write 400 words\n"
    }
