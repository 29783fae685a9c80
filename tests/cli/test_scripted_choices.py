"""`--choose` in scripts decides only on calls that an earlier run printed, even with an id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parley.cli.scripted_choices import ScriptedChoice
from tests.cli.shell import Shell
from tests.forks import ForkServer

QUESTION = "can you find the latest stock price of google and microsoft?"
UNSEEN = (
    "--choose yA applies only to calls that an earlier run printed. Read these calls, then run "
    "the command again"
)


@pytest.fixture
def shell(tmp_path: Path, forks: ForkServer) -> Shell:
    shell = Shell(tmp_path, forks)
    shell.ask(QUESTION)
    return shell


def ids(shell: Shell) -> list[str]:
    """The ids of the waiting calls, from the JSON output."""
    lines = map(json.loads, shell.run("respond", "chat.md", "--json").stdout.splitlines())
    return [line["call"]["id"] for line in lines if line["type"] == "call_waiting"]


def test_a_choice_on_unseen_calls_prints_them_and_the_next_choice_counts(shell: Shell) -> None:
    done = shell.run("respond", "chat.md", "--choose", "yA")
    assert done.returncode == 3
    assert '❓ web_search {"query":"google stock price"}' in done.stdout.decode()
    assert done.stderr.decode() == f"parley: {UNSEEN}\n"
    assert shell.text.count("❓: `") == 2
    done = shell.run("respond", "chat.md", "--choose", "yA")
    assert (done.returncode, done.stderr) == (0, b"")
    assert shell.text.count("❓:[yA]") == 2


def test_a_call_that_was_edited_later_counts_as_unseen(shell: Shell) -> None:
    shell.run("respond", "chat.md")
    shell.chat.write_text(shell.text.replace("google stock", "apple stock"), encoding="utf-8")
    assert shell.run("respond", "chat.md", "--choose", "yA").returncode == 3
    assert "❓:[yA]" not in shell.text


def test_a_choice_with_an_id_decides_only_on_its_call(shell: Shell) -> None:
    google, microsoft = ids(shell)
    before = shell.text
    done = shell.run("respond", "chat.md", "--choose", f"{microsoft}=ya")
    assert done.returncode == 3
    assert "google" in done.stdout.decode()
    assert (shell.text.count("❓:[ya]"), shell.text.count("❓: `")) == (1, 1)
    shell.chat.write_text(before, encoding="utf-8")
    choices = ("--choose", f"{google}=yn", "--reason", "too old", "--choose", f"{microsoft}=ya")
    assert shell.run("respond", "chat.md", *choices).returncode == 0
    assert "The user declined this call. too old" in shell.text
    assert "$544" in shell.text


CALL = (
    '❓: `{{"id":"{}","function":{{"name":"web_search","arguments":"{{\\"query\\":\\"{}\\"}}"}}}}`'
)


@pytest.mark.parametrize("key", ["yA", "ya", "yo", "yO"])
def test_a_choice_with_an_id_counts_once_a_run_has_printed_the_call(shell: Shell, key: str) -> None:
    """The file's author or the model may know the id: it proves nothing about the call."""

    def written(query: str) -> None:
        shell.chat.write_text(
            f"💬: hi\n\n🤖:[Demo]\n\n{CALL.format('known', query)}\n", encoding="utf-8"
        )

    def chosen() -> tuple[int, str, str]:
        done = shell.run("respond", "chat.md", "--agent", "Demo", "--choose", f"known={key}")
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    message = f"parley: {UNSEEN.replace('yA', f'known={key}')}\n"
    for query in ("google stock price", "apple stock price"):  # the second replaces the first
        written(query)
        code, printed, complaint = chosen()
        assert (code, complaint, "🛠️:" in shell.text) == (3, message, False)
        assert f'❓ web_search {{"query":"{query}"}}' in printed
    assert chosen()[::2] == (0, "")
    assert "🛠️:" in shell.text


@pytest.mark.parametrize("after", [">/dev/full", ">&-"])
def test_calls_whose_output_was_lost_were_not_printed(shell: Shell, after: str) -> None:
    assert shell.run("respond", "chat.md", after=after).returncode == 1
    for choice in ("ya", "call_1=ya"):
        done = shell.run("respond", "chat.md", "--choose", choice)
        assert (done.returncode == 0, "🛠️:" in shell.text) == (False, False)
        shell.run("respond", "chat.md", after=after)


def test_each_choice_applies_to_the_calls_that_earlier_ones_left(shell: Shell) -> None:
    shell.run("respond", "chat.md")
    assert shell.run("respond", "chat.md", "--choose", "yo", "--choose", "yn").returncode == 0
    assert "$911" in shell.text
    assert shell.text.count("The user declined this call.") == 1


def test_a_choice_without_a_waiting_call_is_an_error(shell: Shell) -> None:
    before = shell.text
    done = shell.run("respond", "chat.md", "--choose", "none=ya")
    assert (done.returncode, shell.text) == (1, before)
    message = "parley: --choose none=ya: no call with this id is waiting; no request was sent\n"
    assert done.stderr.decode() == message
    shell.run("respond", "chat.md")
    done = shell.run("respond", "chat.md", "--choose", "yN", "--choose", "ya")
    assert done.returncode == 1
    assert "not used because no call was waiting: --choose ya" in done.stderr.decode()
    assert shell.text.count("The user declined this call.") == 2


def test_a_reason_belongs_to_a_decline(shell: Shell) -> None:
    before = shell.text
    done = shell.run("respond", "chat.md", "--choose", "ya", "--reason", "because")
    assert (done.returncode, shell.text) == (2, before)
    assert "--reason needs a declined call" in done.stderr.decode()


@pytest.mark.parametrize("text", ["yX", "=ya", "", "a=", "a=YA", "a=y"])
def test_an_unknown_choice_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected one of yA, ya"):
        ScriptedChoice.of(text)


def test_an_id_may_have_an_equals_sign() -> None:
    assert ScriptedChoice.of("a=b=yn") == ScriptedChoice("yn", "a=b")


def test_a_quiet_command_prints_only_the_answer(shell: Shell) -> None:
    shell.run("respond", "chat.md")
    done = shell.run("respond", "chat.md", "--quiet", "--choose", "yA")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Google (GOOGL) is at $911")
    assert b"\xe2\x9d\x93" not in done.stdout
