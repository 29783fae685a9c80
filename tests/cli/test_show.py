"""`parley messages`: an agent's request in the named format."""

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


def test_a_format_is_shown_for_its_first_agent_whatever_the_providers_name(
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


def test_no_request_is_shown_for_an_unknown_agent(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.ask("hi")
    for command in ("messages", "replay"):
        done = shell.run(command, "chat.md", "--agent", "Nobody")
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(b"parley: there is no agent 'Nobody': choose one of ")


def test_a_request_contains_the_pictures_of_its_chat(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.chat.write_text(question(beside(shell.chat, png())), encoding="utf-8")
    done = shell.run("messages", "chat.md")
    assert json.loads(done.stdout)["messages"][-1]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{b64encode(png()).decode()}"},
    }
    (tmp_path / "chat.assets").rename(tmp_path / "lost")
    assert "[image image/png, 69 B]" in shell.run("messages", "chat.md").stdout.decode()


def test_missing_wrong_and_unlinked_attachments_are_named(
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


def test_a_page_contains_the_pictures(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.chat.write_text(question(beside(shell.chat, png())), encoding="utf-8")
    page = shell.run("export", "chat.md").stdout.decode()
    assert (
        f'<img src="data:image/png;base64,{b64encode(png()).decode()}" alt="image/png 69 B">'
        in page
    )


def test_the_shell_prints_a_result_with_text_for_its_picture(
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


def test_check_reports_a_problems_column_in_bytes(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.chat.write_text("💬: q\n\n🤖:[A]\n\n❓:[yX] `{no}`\n", encoding="utf-8")
    lines = shell.run("check", "chat.md").stdout.decode().splitlines()
    places = [tuple(map(int, line.split(":")[1:3])) for line in lines]
    assert [row for row, _ in places] == [5, 5]
    assert [shell.chat.read_bytes().splitlines()[4][column - 1 :] for _, column in places] == [
        b"[yX] `{no}`",
        b"{no}`",
    ]
