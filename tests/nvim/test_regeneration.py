"""`:ParleyRespond!` in a real Neovim: another agent for one answer, and the old answer until then."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.nvim.hanging_model import HangingModel, hanging_model
from tests.nvim.harness import Child, child

OLD = "💬: say: one\n\n🤖:[Demo]\n\nold\n"
MODELS = ("Held", "Refusing", "Hanging")
_number = count(1)


@pytest.fixture(scope="module")
def model() -> Iterator[HangingModel]:
    with hanging_model() as one:
        yield one


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory, model: HangingModel) -> Iterator[Child]:
    provider = {"kind": "openai", "base_url": f"{model.url}/v1", "api": "chat"}
    agents = [{"name": name, "provider": "test", "model": name.lower()} for name in MODELS]
    settings = {
        "agent": "Demo-OpenAI",
        "providers": {"test": provider},
        "agents": agents,
        "status": {"llm": False},
        "safety": {"rate_limit_per_minute": 100000},
    }
    init = f"require('parley').setup(vim.json.decode([==[{json.dumps(settings)}]==]))"
    with child(tmp_path_factory.mktemp("again"), init=init) as nvim:
        yield nvim


@pytest.fixture
def nvim(one: Child) -> Child:
    one.clear()
    return one


def opened(nvim: Child, text: str) -> Path:
    path = nvim.edit(f"again-{next(_number)}.md", text)
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("normal! G$")
    return path


def regenerated(nvim: Child, agent: str) -> None:
    nvim.command(f"ParleyRespond! {agent}")
    nvim.until_idle()


def test_another_agent_answers_once(nvim: Child) -> None:
    opened(nvim, f"{OLD}\n💬: say: two\n\n🤖:[Other]\n\ntwo\n\n💬: ")
    regenerated(nvim, "Demo")  # from the empty question: the answer above
    two = f"{OLD}\n💬: say: two\n\n🤖:[Demo]\n\ntwo\n"
    assert nvim.text() == f"{two}\n💬: "
    assert nvim.variable("parley_agent") == "Demo-OpenAI"
    assert nvim.cursor[0] == len(nvim.lines())
    nvim.command("3")
    regenerated(nvim, "Demo")
    assert nvim.text() == f"{two.replace('old', 'one')}\n💬: "
    nvim.keys("u")
    assert nvim.text() == f"{two}\n💬: "
    nvim.keys("GAsay: three<Esc>")
    nvim.command("ParleyRespond")
    nvim.until_text("🤖:[Demo-OpenAI]\n\nthree\n")
    nvim.until_idle()


def test_the_agent_of_an_answer_continues_after_its_calls(nvim: Child) -> None:
    opened(nvim, "💬: find the stock price of google\n\n🤖:[Other]\n\nold\n")
    regenerated(nvim, "Demo")
    nvim.until_waiting()
    nvim.keys("ya")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the end")
    nvim.command("ParleyLog")
    nvim.until(lambda: "log" in nvim.name, "the page")
    sent = [line for line in nvim.lines() if "request" in line and "demo" in line]
    assert len(sent) == 2
    assert all("demo-openai" not in line.lower() for line in sent), sent


def test_the_old_answer_stays_until_the_first_text(nvim: Child, model: HangingModel) -> None:
    path = opened(nvim, f"{OLD}\n💬: ")
    before, file = nvim.text(), path.read_bytes()
    model.go.clear()
    model.asked.clear()
    nvim.command("ParleyRespond! Held")
    nvim.until(lambda: model.asked, "the request")
    nvim.until_screen("Analyzing request...")
    assert (nvim.text(), path.read_bytes()) == (before, file)
    assert "old" not in json.dumps(model.asked[0]["messages"])
    nvim.keys("ggA, edited<Esc>G")
    model.go.set()
    nvim.until_text("🤖:[Held]")
    nvim.until_idle()
    assert nvim.text() == "💬: say: one, edited\n\n🤖:[Held]\n\none\n\n💬: "
    nvim.keys("u")
    assert nvim.text() == before.replace("say: one", "say: one, edited")


@pytest.mark.parametrize("end", ["stop", "refusal"])
def test_without_a_first_text_the_old_answer_stays(
    nvim: Child, model: HangingModel, end: str
) -> None:
    path = opened(nvim, f"{OLD}\n💬: ")
    before, file, tick = nvim.text(), path.read_bytes(), nvim.variable("changedtick")
    model.asked.clear()
    nvim.command(f"ParleyRespond! {'Hanging' if end == 'stop' else 'Refusing'}")
    nvim.until(lambda: model.asked, "the request")
    if end == "stop":
        nvim.command("ParleyStop")
    else:
        model.go.set()
    nvim.until_idle()
    nvim.until(lambda: "The old answer is unchanged" in nvim.messages(), "the message")
    assert (nvim.text(), path.read_bytes()) == (before, file)
    assert nvim.variable("changedtick") == tick


def test_an_agent_needs_a_name_that_exists_and_an_answer(nvim: Child) -> None:
    opened(nvim, OLD)
    nvim.command("ParleyRespond! Nobody")
    nvim.until(lambda: "there is no agent 'Nobody'" in nvim.messages(), "the message")
    nvim.command("ParleyRespond Demo")
    nvim.until(lambda: "ParleyRespond! Demo regenerates" in nvim.messages(), "the other message")
    nvim.until_idle()
    assert nvim.text() == OLD.rstrip("\n")
    completed = nvim.nvim.funcs.getcompletion("ParleyRespond! De", "cmdline")
    assert completed[:2] == ["Demo", "Demo-OpenAI"]


def test_a_killed_host_leaves_the_old_answer(nvim: Child, model: HangingModel) -> None:
    path = opened(nvim, f"{OLD}\n💬: ")
    before, file = nvim.text(), path.read_bytes()
    model.asked.clear()
    nvim.command("ParleyRespond! Hanging")
    nvim.until(lambda: model.asked, "the request")
    os.kill(
        nvim.lua("return vim.fn.jobpid(require('parley.host').state().channel)"), signal.SIGKILL
    )
    nvim.until(lambda: "the Python host exited" in nvim.messages(), "the end of the host")
    assert (nvim.text(), path.read_bytes()) == (before, file)
    nvim.command("ParleyRespond! Demo")  # begins when the new host has started
    new = f"{OLD.replace('old', 'one')}\n💬: "
    nvim.until(lambda: nvim.text() == new, "the new answer")
