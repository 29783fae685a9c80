"""The terminal's content: all output and the status, without text that controls the terminal or
hides.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from parley.chat.call_lines import proposal_line
from parley.chat.reader import parse
from parley.chat.transcript import ToolCall
from tests.cli.shell import Shell, raw, toml

SERVER = Path(__file__).with_name("hostile_server.py")
HOSTILE = "\x1b]0;owned\x07\x1b[5;31m\x9b2J\rsafe\u202egnp.exe\u200b\x08\x7f\u2066\U000e0041\ufeff"
_QUOTED = json.dumps(HOSTILE)
CONTENT = f"---\nagent: {_QUOTED}\n{_QUOTED}: 1\ntemperature: {_QUOTED}\n---\n\n"


def shows(shell: Shell, *arguments: str, keys: bytes = b"") -> tuple[int, str]:
    """The exit code and the terminal's output, which contains no raw text.

    Presses the keys when the command asks.
    """
    with shell.terminal(*arguments) as terminal:
        code = terminal.end(keys)
    assert not raw(terminal.text), ascii(terminal.text)
    assert "Traceback" not in terminal.text
    return code, terminal.text


def test_the_status_erases_no_word_of_the_answer(shell: Shell) -> None:
    shell.ask("can you find the latest stock price of google and microsoft?")
    assert b"Let me search the web for both." in shell.run("respond", "chat.md").stdout
    with shell.terminal("respond", "chat.md", "--choose", "yA") as terminal:
        assert terminal.end() == 0
    assert any(row.startswith("Google (GOOGL) is at $911") for row in terminal.rows)
    assert "Using Web Search..." in terminal.text
    assert not any("..." in row for row in terminal.rows)  # the status is removed at the end


def test_a_status_fits_into_a_narrow_terminal(shell: Shell) -> None:
    shell.ask("can you find the latest stock price of google and microsoft?")
    with shell.terminal("respond", "chat.md", columns=12) as terminal:
        terminal.wait_for(lambda output: b"K details" in output)
        terminal.press(b"q")
        assert terminal.end() == 3
    assert "Analyzing r" in terminal.text
    assert "Analyzing re" not in terminal.text


def test_a_dumb_terminal_gets_no_status(shell: Shell) -> None:
    shell.ask("hello")
    with shell.terminal("respond", "chat.md", TERM="dumb") as terminal:
        assert terminal.end() == 0
    assert "\x1b" not in terminal.text


def test_text_from_a_model_cannot_control_the_terminal(shell: Shell) -> None:
    shell.ask(f"say: {HOSTILE} 🛠️")
    code, text = shows(shell, "respond", "chat.md")
    assert code == 0
    assert "\\x1b]0;owned\\x07" in text
    assert "\\u202egnp.exe" in text
    assert "🛠️" in text
    assert "\x1b]0;owned\x07" in shell.text  # the file has the unchanged text
    shell.ask(f"say: {HOSTILE}")
    assert b"\x1b]0;owned\x07" in shell.run("respond", "chat.md").stdout  # the pipe has it too


def test_text_from_a_server_cannot_control_the_terminal(shell: Shell) -> None:
    shell.serve("bad", SERVER, HOSTILE=json.dumps(HOSTILE))
    for arguments in ('{"text":"a"}', '{"text":"fail"}'):
        shell.ask(f"call note {arguments}")
        code, text = shows(shell, "respond", "chat.md", keys=b"ya")
        assert code == 0
        assert "\\x1b]0;owned" in text
    assert shows(shell, "tools")[0] == 0
    assert shows(shell, "tools", "--json")[0] == 0
    assert shows(shell, "messages", "chat.md", "--tools")[0] == 0
    assert shows(shell, "log", "chat.md")[0] == 0


def test_a_waiting_call_is_shown_without_disguise(shell: Shell) -> None:
    shell.serve("bad", SERVER, HOSTILE=json.dumps(HOSTILE))
    shell.ask(f"call note {json.dumps({'text': HOSTILE}, ensure_ascii=False)}")
    code, text = shows(shell, "respond", "chat.md", keys=b"q")
    assert code == 3
    assert text.rstrip().endswith(
        "these calls are waiting. parley respond chat.md asks about them again"
    )
    assert "owned" in text


def test_text_from_a_file_cannot_control_the_terminal(shell: Shell) -> None:
    call = proposal_line(ToolCall("c", HOSTILE, HOSTILE))
    shell.chat.write_text(
        f"{CONTENT}💬: {HOSTILE}\n\n🤖:[{HOSTILE}]\n\n🧠:[{HOSTILE}]\n> {HOSTILE}\n\n{call}\n\n"
        f"❓:[{HOSTILE}] `{HOSTILE}`\n\n🛠️: [{HOSTILE}][c]\n\n`{HOSTILE}`\n\n🔒: [Stopped: "
        f"{HOSTILE}]\n",
        encoding="utf-8",
    )
    assert parse(shell.text).problems
    assert shows(shell, "check", "chat.md")[0] == 1
    for command in ("respond", "messages", "parse", "export", "log"):
        shows(shell, command, "chat.md")
    shell.chat.write_text(shell.text.removeprefix(CONTENT), encoding="utf-8")
    for command in ("respond", "messages", "parse", "export", "log"):
        shows(shell, command, "chat.md")


def test_names_and_arguments_cannot_control_the_terminal(shell: Shell) -> None:
    name = HOSTILE.replace("/", "") + ".md"
    for command in ("respond", "messages", "parse", "export", "check", "trust"):
        assert shows(shell, command, f"none{name}")[0] == 1
    (shell.folder / name).write_text("💬: hello\n\n🤖:[A]\n\n❓: `{}`\n", encoding="utf-8")
    assert shows(shell, "check", name)[0] == 1
    shows(shell, "export", name)
    shell.ask("hello")
    assert shows(shell, "respond", "chat.md", "--agent", HOSTILE)[0] == 1
    assert shows(shell, "respond", "chat.md", "--choose", HOSTILE)[0] == 2
    assert shows(shell, "respond", "chat.md", HOSTILE)[0] == 1
    assert shows(shell, f"--{HOSTILE}")[0] == 2
    assert shows(shell, "demo-server", "--port", HOSTILE)[0] == 2


def test_settings_and_server_files_cannot_control_the_terminal(shell: Shell) -> None:
    text = toml(HOSTILE)
    shell.configure(f"{text} = 1\n[mcp]\nconfig_file = {text}\n", agent=f"agent = {text}")
    servers = {
        "a": {"command": HOSTILE, "args": [HOSTILE]},
        HOSTILE: {},
        "b": {"url": f"http://{HOSTILE}"},
    }
    (shell.folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    assert "there is no such setting" in shows(shell, "tools")[1]
    with shell.terminal("trust", ".mcp.json") as terminal:
        terminal.wait_for(lambda output: output.endswith(b"(y/N) "))
        terminal.press(b"y\n")
        terminal.end()
    assert "\\x1b" in terminal.text
    assert not raw(terminal.text)
    shows(shell, "tools")


def test_lines_for_people_cannot_control_a_terminal_after_a_pipe(shell: Shell) -> None:
    shell.serve("bad", SERVER, HOSTILE=json.dumps(HOSTILE))
    said = shell.run("tools").stdout
    assert b"\\x1b]0;owned" in said
    chat = shell.folder / f"{HOSTILE}.md"
    chat.write_text(CONTENT, encoding="utf-8")
    said += shell.run("check", chat.name).stdout
    shell.ask("call note {}")
    shell.run("respond", "chat.md", "--choose", "yn", "--reason", HOSTILE)
    shell.run("respond", "chat.md", "--choose", "yn", "--reason", HOSTILE)
    said += shell.run("log", "chat.md").stdout
    assert not raw(said.decode("utf-8", "surrogateescape"))


def test_a_path_that_is_not_utf_8_keeps_its_bytes_in_a_pipe(shell: Shell) -> None:
    name = os.fsdecode(b"a\xff.md")
    (shell.folder / name).write_text("no question\n", encoding="utf-8")
    assert shell.run("check", name).stdout.startswith(b"a\xff.md:1:1: ")


@contextmanager
def refusing(status: int, body: bytes, kind: str) -> Iterator[str]:
    """A provider that refuses every request with this page."""

    class Refuser(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refuser)
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("kind", ["application/json", "text/html", "text/event-stream"])
def test_a_providers_refusal_cannot_control_the_terminal(shell: Shell, kind: str) -> None:
    said = {"error": {"message": HOSTILE, "type": HOSTILE, "code": HOSTILE}}
    body = HOSTILE.encode() if kind == "text/html" else json.dumps(said).encode()
    status = 200 if kind == "text/event-stream" else 400
    with refusing(status, b"data: " + body + b"\n\n" if status == 200 else body, kind) as url:
        shell.configure(
            f'[providers.bad]\nkind = "openai"\nbase_url = "{url}"\n'
            f'[[agents]]\nname = "Bad"\nprovider = "bad"\nmodel = {toml(HOSTILE)}\n'
        )
        shell.ask("hello")
        code, text = shows(shell, "respond", "chat.md", "--agent", "Bad")
    assert code == 1
    assert "owned" in text


def test_ctrl_c_keeps_the_answer_so_far_and_the_chat_can_continue(shell: Shell) -> None:
    shell.ask("write 5000 words")
    with shell.terminal("respond", "chat.md", PARLEY_DEMO_PACE="0.01") as terminal:
        terminal.wait_for(lambda output: b"conversation" in output)
        terminal.press(b"\x03")
        assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert "parley: stopped: the answer so far is in chat.md" in terminal.text
    assert "conversation" in shell.text
    assert shell.text.endswith("🔒: [Stopped: by the user]\n\n💬: \n")
    shell.chat.write_text(
        shell.text.replace("write 5000 words", "find the stock price of google"), encoding="utf-8"
    )
    assert shell.run("respond", "chat.md").returncode == 3
    done = shell.run("respond", "chat.md", "--choose", "yA")
    assert (done.returncode, b"$911" in done.stdout) == (0, True)


def test_ctrl_c_before_anything_was_sent_says_so(shell: Shell) -> None:
    started = shell.chat.with_name("started")
    os.mkfifo(started)
    command = f"echo > {started}; sleep 60"
    shell.configure(f'[mcp.servers.late]\ncommand = "sh"\nargs = ["-c", {toml(command)}]\n')
    shell.ask("hello")
    before = shell.text
    with shell.terminal("respond", "chat.md") as terminal:
        started.read_bytes()
        terminal.press(b"\x03")
        assert terminal.end() == 130
    assert "parley: stopped before a request was sent, so chat.md is unchanged" in terminal.text
    assert shell.text == before


def test_nothing_is_lost_if_the_terminal_closes(shell: Shell) -> None:
    shell.ask("write 5000 words")
    with shell.terminal("respond", "chat.md", PARLEY_DEMO_PACE="0.01") as terminal:
        terminal.wait_for(lambda output: b"conversation" in output)
        terminal.hang_up()
        assert terminal.process.wait(45) == 130
    assert shell.text.endswith("🔒: [Stopped: by the user]\n\n💬: \n")


@pytest.mark.parametrize(
    ("setting", "topic"),
    [("", "You said hello, and I said who I am"), ("fill_topic = false", '""')],
)
def test_an_empty_topic_is_filled_in_after_the_first_answer(
    shell: Shell, setting: str, topic: str
) -> None:
    shell.configure(setting)
    shell.chat.write_text('---\ntopic: ""\n---\n\n💬: hello\n', encoding="utf-8")
    assert shows(shell, "respond", "chat.md")[0] == 0
    assert shell.text.startswith(f"---\ntopic: {topic}\n---\n\n💬: hello\n\n🤖:[")
