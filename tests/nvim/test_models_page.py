"""The page with all models: what each provider serves, and the choice of a model for a chat."""

from __future__ import annotations

from typing import Any

import pytest

from parley.display.model_rows import price, rows, title, tokens
from parley.models.events import Price
from parley.models.model_facts import ModelFacts
from parley.models.model_list import ListedModel, ModelList, ProviderModels
from parley.nvim.models_page import models_page
from tests.model_servers import served
from tests.nvim.counting import MARKER
from tests.nvim.harness import Child

FACTS = ModelFacts(1_048_576, 65_536, Price(2, 10, 0.2))
LISTED = ModelList(
    (
        ListedModel("gone", lifecycle="deprecated", ends="2026-11-01"),
        ListedModel("old", lifecycle="deprecated"),
        ListedModel("x/new", FACTS),
    ),
    1_000_000.0,
)


def test_the_rows_have_the_columns_that_the_list_fills() -> None:
    assert rows(LISTED, "2026-11-25") == [
        "model  window  output  $ in/out  per million tokens",
        "gone                             ended 2026-11-01",
        "old                              deprecated",
        "x/new   1.05M   65.5k      2/10",
    ]
    assert rows(ModelList((ListedModel("one"),), 1.0), "2026-11-25") == ["model", "one"]
    assert rows(ModelList(), "2026-11-25") == []


def test_numbers_are_short() -> None:
    counts = (1, 999, 8192, 128_000, 200_000, 1_000_000, 1_050_000, 2**53, None)
    assert [tokens(count) for count in counts] == [
        *("1", "999", "8.19k", "128k", "200k", "1M", "1.05M", "9.0e+15", "")
    ]
    assert [price(cost) for cost in (Price(0.1, 0.5), Price(4, 20), None)] == [
        "0.1/0.5",
        "4/20",
        "",
    ]


@pytest.mark.parametrize(
    ("models", "now", "text"),
    [
        (ProviderModels("a", LISTED), 1_000_030.0, "a: 3 models, listed just now"),
        (
            ProviderModels("a", LISTED, "it is cut"),
            1_007_300.0,
            "a: 3 models, listed 2 hours ago; it is cut",
        ),
        (ProviderModels("a", LISTED), 1_090_000.0, "a: 3 models, listed 1 day ago"),
        (ProviderModels("a", problem="no key.\nSet X"), 0.0, "a: no key. Set X"),
    ],
)
def test_a_title_says_how_old_the_list_is_or_why_there_is_none(
    models: ProviderModels, now: float, text: str
) -> None:
    assert title(models, now) == text


def test_each_line_of_the_page_knows_its_agent() -> None:
    lines = list(models_page([ProviderModels("a", LISTED), ProviderModels("b\u202e")], 2e9))
    assert [agent for _, agent in lines if agent] == ["a/gone", "a/old", "a/x/new"]
    assert all(agent.rpartition("/")[2] in text for text, agent in lines)
    assert "\u202e" not in "".join(text for text, _ in lines)


def test_a_model_is_chosen_on_the_page_and_a_silent_provider_delays_nothing(nvim: Child) -> None:
    with served("anthropic", "silent") as (claude, silent):
        providers: dict[str, Any] = {
            "near": {"kind": "anthropic", "base_url": claude},
            "silent": {"base_url": silent},
            "locked": {"api_key_env": "LOCKED_KEY"},
        }
        off = {name: {"model_list": "off"} for name in ("anthropic", "openai", "gemini", "ollama")}
        nvim.lua("require('parley').setup(...)", {"providers": providers | off, "agent": "Demo"})
        nvim.edit("models.md", f"{MARKER}say: hello\n")
        nvim.lua("vim.ui.select = function(items, _, done) done(items[#items], #items) end")
        nvim.command("ParleyAgent")
        nvim.until_screen("silent: asking...")
        nvim.command("wincmd p")
        nvim.command("ParleyRespond")  # the editor works meanwhile
        nvim.until_text("\U0001f916:[Demo]\n\nhello")
        nvim.command("wincmd p")
        nvim.until(lambda: "claude-nova-1" in nvim.text(), "the list")
        page = nvim.text()
        assert "near: 4 models, listed just now\n  model              window  output" in page
        assert page.rstrip().endswith("silent: asking...")
        assert "locked: no key. To list its models, set LOCKED_KEY\n" in page
        assert "anthropic" not in page  # its list is off
        nvim.keys("/claude-opus-7<CR><CR>")
        nvim.until(lambda: nvim.variable("parley_agent") == "near/claude-opus-7", "the agent")
        said = "this chat now uses near/claude-opus-7"
        nvim.until(lambda: said in nvim.messages(), "the message")
        assert nvim.name.endswith("models.md")
