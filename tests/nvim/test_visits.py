"""Pages that servers want opened: their display, and the effects of approving and declining."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nvim.harness import Child, child
from tests.nvim.test_servers_page import LONG_S, approved, prompted, stop
from tests.nvim.test_turn import complete

SERVER = str(Path(__file__).parents[1] / "mcp" / "visiting_server.py")
ADDRESS = "https://sign.example/in?client=parley&state=0123456789"
BROWSER = "_G.visited = {} vim.ui.open = function(url) table.insert(_G.visited, url) end"


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with child(tmp_path_factory.mktemp("visits"), init=BROWSER, width=80, height=24) as nvim:
        yield nvim


@pytest.fixture
def desk(neovim: Child) -> Child:
    neovim.clear()
    neovim.lua("_G.visited = {}")
    return neovim


def serve(nvim: Child, *arguments: str) -> None:
    far = {"command": sys.executable, "args": [SERVER, *arguments]}
    settings: dict[str, Any] = {"agent": "Demo-OpenAI", "mcp": {"servers": {"far": far}}}
    nvim.lua("require('parley').setup(...)", settings)


def visited(nvim: Child) -> list[str]:
    urls: list[str] = nvim.lua("return _G.visited")
    return urls


def test_the_address_is_shown_and_opened_after_approval(desk: Child) -> None:
    serve(desk, ADDRESS)
    approved(desk, "call visit {}")
    seen = prompted(desk, "1: No")
    assert "far asks you to open a page on sign.example" in seen
    assert "Host: sign.example" in seen
    assert f"Address: {ADDRESS}" in seen
    assert (
        "The server says: Sign in, \\u001b[31mplease" in seen or "Sign in, \\x1b[31mplease" in seen
    )
    assert visited(desk) == []
    desk.keys("2<CR>")
    complete(desk)
    assert visited(desk) == [ADDRESS]
    assert '{"action": "accept"}' in desk.text()
    assert "parley://visit" not in desk.screen()


@pytest.mark.parametrize(("keys", "action"), [("1<CR>", "decline"), ("<Esc>", "cancel")])
def test_without_approval_nothing_is_opened(desk: Child, keys: str, action: str) -> None:
    serve(desk, ADDRESS)
    approved(desk, "call visit {}")
    prompted(desk, "1: No")
    desk.keys(keys)
    complete(desk)
    assert f'{{"action": "{action}"}}' in desk.text()
    assert visited(desk) == []


def test_a_call_that_requires_a_page_runs_when_the_server_reports_the_end(
    desk: Child, tmp_path: Path
) -> None:
    serve(desk, ADDRESS, str(tmp_path / "done"))
    approved(desk, "call locked {}")
    prompted(desk, "far asks you to open a page on sign.example")
    desk.keys("2<CR>")
    prompted(desk, "far is waiting for you to finish on sign.example")
    (tmp_path / "done").touch()
    complete(desk)
    assert (
        "[the user opened sign.example first, then the call was made again]\nunlocked"
        in desk.text()
    )
    assert visited(desk) == [ADDRESS]


def test_a_call_that_requires_a_page_ends_if_the_user_gives_up(desk: Child) -> None:
    serve(desk, ADDRESS)
    approved(desk, "call locked {}")
    prompted(desk, "1: No")
    desk.keys("2<CR>")
    prompted(desk, "1: Give up")
    desk.keys("1<CR>")
    complete(desk)
    assert "[error]" in desk.text()
    assert "The user left it undone." in desk.text()


def test_a_stop_closes_the_question_and_its_page(desk: Child) -> None:
    serve(desk, ADDRESS)
    chat = approved(desk, "call locked {}")
    prompted(desk, "1: No")
    stop(desk, chat)
    desk.until(lambda: desk.nvim.api.get_mode()["mode"] == "n", "the prompt's end", LONG_S)
    desk.until_text("[Stopped: ", LONG_S)
    desk.until_idle()
    assert "sign.example" not in desk.screen()
    assert visited(desk) == []


def test_an_address_that_no_browser_opens_is_shown_in_full(desk: Child) -> None:
    serve(desk, ADDRESS)
    desk.lua("_G.open = vim.ui.open vim.ui.open = function() return nil, 'no handler found' end")
    approved(desk, "call visit {}")
    prompted(desk, "1: No")
    desk.keys("2<CR>")
    complete(desk)
    desk.lua("vim.ui.open = _G.open")
    desk.until(
        lambda: f"no browser opened {ADDRESS}: no handler found" in desk.messages(), "the message"
    )
