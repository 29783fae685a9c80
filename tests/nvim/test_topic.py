"""A new chat's topic is filled in while the user watches, types or undoes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parley.chat.new import new_text
from tests.nvim.hanging_model import HangingModel, hanging_model
from tests.nvim.harness import Child, child

SETTINGS = "require('parley').setup({ safety = { rate_limit_per_minute = 100000 } })"
WORDS = {"Here is the beginning of a conversation.": 'say: A talk: "of" # 1'}
EMPTY = ["---", 'topic: ""', "---", ""]


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    env = {"PARLEY_DEMO_PACE": "0.005"}
    with child(
        tmp_path_factory.mktemp("topic"), init=SETTINGS, env=env, width=80, height=24
    ) as nvim:
        yield nvim


@pytest.fixture(scope="module")
def model() -> Iterator[HangingModel]:
    with hanging_model(WORDS) as model:
        yield model


@pytest.fixture
def nvim(neovim: Child) -> Iterator[Child]:
    """The demo, with no file open."""
    neovim.clear()
    neovim.lua(SETTINGS)
    yield neovim
    assert not neovim.blocked()


def use(nvim: Child, model: HangingModel, **more: Any) -> None:
    """An agent whose prompt requests no summary, with its own server."""
    provider = {"kind": "anthropic", "base_url": model.url, "api_key_command": ["echo", "key"]}
    settings = {
        "providers": {"here": provider},
        "agents": [
            {"name": "Here", "provider": "here", "model": "demo", "system_prompt": "Be brief."}
        ],
        "agent": "Here",
    }
    nvim.lua("require('parley').setup(...)", settings | more)


def new(nvim: Child, question: str = "hello", topic: str = "") -> None:
    """A new chat whose question was asked."""
    nvim.command(f"ParleyChatNew {topic}")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.keys(f"{question}<Esc><C-g><C-g>")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")


def topic(nvim: Child) -> str:
    return nvim.lines()[1]


def on_disk(nvim: Child) -> list[str]:
    return Path(nvim.name).read_text(encoding="utf-8").split("\n")


def test_the_first_answers_summary_is_the_topic_and_one_undo_reverts_both(nvim: Child) -> None:
    new(nvim)
    nvim.until(lambda: topic(nvim) == "topic: You said hello, and I said who I am", "the topic")
    nvim.until_idle()
    assert on_disk(nvim)[1] == topic(nvim)
    nvim.keys("gg")
    assert "--- You said hello, and I said who I am" in nvim.screen()
    nvim.keys("u")
    assert nvim.lines() == [*EMPTY, "💬: hello"]


def test_a_users_topic_stays(nvim: Child) -> None:
    new(nvim, topic="My own")
    nvim.until_idle()
    assert topic(nvim) == "topic: My own"


def test_the_topic_can_be_disabled(nvim: Child) -> None:
    nvim.lua("require('parley').setup({ fill_topic = false })")
    new(nvim)
    nvim.until_idle()
    assert topic(nvim) == EMPTY[1]


def test_a_new_chat_equals_one_from_the_shell(nvim: Child) -> None:
    nvim.command("ParleyChatNew")
    assert nvim.lines() == new_text().splitlines()


def test_while_the_user_types_in_front_matter_it_waits_for_the_next_answer(
    nvim: Child,
) -> None:
    nvim.command("ParleyChatNew")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.keys("hello<Esc><C-g><C-g>ggzRo")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()
    assert nvim.lines()[:4] == ["---", "", 'topic: ""', "---"]
    nvim.keys("<Esc>ddGAhello<Esc><C-g><C-g>")
    nvim.until(lambda: topic(nvim) == "topic: You said hello, and I said who I am", "the topic")
    nvim.until_idle()


def test_without_a_summary_a_model_writes_it_and_one_undo_reverts_both(
    nvim: Child, model: HangingModel
) -> None:
    use(nvim, model)
    new(nvim)
    nvim.until(lambda: topic(nvim) == 'topic: "A talk: \\"of\\" # 1"', "the topic")
    nvim.until(lambda: on_disk(nvim)[1] == topic(nvim), "the topic in the file")
    nvim.until_idle()
    assert not nvim.nvim.current.buffer.options["modified"]
    nvim.command("ParleyLog")
    nvim.until(lambda: nvim.name.endswith("log"), "the log")
    assert "topic" in nvim.text()
    nvim.keys("q")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the chat")
    nvim.keys("u")
    assert nvim.lines() == [*EMPTY, "💬: hello"]


def test_nothing_waits_for_a_model_that_never_answers(nvim: Child, model: HangingModel) -> None:
    use(nvim, model, status={"model": "hanging"})
    count = len(model.asked)
    new(nvim)
    nvim.until(lambda: len(model.asked) > count, "the request")
    nvim.until_idle()
    nvim.keys("Anext<Esc>")
    assert nvim.lines()[-1] == "💬: next"
    assert topic(nvim) == EMPTY[1]
    nvim.keys("u")
    assert nvim.lines()[-1] == "💬: "


def test_with_model_statuses_off_no_model_is_asked(nvim: Child, model: HangingModel) -> None:
    use(nvim, model, status={"llm": False, "model": "hanging"})
    count = len(model.asked)
    new(nvim)
    nvim.until_idle()
    new(nvim)
    nvim.until_idle()
    assert len(model.asked) == count
    assert topic(nvim) == EMPTY[1]


def test_undoing_the_answer_and_its_topic_leaves_the_cursor_at_the_question(nvim: Child) -> None:
    new(nvim, "<CR>".join(["hello", *["line"] * 60]))
    nvim.until(lambda: topic(nvim) != EMPTY[1], "the topic")
    nvim.until_idle()
    for _ in range(2):
        nvim.keys("u")
        nvim.until(lambda: topic(nvim) == EMPTY[1], "the undo")
        assert nvim.cursor[0] == len(nvim.lines())
        assert "---" not in nvim.screen()
        nvim.keys("<C-r>")
        nvim.until(lambda: topic(nvim) != EMPTY[1], "the redo")
    nvim.keys("uggOabove<Esc>")
    nvim.until(lambda: nvim.lines()[0] == "above", "an edit above")
    assert nvim.cursor[0] == 1
    nvim.keys("u")
    nvim.until(lambda: nvim.lines()[0] != "above", "its undo")
    assert nvim.cursor[0] == 1


def test_undoing_an_answer_with_a_model_written_title_leaves_the_cursor_there(
    nvim: Child, model: HangingModel
) -> None:
    use(nvim, model)
    new(nvim, "say: nothing")
    nvim.until(lambda: topic(nvim) != EMPTY[1], "the title")
    nvim.until_idle()
    nvim.keys("u")
    nvim.until(lambda: topic(nvim) == EMPTY[1], "the undo")
    assert nvim.cursor[0] == len(nvim.lines())
