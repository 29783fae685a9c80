"""The host's text in a buffer: atomic edits, streams, undo and cursors, tested without a host."""

from __future__ import annotations

from typing import Any

import pynvim
import pytest

from parley.engine import REMOVED
from parley.nvim.stream import STARTS
from tests.nvim.harness import Child

TEXT = ["\U0001f4ac: ask", "", "\U0001f916:[Demo]", ""]
ANSWER = 2
COUNT_TIMERS = """
local handle, pieces = ...
local host, defer, timers = require('parley.host'), vim.defer_fn, 0
_G.mentioned, _G.mention = {}, host.mention
function host.mention(what) table.insert(_G.mentioned, what) end
vim.defer_fn = function(...)
  timers = timers + 1
  return defer(...)
end
for _ = 1, pieces do
  require('parley.stream').append(handle, 'word ', false)
  vim.cmd('doautocmd TextChanged')
end
vim.defer_fn = defer
return timers
"""
COUNT_MARKS = """
local set, ns = vim.api.nvim_buf_set_extmark, vim.api.nvim_create_namespace('parley.status')
_G.marks, _G.set_extmark = 0, set
function vim.api.nvim_buf_set_extmark(buf, of, ...)
  _G.marks = _G.marks + (of == ns and 1 or 0)
  return set(buf, of, ...)
end
"""
FAILING = """
_G.set_text = vim.api.nvim_buf_set_text
vim.api.nvim_buf_set_text = function() error('out of luck') end
"""
SLOW_SCREEN = """
local ms = ...
vim.api.nvim_set_decoration_provider(vim.api.nvim_create_namespace('slow'), {
  on_win = function() vim.uv.sleep(ms) end,
})
"""


def chat(nvim: Child, lines: list[str] | None = None) -> int:
    """A buffer with a question and the start of its answer; the handle of its turn."""
    nvim.clear()
    # Read from a file, so that undo covers only later changes.
    path = nvim.home / "edit.md"
    path.write_text("".join(line + "\n" for line in lines or TEXT), encoding="utf-8")
    nvim.command(f"edit! {path}")
    nvim.lua(
        "_G.told = {} require('parley.host').mention = function(...) table.insert(_G.told, "
        "{...}) end"
    )
    nvim.lua("require('parley.mirror').follow(vim.api.nvim_get_current_buf())")
    handle: int = nvim.lua(
        "return require('parley.handle').open(0 + vim.api.nvim_get_current_buf(), 0)"
    )
    nvim.lua("require('parley.handle').watch(...)", handle)
    return handle


def remote(nvim: Child, name: str, *arguments: Any) -> Any:
    """The reply to a request from the host."""
    return nvim.lua("return require('parley.remote')(...)", name, *arguments)


def edit(start: int, stop: int, *lines: str) -> dict[str, Any]:
    """An edit in the form that Lua expects."""
    return {"start": start, "stop": stop, "lines": lines}


def tick(nvim: Child) -> int:
    number: int = nvim.nvim.api.buf_get_changedtick(0)
    return number


def streaming(nvim: Child, lines: list[str] | None = None) -> int:
    """A turn with its stream open at the end of the answer."""
    handle = chat(nvim, lines)
    end = len(nvim.lines())
    edits = [edit(end, end, "")]
    opened = remote(nvim, "open_stream", handle, tick(nvim), edits, ANSWER, end, STARTS)
    assert opened["applied"]
    return handle


def append(nvim: Child, handle: int, text: str, fresh: bool = False) -> Any:
    return remote(nvim, "append", handle, text, fresh)


def test_edits_are_applied_all_at_once_or_not_at_all(plain: Child) -> None:
    handle = chat(plain)
    before = tick(plain)
    edits = [edit(3, 4, "x", "y"), edit(0, 1, "\U0001f4ac: asked")]
    assert remote(plain, "apply", handle, before, edits, None)["applied"]
    assert plain.lines() == ["\U0001f4ac: asked", "", "\U0001f916:[Demo]", "x", "y"]
    stale = remote(plain, "apply", handle, before, edits, None)
    assert "applied" not in stale
    assert stale["change"]["lines"] == plain.lines()


def test_text_that_the_host_has_is_not_sent_again(plain: Child) -> None:
    handle = chat(plain)
    first = remote(plain, "read", handle, -1)["change"]
    assert (first["tick"], first["lines"]) == (tick(plain), TEXT)
    assert "lines" not in remote(plain, "read", handle, first["tick"])["change"]


def test_nul_characters_survive_in_both_directions(plain: Child) -> None:
    handle = chat(plain)
    plain.nvim.api.buf_set_lines(0, 0, 1, True, ["a\0b"])
    change = remote(plain, "read", handle, -1)["change"]
    assert change["lines"][0] == "a\0b"
    remote(plain, "apply", handle, change["tick"], [edit(1, 2, "c\0d")], None)
    assert plain.lines()[:2] == ["a\0b", "c\0d"]
    plain.command("silent write")
    assert (plain.home / "edit.md").read_bytes().startswith(b"a\0b\nc\0d\n")


def test_changing_part_of_a_line_keeps_the_marks_and_cursor_next_to_it(plain: Child) -> None:
    handle = chat(plain, ["❓: `{}` tail", *TEXT])
    plain.nvim.api.win_set_cursor(0, (1, 12))
    namespace = plain.nvim.api.create_namespace("test")
    mark = plain.nvim.api.buf_set_extmark(0, namespace, 0, 10, {})
    remote(plain, "apply", handle, tick(plain), [edit(0, 1, "❓:[ya] `{}` tail")], None)
    assert plain.nvim.api.buf_get_extmark_by_id(0, namespace, mark, {}) == [0, 14]
    assert plain.cursor == (1, 16)


def test_a_stream_is_written_at_its_tip_wherever_it_has_moved(plain: Child) -> None:
    handle = streaming(plain)
    append(plain, handle, "one\ntwo", True)
    plain.nvim.api.buf_set_lines(0, 0, 0, True, ["above"])
    plain.nvim.api.buf_set_lines(0, -1, -1, True, ["below"])
    append(plain, handle, " more\nthree")
    assert plain.lines() == ["above", *TEXT, "one", "two more", "three", "below"]


def test_one_undo_reverts_a_turns_whole_text_and_redo_restores_it(plain: Child) -> None:
    handle = streaming(plain)
    for piece in ("one", " two\n", "three"):
        append(plain, handle, piece)
    remote(
        plain,
        "apply",
        handle,
        tick(plain),
        [edit(len(plain.lines()), len(plain.lines()), "❓: {}")],
        None,
    )
    full = plain.lines()
    plain.keys("u")
    assert plain.lines() == TEXT
    plain.keys("<C-r>")
    assert plain.lines() == full


def test_a_users_edit_in_between_is_its_own_undo_step(plain: Child) -> None:
    handle = streaming(plain)
    append(plain, handle, "one", True)
    plain.nvim.api.win_set_cursor(0, (1, 0))
    plain.keys("Amine<Esc>")
    append(plain, handle, " two")
    plain.keys("u")
    assert plain.lines() == ["\U0001f4ac: askmine", *TEXT[1:], "one"]
    plain.keys("u")
    assert plain.lines() == [*TEXT, "one"]


def test_text_typed_during_a_stream_is_undone_separately(plain: Child) -> None:
    handle = streaming(plain)
    plain.nvim.api.win_set_cursor(0, (1, 0))
    plain.keys("Amine")
    append(plain, handle, "one", True)
    plain.keys("more<Esc>")
    append(plain, handle, " two")
    assert plain.lines()[0] == "\U0001f4ac: askminemore"
    steps = list[list[str]]()
    while plain.lines() != TEXT and len(steps) < 9:
        plain.keys("u")
        steps.append(plain.lines())
    assert [*TEXT, ""] in steps or [*TEXT] in steps
    assert any(step[0] == "\U0001f4ac: askmine" for step in steps)


@pytest.mark.parametrize(
    "taking", ["3delete _", "%delete _", "3,$delete _"], ids=["its line", "everything", "the rest"]
)
def test_deleting_the_answers_line_ends_the_turn(plain: Child, taking: str) -> None:
    handle = streaming(plain)
    append(plain, handle, "one", True)
    plain.command(taking)
    left = plain.lines()
    plain.until(lambda: plain.lua("return _G.told"), "word of it")
    assert plain.lua("return _G.told[1]")[0] == "gone"
    assert append(plain, handle, "two") == {"gone": REMOVED}
    assert remote(plain, "read", handle, -1) == {"gone": REMOVED}
    assert plain.lines() == left


def test_undo_in_mid_stream_ends_the_turn(plain: Child) -> None:
    handle = chat(plain, TEXT[:1])
    edits = [edit(1, 1, *TEXT[1:])]
    remote(plain, "apply", handle, tick(plain), edits, ANSWER)
    remote(plain, "open_stream", handle, tick(plain), [], ANSWER, 3)
    append(plain, handle, "one\ntwo", True)
    plain.keys("u")
    assert plain.lines() == TEXT[:1]
    assert "gone" in append(plain, handle, "three")
    assert plain.lines() == TEXT[:1]


@pytest.mark.parametrize("keys", ["u", "uGomine<Esc>"])
def test_undo_in_mid_stream_of_an_existing_answer_ends_the_turn(plain: Child, keys: str) -> None:
    handle = chat(plain, [*TEXT, "half of it", "", "cut"])
    remote(plain, "apply", handle, tick(plain), [edit(len(TEXT), len(TEXT) + 3, "")], ANSWER)
    remote(plain, "open_stream", handle, tick(plain), [], ANSWER, len(TEXT))
    append(plain, handle, "one\ntwo", True)
    plain.keys(keys)
    left = [*TEXT, "half of it", "", "cut", *(["mine"] if "mine" in keys else [])]
    assert plain.lines() == left
    assert append(plain, handle, "three") == {"gone": REMOVED}
    assert plain.lines() == left


def test_undoing_a_piece_ends_the_turn_but_undoing_the_users_text_does_not(plain: Child) -> None:
    handle = streaming(plain)
    append(plain, handle, "one", True)
    plain.keys("ggAmine<Esc>u")
    assert isinstance(append(plain, handle, " two"), int | float)
    plain.keys("ggAmine<Esc>")
    assert isinstance(append(plain, handle, " three"), int | float)
    plain.keys("u")
    assert append(plain, handle, " four") == {"gone": REMOVED}
    assert plain.lines() == ["\U0001f4ac: askmine", *TEXT[1:], "one two"]


def test_after_a_piece_without_an_answer_fails_nothing_is_written_until_the_host_learns_it(
    plain: Child,
) -> None:
    handle = streaming(plain)
    remote(plain, "write", handle, "one", True)
    plain.lua(FAILING)
    remote(plain, "write", handle, " two", False)
    plain.lua("vim.api.nvim_buf_set_text = _G.set_text")
    remote(plain, "write", handle, " three", False)
    assert plain.lines()[-1] == "one"
    with pytest.raises(pynvim.NvimError, match="out of luck"):
        append(plain, handle, "")
    assert plain.lines()[-1] == "one"


@pytest.mark.parametrize(
    ("losing", "back"),
    [("setlocal nomodifiable", "setlocal modifiable"), ("silent undo", "silent redo")],
)
def test_no_piece_follows_one_that_was_lost(plain: Child, losing: str, back: str) -> None:
    handle = streaming(plain)
    remote(plain, "write", handle, "one", True)
    plain.command(losing)
    remote(plain, "write", handle, " two", False)
    plain.command(back)
    remote(plain, "write", handle, " three", False)
    assert "gone" in append(plain, handle, "")
    assert plain.lines()[-1] == "one"


def test_a_piece_without_an_answer_for_a_lost_handle_is_not_written(plain: Child) -> None:
    handle = streaming(plain)
    remote(plain, "close", handle)
    remote(plain, "write", handle, "one", True)
    assert plain.lines() == [*TEXT, ""]
    assert "gone" in append(plain, handle, "")


@pytest.mark.parametrize("taking", ["bwipeout!", "bunload!", "bdelete!"])
def test_a_closed_buffer_ends_the_turn_and_no_other_buffer_is_written(
    plain: Child, taking: str
) -> None:
    handle = streaming(plain)
    plain.command("split | enew | wincmd p")
    plain.command(taking)
    assert "gone" in append(plain, handle, "two")
    assert "gone" in remote(plain, "apply", handle, 1, [edit(0, 0, "x")], None)
    assert plain.lines() == [""]


def test_hidden_renamed_and_read_only_buffers_are_still_written(plain: Child) -> None:
    handle = streaming(plain)
    buf = plain.nvim.current.buffer.number
    plain.command("setlocal readonly")
    append(plain, handle, "one", True)
    plain.command(f"file {plain.home}/renamed.md")
    append(plain, handle, " two")
    plain.command("setlocal bufhidden=hide | enew")
    append(plain, handle, " three")
    assert plain.lines(buf)[-1] == "one two three"
    assert plain.lines() == [""]
    assert plain.nvim.api.get_option_value("readonly", {"buf": buf})
    assert "W10" not in plain.messages()


def test_a_buffer_that_cannot_be_changed_ends_the_turn(plain: Child) -> None:
    handle = streaming(plain)
    plain.command("setlocal nomodifiable")
    assert append(plain, handle, "one", True) == {
        "gone": "this buffer cannot be changed: :set modifiable, then try again"
    }


def test_a_cursor_on_the_last_line_follows_and_any_other_stays(plain: Child) -> None:
    handle = streaming(plain)
    append(plain, handle, "one\ntwo", True)
    assert plain.cursor[0] == len(plain.lines())
    plain.command("split")
    plain.keys("gg0")
    append(plain, handle, "\nthree")
    assert plain.cursor == (1, 0)
    other = plain.nvim.funcs.winnr("#")
    assert plain.nvim.funcs.line(".", plain.nvim.funcs.win_getid(other)) == len(plain.lines())


@pytest.mark.parametrize(
    ("keys", "mode"), [("v", "v"), ("V", "V"), ("i", "i"), ("d", "no"), ("R", "R")]
)
def test_the_cursor_stays_while_the_user_types_selects_or_has_a_pending_command(
    plain: Child, keys: str, mode: str
) -> None:
    handle = streaming(plain)
    append(plain, handle, "one", True)
    before = plain.cursor
    plain.keys(keys)
    append(plain, handle, "\ntwo\nthree")
    assert plain.nvim.api.get_mode()["mode"] == mode
    assert plain.cursor[0] == before[0]
    plain.keys("<Esc>")


def test_the_view_stays_on_the_same_text_while_an_answer_grows_above_it(plain: Child) -> None:
    handle = streaming(plain)
    plain.nvim.api.buf_set_lines(0, -1, -1, True, [f"line {n}" for n in range(200)])
    plain.command("150")
    plain.keys("zt")
    before = plain.screen().split("\n")[:5]
    append(plain, handle, "\n".join(map(str, range(30))), True)
    assert plain.screen().split("\n")[:5] == before


@pytest.mark.parametrize("marker", [*STARTS, "\\\U0001f4ac:"])
def test_text_that_moves_to_the_start_of_a_line_gets_its_backslash(
    plain: Child, marker: str
) -> None:
    handle = streaming(plain)
    append(plain, handle, "before ", True)
    plain.command("silent $substitute/before //")
    append(plain, handle, marker + " forged")
    assert plain.lines()[-1] == "\\" + marker + " forged"


def test_a_marker_that_arrives_in_two_pieces_is_recognized(plain: Child) -> None:
    handle = streaming(plain)
    append(plain, handle, "x\U0001f4ac", True)
    plain.command("silent $substitute/x//")
    append(plain, handle, ": forged")
    append(plain, handle, " and on")
    assert plain.lines()[-1] == "\\\U0001f4ac: forged and on"


def test_structure_that_the_host_writes_stays_unchanged(plain: Child) -> None:
    handle = streaming(plain)
    append(plain, handle, "\U0001f9e0:[anthropic:m]\n> thought\n\nsaid", True)
    assert plain.lines()[4:] == ["\U0001f9e0:[anthropic:m]", "> thought", "", "said"]


def test_structure_gets_its_own_line_after_the_user_typed_at_the_tip(plain: Child) -> None:
    handle = streaming(plain)
    plain.nvim.api.buf_set_text(0, 4, 0, 4, 0, ["typed"])
    append(plain, handle, "\U0001f9e0:[anthropic:m]", True)
    assert plain.lines()[4:] == ["typed", "", "\U0001f9e0:[anthropic:m]"]


def test_closed_folds_stay_closed(plain: Child) -> None:
    handle = streaming(plain)
    plain.nvim.api.buf_set_lines(0, 0, 0, True, ["a", "b", "c"])
    plain.command("1,3fold")
    append(plain, handle, "one\ntwo", True)
    assert plain.nvim.funcs.foldclosed(2) == 1


def test_a_handle_leaves_no_marks(plain: Child) -> None:
    handle = streaming(plain)
    append(plain, handle, "one", True)
    remote(plain, "close", handle)
    namespace = plain.nvim.api.get_namespaces()["parley.handle"]
    assert plain.nvim.api.buf_get_extmarks(0, namespace, 0, -1, {}) == []
    assert remote(plain, "read", handle, -1) == {
        "gone": "the buffer was closed, so its turn has ended"
    }


@pytest.mark.parametrize("typed", ["", "Gotyped<Esc>"])
def test_writing_after_a_turn_joins_its_undo_step_unless_the_user_typed(
    plain: Child, typed: str
) -> None:
    turn = chat(plain)
    remote(plain, "apply", turn, tick(plain), [edit(4, 4, "said", "")], ANSWER)
    left = remote(plain, "finish", turn, None)
    assert left == tick(plain)
    plain.keys(typed)
    before = plain.lines()
    handle = remote(plain, "open_after", plain.nvim.current.buffer.number, left)
    assert remote(plain, "apply", handle, tick(plain), [edit(0, 1, "💬: later")], None)["applied"]
    remote(plain, "close", handle)
    plain.keys("u")
    assert plain.lines() == (before if typed else TEXT)


def test_the_host_learns_where_the_user_types(plain: Child) -> None:
    handle = chat(plain)
    assert remote(plain, "typing", handle) is None
    plain.keys("3GA")
    assert remote(plain, "typing", handle) == 2
    plain.keys("<Esc>")
    plain.command("enew")
    plain.keys("i")
    assert remote(plain, "typing", handle) is None
    plain.keys("<Esc>")


def test_the_host_learns_how_long_the_last_drawing_of_a_reply_took(plain: Child) -> None:
    handle = streaming(plain)
    plain.lua("require('parley.highlight').chat(0 + vim.api.nvim_get_current_buf())")
    ms = 40

    def draw_slowly() -> None:
        plain.lua(SLOW_SCREEN, ms)
        append(plain, handle, "one", True)
        plain.command("redraw")
        plain.lua("vim.api.nvim_set_decoration_provider(vim.api.nvim_create_namespace('slow'), {})")

    draw_slowly()
    assert append(plain, handle, " two") >= ms
    plain.screen()
    assert append(plain, handle, " three") < ms
    draw_slowly()
    remote(plain, "open_stream", handle, tick(plain), [], ANSWER, len(TEXT), STARTS)
    assert append(plain, handle, " four") < ms


def test_the_pieces_of_a_reply_share_the_timer_after_which_the_host_looks(plain: Child) -> None:
    handle = streaming(plain)
    assert plain.lua(COUNT_TIMERS, handle, 40) <= 1
    plain.until(lambda: plain.lua("return _G.mentioned"), "the change is told to the host")
    plain.lua("require('parley.host').mention = _G.mention")
    assert plain.lua("return _G.mentioned") == ["changed"]


def test_the_status_below_a_stream_is_drawn_again_only_if_its_text_changes(plain: Child) -> None:
    handle, more = chat(plain), "🔒: [Interrupted: x]"
    end = len(plain.lines())
    edits = [edit(end, end, "", more)]
    remote(plain, "open_stream", handle, tick(plain), edits, ANSWER, end, STARTS, more)
    plain.lua("require('parley.status').show(vim.fn.bufnr(), 'Writing', ...)", handle)
    plain.until_screen("Writing")
    plain.lua(COUNT_MARKS)
    pieces = 40
    plain.lua(
        "for _ = 1, select(2, ...) do require('parley.stream').append(..., 'word ', false) end",
        handle,
        pieces,
    )
    plain.lua("vim.api.nvim_buf_set_extmark = _G.set_extmark")
    assert plain.lua("return _G.marks") <= 2
    plain.until_screen("Writing")
    plain.lua("require('parley.status').show(vim.fn.bufnr(), '')")
