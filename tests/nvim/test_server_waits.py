"""Slow or failing servers: a question waits for them, says so, and proceeds without them after a
key.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp_servers import FAKE
from tests.nvim.harness import Child, child
from tests.nvim.test_turn import MARKER, ask

LONG_S = 40.0
WAITS = "Waiting for MCP server slow (<C-g>x asks without it)"


def slow(go: Path, **more: Any) -> dict[str, Any]:
    """A server that begins to start when a file exists."""
    wait = f'while [ ! -e "{go}" ]; do sleep 0.02; done; exec "$@"'
    return {"command": "sh", "args": ["-c", wait, "sh", sys.executable, FAKE], **more}


def barred(go: Path) -> dict[str, Any]:
    """A server that ends at once unless a file exists."""
    try_it = f'if [ ! -e "{go}" ]; then echo no licence >&2; exit 1; fi; exec "$@"'
    return {"command": "sh", "args": ["-c", try_it, "sh", sys.executable, FAKE]}


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with child(tmp_path_factory.mktemp("waits"), width=80, height=24) as nvim:
        yield nvim


@pytest.fixture
def desk(neovim: Child) -> Child:
    neovim.clear()
    return neovim


def serve(nvim: Child, **servers: dict[str, Any]) -> None:
    nvim.lua("require('parley').setup(...)", {"agent": "Demo-OpenAI", "mcp": {"servers": servers}})


def system_prompt(nvim: Child) -> str:
    """The system prompt in the chat's next request."""
    nvim.command("ParleyRequest")
    nvim.until(lambda: nvim.name.endswith("parley://request"), "the request", LONG_S)
    page = nvim.text()
    nvim.command("close")
    return str(json.loads(page[page.index("{") :])["messages"][0]["content"])


def test_a_question_waits_for_a_slow_server_and_shows_its_name(desk: Child, tmp_path: Path) -> None:
    serve(desk, slow=slow(tmp_path / "go"))
    ask(desk, 'call echo {"a": 1}')
    desk.until_screen(WAITS, LONG_S)
    assert "🤖:" not in desk.text()
    (tmp_path / "go").touch()
    desk.until_waiting(LONG_S)
    assert "❓ echo(a: 1)" in desk.screen()
    assert "no tools" not in desk.messages()


def test_a_key_asks_without_the_slow_server_and_says_so(desk: Child, tmp_path: Path) -> None:
    # A host says so once per server, and no other test uses this server.
    serve(desk, sluggish=slow(tmp_path / "go", start_timeout_s=600))
    ask(desk, 'call echo {"a": 1}')
    desk.until_screen("Waiting for MCP server sluggish (<C-g>x asks without it)", LONG_S)
    desk.keys("<C-g>x")
    desk.until_text("I have no tool named echo", LONG_S)
    desk.until_idle(LONG_S)
    assert "Stopped" not in desk.text()
    assert "no tools from MCP server 'sluggish': it is still starting" in desk.messages()


def test_the_model_and_the_user_learn_of_a_failing_server_with_each_question(
    desk: Child, tmp_path: Path
) -> None:
    serve(desk, barred=barred(tmp_path / "go"))
    ask(desk, "say: one")
    desk.until(
        lambda: "no tools from MCP server 'barred': " in desk.messages(), "the message", LONG_S
    )
    desk.until_idle(LONG_S)
    desk.keys("Gasay: two<Esc><C-g><C-g>")
    again = "asked without the tools of MCP server barred. :ParleyTools shows why"
    desk.until(lambda: again in desk.messages(), "the message again", LONG_S)
    desk.until_idle(LONG_S)
    assert len([line for line in desk.messages().split("\n") if "barred" in line]) == 2
    missing = "The tools of these MCP servers are not available now: barred."
    assert missing in system_prompt(desk)
    (tmp_path / "go").touch()
    assert missing not in system_prompt(desk)


def test_a_failed_server_is_retried_when_the_user_asks(desk: Child, tmp_path: Path) -> None:
    serve(desk, barred=barred(tmp_path / "go"))
    ask(desk, 'call echo {"a": 1}')
    desk.until_text("I have no tool named echo", LONG_S)
    desk.until_idle(LONG_S)
    (tmp_path / "go").touch()
    desk.keys('Gacall echo {"a": 2}<Esc><C-g><C-g>')
    desk.until_waiting(LONG_S)


def test_a_chat_that_excludes_a_server_does_not_wait_for_it(desk: Child, tmp_path: Path) -> None:
    serve(desk, slow=slow(tmp_path / "go", start_timeout_s=600))
    path = desk.edit("out.md", f'---\ntools: ["!slow/*"]\n---\n\n{MARKER} say: fine\n')
    desk.command("normal! G$")
    desk.command("ParleyRespond")
    desk.until_text("\nfine", LONG_S)
    desk.until_idle(LONG_S)
    assert "MCP" not in desk.messages()
    assert path.exists()


def test_waiting_calls_are_not_refused_because_a_slow_server_is_missing(
    desk: Child, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    go.touch()
    serve(desk, slow=slow(go))
    ask(desk, 'call echo {"a": 1}')
    desk.until_waiting(LONG_S)
    desk.until_idle(LONG_S)
    go.unlink()
    serve(desk, slow=slow(go, start_timeout_s=600))  # other settings, so it restarts
    desk.keys("ya")
    desk.until_screen("Waiting for MCP server slow 1s", LONG_S)
    desk.keys("<C-g>x")
    desk.until_idle(LONG_S)
    assert "refused" not in desk.text()
    go.touch()
    desk.command("call search('^❓', 'w')")
    desk.until_waiting(LONG_S)
    desk.keys("ya")
    desk.until_text('`{"a": 1}`', LONG_S)
    desk.until_idle(LONG_S)


def test_opening_a_page_names_the_server_that_it_waits_for(desk: Child, tmp_path: Path) -> None:
    serve(desk, slow=slow(tmp_path / "go", start_timeout_s=600))
    desk.edit("look.md", f"{MARKER} what?\n")
    desk.until(lambda: desk.lua("return require('parley.chat').is_attached(0)"), "the chat")
    desk.command("ParleyRequest")
    desk.until(lambda: "Waiting for MCP server slow" in desk.messages(), "the message", LONG_S)
    (tmp_path / "go").touch()
    desk.until(lambda: desk.name.endswith("parley://request"), "the request", LONG_S)
    assert '"name": "echo"' in desk.text()


def test_a_choice_waits_only_for_the_calls_server(desk: Child, tmp_path: Path) -> None:
    fake = {"command": sys.executable, "args": [FAKE]}
    serve(desk, fake=fake, slow=slow(tmp_path / "go", start_timeout_s=600, enabled_tools=["grow"]))
    ask(desk, 'call echo {"a": 1}')
    desk.until_screen(WAITS, LONG_S)
    desk.keys("<C-g>x")
    desk.until_waiting(LONG_S)
    desk.until_idle(LONG_S)
    desk.keys("ya")
    desk.until_text('echo returned: {"a": 1}', LONG_S)
    desk.until_idle(LONG_S)


def test_a_call_whose_server_fails_waits_until_it_can_run(desk: Child, tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.touch()
    serve(desk, barred=barred(go))
    ask(desk, 'call echo {"a": 7}')
    desk.until_waiting(LONG_S)
    desk.until_idle(LONG_S)
    go.unlink()
    serve(desk, barred=barred(go) | {"timeout_s": 61})  # so it restarts
    desk.keys("ya")
    desk.until(
        lambda: "echo cannot run now: the tools of barred are missing" in desk.messages(),
        "it",
        LONG_S,
    )
    desk.until_idle(LONG_S)
    assert "🛠️:" not in desk.text()
    assert "[ya]" not in desk.text()
    go.touch()
    desk.keys("ya")
    desk.until_text('`{"a": 7}`', LONG_S)
    desk.until_idle(LONG_S)
