"""`parley compact` and `parley respond`: the lines in the file, the messages, the exit code."""

from __future__ import annotations

import pytest

from tests.cli.shell import Shell, toml
from tests.nvim.hanging_model import hanging_model

CHAT = "".join(f"💬: question {n}\n\n🤖:[Demo]\n\nanswer {n}\n\n" for n in range(5))


def test_older_exchanges_are_summarized(shell: Shell) -> None:
    shell.chat.write_text(CHAT, encoding="utf-8")
    done = shell.run("compact", "chat.md")
    assert (done.returncode, done.stdout) == (0, b"")
    assert "2 of 2 older exchanges are summarized" in done.stderr.decode()
    text = CHAT
    for number in range(2):
        line = f"📝: you said “question {number}”, and I answered."
        text = text.replace(f"answer {number}\n", f"answer {number}\n\n{line}\n")
    assert shell.text == text
    assert shell.run("compact", "chat.md").returncode == 0
    assert shell.text == text


def test_a_number_sets_how_many_exchanges_stay_unchanged(shell: Shell) -> None:
    shell.chat.write_text(CHAT, encoding="utf-8")
    assert shell.run("compact", "chat.md", "-n", "0").returncode == 0
    assert shell.text.count("📝:") == 5
    assert shell.run("compact", "chat.md", "-n", "some").returncode == 2


def test_a_file_without_a_question_is_an_error(shell: Shell) -> None:
    shell.chat.write_text("nothing\n", encoding="utf-8")
    assert shell.run("compact", "chat.md").returncode == 1


def test_a_changed_agent_is_named_before_the_question_is_sent(shell: Shell) -> None:
    says = b"Near answers now; Demo answered last (--agent Demo)"
    answered = "💬: say: one\n\n🤖:[Demo]\n\none\n\n💬: "
    agent = '[[agents]]\nname = "Near"\nprovider = "near"\nmodel = "demo"\n'
    with hanging_model() as model:
        near = (
            '[providers.near]\nkind = "openai"\napi = "chat"\nbase_url = '
            f"{toml(model.url + '/v1')}\n"
        )
        shell.configure(agent + near, 'agent = "Near"')
        shell.chat.write_text(answered, encoding="utf-8")
        assert says not in shell.run("respond", "chat.md").stderr  # nothing is sent
        shell.chat.write_text(f"{answered}say: two\n", encoding="utf-8")
        assert says not in shell.run("respond", "chat.md", "--agent", "Demo").stderr
        shell.chat.write_text(f"{answered}say: two\n", encoding="utf-8")
        assert says in shell.run("respond", "chat.md").stderr
        assert "🤖:[Near]\n\ntwo\n" in shell.text
        assert says not in shell.run("ask", "-c", "chat.md", "say: three").stderr
        shell.chat.write_text(answered, encoding="utf-8")
        assert says in shell.run("ask", "-c", "chat.md", "say: three").stderr


@pytest.mark.parametrize("content", ['agent = "Mine"\n[loop\n', 'agent = "Mine"\n'])
def test_no_question_is_sent_if_the_settings_file_is_unreadable(shell: Shell, content: str) -> None:
    shell.ask("hello")
    shell.configure(content, "")
    done = shell.run("respond", "chat.md")
    said = done.stderr.decode()
    assert done.returncode == 1
    assert ("Parley does not send questions until the file can be read" in said) == (
        "[loop" in content
    )
    assert said.count("config.toml") == 1
    assert ("the agent 'Mine', which does not exist" in said) == ("[loop" not in content)
    assert "🤖:" not in shell.text


NOBODY = """
[providers.nobody]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
api = "chat"
[[agents]]
name = "Nobody"
provider = "nobody"
model = "nothing"
"""


def test_an_answer_is_regenerated_and_kept_until_the_new_one_begins(shell: Shell) -> None:
    shell.configure(NOBODY)
    first = "💬: find the stock price of google\n\n🤖:[Other]\n\nold\n\n"
    text = f"{first}💬: say: two\n\n🤖:[Other]\n\nold\n\n💬: \n"
    shell.chat.write_text(text, encoding="utf-8")
    done = shell.run("respond", "chat.md", "--again", "-a", "Nobody")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"The old answer is unchanged" in done.stderr
    assert shell.chat.read_text(encoding="utf-8") == text
    assert shell.run("respond", "chat.md", "--again", "-a", "Demo").stdout == b"two\n"
    text = f"{first}💬: say: two\n\n🤖:[Demo]\n\ntwo\n\n💬: \n"
    assert shell.chat.read_text(encoding="utf-8") == text
    assert shell.run("respond", "chat.md", "--exchange", "1", "--again").returncode == 3
    assert shell.run("respond", "chat.md", "--exchange", "1", "--choose", "ya").returncode == 0
    text = shell.chat.read_text(encoding="utf-8")
    assert "old" not in text
    assert text.endswith("\n\n💬: say: two\n\n🤖:[Demo]\n\ntwo\n\n💬: \n")
    done = shell.run("respond", "chat.md", "--exchange", "4", "--again")
    assert (done.returncode, b"there is no exchange 4: it has 3" in done.stderr) == (1, True)
