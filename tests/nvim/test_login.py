"""Signing in to a server from a real Neovim, with a fake browser that follows redirects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mcp.oauth_server import browser, serving
from tests.nvim.harness import Child, child
from tests.nvim.test_servers_page import LONG_S, setup
from tests.nvim.test_turn import ask, complete


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path) as url:
        yield url


@contextmanager
def opened(home: Path, url: str, **env: str) -> Iterator[Child]:
    init = setup({"tracker": {"url": url}}, agent="Demo-OpenAI")
    with child(home, init=init, width=80, height=24, env=env) as nvim:
        yield nvim


@pytest.fixture
def desk(home: Path, tmp_path: Path, server: str) -> Iterator[Child]:
    with opened(home, server, **browser(tmp_path)) as nvim:
        yield nvim


def tools(nvim: Child, text: str) -> str:
    nvim.command("ParleyTools")
    return shown(nvim, text)


def shown(nvim: Child, text: str) -> str:
    nvim.until(lambda: text in nvim.screen(), text, LONG_S)
    return nvim.screen()


def on_the_server(nvim: Child) -> None:
    nvim.command("call search('tracker:')")


def test_the_server_page_offers_sign_in_and_its_key_signs_in(desk: Child, tmp_path: Path) -> None:
    seen = tools(desk, "tracker: failed, signed out, 0 tools")
    assert "To sign in, press s: a page opens in your browser" in seen
    assert "s: sign in, in your browser   S: sign out" in seen
    assert not (tmp_path / "pages.html").exists()
    on_the_server(desk)
    desk.keys("s")
    shown(desk, "tracker: ready, signed in, protocol")
    assert "signed in to tracker" in desk.messages()
    assert "in your browser" in desk.messages()
    assert "You can close this page" in (tmp_path / "pages.html").read_text()
    on_the_server(desk)
    desk.keys("S")
    shown(desk, "tracker: failed, signed out")
    desk.keys("S")
    desk.until(lambda: "you are not signed in to tracker" in desk.messages(), "the refusal", LONG_S)


def test_until_the_page_is_visited_its_address_is_shown_and_the_key_cancels(
    home: Path, tmp_path: Path, server: str
) -> None:
    with opened(home, server, **browser(tmp_path, "#!/bin/sh\n")) as nvim:
        tools(nvim, "signed out")
        on_the_server(nvim)
        nvim.keys("s")
        host = server.split("/")[2]
        seen = shown(nvim, f"Sign in at {host}, in your browser (s: cancel):")
        assert f"http://{host}/authorize?response_type=code" in seen
        nvim.keys("s")
        shown(nvim, "failed, signed out")
        assert "sign-in to 'tracker' was cancelled" in nvim.messages()


def test_without_a_browser_a_message_appears_and_the_address_stays(
    home: Path, tmp_path: Path, server: str
) -> None:
    with opened(home, server) as nvim:
        nvim.lua("vim.ui.open = function() return nil, 'no handler' end")
        nvim.command("ParleyLogin tracker")
        nvim.until(
            lambda: "no browser opened the page on 127.0.0.1" in nvim.messages(), "a word", LONG_S
        )
        assert "no handler" in nvim.messages()
        tools(nvim, "/authorize?response_type=code")


def test_a_turn_names_the_sign_in_command_and_then_the_tool_runs(desk: Child) -> None:
    ask(desk, "hello", "first.md")
    complete(desk)
    assert "What to do: :ParleyLogin tracker, or set" in desk.messages()
    desk.command("ParleyLogin tracker")
    desk.until(lambda: "signed in to tracker" in desk.messages(), "the login", LONG_S)
    ask(desk, "call whoami {}", "second.md")
    desk.until_waiting(LONG_S)
    desk.keys("ya")
    desk.until_text("somebody who signed in", LONG_S)


def test_no_written_file_or_process_argument_contains_a_token(
    desk: Child, home: Path, tmp_path: Path
) -> None:
    desk.command("ParleyLogin tracker")
    desk.until(lambda: "signed in to tracker" in desk.messages(), "the login", LONG_S)
    ask(desk, "call whoami {}", "secret.md")
    desk.until_waiting(LONG_S)
    desk.keys("ya")
    desk.until_text("somebody who signed in", LONG_S)
    complete(desk)
    texts = [desk.text(), desk.messages()]
    desk.command("ParleyExport")
    desk.until(lambda: list(home.rglob("*.html")), "the exported page", LONG_S)
    for command, text in (
        ("ParleyRequest", "whoami"),
        ("ParleyLog", "whoami"),
        ("ParleyTools", "signed in"),
    ):
        desk.command(command)
        texts.append(shown(desk, text))
    secrets = (tmp_path / "secrets").read_text().split("\n")
    assert len(secrets) >= 3
    files = {path for path in home.rglob("*") if path.is_file()}
    texts += [path.read_bytes().decode("latin-1") for path in files if path.parent.name != "logins"]
    texts += [path.read_bytes().decode("latin-1") for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [secret for secret in secrets if any(secret in text for text in texts)]
    (login,) = (path for path in files if path.parent.name == "logins" and path.suffix == ".json")
    assert [secret for secret in secrets if secret in login.read_text()]


def test_a_wider_scope_is_named_on_the_page_and_the_next_key_asks_for_it(
    home: Path, tmp_path: Path
) -> None:
    with (
        serving(tmp_path, "--demands", "admin") as url,
        opened(home, url, **browser(tmp_path)) as nvim,
    ):
        tools(nvim, "signed out")
        on_the_server(nvim)
        nvim.keys("s")
        shown(nvim, "sign in again for the scope admin")
        on_the_server(nvim)
        nvim.keys("R")
        seen = shown(nvim, "tracker: failed, signed in")
        assert "HTTP 403 Forbidden: not for you. What to do: sign" in seen
        assert nvim.text().count("sign in again for the scope admin with :ParleyLogin tracker") == 1
        on_the_server(nvim)
        nvim.keys("s")
        shown(nvim, "tracker: ready, signed in, protocol")
        assert "scope admin" not in nvim.screen()
