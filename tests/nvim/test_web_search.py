"""A search by OpenAI in a real Neovim: its calls, its footnote, and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.faulty_server import event
from tests.model_servers import KINDS, Answer, served
from tests.nvim.harness import child

SETTINGS = (
    "require('parley').setup({ agent = 'News', status = { llm = false }, agents = { { name = "
    "'News', provider = 'openai', model = 'gpt-6.1-sol', web_search = true, "
    "price = { searches = 10 } } } })"
)
PAGE = "https://a.example/news"


def searching(path: str, query: Mapping[str, str], body: Any) -> Answer:
    """Two pieces of text with searches between them."""
    if path != "/v1/responses":
        return 404, {}
    assert body["tools"] == [{"type": "web_search"}]
    search = {"type": "web_search_call", "status": "completed"}
    found = {"type": "search", "query": "neovim", "sources": [{"type": "url", "url": PAGE}]}
    source = {
        "type": "url_citation",
        "url": PAGE,
        "title": "News",
        "start_index": 0,
        "end_index": 1,
    }
    text = {"type": "output_text", "annotations": [source]}
    items = [
        {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
        {**search, "id": "ws_1", "action": found},
        {**search, "id": "ws_2", "action": {"type": "open_page", "url": PAGE}},
        {"type": "message", "content": [{**text, "text": "It is out."}]},
    ]
    usage = {"web_search": {"num_requests": 1}}
    end = {"status": "completed", "usage": {"input_tokens": 3}, "tool_usage": usage}
    done = {"type": "response.output_item.done"}
    pieces = [event({**done, "output_index": at, "item": item}) for at, item in enumerate(items)]
    return 200, b"".join([*pieces, event({"type": "response.completed", "response": end})])


def test_searches_are_written_as_they_come_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "searching", ("/v1", searching))
    with served("searching") as (url,):
        env = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "x"}
        with child(tmp_path, init=SETTINGS, env=env, width=100, height=30) as nvim:
            nvim.edit("chat.md", "💬: news?\n")
            nvim.command("ParleyRespond")
            nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the answer")
            nvim.until_idle()
            lines = [line for line in nvim.lines() if line]
            usage = nvim.variable("parley_usage")["chat"]
            nvim.until_screen('web_search(type: "search", query: "neovim") · run by the provider')
            nvim.until_screen('web_search(type: "open_page", url:')
    assert [line.partition("{")[0] for line in lines] == [
        *("💬: news?", "🤖:[News]", "I look."),
        "❓:[provider] `",
        *(line for line in lines if line.startswith("🛠️: [web_search][ws_1] [")),
        f"`{PAGE}`",
        "❓:[provider] `",
        *(line for line in lines if line.startswith("🛠️: [web_search][ws_2] [")),
        f"`{PAGE}`",
        *("It is out.[^1]", f"[^1]: [News]({PAGE})", "💬: "),
    ]
    assert (usage["searches"], usage["cost"]) == (1, 0.01)
