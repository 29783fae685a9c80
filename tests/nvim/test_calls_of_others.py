"""Calls that the provider or an agent ran: their rows, their details, and that no key decides."""

from __future__ import annotations

import pytest

from tests.nvim.harness import Child
from tests.nvim.test_details import floating
from tests.nvim.test_folds import at_end
from tests.nvim.test_rows import call, shown

NOTHING = "this call was run by the provider: there is nothing to decide"


def others(number: int, ran_by: str, body: str = "", status: str = "", query: str = "x") -> str:
    """A call that others ran, and its result unless the body is empty."""
    line = call(number, query=query).replace("❓: ", f"❓:[{ran_by}] ", 1)
    result = f"\n🛠️: [web_search][call_{number}]{status}\n\n`{body}`\n" if body else ""
    return f"{line}{result}\n"


CHAT = (
    "💬: q\n\n🤖:[Claude]\n\nLet me look.\n\n"
    + others(1, "provider", "a page", query="neovim")
    + "Version 0.12 is out.\n\n"
    + others(2, "agent", "it broke", "[error]", query="vim")
    + others(3, "provider", query="vi")
    + "And now yours:\n\n"
)


def test_their_rows_say_who_ran_them_in_place_of_the_choice_and_server(plain: Child) -> None:
    at_end(plain, f"{CHAT}{call(4, query='mine')}")
    rows = [line.strip() for line in shown(plain) if line.startswith(("❓", "🛠"))]
    assert rows == [
        '🛠 web_search(query: "neovim") · run by the provider → 6 B, ok',
        '🛠 web_search(query: "vim") · run by the agent → 8 B, error',
        '❓ web_search(query: "vi") · run by the provider',
        '❓ web_search(query: "mine") · mock',
    ]
    assert ">> Please choose (yA/ya):" in plain.screen()  # for one call


def test_a_narrow_window_cuts_the_arguments_first(plain: Child) -> None:
    at_end(plain, CHAT.replace("neovim", "neovim" * 20) + call(4, query="mine"), width=60)
    (row,) = [line for line in shown(plain) if "neovim" in line]
    assert row.rstrip().endswith('…") · run by the provider → ok')


@pytest.mark.parametrize("place", ["❓:.provider.*neovim", "^`a page", '❓:.provider.*"vi'])
def test_no_key_and_no_command_decides_on_them_or_on_other_calls(nvim: Child, place: str) -> None:
    nvim.edit("others.md", f"{CHAT}{call(4, query='mine')}")
    nvim.until_screen(">> Please choose")
    nvim.lua("vim.fn.search(...)", place, "w")
    before = nvim.text()
    for keys in ("ya", "yo", "yn", "yO", ":ParleyApprove yA\r", ":ParleyAllow\r"):
        nvim.command("messages clear")
        nvim.keys(keys)
        nvim.until(lambda: NOTHING in nvim.messages(), f"the message after {keys}")
    nvim.command("messages clear")
    nvim.lua("require('parley.review').ask()")
    nvim.until(lambda: NOTHING in nvim.messages(), "the message")
    assert nvim.text() == before


def test_the_key_for_details_shows_the_call_and_its_result(nvim: Child) -> None:
    nvim.edit("others.md", f"{CHAT}{call(4, query='mine')}")
    nvim.until_screen(">> Please choose")
    nvim.lua("vim.fn.search(...)", "❓:.provider.*neovim", "w")
    nvim.keys("K")
    nvim.until(lambda: bool(floating(nvim)), "the float")
    lines = floating(nvim)
    assert lines[:3] == [
        "`web_search`",
        "",
        "Run by the provider: there was nothing to decide.",
    ]
    assert "a page" in lines
    assert "No server offers this tool now." not in lines
    assert "**The server's description**" not in lines
