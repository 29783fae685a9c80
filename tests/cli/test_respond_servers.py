"""`parley respond` while servers are missing, or ask for something."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.shell import Shell, toml
from tests.mcp_servers import FAKE


def serve(shell: Shell, *options: str, **more: float) -> None:
    arguments = ", ".join(map(toml, (FAKE, *options)))
    rest = "".join(f"{name} = {value}\n" for name, value in more.items())
    shell.configure(
        f"[mcp.servers.far]\ncommand = {toml(sys.executable)}\nargs = [{arguments}]\n{rest}"
    )


def test_a_question_with_missing_tools_is_not_sent_and_the_reason_is_printed(shell: Shell) -> None:
    serve(shell, "--mute", start_timeout_s=0.5)
    shell.ask("say: hello")
    done = shell.run("respond", "chat.md")
    assert (done.returncode, done.stdout) == (5, b"")
    assert shell.text == "💬: say: hello\n"
    why, refusal = done.stderr.decode().splitlines()
    assert why.startswith(
        "parley: no tools from MCP server 'far': MCP server 'far' was not ready within 0.5 s"
    )
    assert refusal == (
        "parley: not asked: the tools of far are missing. To ask without them, pass "
        "--without-missing"
    )
    done = shell.run("respond", "chat.md", "--json")
    end = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, end["kind"]) == (5, "missing")


def test_a_question_is_sent_without_missing_tools_if_the_user_agrees(shell: Shell) -> None:
    serve(shell, "--die")
    shell.ask("call echo {}")
    done = shell.run("respond", "chat.md", "--without-missing")
    assert (done.returncode, b"I have no tool named echo" in done.stdout) == (0, True)
    assert "no tools from MCP server 'far': " in done.stderr.decode()


def test_waiting_calls_stay_while_their_server_is_missing(shell: Shell) -> None:
    serve(shell)
    shell.ask("call echo {}")
    assert shell.run("respond", "chat.md").returncode == 3
    before = shell.text
    serve(shell, "--die")
    assert shell.run("respond", "chat.md", "--choose", "ya").returncode == 5
    assert shell.text == before


def test_a_complete_chat_or_one_without_its_tools_does_not_need_a_server(shell: Shell) -> None:
    serve(shell, "--die")
    shell.chat.write_text('---\ntools: ["!far/*"]\n---\n\n💬: say: hello\n', encoding="utf-8")
    assert shell.run("respond", "chat.md").returncode == 0
    shell.chat.write_text("💬: one\n\n🤖:[Demo]\n\ntwo\n", encoding="utf-8")
    assert shell.run("respond", "chat.md").returncode == 0


def test_the_page_that_a_call_requires_is_printed(shell: Shell) -> None:
    address = "https://sign.example/in?a=1"
    program = toml(str(Path(FAKE).parent / "visiting_server.py"))
    command = f"command = {toml(sys.executable)}\nargs = [{program}, {toml(address)}]\n"
    shell.configure(f"status.llm = false\n[mcp.servers.far]\n{command}")
    shell.ask("call locked {}")
    assert shell.run("respond", "chat.md").returncode == 3
    done = shell.run("respond", "chat.md", "--choose", "ya")
    assert done.returncode == 0
    assert f"to be opened in a browser first: {address}" in done.stdout.decode()


def test_a_note_reports_that_a_request_lacks_a_servers_tools(shell: Shell) -> None:
    serve(shell, "--die")
    shell.ask("say: hello")
    done = shell.run("messages", "chat.md", "--tools")
    assert done.returncode == 0
    assert "not available now: far" in json.loads(done.stdout)["messages"][0]["content"]
    assert "parley: no tools from MCP server 'far': " in done.stderr.decode()
