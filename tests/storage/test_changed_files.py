"""Changes of files in the ledger: recorded before the file is written, then with their outcome."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from parley.policy.reverts import RecordedChange
from parley.storage.changed_files import ChangedFiles
from tests.ledgers import open_ledger

NAMES = ["plain.py", "zwei Wörter.py", "new\nline", "\udcff", "-"]


@pytest.mark.parametrize("name", NAMES)
def test_a_change_comes_back_as_it_was_recorded(name: str) -> None:
    changes = ChangedFiles(open_ledger(), "/chat.md")
    edit = RecordedChange(
        "c\ud800", "edit", Path("/w"), Path("/w") / name, "x" * 64, "", 0o600, Path("/w/b")
    )
    number = changes.begin(edit)
    (back,) = changes.all()
    assert back.at > 0
    assert replace(back, at=0.0) == replace(edit, number=number)


def test_a_failed_change_is_forgotten_and_other_chats_have_their_own() -> None:
    ledger = open_ledger()
    one, other = ChangedFiles(ledger, "/one.md"), ChangedFiles(ledger, "/other.md")
    edit = RecordedChange("c1", "edit", Path("/"), Path("/a"), "x", "y")
    first, second, third = (one.begin(edit) for _ in range(3))
    one.end([first], is_done=True)
    one.end([second], is_done=False)
    assert [(c.number, c.state) for c in one.all()] == [(first, "done"), (third, "begun")]
    assert other.all() == []


def test_changes_that_were_made_already_are_recorded_all_at_once_or_not_at_all() -> None:
    changes = ChangedFiles(open_ledger(), "/chat.md")
    made = [RecordedChange("c1", "command", Path("/"), Path("/") / name, "x", "y") for name in "ab"]
    changes.add(made)
    assert [(c.path.name, c.state) for c in changes.all()] == [("a", "done"), ("b", "done")]
    broken = replace(made[1], mode=2**70)  # more than SQLite stores
    with pytest.raises(OverflowError):
        changes.add([made[0], broken])
    assert len(changes.all()) == 2
