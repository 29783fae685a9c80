"""`parley allow`: the permissions are listed, and removed by their numbers."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from parley.cli import main
from parley.policy.permissions import Permission
from parley.storage.ledger import LedgerFile, default_path

SEARCH = Permission("demo", "web_search", "d1")
COMMAND = Permission("workspace", "run_command", "d2", root="/srv/a", arguments='{"command":"ls"}')


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ledger in a home of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return default_path({"XDG_STATE_HOME": str(tmp_path)})


def give(path: Path, *permissions: Permission) -> None:
    with closing(LedgerFile(path)) as ledger:
        for permission in permissions:
            ledger.allow(permission, "")


def test_without_permissions_the_list_says_so_and_no_ledger_is_created(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["allow"]) == 0
    assert "No permissions." in capsys.readouterr().out
    assert not state.exists()


def test_permissions_are_listed_for_people_and_programs(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give(state, SEARCH, COMMAND)
    assert main(["allow"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1: demo/web_search everywhere",
        '2: workspace/run_command in /srv/a, only with {"command":"ls"}',
    ]
    assert main(["allow", "--json"]) == 0
    *rows, end = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert end["type"] == "end"
    assert [(row["type"], row["number"], row["root"]) for row in rows] == [
        ("permission", 1, ""),
        ("permission", 2, "/srv/a"),
    ]


def test_a_number_that_does_not_exist_removes_nothing(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give(state, SEARCH, COMMAND)
    assert main(["allow", "--remove", "1", "--remove", "3"]) == 1
    assert "there is no permission 3" in capsys.readouterr().err
    assert main(["allow", "--remove", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        '2: workspace/run_command in /srv/a, only with {"command":"ls"}'
    ]


def test_hidden_characters_in_arguments_are_shown(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give(state, Permission("demo", "a\u202eb", "d", chat="/x\n/y.md"))
    assert main(["allow"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert "\u202e" not in line
