"""An update: a user's settings, chat and ledger from an older version keep working in the shell.

The files in `upgrade/` are as the older version left them: one call has run, another one waits.
"""

from __future__ import annotations

import gzip
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from parley.storage.migrations import MIGRATIONS
from tests.cli.shell import Shell
from tests.forks import forks

OLD = Path(__file__).parent / "upgrade"
RESULT = '"microsoft stock MSFT price is $544 as of today"'
NEWER = "was changed by a newer Parley"


def updated(folder: Path) -> Shell:
    """A home with the older version's files. The ledger knows the chat by its new path."""
    shell = Shell(folder, forks())
    shell.configure((OLD / "config.toml").read_text(encoding="utf-8"), agent="")
    shell.chat.write_bytes((OLD / "chat.md").read_bytes())
    ledger = ledger_of(shell)
    ledger.parent.mkdir(parents=True)
    ledger.write_bytes(gzip.decompress((OLD / "ledger.db.gz").read_bytes()))
    path = os.fsencode(shell.chat.resolve())
    with closing(sqlite3.connect(ledger, isolation_level=None)) as db:
        for (table,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall():
            columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            if "chat" in columns:
                db.execute(f"UPDATE {table} SET chat = ?", (path,))
    return shell


def ledger_of(shell: Shell) -> Path:
    return Path(shell.environ["XDG_STATE_HOME"], "parley", "ledger.db")


def test_settings_chats_and_decisions_keep_working_after_an_update(tmp_path: Path) -> None:
    shell = updated(tmp_path)
    config = shell.run("config")
    assert b"there is no such setting" not in config.stderr
    assert b'agent = "Mine"' in config.stdout
    assert shell.run("check", "chat.md").returncode == 0
    assert shell.run("verify", "chat.md").stdout.endswith(b"3 of 3\n")
    assert b"chat.md" in shell.run("list").stdout

    waiting = shell.run("respond", "chat.md")
    assert waiting.returncode == 3
    assert shell.text == (OLD / "chat.md").read_text(encoding="utf-8")
    answered = shell.run("respond", "chat.md", "--choose", "ya")
    assert (answered.returncode, RESULT in shell.text) == (0, True)
    log = shell.run("log", "chat.md").stdout.decode().splitlines()
    ran = [line.split() for line in log if " call " in line]
    assert len({words[3] for words in ran}) == len(ran) == 2  # each call ran once
    assert shell.run("verify", "chat.md").stdout.endswith(b"4 of 4\n")


def test_a_newer_parleys_ledger_stops_a_turn_before_anything_is_sent_or_written(
    tmp_path: Path,
) -> None:
    shell = updated(tmp_path)
    ledger = ledger_of(shell)
    with closing(sqlite3.connect(ledger)) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = ledger.read_bytes()
    refused = shell.run("respond", "chat.md", "--choose", "ya")
    assert refused.returncode not in (0, 3)
    assert NEWER in refused.stderr.decode()
    assert shell.text == (OLD / "chat.md").read_text(encoding="utf-8")
    assert ledger.read_bytes() == before
