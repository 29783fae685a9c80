"""The host's text equals the buffer's after every kind of change."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.reader import parse
from parley.nvim.mirror import CURRENT_S, UNKNOWN_TICK, BufferText, Mirror
from tests.nvim.harness import Child

LINES = st.lists(
    st.sampled_from(["", "text", "💬: ask", "🤖:[A]", "a\0b", "ends\r", "\ufeffmark", "ü", "---"]),
    max_size=4,
)
KEYS = [
    "ggdd",
    "Gp",
    "u",
    "<C-r>",
    "ggOabove<Esc>",
    "Gobelow<CR>more<Esc>",
    "ggJ",
    ":%d<CR>",
    ":g/e/m0<CR>",
]
KEYS += [
    "ggVGyP",
    ":e!<CR>",
    ":%s/e/x/ge<CR>",
    "gUU",
    ":silent! 3,$sort!<CR>",
    ":silent! undo 0<CR>",
]
NUMBERS = count()


@st.composite
def steps(draw: st.DrawFn) -> Callable[[Child], None]:
    """A change to the current buffer: by keys, or by a plugin to some of its lines."""
    if draw(st.booleans()):
        keys = draw(st.sampled_from(KEYS))
        return lambda nvim: nvim.keys(keys)
    first, last, lines = draw(st.integers(0, 9)), draw(st.integers(0, 9)), draw(LINES)
    return lambda nvim: nvim.nvim.api.buf_set_lines(
        0, min(first, last), max(first, last), False, lines
    )


FOLLOW = """
local function follow() require('parley.mirror').follow(vim.api.nvim_get_current_buf()) end
follow()
vim.api.nvim_create_autocmd('BufReadPost', { buffer = 0, callback = follow })  -- as a chat is
"""
TAKE = "return require('parley.mirror').take(vim.api.nvim_get_current_buf())"


@given(rounds=st.lists(st.lists(steps(), max_size=4), max_size=5), lines=LINES)
def test_the_mirror_equals_the_buffer(
    plain: Child, rounds: list[list[Callable[[Child], None]]], lines: list[str]
) -> None:
    plain.clear()
    plain.edit(
        f"mirror{next(NUMBERS)}.txt", "".join(line + "\n" for line in lines if "\0" not in line)
    )
    plain.lua(FOLLOW)
    mirror = Mirror(lambda: 0.0)
    for edits in [[], *rounds]:
        for edit in edits:
            edit(plain)
        plain.nvim.api.get_mode()
        mirror.take(plain.lua(TAKE))
        text = mirror.text
        assert mirror.tick == plain.nvim.api.buf_get_changedtick(0)
        assert [line + text.line_end for line in text.lines] == [
            line.removeprefix("\ufeff") if number == 0 else line
            for number, line in enumerate(plain.lines())
        ]
        assert text.transcript == parse("\n".join([*plain.lines(), ""]))


@pytest.mark.parametrize(
    "more", ["ggOabove<Esc>", "Gobelow<CR>more<Esc>", "itext<Esc>", "Gp", ":0put ='text'<CR>"]
)
@pytest.mark.parametrize("emptied", [":%d<CR>", "ggVGd", "ggdG", ":silent 1,$-1d<CR>dd"])
def test_text_put_into_an_emptied_buffer_is_known(plain: Child, emptied: str, more: str) -> None:
    plain.edit("emptied.txt", "one\ntwo\n")
    plain.lua(FOLLOW)
    mirror = Mirror(lambda: 0.0)
    mirror.take(plain.lua(TAKE))
    plain.keys(emptied)
    plain.keys(more)
    plain.nvim.api.get_mode()
    mirror.take(plain.lua(TAKE))
    assert mirror.tick == plain.nvim.api.buf_get_changedtick(0)
    assert list(mirror.text.lines) == plain.lines()


def test_a_byte_order_mark_that_moves_down_is_text(plain: Child) -> None:
    plain.edit("marked.txt", "one\n")
    plain.lua(FOLLOW)
    mirror = Mirror(lambda: 0.0)
    for line in ("\ufeffmark", "above"):
        mirror.take(plain.lua(TAKE))
        plain.nvim.api.buf_set_lines(0, 0, 0, False, [line])
    assert mirror.text.lines == ["mark", "one"]
    mirror.take(plain.lua(TAKE))
    assert mirror.text.lines == ["above", "\ufeffmark", "one"]


def test_only_changed_lines_are_sent(plain: Child) -> None:
    plain.edit("crossing.txt", "line\n" * 1000)
    plain.lua("require('parley.mirror').follow(vim.api.nvim_get_current_buf())")
    code = (
        "return #(require('parley.mirror').take(vim.api.nvim_get_current_buf(), ...).lines or {})"
    )
    assert plain.lua(code) == 1000
    assert plain.lua(code) == 0
    plain.keys("500Gomore<Esc>Ax<Esc>502GAy<Esc>")
    assert plain.lua(code) == 2
    assert plain.lua(code, UNKNOWN_TICK) == 1001


def test_a_change_to_another_text_is_refused() -> None:
    mirror = Mirror(lambda: 0.0)
    mirror.take({"tick": 3, "count": 2, "lines": ["one", "two"]})
    mirror.take({"tick": 5, "count": 2, "since": 4, "start": 0, "end": 1, "lines": ["other"]})
    assert (mirror.tick, mirror.is_known) == (UNKNOWN_TICK, False)
    mirror.take({"tick": 5, "count": 1, "lines": ["all"]})
    assert (mirror.tick, mirror.text.lines, mirror.is_known) == (5, ["all"], True)
    mirror.take({"tick": 6, "count": 9, "since": 5, "start": 0, "end": 1, "lines": ["too few"]})
    assert not mirror.is_known


def test_a_text_counts_as_current_for_a_moment_or_until_a_write() -> None:
    time = 100.0
    mirror = Mirror(lambda: time)
    assert (mirror.is_current, mirror.is_known) == (False, False)
    mirror.put(1, BufferText.of(["text"]))
    assert (mirror.is_current, mirror.is_known) == (True, True)
    mirror.expire()
    assert (mirror.is_current, mirror.is_known) == (False, False)
    mirror.put(2, BufferText.of(["text"]))
    time += 2 * CURRENT_S
    assert (mirror.is_current, mirror.is_known) == (False, True)


def test_a_closed_buffers_text_is_forgotten() -> None:
    mirror = Mirror(lambda: 0.0)
    mirror.take({"tick": 3, "count": 1, "lines": ["💬: ask"]})
    assert mirror.text.transcript.exchanges
    mirror.forget()
    assert (mirror.text.lines, mirror.is_known) == ([""], False)
