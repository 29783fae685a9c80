"""`parley respond` when a reference cannot be included."""

from __future__ import annotations

import json

import pytest

from tests.cli.shell import Shell


def test_a_reference_that_cannot_be_included_stops_the_question_once(shell: Shell) -> None:
    shell.ask("say: hello @@none.txt@@")
    stopped = shell.run("respond", "chat.md")
    assert (stopped.returncode, stopped.stdout) == (1, b"")
    message = "@@none.txt@@: No such file or directory; ask again to continue without it"
    assert f"not asked: {message}" in stopped.stderr.decode()
    assert shell.text == "💬: say: hello @@none.txt@@\n"
    assert shell.run("respond", "chat.md").returncode == 0
    assert shell.text.startswith(
        "💬: say: hello @@none.txt@@\n\n`none.txt`: No such file or "
        "directory\n\n🤖:[Demo-OpenAI]\n\nhello"
    )


@pytest.mark.parametrize("name", ["buffer", "selection", "diagnostics"])
def test_a_reference_that_needs_an_editor_stops_the_question(shell: Shell, name: str) -> None:
    shell.ask(f"say: hello @@{name}@@")
    stopped = shell.run("respond", "chat.md")
    assert stopped.returncode == 1
    why = f"@@{name}@@: this reference needs an editor. Ask in Neovim, or name a file"
    assert f"not asked: {why}; ask again to continue without it" in stopped.stderr.decode()
    assert shell.text == f"💬: say: hello @@{name}@@\n"


def test_a_program_reads_which_reference_stops_the_question(shell: Shell) -> None:
    shell.ask("say: hello @@../out.txt@@")
    stopped = shell.run("respond", "chat.md", "--json")
    assert stopped.returncode == 1
    error, end = map(json.loads, stopped.stdout.splitlines()[-2:])
    assert end == {"type": "end", "code": 1, "kind": "failed"}
    assert error["type"] == "error"
    assert "@@../out.txt@@: outside the working directory, so not read" in error["message"]


def test_a_hidden_file_is_included_only_after_the_user_has_named_it(shell: Shell) -> None:
    (shell.folder / ".github").mkdir()
    (shell.folder / ".github" / "ci.yml").write_text("on: push\n", encoding="utf-8")
    shell.ask("say: hello @@.github/ci.yml@@")
    stopped = shell.run("respond", "chat.md")
    assert "hidden, so not read (--hidden PATH includes it)" in stopped.stderr.decode()
    assert shell.run("respond", "chat.md", "--hidden", ".github/ci.yml").returncode == 0
    assert "`.github/ci.yml` (1 line)\n\n```yml\non: push\n```" in shell.text
    shell.ask("say: again @@.github/ci.yml@@")  # the agreement counts for this chat
    assert shell.run("respond", "chat.md").returncode == 0
    shell.chat = shell.folder / "other.md"
    shell.ask("say: hello @@.github/ci.yml@@")
    assert shell.run("respond", "other.md").returncode == 1
