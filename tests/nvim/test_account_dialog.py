"""Signing in to a provider from a real Neovim, with a fake browser that follows redirects."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

import pytest

from tests.key_site import KeySite, key_site
from tests.mcp.oauth_server import browser
from tests.nvim.harness import Child, child
from tests.nvim.test_turn import ask, complete

NO_BROWSER = "vim.ui.open = function(url) _G.page = url return nil, 'no handler' end"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def site() -> Iterator[KeySite]:
    with key_site() as site:
        yield site


@contextmanager
def opened(home: Path, site: KeySite, init: str = "", **env: str) -> Iterator[Child]:
    env["OPENROUTER_BASE_URL"] = site.base
    with child(home, init=init, width=80, height=24, env=env) as nvim:
        yield nvim


def heard(nvim: Child, text: str) -> None:
    nvim.until(lambda: text in nvim.messages(), text)


def test_without_a_key_a_message_names_the_command_and_then_its_agent_answers(
    home: Path, site: KeySite, tmp_path: Path
) -> None:
    with opened(home, site, **browser(tmp_path)) as nvim:
        ask(nvim, "hello", "first.md")
        complete(nvim)
        assert "sign in with :ParleyLogin openrouter, or set ANTHROPIC" in nvim.messages()
        nvim.command("ParleyLogin openrouter")
        heard(nvim, "signed in to openrouter. OpenRouter answers in new chats")
        assert "Sign in to openrouter" not in nvim.screen(), "the page is closed again"
        assert "You can close this page" in (tmp_path / "pages.html").read_text()
        ask(nvim, "hello", "second.md")
        assert "🤖:[OpenRouter]" in nvim.until_text("Signed in.")
        complete(nvim)
        nvim.command("ParleyRequest")
        texts = [nvim.until_screen("openrouter/auto"), nvim.messages()]
        files = [path for path in home.rglob("*") if path.is_file()]
        others = [path for path in files if path.parent.name != "provider_logins"]
        texts += [path.read_bytes().decode("latin-1") for path in others]
        texts += [p.read_bytes().decode("latin-1") for p in Path("/proc").glob("[0-9]*/cmdline")]
        (key,) = site.keys
        assert not any(key in text for text in texts)
        assert ("/api/v1/chat/completions", key) in site.asked
        nvim.command("ParleyLogin! openrouter")
        heard(nvim, "signed out of openrouter: the key stored here was deleted")
        nvim.command("ParleyLogin! openrouter")
        heard(nvim, "you are not signed in to openrouter")
        assert len([path for path in home.rglob("provider_logins/*") if path.is_file()]) == 0


def test_without_a_browser_the_address_is_shown_and_the_browsers_address_can_be_pasted(
    home: Path, site: KeySite
) -> None:
    with opened(home, site, NO_BROWSER) as nvim:
        nvim.command("ParleyLogin openrouter")
        seen = nvim.until_screen("Address of the browser's last page:")
        assert "no browser opened the page on 127.0.0.1" in nvim.messages()
        page = nvim.lua("return _G.page")
        assert page.partition("?")[0] in seen
        nvim.keys("http://localhost/elsewhere<CR>")
        nvim.until_screen("That address does not belong to this sign-in.")
        nvim.keys(f"{ended(page)}<CR>")
        heard(nvim, "signed in to openrouter")
        nvim.until(lambda: "Sign in to" not in nvim.screen(), "the page's end")
        # If the browser itself returns, the question closes, too.
        nvim.command("ParleyLogin openrouter")
        nvim.until_screen("Address of the browser's last page:")
        urllib.request.urlopen(ended(nvim.lua("return _G.page"))).read()
        nvim.until(lambda: nvim.messages().count("signed in to openrouter.") == 2, "the second")
        nvim.until(lambda: "browser ended" not in nvim.screen(), "the question's end")
        # After <Esc>, the page stays, and the command takes the address.
        nvim.command("ParleyLogin openrouter")
        nvim.until_screen("Address of the browser's last page:")
        nvim.keys("<Esc>")
        nvim.until(lambda: "browser ended:" not in nvim.screen(), "the question's end")
        assert "Sign in to openrouter at" in nvim.screen()
        nvim.command("ParleyLogin openrouter http://localhost/elsewhere")
        heard(nvim, "that address does not belong to a sign-in at openrouter")
        nvim.command(f"ParleyLogin openrouter {ended(nvim.lua('return _G.page'))}")
        nvim.until(lambda: nvim.messages().count("signed in to openrouter.") == 3, "the third")
        assert len(site.keys) == 3


def ended(page: str) -> str:
    """The address to which the page sends the browser; nothing is loaded there."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({}), Stay).open(page)
    except URLError as error:
        return str(error.headers["location"])  # type: ignore[attr-defined]
    raise AssertionError


def test_the_command_again_cancels_and_a_name_of_two_things_is_refused(
    home: Path, site: KeySite
) -> None:
    with opened(home, site, "vim.ui.open = function() end") as nvim:
        nvim.command("ParleyLogin openrouter")
        seen = nvim.until_screen("`:ParleyLogin openrouter` alone cancels.")
        assert "# Sign in to openrouter at 127.0.0.1:" in seen
        nvim.command("ParleyLogin openrouter")
        heard(nvim, "sign-in to 'openrouter' was cancelled")
        nvim.command("ParleyLogin anthropic")
        heard(nvim, "'anthropic' offers no sign-in to Parley. Set ANTHROPIC_API_KEY to a key")
        server = "{ url = 'http://127.0.0.1:1/mcp' }"
        nvim.lua(
            f"require('parley').setup({{ mcp = {{ servers = {{ openrouter = {server} }} }} }})"
        )
        nvim.command("ParleyLogin openrouter")
        heard(nvim, "'openrouter' is the name of a provider and of an MCP server")
