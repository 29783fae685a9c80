"""What `parley messages` shows: the request of an agent in the format that was named."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

from tests.cli.shell import Shell
from tests.forks import ForkServer
from tests.pictures import beside, png, question

AGENT = """
[[agents]]
name = "Mine"
provider = "lab"
model = "m-1"

[providers.lab]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
"""


def test_a_format_is_shown_for_the_first_agent_of_its_kind_whatever_its_provider_is_called(
    tmp_path: Path, forks: ForkServer
) -> None:
    shell = Shell(tmp_path, forks)
    shell.configure(AGENT)
    shell.ask("hi")
    models = {}
    for name in ("openai", "openai-responses", "anthropic"):
        done = shell.run("messages", "chat.md", "--provider", name)
        models[name] = json.loads(done.stdout)["model"]
    assert models == {"openai": "m-1", "openai-responses": "m-1", "anthropic": "claude-sonnet-5-5"}


def test_no_request_is_shown_for_an_agent_that_is_not_there(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.ask("hi")
    for command in ("messages", "replay"):
        done = shell.run(command, "chat.md", "--agent", "Nobody")
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(b"parley: there is no agent 'Nobody': choose one of ")


def test_a_request_holds_the_pictures_beside_its_chat(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.chat.write_text(question(beside(shell.chat, png())), encoding="utf-8")
    done = shell.run("messages", "chat.md")
    assert json.loads(done.stdout)["messages"][-1]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{b64encode(png()).decode()}"},
    }
    (tmp_path / "chat.assets").rename(tmp_path / "lost")
    assert "[image image/png, 69 B]" in shell.run("messages", "chat.md").stdout.decode()


def test_attachments_that_are_missing_wrong_or_not_linked_are_named(
    tmp_path: Path, forks: ForkServer
) -> None:
    shell = Shell(tmp_path, forks)
    good, wrong, lonely = (beside(shell.chat, png(number)) for number in range(3))
    shell.chat.write_text(question(good, wrong), encoding="utf-8")
    (tmp_path / wrong.path).write_bytes(b"other")
    done = shell.run("check", "chat.md")
    assert done.returncode == 0
    assert done.stdout.decode().splitlines() == [
        f"chat.md:5:1: warning: {wrong.path}: its content does not match its name",
        f"chat.md:1:1: hint: {lonely.path} is not linked from this chat",
    ]


def test_a_page_has_the_pictures_in_it(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.chat.write_text(question(beside(shell.chat, png())), encoding="utf-8")
    page = shell.run("export", "chat.md").stdout.decode()
    assert f'<img src="data:image/png;base64,{b64encode(png()).decode()}" alt="image/png 69 B">' in page


def test_what_a_tool_returns_is_told_at_a_shell_with_words_for_its_picture(
    tmp_path: Path, forks: ForkServer
) -> None:
    shell = Shell(tmp_path, forks)
    program = "import sys; sys.argv.append('--extra'); from parley.mock_server import main; main()"
    (tmp_path / "server.py").write_text(program, encoding="utf-8")
    shell.serve("extra", tmp_path / "server.py")
    shell.ask("call picture {}")
    assert shell.run("respond", "chat.md").returncode == 3
    done = shell.run("respond", "chat.md", "--choose", "ya")
    assert "[image image/png, 68 B]" in done.stdout.decode()
    assert done.returncode == 0


def test_a_check_names_the_byte_at_which_a_problem_stands(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.chat.write_text("💬: q\n\n🤖:[A]\n\n❓:[yX] `{no}`\n", encoding="utf-8")
    lines = shell.run("check", "chat.md").stdout.decode().splitlines()
    places = [tuple(map(int, line.split(":")[1:3])) for line in lines]
    assert [row for row, _ in places] == [5, 5]
    assert [shell.chat.read_bytes().splitlines()[4][column - 1 :] for _, column in places] == [
        b"[yX] `{no}`",
        b"{no}`",
    ]
