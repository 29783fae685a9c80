"""The line at an answer's tip, at the bottom of a window shorter than the chat."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.nvim.hanging_model import hanging_model
from tests.nvim.harness import Child, child
from tests.nvim.test_edit import TEXT, append, streaming

HERE = Path(__file__).parent
LONG = "\n".join(f"Line {number} of a long answer." for number in range(60))
BEFORE = f"💬: first\n\n🤖:[Demo-OpenAI]\n\n{LONG}\n\n"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
WIDTH, HEIGHT = 80, 24
LAST = HEIGHT - 3
"""A window's last row above a status line and the command line."""


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    env = {"PARLEY_DEMO_PACE": "0.003"}
    init = "vim.o.laststatus, vim.o.ruler = 2, false"
    home = tmp_path_factory.mktemp("tip")
    with child(home, init=init, width=WIDTH, height=HEIGHT, env=env) as nvim:
        yield nvim


@pytest.fixture
def nvim(neovim: Child) -> Child:
    neovim.clear()
    neovim.lua(
        "require('parley').setup({ agent = 'Demo-OpenAI', safety = { rate_limit_per_minute = "
        "100000 } })"
    )
    return neovim


def ask(
    nvim: Child, question: str, options: str = "", below: str = "", before: str = BEFORE
) -> None:
    """Open a long chat, and ask with the cursor at the end of its last question."""
    nvim.edit("chat.md", f"{before}💬: {question}\n{below}")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    if options:
        nvim.command(options)
    nvim.command("call cursor(search('^💬', 'bw'), 1000)")
    nvim.command("ParleyRespond")


@contextmanager
def frames(nvim: Child) -> Iterator[list[list[str]]]:
    """The rows of every frame drawn in the meantime."""
    drawn = list[list[str]]()
    nvim.grid._flush = lambda: drawn.append(nvim.grid.text().split("\n"))  # type: ignore[attr-defined]
    try:
        yield drawn
    finally:
        del nvim.grid._flush  # type: ignore[attr-defined]


def rows(nvim: Child) -> list[str]:
    """The rows on the screen."""
    return nvim.screen().split("\n")


def first_row_at(nvim: Child, number: int) -> str:
    """The first row on the screen, after the cursor has moved to this line."""
    nvim.command(f"normal! {number}G")
    text = nvim.lines()[number - 1]
    nvim.until(lambda: text in [row.rstrip() for row in rows(nvim)], "the line on the screen")
    return rows(nvim)[0]


def patient(nvim: Child, home: Path) -> None:
    """A server whose tool ends when `home/go` exists."""
    server = {
        "command": sys.executable,
        "args": [str(HERE / "patient_server.py")],
        "env": {"GO": str(home / "go")},
    }
    settings = {
        "agent": "Demo-OpenAI",
        "mcp": {"servers": {"patient": server}},
        "approval": {"auto": ["patient/*"]},
    }
    nvim.lua("require('parley').setup(...)", settings)


def place(rows: list[str]) -> int | None:
    """The row of the tip's line."""
    return next(
        (row for row, text in enumerate(rows) if text.lstrip(" 0123456789")[:1] in tuple(SPINNER)),
        None,
    )


WINDOWS = {
    "as it is": ("", LAST),
    "nowrap": ("set nowrap", LAST),
    "scrolloff=8": ("set scrolloff=8", LAST),
    "scrolloff=999": ("set scrolloff=999", LAST),
    "without smoothscroll": ("setlocal nosmoothscroll", LAST),
    "with numbers": ("set number", LAST),
    "narrow": ("vertical topleft 40split", LAST),
    "with a winbar": ("set winbar=bar", LAST),
    "in the upper of two": ("belowright split | 1wincmd w", 9),
    "in another one": ("split | wincmd p | normal! G$", LAST),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_the_line_is_in_the_last_row_in_every_frame_of_a_stream(nvim: Child, window: str) -> None:
    options, last = WINDOWS[window]
    with frames(nvim) as drawn:
        ask(nvim, "write 120 words", options)
        nvim.until(lambda: nvim.screen() and nvim.lines()[-1] == "💬: ", "the next question")
        nvim.until_idle()
        nvim.flush()
    places = [place(frame) for frame in drawn]
    seen = [number for number, row in enumerate(places) if row is not None]
    assert len(seen) > 5
    assert set(places[seen[0] : seen[-1] + 1]) == {last}
    assert not [
        row for frame in drawn for row in frame if "Interrupted" in row or "written]" in row
    ]
    assert "Writing a reply..." in drawn[seen[-1]][last]


@pytest.mark.parametrize("key", ["<C-u>", "0", "20h"])
def test_a_cursor_moved_up_in_a_long_paragraph_stays_there(nvim: Child, key: str) -> None:
    ask(nvim, "write 400 words")
    nvim.until(lambda: len(nvim.lines()[-2]) > 800, "a long paragraph")
    nvim.keys(key)
    nvim.until_open()
    place, length = nvim.cursor, len(nvim.lines()[-2])
    assert place[1] < length - 15
    nvim.until(lambda: len(nvim.lines()[-2]) > length + 200, "more of it")
    assert nvim.cursor == place
    nvim.command("ParleyStop")
    nvim.until_idle()


def test_a_window_without_wrapping_shows_the_starts_of_the_lines(nvim: Child) -> None:
    with frames(nvim) as drawn:
        ask(nvim, "write 120 words", "set nowrap")
        nvim.until(lambda: nvim.screen() and nvim.lines()[-1] == "💬: ", "the next question")
        nvim.until_idle()
        nvim.flush()
    assert all("🤖:[Demo-OpenAI]" in "\n".join(frame) for frame in drawn[-5:])
    assert nvim.lua("return vim.fn.winsaveview().leftcol") == 0


def test_the_line_is_below_the_running_call(nvim: Child, tmp_path: Path) -> None:
    patient(nvim, tmp_path)
    ask(nvim, 'call look_up {"query":"google"}')
    nvim.until(lambda: "Searching for google" in rows(nvim)[LAST], "the sentence in the last row")
    assert nvim.lines()[-1].startswith("❓:")
    (tmp_path / "go").touch()
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()
    assert nvim.cursor[0] == len(nvim.lines())
    assert "💬:" in nvim.screen()


def test_the_line_is_visible_while_the_first_word_is_awaited(nvim: Child) -> None:
    with hanging_model() as model:
        provider = {
            "kind": "openai",
            "base_url": f"{model.url}/v1",
            "api_key_command": ["echo", "key"],
        }
        agents = [{"name": "Slow", "provider": "here", "model": "hanging"}]
        nvim.lua(
            "require('parley').setup(...)",
            {"agents": agents, "agent": "Slow", "providers": {"here": provider}},
        )
        ask(nvim, "anything", before=BEFORE.replace("Demo-OpenAI", "Slow"))
        nvim.until(
            lambda: "Analyzing request... 1s" in rows(nvim)[LAST], "the line in the last row"
        )
        assert rows(nvim)[LAST - 3] == "🤖:[Slow]"
        nvim.command("ParleyStop")
        nvim.until_idle()


def test_deleting_the_text_below_the_tip_does_not_remove_the_line(
    nvim: Child, tmp_path: Path
) -> None:
    patient(nvim, tmp_path)
    ask(nvim, 'call look_up {"query":"google"}, call look_up {"query":"apple"}')
    nvim.until(lambda: "Searching" in nvim.screen(), "the sentence")
    nvim.command("normal! Gd2k")
    nvim.until(lambda: "Searching" in nvim.screen(), "the sentence again")
    assert not nvim.lua("return vim.b.parley_status == ''")
    nvim.command("ParleyStop")
    nvim.until_idle()


def test_a_cursor_that_the_user_moved_and_its_window_stay(nvim: Child) -> None:
    ask(nvim, "write 120 words")
    nvim.until(lambda: place(rows(nvim)) == LAST, "the line at the tip")
    top = first_row_at(nvim, 40)
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()
    assert (nvim.cursor[0], rows(nvim)[0]) == (40, top)


def test_typing_in_another_window_is_not_disturbed_when_room_is_made(nvim: Child) -> None:
    ask(nvim, "write 120 words")
    nvim.command("new")
    nvim.keys("ihere")
    nvim.until(lambda: place(rows(nvim)) == LAST, "the line in the window below")
    nvim.keys(" and there")
    nvim.until(
        lambda: "💬:" in rows(nvim)[LAST - 1] and place(rows(nvim)) is None, "the end of the turn"
    )
    assert nvim.lines() == ["here and there"]
    assert nvim.nvim.api.get_mode()["mode"] == "i"


def test_a_selection_in_another_window_stays(nvim: Child) -> None:
    ask(nvim, "write 120 words")
    nvim.command("new")
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'some words', 'to select' })")
    nvim.keys("vj")
    chat = nvim.nvim.funcs.bufnr("chat.md")
    nvim.until(lambda: nvim.lines(chat)[-1] == "💬: ", "the next question")
    assert nvim.nvim.api.get_mode()["mode"] == "v"
    assert (nvim.nvim.funcs.line("v"), nvim.cursor[0]) == (1, 2)


def test_an_answer_is_not_written_into_a_closed_fold_that_is_followed(nvim: Child) -> None:
    folds = "setlocal foldmethod=expr foldlevel=0 foldexpr=getline(v:lnum)=~'^🤖'?'>1':'='"
    ask(nvim, "write 120 words", folds)
    nvim.until(lambda: place(rows(nvim)) is not None, "the line at the tip")
    assert "the file is the conversation" in nvim.screen()
    assert "lines: 🤖:" in nvim.screen()
    nvim.until_idle()


@pytest.mark.parametrize("scrolloff", [0, 5])
def test_after_a_stop_a_following_cursor_is_at_the_question_below_the_visible_notice(
    nvim: Child, scrolloff: int
) -> None:
    ask(nvim, "write 500 words", f"set scrolloff={scrolloff}")
    nvim.until(
        lambda: "Writing" in rows(nvim)[LAST] and "word" in nvim.lines()[-2], "the line at the tip"
    )
    nvim.command("ParleyStop")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()
    assert nvim.lines()[nvim.cursor[0] - 1] == "💬: "
    screen = rows(nvim)
    assert screen.index("💬:") == screen.index("🔒: [Stopped: by the user]") + 2


def test_a_stop_does_not_move_a_cursor_that_the_user_moved(nvim: Child) -> None:
    ask(nvim, "write 500 words")
    nvim.until(
        lambda: "Writing" in rows(nvim)[LAST] and "word" in nvim.lines()[-2], "the line at the tip"
    )
    top = first_row_at(nvim, 40)
    nvim.command("ParleyStop")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()
    assert (nvim.cursor[0], rows(nvim)[0]) == (40, top)


def test_an_error_in_mid_chat_shows_its_notice_and_the_question_below(
    nvim: Child,
) -> None:
    below = f"\n🤖:[Off]\n\n\n\n💬: more\n\n🤖:[Off]\n\n{LONG}\n"
    agents = [{"name": "Off", "provider": "off", "model": "refusing"}]
    with hanging_model() as model:
        model.go.set()
        off = {"kind": "openai", "base_url": f"{model.url}/v1", "api_key_command": ["echo", "key"]}
        nvim.lua(
            "require('parley').setup(...)",
            {"agents": agents, "agent": "Off", "providers": {"off": off}},
        )
        nvim.edit("chat.md", f"{BEFORE}💬: anything\n{below}")
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        nvim.command("call cursor(search('anything'), 1000)")
        nvim.command("normal! zb")
        nvim.command("ParleyRespond")
        nvim.until_text("🔒: [Interrupted")
    nvim.until_idle()
    assert nvim.lines()[nvim.cursor[0] - 1].startswith("🔒: [Interrupted")
    assert "💬: more" in nvim.screen()


COUNT = """
_G.rows = {}
local api = vim.api
for name, at in pairs({ nvim_buf_get_lines = 2, nvim_buf_get_text = 2 }) do
  local get = api[name]
  api[name] = function(...)
    local from, to = select(at, ...), select(name == 'nvim_buf_get_lines' and 3 or 4, ...)
    table.insert(_G.rows, (to < 0 and api.nvim_buf_line_count(0) or to) - from)
    return get(...)
  end
end
local height = api.nvim_win_text_height
api.nvim_win_text_height = function(win, opts)
  table.insert(_G.rows, opts.end_row - opts.start_row)
  return height(win, opts)
end
"""


def test_writing_a_piece_reads_one_or_two_lines_in_a_long_chat_with_the_line_shown(
    plain: Child,
) -> None:
    handle = streaming(plain, [*TEXT, *["a line"] * 20_000])
    plain.lua(
        "require('parley.status').show(vim.api.nvim_get_current_buf(), 'Formulating...', ...)",
        handle,
    )
    plain.until(lambda: "Formulating" in plain.screen(), "the line at the tip")
    plain.lua(COUNT)
    for number in range(20):
        append(plain, handle, f"words and words {number}\n" if number % 3 else "words ")
        assert "Formulating" in plain.screen().split("\n")[-3]
    read: list[int] = plain.lua("return _G.rows")
    plain.lua("require('parley.status').show(vim.api.nvim_get_current_buf(), '')")
    assert max(read) <= 2
    assert len(read) <= 6 * 20


def test_the_first_piece_reads_no_line_because_its_place_is_known(plain: Child) -> None:
    handle = streaming(plain)
    write = "require('parley.remote')('write', ...) return _G.rows"
    assert plain.lua(COUNT + write, handle, "one", True) == []
    assert plain.lines()[-1] == "one"
