"""From a key to the request: Parley does not query Neovim on the way, and sends no message twice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.nvim.hanging_model import HangingModel, hanging_model
from tests.nvim.harness import Child, child
from tests.pictures import png

LONG = "💬: one?\n\n🤖:[A]\n\n" + "a line of an answer\n" * 300 + "\n"
ASLEEP = """
vim.cmd('ParleyRespond')
vim.uv.sleep(600)
return vim.uv.hrtime() / 1e9
"""
COUNTED = """
local mirror, here = require('parley.mirror'), vim.api.nvim_get_current_buf()
local take = mirror.take
_G.crossings = {}
mirror.take = function(buf, ...)
  local change = take(buf, ...)
  if buf == here then
    table.insert(_G.crossings, change and #(change.lines or {}) or 0)
  end
  return change
end
"""


@pytest.fixture(scope="module")
def model() -> Iterator[HangingModel]:
    with hanging_model() as model:
        yield model


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, model: HangingModel) -> Iterator[Child]:
    provider = {"kind": "openai", "api": "chat", "base_url": f"{model.url}/v1"}
    agent = {"name": "Hanging", "provider": "far", "model": "hanging", "tool_mode": "off"}
    options = {"providers": {"far": provider}, "agents": [agent], "agent": "Hanging"}
    init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(options))}))"
    with child(tmp_path_factory.mktemp("desk"), init=init) as nvim:
        nvim.edit("first.md", "💬: first\n")
        asked = len(model.asked)
        nvim.command("ParleyRespond")
        nvim.until(lambda: len(model.asked) > asked, "the request that has the SDK imported")
        stop(nvim)
        yield nvim


def stop(nvim: Child) -> None:
    nvim.command("ParleyStop")
    nvim.until_idle()


@pytest.mark.parametrize("exchanges", [0, 1, 10])
def test_the_request_is_sent_even_if_neovim_answers_nothing(
    desk: Child, model: HangingModel, exchanges: int
) -> None:
    desk.edit(f"{exchanges}.md", LONG * exchanges + "💬: \n")
    desk.until(
        lambda: desk.lua("return require('parley.view').tick(vim.fn.bufnr()) ~= nil"), "the chat"
    )
    desk.command("normal! G")
    desk.nvim.api.buf_set_lines(0, -2, -1, True, ["💬: what was typed just now"])
    asked = len(model.asked)
    awake = desk.lua(ASLEEP)
    assert [each["messages"][-1]["content"] for each in model.asked[asked:]] == [
        "what was typed just now"
    ]
    assert model.times[-1] < awake - 0.2
    desk.until_text("🤖:[Hanging]")
    stop(desk)


def test_only_changed_lines_are_sent_and_only_once(desk: Child, model: HangingModel) -> None:
    desk.edit("crossings.md", LONG * 7 + "💬: \n")
    desk.until(
        lambda: desk.lua("return require('parley.view').tick(vim.fn.bufnr()) ~= nil"), "the chat"
    )
    desk.lua(COUNTED)
    desk.keys("GA" + "typed " * 20)
    desk.until(lambda: "typed " * 20 in desk.text(), "the words")
    assert desk.lua("return _G.crossings") == []
    desk.keys("<Esc>")
    desk.until(lambda: desk.lua("return _G.crossings"), "a rest")
    assert desk.lua("return _G.crossings") == [1]
    asked = len(model.asked)
    desk.command("ParleyRespond")
    desk.until(lambda: len(model.asked) > asked, "the request")
    assert sum(desk.lua("return _G.crossings")) == 1
    stop(desk)
    desk.until_text("[Stopped: by the user]")
    assert sum(desk.lua("return _G.crossings")) < 10


def ask_and(desk: Child, model: HangingModel, name: str, act: str) -> int:
    """Ask, and act again before the host can reply; return the number of cancelled requests."""
    desk.edit(name, "💬: first\n\n🤖:[A]\n\nanswer\n\n💬: next\n")
    desk.until(
        lambda: desk.lua("return require('parley.view').tick(vim.fn.bufnr()) ~= nil"), "the chat"
    )
    desk.command("normal! G")
    desk.command("messages clear")
    before = model.given_up
    desk.lua(f"vim.cmd('ParleyRespond') {act}")
    return before


def test_a_started_turn_finds_its_place_in_a_text_that_moved(
    desk: Child, model: HangingModel
) -> None:
    ask_and(desk, model, "moved.md", "vim.api.nvim_buf_set_lines(0, 0, 0, true, { 'above', '' })")
    text = "above\n\n💬: first\n\n🤖:[A]\n\nanswer\n\n💬: next\n\n🤖:[Hanging]"
    assert desk.until_text("🤖:[Hanging]").startswith(text)
    stop(desk)
    desk.keys("u")
    desk.until(lambda: "Hanging" not in desk.text(), "one step of undo")


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("wiped", "vim.cmd('bwipeout!')"),
        ("emptied", "vim.api.nvim_buf_set_lines(0, 0, -1, true, {})"),
        ("stopped", "vim.cmd('ParleyStop')"),
        ("fixed", "vim.bo.modifiable = false"),
    ],
)
def test_a_request_without_a_place_for_its_answer_is_cancelled(
    desk: Child, model: HangingModel, name: str, act: str
) -> None:
    asked = len(model.asked)
    before = ask_and(desk, model, f"{name}.md", act)
    desk.until_idle()
    desk.until(
        lambda: len(model.asked) - asked == model.given_up - before, "the end of the request"
    )
    assert "went wrong" not in desk.messages()
    desk.command("setlocal modifiable")
    again = len(model.asked)
    desk.edit(f"{name}2.md", "💬: again\n")
    desk.command("ParleyRespond")
    desk.until(lambda: len(model.asked) > again, "the next request")
    stop(desk)


AT_ONCE = {
    "a map that asks twice": ":1,2ParleyAsk what?<CR><C-g><C-g>",
    "typed ahead": ":1,2ParleyAsk<CR>what?<C-g><C-g>",
    "typed ahead, and asked in Normal mode": ":1,2ParleyAsk<CR>what?<Esc><C-g><C-g>",
    "in a new chat": ":1,2ParleyChatNew<CR>what?<C-g><C-g>",
}


@pytest.mark.parametrize("keys", AT_ONCE.values(), ids=AT_ONCE)
@pytest.mark.parametrize("is_last", [False, True])
def test_an_immediate_question_includes_its_lines(
    desk: Child, model: HangingModel, keys: str, is_last: bool
) -> None:
    desk.clear()
    if is_last:
        desk.edit("last.md", "💬: one?\n\n🤖:[Hanging]\n\nOne.\n\n💬: \n")
        desk.until(
            lambda: desk.lua("return require('parley.view').tick(vim.fn.bufnr()) ~= nil"),
            "the chat",
        )
    desk.edit("code.py", "import os\n\n")
    desk.command("messages clear")
    asked = len(model.asked)
    desk.keys(keys)
    desk.until(lambda: len(model.asked) > asked, "the request")
    question = model.asked[asked]["messages"][-1]["content"]
    assert "code.py:1-2` (2 lines)\n\n```python\nimport os\n\n```" in question
    assert question.count("what?") == 1
    desk.command("ParleyStop")
    desk.until_idle()
    assert len(model.asked) == asked + 1
    assert desk.lines()[-1] == "💬: "
    assert "nothing is asked" not in desk.messages()
    assert "a turn is running" not in desk.messages()
    assert desk.lua("return vim.fn.mode()") == "n"


def test_an_immediate_question_includes_its_picture(desk: Child, model: HangingModel) -> None:
    (desk.home / "pic.png").write_bytes(png())
    desk.edit("picture.md", "💬: what?\n")
    asked = len(model.asked)
    desk.keys(f":ParleyImage {desk.home}/pic.png<CR><C-g><C-g>")
    desk.until(lambda: len(model.asked) > asked, "the request")
    assert [part["type"] for part in model.asked[asked]["messages"][-1]["content"]] == [
        "text",
        "image_url",
    ]
    stop(desk)
