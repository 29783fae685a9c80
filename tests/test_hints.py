"""Hints that processes share: they last some days, and a damaged file is an empty one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from parley.hints import Hints

DAY_S = 24 * 3600.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "hints.json"


def test_a_word_is_known_to_other_processes_until_it_is_deleted(path: Path) -> None:
    Hints(path).put("one", "older")
    Hints(path).put("two", "events")
    assert (Hints(path).get("one"), Hints(path).get("two")) == ("older", "events")
    Hints(path).put("one", None)
    assert (Hints(path).get("one"), Hints(path).get("two")) == (None, "events")


@pytest.mark.parametrize(("days", "word"), [(6.9, "older"), (7.1, None), (-1, None)])
def test_a_word_lasts_for_days_and_none_is_from_the_future(
    path: Path, monkeypatch: pytest.MonkeyPatch, days: float, word: str | None
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    Hints(path).put("key", "older")
    monkeypatch.setattr(time, "time", lambda: now + days * DAY_S)
    assert Hints(path).get("key") == word


def test_the_file_is_private_and_has_no_key_and_nothing_lies_beside_it(path: Path) -> None:
    Hints(path).put("https://secret.example", "older")
    assert path.stat().st_mode & 0o077 == 0
    assert "secret" not in path.read_text(encoding="utf-8")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 100_000, '{"a": 1}', " " * 1_000_001])
def test_a_damaged_file_has_no_hints_and_is_replaced(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    assert Hints(path).get("key") is None
    Hints(path).put("key", "older")
    assert Hints(path).get("key") == "older"


def test_deleting_an_unknown_word_writes_no_file(path: Path) -> None:
    Hints(path).put("key", None)
    assert not path.exists()


def test_a_folder_that_cannot_be_made_costs_only_the_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    hints = Hints(tmp_path / "file" / "hints.json")
    hints.put("key", "older")
    assert hints.get("key") is None
