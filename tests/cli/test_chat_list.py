"""`parley list`: the known chats by folder, for people, programs and completion."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main
from parley.display.chat_rows import moment
from parley.storage.ledger import LedgerFile, default_path
from tests.many_chats import NOW, many_chats


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with three chats in two folders."""
    for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with closing(LedgerFile(default_path(os.environ))) as ledger:
        many_chats(tmp_path, ledger, 3, 2)
    return tmp_path


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["list", "--json", *arguments]) == 0
    *lines, _ = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return lines


def test_chats_are_listed_by_folder_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "~/src/project-0/notes",
        f"  {moment(NOW + 2)}  chat-2.md  Topic 2  #tag-2 #work  Demo",
        f"  {moment(NOW)}  chat-0.md  Topic 0  #tag-0 #work  Demo",
        "",
        "~/src/project-1/notes",
        f"  {moment(NOW + 1)}  chat-1.md  Topic 1  #tag-1 #work  Demo",
    ]


def test_programs_receive_every_field(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = rows(capsys)
    assert [Path(row["path"]).stem for row in listed] == ["chat-2", "chat-1", "chat-0"]
    assert listed[0] == {
        "type": "known_chat",
        "path": str(home / "src/project-0/notes/chat-2.md"),
        "changed": NOW + 2,
        "topic": "Topic 2",
        "tags": ["tag-2", "work"],
        "agent": "Demo",
        "problem": "",
    }


def test_words_show_the_line_and_a_limit_says_that_there_are_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", "-n", "1", "#work", "number"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "    10: It is a number."
    assert "these are the newest 1 chats. -n N lists more" in said.err
    (row,) = rows(capsys, "-n", "1", "What of", "1?")
    assert (row["topic"], row["line"], row["text"]) == ("Topic 1", 6, "What of 1?")
    assert main(["list", "no", "such", "words"]) == 0
    assert capsys.readouterr().out == "No chats.\n"


def test_paths_are_printed_for_scripts_and_completion(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "--paths", "src/project-1/", "./"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["list", "--paths", "./src/project-1/"]) == 0
    assert capsys.readouterr().out == f"{home}/src/project-1/notes/chat-1.md\n"
    assert main(["list", "--starting", "chat-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_without_a_ledger_none_is_created(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = default_path(os.environ)
    for each in path.parent.glob("ledger*"):
        each.unlink()
    assert main(["list"]) == 0
    assert capsys.readouterr().out == "No chats.\n"
    assert not path.exists()


def test_untrusted_text_is_escaped(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "parley" / "chats"
    folder.mkdir(parents=True)
    (folder / "a\x1b.md").write_text("💬: \x1b[31mred\n", encoding="utf-8")
    assert main(["list", "red"]) == 0
    assert "\x1b" not in capsys.readouterr().out
