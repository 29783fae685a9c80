"""A second `setup()`: running turns continue with the settings that they began with."""

from __future__ import annotations

from pathlib import Path

from tests.nvim.hanging_model import hanging_model
from tests.nvim.harness import child

SETTINGS = """
  providers = {{ ['local'] = {{ kind = 'openai', base_url = '{url}/v1', api = 'chat' }} }},
  agents = {{ {{ name = 'Slow', provider = 'local', model = 'held' }} }},
  agent = 'Slow',
  loop = {{ max_iterations = {rounds} }},
"""


def test_an_awaited_answer_arrives_whole(tmp_path: Path) -> None:
    with hanging_model() as model:
        first, second = (
            f"require('parley').setup({{{SETTINGS.format(url=model.url, rounds=n)}}})"
            for n in (5, 6)
        )
        with child(tmp_path, init=first, width=80, height=24) as nvim:
            nvim.edit("chat.md", "💬: say: It has come.\n")
            nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
            nvim.keys("<C-g><C-g>")
            nvim.until(lambda: model.asked, "the question")
            nvim.lua(second)
            nvim.command("ParleyTools")  # the host has read the new settings
            nvim.until(lambda: nvim.name.endswith("parley://tools"), "the page")
            nvim.command("bwipeout")
            model.go.set()
            nvim.until_text("It has come.\n\n💬: ")
            nvim.until_idle()
            nvim.keys("Gasay: And the next.<Esc><C-g><C-g>")
            nvim.until_text("And the next.\n\n💬: ")
            assert "Interrupted" not in nvim.text()
            assert nvim.messages() == ""
