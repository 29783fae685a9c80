"""Other projects' agents in a real Neovim: a key decides on each edit, and nothing else does."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.e2e.guest_agents import AGENTS, LOUD, TEXT, GuestAgent, GuestPlace, guest_place
from tests.nvim.harness import Child, child
from tests.nvim.test_rows import shown

pytestmark = [pytest.mark.guests, pytest.mark.timeout(240)]
BOUND_S = 90.0
WAITS = ">> Please choose"


def neovim(home: Path, place: GuestPlace) -> AbstractContextManager[Child]:
    """A Neovim whose default agent is the place's."""
    table = json.dumps(json.dumps(place.settings()))
    init = f"require('parley').setup(vim.json.decode({table}))"
    return child(home, init=init, env={"PARLEY_LEAST_SEEN_S": "0"}, width=80)


def opened(nvim: Child, place: GuestPlace) -> None:
    nvim.command(f"cd {place.root}")
    nvim.command(f"edit {nvim.home / 'chat.md'}")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")


def ask(nvim: Child, question: str, then: str = WAITS) -> None:
    """Write the next question and ask it, until the screen shows a text."""
    nvim.nvim.api.buf_set_lines(0, -2, -1, True, [f"💬: {question}"])
    nvim.command("normal! G")
    nvim.command("ParleyRespond")
    nvim.until_screen(then, BOUND_S)
    nvim.until_idle(BOUND_S)


def press(nvim: Child, keys: str) -> None:
    """Decide on the call that waits, until its answer is complete."""
    nvim.keys(keys)
    if keys == "yn":
        nvim.until_screen("Reason")
        nvim.keys("\r")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the end of the answer", BOUND_S)
    nvim.until_idle(BOUND_S)


@pytest.mark.parametrize("guest", AGENTS.values(), ids=AGENTS)
def test_a_key_decides_on_a_real_agents_edit(tmp_path: Path, guest: GuestAgent) -> None:
    home = tmp_path / "nvim"
    home.mkdir()
    (home / "chat.md").write_text("💬: ")
    with guest_place(tmp_path, guest) as place:
        with neovim(home, place) as nvim:
            opened(nvim, place)
            ask(nvim, "Say hello.", "Hello.")
            ask(nvim, "Make it loud.")
            assert "❓ edit(a.txt) +1 −1" in "\n".join(shown(nvim))
            assert "- two" in nvim.screen()
            assert "+ TWO" in nvim.screen()
            press(nvim, "yn")
            assert place.file == TEXT
            ask(nvim, "Do it loudly.")
            assert place.file == TEXT
            press(nvim, "ya")
            assert "It is done." in nvim.text()
            assert place.file == LOUD
            nvim.command("ParleyRevert")
            nvim.until(lambda: place.file == TEXT, "the revert")
            nvim.command("write")
        with neovim(home, place) as nvim:  # the session continues, or begins with the whole text
            opened(nvim, place)
            ask(nvim, "Once more, loudly.")
            nvim.command("ParleyStop")
            nvim.until_idle()
            assert place.file == TEXT
            nvim.command("ParleyAgent Demo")
            ask(nvim, "say: I am another agent.", "I am another agent.")
            nvim.command("ParleyAgent Guest")
            nvim.command("%substitute/I am another/I was another/")
            ask(nvim, "Run it.")
            assert not (place.root / "made.txt").exists()
            press(nvim, "ya")
            assert (place.root / "made.txt").exists()
            assert place.file == TEXT
