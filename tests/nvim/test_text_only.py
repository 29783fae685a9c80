"""A model without native tools in a real Neovim: its calls are read from its text."""

from __future__ import annotations

import json

from tests.nvim.harness import Child
from tests.nvim.test_turn import MARKER, STOCKS, complete, proposals

NOTICE = "demo-text does not support tools, so Parley describes them in the prompt"


def ask(nvim: Child, question: str) -> None:
    nvim.command("normal! G")
    nvim.lua("vim.api.nvim_buf_set_lines(0, -2, -1, true, { ... })", f"{MARKER} {question}")
    nvim.keys("<C-g><C-g>")
    nvim.until_waiting()
    nvim.until_idle()


def test_a_text_only_model_runs_the_stock_example_and_its_limits_are_reported_once(
    nvim: Child,
) -> None:
    nvim.command("messages clear")
    # the user was not told yet
    nvim.lua("require('parley').setup({ safety = { rate_limit_per_minute = 100000 } })")
    nvim.edit("text-only.md", f"{MARKER} \n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyAgent Demo-Text")
    nvim.until(lambda: nvim.lua("return vim.b.parley_agent") == "Demo-Text", "the agent")
    for asked in (1, 2):
        ask(nvim, STOCKS)
        assert len(proposals(nvim)) == 2 * asked
        assert '❓ web_search(query: "google stock price") · mock' in nvim.screen()
        nvim.keys("ya")
        complete(nvim)
        assert (
            "(GOOGL) is at $911 and Microsoft (MSFT) is at $544"
            in nvim.text().rpartition("\U0001f6e0")[2]
        )
    calls = [json.loads(line.split("`")[1]) for line in proposals(nvim)]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [
        {"query": "google stock price"},
        {"query": "microsoft stock price"},
    ] * 2
    assert '{"tool"' not in nvim.text()
    assert nvim.messages().count(NOTICE) == 1
