"""`:ParleyCompact` as the user sees it: progress, lines, a single undo, and a stop in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child

COUNT = 60
CHAT = "".join(f"💬: question {n}\n\n🤖:[Demo]\n\nanswer {n}\n\n" for n in range(COUNT)) + "💬: \n"
SETTINGS = "require('parley').setup({ safety = { rate_limit_per_minute = 100000 } })"


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    env = {"PARLEY_DEMO_PACE": "0"}
    with child(
        tmp_path_factory.mktemp("compact"), init=SETTINGS, env=env, width=80, height=24
    ) as nvim:
        yield nvim


@pytest.fixture
def nvim(neovim: Child) -> Iterator[Child]:
    neovim.clear()
    neovim.lua(SETTINGS)
    yield neovim
    assert not neovim.blocked()


def open_chat(nvim: Child, name: str, text: str = CHAT) -> Path:
    path = nvim.edit(name, text)
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.keys("G")
    nvim.lua("require('parley.host').agents()")
    return path


def summed_up(number: int) -> str:
    return f"answer {number}\n\n📝: you said “question {number}”, and I answered.\n"


def test_sixty_exchanges_are_summarized_and_one_undo_reverts_all(nvim: Child) -> None:
    open_chat(nvim, "sixty.md")
    before, cursor, view = nvim.text(), nvim.cursor, nvim.lua("return vim.fn.winsaveview().topline")
    nvim.lua("vim.g.seen = {}")
    nvim.lua(
        "vim.api.nvim_create_autocmd('User', { pattern = 'ParleyStatus', callback = function(event)"
        " local seen = vim.g.seen; table.insert(seen, event.data.text); vim.g.seen = seen end })"
    )
    nvim.command("ParleyCompact")
    nvim.until_text(summed_up(COUNT - 4))
    nvim.until_idle()
    text = before
    for number in range(COUNT - 3):
        text = text.replace(f"answer {number}\n", summed_up(number))
    assert nvim.text() == text
    assert "57 of 57 older exchanges are summarized" in nvim.messages()
    assert "Summing up 3 of 57..." in nvim.lua("return vim.g.seen")
    assert nvim.cursor == (cursor[0] + 2 * 57, cursor[1])
    assert nvim.lua("return vim.fn.winsaveview().topline") == view + 2 * 57
    nvim.keys("u")
    assert nvim.text() == before
    nvim.keys("<C-r>")
    assert nvim.text() == text


def test_a_number_sets_how_many_stay_whole_and_existing_summaries_stay(nvim: Child) -> None:
    hand = CHAT.replace("answer 1\n", "answer 1\n📝: by hand\n")
    open_chat(nvim, "number.md", hand)
    nvim.command("ParleyCompact 57")
    nvim.until(lambda: "2 of 2 older exchanges are summarized" in nvim.messages(), "the end")
    nvim.until_idle()
    assert nvim.text() == hand.rstrip("\n").replace("answer 0\n", summed_up(0)).replace(
        "answer 2\n", summed_up(2)
    )
    nvim.command("ParleyCompact 57")
    nvim.until(
        lambda: "all complete answers but the last 57 have a 📝: line" in nvim.messages(), "that"
    )
    nvim.until_idle()
    nvim.command("ParleyCompact some")
    nvim.until(lambda: "expected a number of exchanges" in nvim.messages(), "the refusal")
    nvim.until_idle()


def test_the_rate_limit_applies_and_a_stop_keeps_the_finished_lines(nvim: Child) -> None:
    nvim.lua("require('parley').setup({ safety = { rate_limit_per_minute = 2 } })")
    open_chat(nvim, "stopped.md")
    before = nvim.text()
    nvim.command("ParleyCompact")
    nvim.until_text("“question 1”")
    nvim.until_screen("Rate limit reached, waiting")
    nvim.command("ParleyRespond")
    nvim.until(lambda: "a turn is running in this chat" in nvim.messages(), "the refusal")
    nvim.command("ParleyStop")
    nvim.until_idle()
    done = before.replace("answer 0\n", summed_up(0)).replace("answer 1\n", summed_up(1))
    assert nvim.text() == done
    assert "stopped by the user" in nvim.messages()
    assert "Rate limit" not in nvim.screen()
    nvim.keys("u")
    assert nvim.text() == before


def test_text_typed_in_the_meantime_stays_in_place(nvim: Child) -> None:
    open_chat(nvim, "typed.md")
    nvim.command("ParleyCompact")
    nvim.keys("Awhat is next?")
    nvim.until_text(summed_up(COUNT - 4))
    nvim.keys("<Esc>")
    nvim.until_idle()
    assert nvim.lines()[-1] == "💬: what is next?"
    assert nvim.text().count("📝:") == 57
