"""The diff of a file and a proposed text in a tab page, driven by typed keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.nvim.harness import Child

BEFORE = "".join(f"line {number}\n" for number in range(1, 21))
AFTER = BEFORE.replace("line 3\n", "LINE 3\n").replace("line 18\n", "LINE 18\nmore\n")
OPEN = """
local opts = vim.json.decode(...)
_G.said = {}
for _, name in ipairs({ 'on_accept', 'on_decline', 'on_close' }) do
  opts[name] = function(text, is_edited) table.insert(_G.said, { name, text, is_edited }) end
end
if opts.live then
  opts.live_buf, opts.on_accept, opts.on_decline = vim.api.nvim_get_current_buf(), nil, nil
end
_G.tab = require('parley.diff_tab').open(opts)
"""


def show(nvim: Child, **opts: Any) -> None:
    nvim.lua(OPEN, json.dumps({"path": "src/100%.py", "before": BEFORE, "after": AFTER, **opts}))


def side(nvim: Child, name: str) -> list[str]:
    lines: list[str] = nvim.lua(
        f"return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(_G.tab.{name}), 0, -1, true)"
    )
    return lines


STATE = """
local diff, own = 0, {}
for _, win in ipairs(vim.api.nvim_list_wins()) do diff = diff + (vim.wo[win].diff and 1 or 0) end
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if vim.api.nvim_buf_get_name(buf):find('.py (', 1, true) then table.insert(own, buf) end
end
return { vim.fn.tabpagenr('$'), diff, #own, vim.api.nvim_get_current_win() }
"""


def test_the_text_on_the_right_is_taken_with_the_users_changes_and_the_focus_returns(
    plain: Child,
) -> None:
    plain.command("vsplit | wincmd l")
    start = plain.lua(STATE)
    show(plain, title="edit_file", accept="approve")
    assert plain.lua(STATE)[:3] == [2, 2, 2]
    assert plain.cursor == (3, 0)
    screen = plain.until_screen("q close")
    assert "src/100%.py" in screen
    assert "edit_file" in screen
    assert " now   dp put back  ]c next  q close" in screen
    assert "src/100%.py (now)" in screen
    assert "src/100%.py (edit_file)" in screen
    assert "ya approve" in screen
    assert plain.lua("return { vim.bo.filetype, vim.bo.swapfile, vim.bo.buftype }") == [
        "python",
        False,
        "nofile",
    ]
    plain.keys("u")  # there is nothing to undo
    plain.until(lambda: side(plain, "right") == AFTER.splitlines(), "the whole proposal")
    plain.keys("do]c")
    plain.until(lambda: plain.cursor[0] == 18, "the next change")
    assert side(plain, "right")[2] == "line 3"
    plain.keys("yyP")  # not a decision
    plain.keys("ya")
    plain.until(lambda: plain.lua("return #_G.said") == 1, "the decision")
    accepted = AFTER.replace("LINE 3\n", "line 3\n").replace("LINE 18\n", "LINE 18\nLINE 18\n")
    assert plain.lua("return _G.said") == [["on_accept", accepted, True]]
    assert plain.lua(STATE) == start


def test_an_unchanged_text_is_taken_byte_for_byte_and_keys_from_a_macro_take_nothing(
    plain: Child,
) -> None:
    for after in ("", "\n", "a\r\nb", "a\r\nb\r\n", "a\r\nb\n", "a\n\n"):
        show(plain, before="x", after=after)
        plain.command("normal ya")
        plain.lua("vim.fn.setreg('q', 'ya')")
        plain.keys("@q<Esc>")
        assert plain.lua("return #_G.said") == 0
        plain.keys("ya")
        plain.until(lambda: plain.lua("return #_G.said") == 1, "the decision")
        assert plain.lua("return _G.said[1]") == ["on_accept", after, False]
    show(plain, before=["x"], after=["a", "b"])
    plain.keys("ya")
    plain.until(lambda: plain.lua("return #_G.said") == 1, "the decision")
    assert plain.lua("return _G.said[1]") == ["on_accept", "a\nb\n", False]


def test_every_way_to_close_cleans_up_and_is_not_a_decision(plain: Child) -> None:
    plain.command("vsplit | wincmd l")
    start = plain.lua(STATE)
    ways = {
        "q": "on_close",
        ":q<CR>": "on_close",
        "<C-w>h:q<CR>": "on_close",
        ":tabclose<CR>": "on_close",
        "<C-w>o<C-w>c": "on_close",
        "yn": "on_decline",
    }
    for keys, said in ways.items():
        show(plain)
        plain.keys(keys)
        plain.until(lambda: plain.lua("return #_G.said") == 1, keys)
        assert plain.lua("return _G.said[1][1]") == said, keys
        assert plain.lua(STATE) == start, keys
    show(plain)
    plain.keys(":enew<CR>")  # the user needs the window for another text, so it stays
    plain.until(lambda: plain.lua("return #_G.said") == 1, "the end of the diff")
    assert plain.lua(STATE)[:3] == [2, 0, 0]
    plain.command("tabonly")
    show(plain)
    plain.keys(":tabonly<CR>:q<CR>")
    plain.until(lambda: plain.lua("return #_G.said") == 1, "the end of the diff")
    assert plain.lua(STATE)[:3] == [1, 0, 0]


def test_two_diffs_of_a_file_have_different_names(plain: Child) -> None:
    show(plain)
    show(plain)
    assert plain.lua(STATE)[:3:2] == [3, 4]
    plain.keys("qq")
    plain.until(lambda: plain.lua(STATE)[:3:2] == [1, 0], "the end of both diffs")


def test_a_live_file_takes_single_changes_and_is_not_written(plain: Child, tmp_path: Path) -> None:
    plain.command("set nohidden diffopt=internal,filler")  # a change has one hunk
    path = tmp_path / "code.py"
    path.write_text(BEFORE, encoding="utf-8")
    plain.command(f"edit {path} | nnoremap <buffer> q <Cmd>let g:own = 1<CR>")
    start = plain.lua(STATE)
    show(plain, live=True, path="code.py")
    plain.keys("do]c")
    plain.until(lambda: plain.cursor[0] == 18, "the next change")
    show(plain, live=True, path="code.py")  # replaces the earlier diff
    assert plain.lua(STATE)[:3] == [2, 2, 1]
    plain.keys("q<C-w>l:silent! normal! dp<CR>q")
    plain.until(lambda: plain.lua(STATE) == start, "the end of the diff")
    assert plain.lua("return vim.g.own") == 1
    assert plain.lines() == AFTER.splitlines()
    assert path.read_text(encoding="utf-8") == BEFORE
    plain.command("enew! | buffer code.py")
    assert plain.lua(
        "return { vim.wo.diff, vim.wo.scrollbind, vim.wo.winbar, vim.bo.modified }"
    ) == [
        False,
        False,
        "",
        False,
    ]
