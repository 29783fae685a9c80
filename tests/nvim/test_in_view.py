"""Among thousands of waiting calls, Parley draws only the calls in view. The tests count work, not
time.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from parley.tools.catalogue import Catalogue
from tests.chats import tool
from tests.nvim.harness import Child
from tests.nvim.test_rows import ANY, HEIGHT, LONG, ONE, PROMPT, call, draw, numbers, opened, shown

COUNT = """
_G.work, _G.plain = 0, _G.plain or {}
local modules = {
  { 'folds', require('parley.folds'), { 'below', 'uncover', 'is_whole' } },
  { 'view', require('parley.view'), { 'fit', 'is_cut', 'has_block' } },
  { 'api', vim.api, { 'nvim_win_text_height', 'nvim_strwidth' } },
  { 'fn', vim.fn, { 'foldclosed', 'foldclosedend', 'strcharpart' } },
}
for _, module in ipairs(modules) do
  for _, name in ipairs(module[3]) do
    local key = module[1] .. name
    _G.plain[key] = _G.plain[key] or module[2][name]
    module[2][name] = function(...)
      _G.work = _G.work + 1
      return _G.plain[key](...)
    end
  end
end
"""
FREE = """
for key, plain in pairs(_G.plain) do
  for name, module in pairs({ folds = require('parley.folds'), view = require('parley.view'), api = vim.api,
    fn = vim.fn }) do
    if vim.startswith(key, name) then
      module[key:sub(#name + 1)] = plain
    end
  end
end
"""


def one_answer(count: int) -> str:
    """An answer with this many waiting calls."""
    return f"{LONG}💬: q\n\n🤖:[Demo]\n\n{''.join(call(n, query=f'number {n}') for n in range(1, count + 1))}"


def many_answers(count: int) -> str:
    """Answers with one waiting call each."""
    answers = (
        f"💬: q\n\n🤖:[Demo]\n\n{call(1, query=f'number {n}')}\n" for n in range(1, count + 1)
    )
    return LONG + "".join(answers)


def work(nvim: Child, text: str, tools: Catalogue) -> list[int]:
    """The work to draw a chat, move in it, show it again, and make its window narrower."""
    rows = opened(nvim, text)
    draw(nvim, tools)
    nvim.lua(COUNT)
    counts = []

    def counted(act: Any) -> None:
        nvim.lua("_G.work = 0")
        act()
        nvim.screen()
        counts.append(nvim.lua("return _G.work"))

    try:
        counted(lambda: draw(nvim, tools))
        counted(lambda: nvim.keys("<C-d>"))
        counted(lambda: nvim.keys("G"))
        counted(lambda: nvim.keys("gg"))
        counted(lambda: nvim.command("enew | buffer #"))
        counted(lambda: nvim.nvim.ui_try_resize(70, HEIGHT))
        reveal = "require('parley.view').reveal(vim.api.nvim_get_current_win(), ...)"
        counted(lambda: nvim.lua(reveal, rows[0], rows[-1]))
        counted(lambda: numbers(nvim))
    finally:
        nvim.lua(FREE)
    return counts


@pytest.mark.parametrize("made", [one_answer, many_answers])
@pytest.mark.parametrize("required", [[], ["language"]])
def test_ten_times_as_many_calls_take_no_more_work(
    plain: Child, made: Any, required: list[str]
) -> None:
    tools = Catalogue.of([tool("web_search", "mock", input_schema=ANY | {"required": required})])
    few, many = (work(plain, made(count), tools) for count in (60, 600))
    assert all(count > 0 for count in few[:2])
    assert all(more <= 2 * less + 300 for less, more in zip(few, many, strict=True)), (few, many)


def test_the_last_of_many_calls_and_its_prompt_are_drawn_when_a_window_reaches_them(
    plain: Child,
) -> None:
    opened(plain, one_answer(300))
    plain.keys("gg")
    plain.until(lambda: "line 3" in plain.screen(), "the start")
    plain.keys("G")
    plain.until(lambda: PROMPT in shown(plain), "the prompt")
    assert '❓ web_search(query: "number 300") · mock' in shown(plain)
    seen = numbers(plain)
    assert 300 in seen
    assert 150 not in seen


def test_calls_in_a_users_fold_are_drawn_when_it_is_opened(plain: Child) -> None:
    opened(plain, many_answers(40))
    plain.command("normal! G")
    plain.command("60,$-1fold")
    draw(plain)
    plain.command("normal! ggzR")
    plain.command("call cursor(line('$') - 60, 1) | normal! zt")
    plain.until(lambda: shown(plain).count(ONE) > 1, "the prompts")


def test_notes_are_drawn_only_for_the_calls_that_a_window_can_show(plain: Child) -> None:
    tools = Catalogue.of(
        [tool("web_search", "mock", input_schema=ANY | {"required": ["language"]})]
    )
    opened(plain, one_answer(100))
    draw(plain, tools)
    plain.command("normal! G")
    plain.until(lambda: PROMPT in plain.screen(), "the prompt")
    assert "call 1: this call cannot run" in plain.screen()
    assert re.search(r"\+\d\d more, K", plain.screen())
