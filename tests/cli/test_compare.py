"""`parley compare`: a fork for each agent, asked at once; their answers, and what they took."""

from __future__ import annotations

import json

from tests.cli.shell import Shell
from tests.json_schema import types_of

AGENTS = """
[providers.nobody]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
api = "chat"
[[agents]]
name = "Nobody"
provider = "nobody"
model = "nothing"
[[agents]]
name = "Priced"
provider = "demo"
model = "demo"
price = { input = 3, output = 15 }
"""


def test_each_agent_answers_in_a_fork_and_the_worst_sets_the_code(shell: Shell) -> None:
    shell.configure(AGENTS)
    text = "---\nagent: Other\n---\n\n💬: say: *one*\n\n🤖:[Other]\n\nold\n\n💬: \n"
    shell.chat.write_text(text, encoding="utf-8")
    done = shell.run("compare", "chat.md", "Demo-OpenAI", "Nobody", "Priced")
    assert done.returncode == 1
    assert shell.chat.read_text(encoding="utf-8") == text
    answers, _, table = done.stdout.decode().rpartition("\n\n")
    assert answers == "# Demo-OpenAI\n\n*one*\n\n# Nobody\n\n(no answer)\n\n# Priced\n\n*one*"
    rows = [line.split() for line in table.splitlines()]
    assert rows[0] == ["agent", "end", "seconds", "input", "output", "cost", "chat"]
    assert [(row[0], row[1], row[5] == "-", row[6]) for row in rows[1:]] == [
        ("Demo-OpenAI", "complete", True, "chat-fork-Demo-OpenAI.md"),
        ("Nobody", "failed", True, "chat-fork-Nobody.md"),
        ("Priced", "complete", False, "chat-fork-Priced.md"),
    ]
    assert b"chat-fork-Nobody.md: nobody cannot be reached" in done.stderr
    fork = (shell.folder / "chat-fork-Priced.md").read_text(encoding="utf-8")
    head = "---\nagent: Priced\nforked_from: chat.md\n---\n\n💬: say: *one*\n\n"
    assert fork == f"{head}🤖:[Priced]\n\n*one*\n\n💬: \n"
    again = shell.run("respond", "chat-fork-Priced.md", "--again")  # the user has chosen the agent
    assert (again.returncode, again.stdout) == (0, b"*one*\n")


def test_an_agent_that_was_not_asked_has_no_answer_of_an_earlier_exchange(shell: Shell) -> None:
    text = "💬: a\n\n🤖:[Other]\n\nearlier\n\n💬: @@none.txt@@ say: one\n"
    shell.chat.write_text(text, encoding="utf-8")
    done = shell.run("compare", "chat.md", "Demo", "Demo-OpenAI", "--quiet")
    assert done.stdout == b"# Demo\n\n(no answer)\n\n# Demo-OpenAI\n\n(no answer)\n\n"


def test_programs_receive_each_agents_lines(shell: Shell) -> None:
    shell.ask("find the stock price of google")
    done = shell.run("compare", "chat.md", "Demo", "Demo-OpenAI", "--json")
    assert (done.returncode, done.stderr) == (3, b"")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"fork", "call_waiting", "chat_end", "comparison"} <= types_of(done.stdout.splitlines())
    files = ["chat-fork-Demo.md", "chat-fork-Demo-OpenAI.md"]
    assert [line["file"] for line in lines if line["type"] == "fork"] == files
    compared = [line for line in lines if line["type"] == "comparison"]
    assert [(line["agent"], line["file"], line["kind"]) for line in compared] == [
        ("Demo", files[0], "waiting"),
        ("Demo-OpenAI", files[1], "waiting"),
    ]
    assert all(line["seconds"] > 0 and line["tokens"]["input"] > 0 for line in compared)


def test_a_new_question_is_asked_in_a_new_chat_and_its_forks(shell: Shell) -> None:
    done = shell.run("compare", "--ask", "say: hello", "Demo", "Demo-OpenAI", "--quiet")
    assert done.stdout == b"# Demo\n\nhello\n\n# Demo-OpenAI\n\nhello\n\n"
    folder = shell.folder / "XDG_DATA_HOME" / "parley" / "chats"
    chat, *forks = sorted(folder.iterdir(), key=lambda path: len(path.name))
    assert chat.read_text(encoding="utf-8").endswith("💬: say: hello\n")
    assert [path.name.partition("-fork-")[2] for path in forks] == ["Demo.md", "Demo-OpenAI.md"]
    for arguments, code in {
        ("chat.md", "Demo"): 2,
        ("chat.md", "Demo", "Demo"): 2,
        ("chat.md", "Demo", "Demo-OpenAI", "--last"): 2,
        ("chat.md", "Demo", "Nobody"): 1,
        ("none.md", "Demo", "Demo-OpenAI"): 1,
    }.items():
        assert shell.run("compare", *arguments).returncode == code, arguments
