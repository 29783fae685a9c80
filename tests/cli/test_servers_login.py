"""`parley login openrouter`, and the key that later commands send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.cli.test_servers import output
from tests.forks import ForkServer
from tests.key_site import KeySite, key_site
from tests.mcp.oauth_server import browser, parameters
from tests.nvim.test_account_dialog import ended


@pytest.fixture
def site() -> Iterator[KeySite]:
    with key_site() as site:
        yield site


@pytest.fixture
def shell(tmp_path: Path, forks: ForkServer, site: KeySite) -> Shell:
    shell = Shell(tmp_path, forks)
    shell.environ["OPENROUTER_BASE_URL"] = site.base
    shell.configure("", agent="")
    return shell


def test_after_a_login_a_question_is_sent_with_the_key(
    shell: Shell, site: KeySite, tmp_path: Path
) -> None:
    code, said, complaints = output(shell.run("ask", "-a", "OpenRouter", "hello"))
    assert code == 1
    assert (
        "sign in with parley login openrouter, set OPENROUTER_API_KEY in this shell, or"
        in said + complaints
    )
    code, said, complaints = output(shell.run("login", "openrouter", **browser(tmp_path)))
    assert (code, complaints) == (0, "")
    first, page, last = said.splitlines()
    assert first.startswith("Sign in to openrouter at 127.0.0.1:")
    assert parameters(page)["code_challenge_method"] == "S256"
    assert last == "signed in to openrouter"
    code, said, _ = output(shell.run("ask", "hello"))
    assert (code, said) == (0, "Signed in.\n")
    (key,) = site.keys
    assert ("/api/v1/chat/completions", key) in site.asked
    agents = output(shell.run("agents"))[1]
    assert "* OpenRouter   openrouter   openrouter/auto    signed in" in agents
    assert output(shell.run("config", "agent"))[1] == "OpenRouter\n"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    kept = [path for path in files if key.encode() in path.read_bytes()]
    assert [path.parent.name for path in kept] == ["provider_logins"]
    site.keys.clear()
    code, _, complaints = output(shell.run("ask", "hello"))
    assert code == 1
    assert "sign in again with parley login openrouter (the key was not accepted)" in complaints
    assert key not in complaints
    said = output(shell.run("logout", "openrouter"))[1]
    assert said == "signed out of openrouter: the key stored here was deleted\n"
    assert output(shell.run("logout", "openrouter"))[::2] == (
        1,
        "parley: you are not signed in to openrouter\n",
    )


def test_the_address_of_a_browser_elsewhere_can_be_pasted(shell: Shell, site: KeySite) -> None:
    with shell.terminal("login", "openrouter", columns=400) as terminal:
        terminal.wait_for(lambda written: b"and press Enter" in written)
        page = next(line for line in terminal.output.decode().split() if "/auth?" in line)
        terminal.press(b"http://localhost/elsewhere\n\n")
        terminal.wait_for(lambda written: b"does not belong to this sign-in" in written)
        terminal.press(f"{ended(page)}\n".encode())
        terminal.wait_for(lambda written: b"signed in to openrouter" in written)
        assert terminal.end() == 0
    assert len(site.keys) == 1


def test_ctrl_c_cancels_and_ctrl_d_only_ends_the_input(shell: Shell, site: KeySite) -> None:
    with shell.terminal("login", "openrouter") as terminal:
        terminal.wait_for(lambda written: b"and press Enter" in written)
        terminal.press(b"\x04")
        terminal.press(b"\x03")
        assert terminal.end() == 130
    assert site.keys == set()
