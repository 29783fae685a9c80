"""`parley compact` and `parley respond`: the lines in the file, the messages, the exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell, toml
from tests.mcp_servers import FAKE
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
    why = f"@@{name}@@: only an editor has it. Ask in Neovim, or name a file"
    assert f"not asked: {why}; ask again to continue without it" in stopped.stderr.decode()
    assert shell.text == f"💬: say: hello @@{name}@@\n"


def test_a_program_reads_which_reference_stops_the_question(shell: Shell) -> None:
    shell.ask("say: hello @@../out.txt@@")
    stopped = shell.run("respond", "chat.md", "--json")
    assert stopped.returncode == 1
    error, end = map(json.loads, stopped.stdout.splitlines()[-2:])
    assert end == {"type": "end", "code": 1, "kind": "failed"}
    assert error["type"] == "error"
    assert "@@../out.txt@@: outside the working directory: not read" in error["message"]


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


@pytest.mark.parametrize("content", ['agent = "Mine"\n[loop\n', 'agent = "Mine"\n'])
def test_no_question_is_sent_if_the_settings_file_is_unreadable(shell: Shell, content: str) -> None:
    shell.ask("hello")
    shell.configure(content, "")
    done = shell.run("respond", "chat.md")
    said = done.stderr.decode()
    assert done.returncode == 1
    assert ("Parley sends no question until it can be read" in said) == ("[loop" in content)
    assert ("there is no agent 'Mine'" in said) == ("[loop" not in content)
    assert "🤖:" not in shell.text
