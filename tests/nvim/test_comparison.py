"""`:ParleyCompare` in a real Neovim: a fork for each agent, asked at once, and shown as a diff."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.nvim.hanging_model import HangingModel, hanging_model
from tests.nvim.harness import Child, child

QUESTION = "say: both\n\nof you"
CHAT = "---\ntopic: x\n---\n\n💬: hello\n\n🤖:[Other]\n\nHi.\n\n💬: {}\n"
STOCKS = "find the stock price of google"
_number = count(1)


@pytest.fixture(scope="module")
def model() -> Iterator[HangingModel]:
    with hanging_model(of={"one": {"both": "one"}, "two": {"both": "two"}}) as server:
        yield server


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory, model: HangingModel) -> Iterator[Child]:
    provider = {"kind": "openai", "base_url": f"{model.url}/v1", "api": "chat"}
    agents = [
        {"name": name, "provider": "test", "model": name.lower()}
        for name in ("One", "Two", "Held", "Two words")
    ]
    settings = {
        "agent": "Demo-OpenAI",
        "providers": {"test": provider},
        "agents": agents,
        "status": {"llm": False},
        "safety": {"rate_limit_per_minute": 100000},
    }
    init = f"require('parley').setup(vim.json.decode([==[{json.dumps(settings)}]==]))"
    home = tmp_path_factory.mktemp("compare")
    with child(home, init=init, width=80, height=24) as nvim:
        yield nvim


@pytest.fixture
def nvim(one: Child) -> Iterator[Child]:
    one.clear()
    yield one
    one.command("silent! tabonly")


def compared(nvim: Child, text: str, agents: str, row: str = "$") -> Path:
    path = nvim.edit(f"c{next(_number)}.md", text)
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command(f"normal! {'G' if row == '$' else row + 'G'}")
    nvim.command(f"ParleyCompare {agents}")
    return path


def is_diff(nvim: Child) -> bool:
    return bool(
        nvim.lua("""local wins = vim.api.nvim_tabpage_list_wins(0)
        return #wins > 1 and vim.iter(wins):all(function(win) return vim.wo[win].diff end)""")
    )


def sides(nvim: Child) -> list[str]:
    """The texts of the windows, from left to right."""
    wins: list[Any] = nvim.nvim.api.tabpage_list_wins(0)
    return ["\n".join(nvim.lines(nvim.nvim.api.win_get_buf(win))) for win in wins]


def test_three_agents_answer_in_forks_and_their_answers_are_a_diff(nvim: Child) -> None:
    path = compared(nvim, CHAT.format(QUESTION), "Demo One Two")
    text = path.read_text(encoding="utf-8")
    nvim.until(lambda: is_diff(nvim), "the diff")
    head = "---\ntopic: x\nforked_from: {}\nagent: {}\n---\n\n💬: hello\n\n🤖:[Other]\n\nHi."
    assert sides(nvim) == [
        f"{head.format(path.name, agent)}\n\n💬: {QUESTION}\n\n🤖:[{agent}]\n\n{word}\n\nof you\n\n💬: "
        for agent, word in (("Demo", "both"), ("One", "one"), ("Two", "two"))
    ]
    names = [f"{path.stem}-fork-{agent}.md" for agent in ("Demo", "One", "Two")]
    assert all((nvim.home / name).exists() for name in names)
    assert path.read_text(encoding="utf-8") == text
    first, second, third, *rest = nvim.screen().split("\n")[1:]
    assert all(f" {agent}  " in first for agent in ("Demo", "One", "Two"))
    assert first.count("s  ↑") == 3
    assert second.count("💬: say: both") == 3
    assert [cell.strip() for cell in third.split("│")] == ["🤖:[Demo]", "🤖:[One]", "🤖:[Two]"]
    assert [cell.strip() for cell in rest[1].split("│")] == ["both", "one", "two"]
    nvim.command("tabclose")
    assert nvim.name.endswith(path.name)
    assert nvim.text() == text.rstrip("\n")


def test_all_agents_are_asked_at_once_and_an_answered_question_without_its_answer(
    nvim: Child, model: HangingModel
) -> None:
    model.go.clear()
    model.asked.clear()
    text = CHAT.format(f"{QUESTION}\n\n🤖:[Other]\n\nold\n\n💬: ")
    compared(nvim, text, "Held Two\\ words One")
    nvim.until(lambda: model.asked, "the request")
    nvim.until_screen(" Held  Analyzing")
    nvim.until_text("Hi.")
    nvim.until(lambda: "\n\none\n\n" in sides(nvim)[2], "the other answer")
    assert not is_diff(nvim)
    model.go.set()
    nvim.until(lambda: is_diff(nvim), "the diff")
    assert "old" not in json.dumps(model.asked[0]["messages"])
    assert all("old" not in side for side in sides(nvim))
    assert "🤖:[Two words]" in sides(nvim)[1]


def test_calls_are_decided_in_their_own_fork(nvim: Child) -> None:
    compared(nvim, f"💬: {STOCKS}\n", "Demo One")
    nvim.until(lambda: is_diff(nvim), "the diff")
    nvim.until_screen("1 call is waiting")
    nvim.until_waiting()
    before = sides(nvim)
    nvim.keys("ya")
    nvim.until(lambda: "911" in sides(nvim)[0] and is_diff(nvim), "the answer")
    assert sides(nvim)[1] == before[1]


@pytest.mark.parametrize(
    ("agents", "why"),
    [
        ("One", "expected 2 to 8 agents to compare, got 1"),
        ("One One", "One is named twice. Name each agent once"),
        ("One Nobody", "there is no agent 'Nobody'"),
    ],
)
def test_other_agents_cannot_be_compared(nvim: Child, agents: str, why: str) -> None:
    compared(nvim, CHAT.format(QUESTION), agents)
    nvim.until(lambda: why in nvim.messages(), "the message")
    nvim.until_idle()
    assert len(nvim.nvim.api.list_tabpages()) == 1
    assert nvim.nvim.funcs.getcompletion("ParleyCompare One T", "cmdline") == ["Two", "Two\\ words"]


def test_a_file_from_elsewhere_cannot_choose_its_provider(nvim: Child, model: HangingModel) -> None:
    text = "---\nprovider: anthropic\nmodel: x\n---\n\n💬: say: both\n"
    compared(nvim, text, "One Two")
    nvim.until(lambda: is_diff(nvim), "the diff")
    assert ["agent:" in side for side in sides(nvim)] == [False, False]
    pairs = zip(sides(nvim), ("one", "two"), strict=True)
    assert all(f"\n{word}\n" in side for side, word in pairs)
    compared(nvim, "no question\n\n💬: \n", "One Two")
    nvim.until(lambda: "no question here" in nvim.messages(), "the message")
