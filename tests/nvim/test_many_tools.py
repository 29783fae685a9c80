"""Hundreds of tools in a real Neovim: Parley sends their names, and the model finds the tools that
it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child
from tests.nvim.test_servers_page import LONG_S, offered_to, server, setup, tools
from tests.nvim.test_turn import MARKER, complete


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim with three hundred tools, and room for some of them."""
    init = setup({"fake": server("--many")}, tools={"budget_tokens": 500})
    with child(tmp_path_factory.mktemp("many"), init=init) as nvim:
        yield nvim


def request_of(nvim: Child, chat: Path) -> str:
    """A chat's next request, as its page shows it."""
    nvim.command(f"edit {chat}")
    nvim.command("normal! G")
    nvim.command("ParleyRequest")
    nvim.until(
        lambda: nvim.name.endswith("parley://request") and "messages" in nvim.text(),
        "the page",
        LONG_S,
    )
    text = nvim.text()
    nvim.command("bwipeout!")
    return text


@pytest.mark.parametrize("agent", ["Demo", "Demo-OpenAI", "Demo-Text"])
def test_one_of_hundreds_of_tools_is_found_and_called(
    neovim: Child, tmp_path: Path, agent: str
) -> None:
    nvim = neovim
    chat = nvim.edit(str(tmp_path / "many.md"), f'{MARKER} call find_tools {{"query": "tool_7"}}\n')
    nvim.command(f"ParleyAgent {agent}")
    nvim.until(lambda: f"now uses {agent}" in nvim.messages(), "the agent")
    before = request_of(nvim, chat)
    assert before.count("tool_8,") == 1
    assert "To tool_8." not in before
    nvim.command("normal! G")
    nvim.keys("<C-g><C-g>")
    nvim.until_text("- tool_7: To tool_7.", LONG_S)
    complete(nvim)
    assert "find_tools" in nvim.screen()
    nvim.keys('GAcall tool_7 {"a": 1}<Esc><C-g><C-g>')
    nvim.until_waiting(LONG_S)
    nvim.until_idle(LONG_S)
    nvim.keys("ya")
    nvim.until_text("🛠️: [tool_7]", LONG_S)
    complete(nvim)
    nvim.command("silent write")
    after = request_of(nvim, chat)
    assert "To tool_7." in after
    assert "To tool_8." not in after
    nvim.command("bwipeout!")
    nvim.command(f"edit {chat}")
    nvim.command(f"ParleyAgent {agent}")
    assert request_of(nvim, chat) == after


def test_the_page_shows_the_tools_cost_and_that_they_are_too_many(
    neovim: Child, tmp_path: Path
) -> None:
    nvim = neovim
    chat = nvim.edit(str(tmp_path / "page.md"), f"{MARKER} ask\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    text = tools(nvim, "## [x] fake: ready, protocol 2025-06-18, 307 tools, ~6,608 tokens")
    assert "- [x] tool_7 ~20  To tool_7." in text
    assert "\nIn use: 308 tools, ~6," in text
    assert (
        "There is room for only ~500 tokens,\nso a model receives only tool names, and uses" in text
    )
    assert offered_to(nvim, chat) == ["find_tools"]
