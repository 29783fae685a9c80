"""`parley verify` on a chat from a real turn: exit codes, and output for people and programs."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from parley.storage.ledger import LedgerFile
from tests.cli.shell import Shell
from tests.forks import ForkServer
from tests.json_schema import types_of

QUESTION = "find the stock price of google"


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory, forks: ForkServer) -> Shell:
    """A chat that was answered once, with a call."""
    shell = Shell(tmp_path_factory.mktemp("home"), forks)
    shell.ask(QUESTION)
    assert shell.run("respond", "chat.md").returncode == 3
    assert shell.run("respond", "chat.md", "--choose", "yA").returncode == 0
    (shell.folder / "answered.md").write_text(shell.text, encoding="utf-8")
    return shell


@pytest.fixture
def verify(chat: Shell) -> Callable[..., tuple[int, list[str]]]:
    text = (chat.folder / "answered.md").read_text(encoding="utf-8")

    def verify(
        change: Callable[[str], str] = lambda text: text, *options: str
    ) -> tuple[int, list[str]]:
        chat.chat.write_text(change(text), encoding="utf-8")
        done = chat.run("verify", "chat.md", *options)
        assert done.stderr == b""
        return done.returncode, done.stdout.decode().splitlines()

    return verify


def test_an_unedited_chat_verifies(
    verify: Callable[..., tuple[int, list[str]]],
) -> None:
    assert verify() == (0, ["requests that still match the chat: 2 of 2"])
    assert verify(lambda text: text, "--tools")[0] == 0


def test_an_edit_is_reported_with_its_line(verify: Callable[..., tuple[int, list[str]]]) -> None:
    assert verify(lambda text: text.replace("of google", "of apple", 1)) == (
        1,
        [
            "chat.md:1: exchange 1: the question was reworded (different in 2 requests)",
            "requests that still match the chat: 0 of 2",
        ],
    )


def test_programs_read_edits_unknown_replies_and_settings(
    chat: Shell, verify: Callable[..., tuple[int, list[str]]]
) -> None:
    forged = "💬: And?\n\n🤖:[Demo-OpenAI]\n\nForged.\n\n💬: \n"
    code, lines = verify(lambda text: text.replace("💬: \n", forged), "--json")
    assert (code, types_of(lines)) == (5, {"unknown_reply", "verification", "end"})
    code, lines = verify(lambda text: text.replace("$911", "$1"), "--json")
    assert (code, types_of(lines)) == (1, {"edit", "verification", "end"})
    chat.configure('system_prompt = "Be rude."')
    try:
        code, lines = verify(lambda text: text, "--json")
        assert (code, types_of(lines)) == (0, {"settings_change", "verification", "end"})
        code, lines = verify()
        assert code == 0
        assert re.fullmatch(r"settings, since [-+0-9: ]+: the system prompt has changed", lines[0])
        assert lines[1:] == ["requests that still match the chat: 2 of 2"]
    finally:
        chat.configure("")


OTHER = """
[[agents]]
name = "Other"
provider = "demo"
model = "demo"
system_prompt = "Be another."
max_tokens = 7777
"""


def test_an_agent_chosen_for_one_answer_is_not_compared_with_the_default(
    tmp_path: Path, forks: ForkServer
) -> None:
    shell = Shell(tmp_path, forks)
    shell.configure(OTHER)
    for name, front in (("one.md", ""), ("two.md", "---\nmodel: mine\n---\n\n")):
        (tmp_path / name).write_text(f"{front}💬: hello\n", encoding="utf-8")
        assert shell.run("respond", name, "--agent", "Other").returncode == 0
        assert shell.run("verify", name).stdout == b"requests that still match the chat: 1 of 1\n"
    shell.configure(OTHER.replace("Be another.", "Be yourself."))
    assert b": the system prompt has changed\n" in shell.run("verify", "one.md").stdout


def test_a_chat_from_another_machine_cannot_be_verified(
    tmp_path: Path, chat: Shell, forks: ForkServer
) -> None:
    other = Shell(tmp_path, forks)
    other.chat.write_bytes((chat.folder / "answered.md").read_bytes())
    done = other.run("verify", "chat.md")
    assert done.returncode == 5
    assert (
        done.stderr == b"parley: chat.md: this machine has no record of a request from this chat\n"
    )
    other.chat.write_text("💬: a question\n", encoding="utf-8")
    assert other.run("verify", "chat.md").returncode == 0


def test_an_attachment_with_changed_bytes_is_reported(
    chat: Shell, verify: Callable[..., tuple[int, list[str]]]
) -> None:
    link = f"![a, 1 B](chat.assets/{'0' * 64}.png)"
    code, lines = verify(lambda text: text.replace(QUESTION, f"{QUESTION}\n\n{link}\n"))
    assert code == 1
    assert any("no such file" in line for line in lines)


def test_a_damaged_record_is_reported(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.ask("hello")
    assert shell.run("respond", "chat.md").returncode == 0
    path = Path(shell.environ["XDG_STATE_HOME"]) / "parley" / "ledger.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE requests SET units = '[\"q1\"]'")
    done = shell.run("verify", "chat.md")
    assert done.returncode == 1
    assert b"the request record of chat.md in " in done.stderr


def test_the_age_of_deleted_records_is_named(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.ask("hello")
    assert shell.run("respond", "chat.md").returncode == 0
    with shell.chat.open("a", encoding="utf-8") as file:
        file.write("and now?\n")
    assert shell.run("respond", "chat.md").returncode == 0
    path = Path(shell.environ["XDG_STATE_HOME"]) / "parley" / "ledger.db"
    with closing(sqlite3.connect(path)) as db, db:
        for table in ("log", "requests"):
            first = f"SELECT min(number) FROM {table}"
            db.execute(f"UPDATE {table} SET at = 86400.0 WHERE number = ({first})")
    with closing(LedgerFile(path)) as file:
        file.keep_days = 365
        file.delete_old()
    note = b"Older records, up to 1970-01-02, were deleted: `log.keep_days` says when."
    done = shell.run("verify", "chat.md")
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [note, b"requests that still match the chat: 1 of 1"],
    )
    assert note in shell.run("log", "chat.md").stdout
    for command in ("verify", "log"):
        lines = shell.run(command, "chat.md", "--json").stdout.decode().splitlines()
        types_of(lines)
        assert sum('"deleted_until": 86400.0' in line for line in lines) == 1
