"""The law of rows: a Lua function that takes a row accepts any row, in any buffer."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.nvim.harness import ROOT, Child
from tests.nvim.test_folds import at_end, chat, ran
from tests.nvim.test_rows import call, opened
from tests.nvim.test_rows import chat as waiting_chat

CALLS = """
local buf, win, a, b = _G.buf, vim.api.nvim_get_current_win(), _G.row(...)
local view, folds, handle = require('parley.view'), require('parley.folds'), require('parley.handle')
local id = handle.open(buf, 0)
local held = handle.get(id)
local tick = vim.api.nvim_buf_get_changedtick(buf)
local found = { first = a, last = b, texts = {}, folds = { { a, b, 1, false, '', 'x' } } }
local calls = {
  ['view.current'] = function() view.current(win, a) end,
  ['view.waits_at'] = function() view.waits_at(buf, a) end,
  ['view.proposal_at'] = function() view.proposal_at(buf, a) end,
  ['view.call_at'] = function() view.call_at(buf, a) end,
  ['view.reveal'] = function() view.reveal(win, a, b) end,
  ['folds.put'] = function() folds.put(buf, {}, a, b) end,
  ['folds.update'] = function() folds.update(buf, tick, found) end,
  ['folds.after'] = function() folds.after(buf, a) end,
  ['pages.rest'] = function()
    local pages = require('parley.pages')
    pages.scratch('any-row', { 'one' }, 'parley')
    local ok, why = pcall(pages.rest, 'any-row', a, true)
    pages.close('any-row')
    assert(ok, why)
  end,
  ['folds.within'] = function() folds.within(buf, a, function() end) end,
  ['folds.is_whole'] = function() folds.is_whole(win, a) end,
  ['folds.id'] = function() folds.id(buf, a) end,
  ['folds.below'] = function() folds.below(buf, a) end,
  ['folds.uncover'] = function() folds.uncover(win, a) end,
  ['guard.note'] = function() require('parley.guard').note(buf, a, 0, b, { '💬' }) end,
  ['handle.open'] = function() handle.close(handle.open(buf, a)) end,
  ['handle.open_after'] = function() handle.close(handle.open_after(buf, tick, a)) end,
  ['handle.move'] = function() handle.move(id, a) end,
  ['handle.set_tip'] = function() if held then handle.set_tip(held, a, 0) end end,
  ['handle.set_cursor'] = function() if held then handle.set_cursor(held, a) end end,
  ['handle.at'] = function() handle.at(buf, a) end,
  ['handle.lead'] = function() if held then handle.lead(held, a, true) end end,
  ['handle.finish'] = function() handle.finish(id, { row = a, to_end = false, reveal = b }) end,
  ['handle.pin'] = function() handle.pin(id, tick, a) end,
  ['highlight.written'] = function()
    require('parley.highlight').written(buf, a)
    require('parley.highlight').forget(buf)
  end,
  ['stream.open'] = function() require('parley.stream').open(id, tick, {}, a, b, {}) end,
  ['queue.put'] = function() require('parley.queue').put(handle.open(buf, 0), a, 'queued') end,
  ['queue.take'] = function() require('parley.queue').take(buf, 1, a) end,
  ['outline.title'] = function() require('parley.outline').title({ 'one' }, a) end,
  ['outline.jump'] = function() require('parley.outline').jump(a) end,
  ['buffer_rows.within'] = function() require('parley.buffer_rows').within(buf, a) end,
  ['buffer_rows.has'] = function() require('parley.buffer_rows').has(buf, a) end,
  ['buffer_rows.line'] = function() require('parley.buffer_rows').line(buf, a) end,
  ['code_queries.query'] = function()
    require('parley.code_queries').query(0, 'definition', 1, 'no-such-file', a, 'name')
  end,
  ['review.open'] = function()
    require('parley.review').open(buf, a, 0, { path = 'x', after = 'y' })
    vim.cmd('silent! tabclose')
  end,
  ['rewrite.asked'] = function() require('parley.rewrite').asked(0, buf, a) end,
  ['pictures.learn'] = function() require('parley.pictures').learn(buf, tick, { { a, 'x.png' } }) end,
  ['chat.brought'] = function() require('parley.chat').brought(id, a, false) end,
}
if _G.names_only then
  handle.close(id)
  return vim.tbl_keys(calls)
end
local failed = {}
for name, act in vim.spairs(calls) do
  local ok, why = pcall(act)
  if not ok then
    table.insert(failed, name .. ': ' .. tostring(why))
  end
end
handle.close_all()
vim.cmd.stopinsert()
return failed
"""
ROW = """
local function number(text)
  return text == 'nan' and 0 / 0 or text == 'inf' and math.huge or text == '-inf' and -math.huge
    or tonumber(text)
end
_G.row = function(a, b) return number(a), number(b) end
"""
# Functions whose rows belong to edits for one changedtick's text; with any other text, they refuse
# all edits.
OF_EDITS = {"edit.apply", "handle.cover"}
# Arguments that count rows, or contain a line's text instead of its number.
NO_ROWS = {
    "chat.is_question", "commands.complete", "context.text", "folds.rows", "health.heard", "keys.is_choice",
    "known.is", "models_page.draw", "open_files.replace", "pages.fill", "pages.float", "pages.scratch",
    "pages.window", "permissions_page.draw", "servers_page.draw", "stream.fit", "view.drawn",
}  # fmt: skip
ROWS = st.one_of(
    st.integers(-3, 90),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=True, allow_infinity=True),
)
BUFFERS = ["done", "waiting", "short", "empty", "unloaded", "cut"]


def shown_buffer(nvim: Child, kind: str) -> None:
    """Show a buffer of a kind in the current window, if possible."""
    if kind == "done":
        at_end(nvim, chat(ran(1, "found"), ran(2, "a\nb\nc", "[error]")))
    elif kind in ("waiting", "cut"):
        opened(nvim, waiting_chat(call(1, query="a"), call(2, query="b")))
    else:
        nvim.clear()
        nvim.edit(f"{kind}.md", "" if kind == "empty" else "one\n")
    nvim.lua("vim.o.hidden = true _G.buf = vim.api.nvim_get_current_buf()")
    if kind == "cut":
        nvim.command("call search('^🤖', 'b') | normal! VGd")
    elif kind == "unloaded":
        nvim.command("let b = bufnr() | enew | exe 'bunload' b")
    nvim.lua(ROW)


@pytest.mark.parametrize("kind", BUFFERS)
def test_a_function_that_takes_a_row_accepts_any_row(plain: Child, kind: str) -> None:
    @examples(15)
    @given(ROWS, ROWS)
    @example(-1, -1)
    @example(0, 2**53)
    @example(0.5, 1.5)
    @example(math.nan, math.inf)
    @example(10**6, 3)
    def law(one: float, other: float) -> None:
        shown_buffer(plain, kind) if plain.lua("return _G.kind ~= ...", kind) else None
        plain.lua("_G.kind = ...", kind)
        assert plain.lua(CALLS, str(one), str(other)) == []

    try:
        shown_buffer(plain, kind)
        plain.lua("_G.kind = ...", kind)
        law()
    finally:
        plain.lua("_G.kind = nil")
        plain.keys("<C-\\><C-n>")


def test_each_public_function_that_takes_a_row_is_tried(plain: Child) -> None:
    shown_buffer(plain, "short")
    plain.lua("_G.names_only = true")
    try:
        tried = set(plain.lua(CALLS, "0", "0"))
    finally:
        plain.lua("_G.names_only = nil")
    named = set()
    for path in (ROOT / "lua" / "parley").glob("*.lua"):
        for match in re.finditer(
            r"^function M\.(\w+)\((.*)\)", path.read_text(encoding="utf-8"), re.M
        ):
            if re.search(r"\b(\w*_)?(rows?|lines?|first|last|at|edits|found)\b", match[2]):
                named.add(f"{path.stem}.{match[1]}")
    assert named - NO_ROWS - OF_EDITS - {"view.draw"} <= tried
    assert tried <= named | {
        "handle.finish",
        "queue.put",
        "queue.take",
        "outline.jump",
        "folds.rows",
    }
