"""Which parts fold when they are done, a fold's text, and which parts stay open."""

from __future__ import annotations

import pytest

from parley.chat.reader import parse
from parley.display.view import ChatView
from parley.nvim.folds import FoldTexts, folds
from parley.policy.approval import LedgerView
from tests.nvim.harness import Child
from tests.nvim.test_rows import LONG, TOOLS, call, draw, opened, row, shown
from tests.nvim.test_rows import chat as waiting_chat

HEAD = "---\ntopic: what `zo` does…\nagent: Demo\n---\n\n"


def ran(number: int, body: str, status: str = "", query: str = "x") -> str:
    """A call and its result."""
    fence = f"```\n{body}\n```" if "\n" in body else f"`{body}`"
    line = call(number, query=query).replace("❓: ", "❓:[ya] ", 1)
    return f"{line}\n🛠️: [web_search][call_{number}]{status}\n\n{fence}\n\n"


def chat(*parts: str, head: str = "") -> str:
    """A chat longer than a window, which ends with an empty next question."""
    return f"{head}{LONG}💬: q\n\n🤖:[Demo]\n\n{''.join(parts)}Said.\n\n💬: \n"


def at_end(nvim: Child, text: str, width: int = 80, before: str = "") -> None:
    opened(nvim, text, width, before)
    nvim.command("normal! G")
    draw(nvim)


def test_a_finished_call_and_its_result_are_one_row(plain: Child) -> None:
    at_end(plain, chat(ran(1, "x" * 61, query="google"), ran(2, "a\nb\nc", query="microsoft")))
    assert '🛠 web_search(query: "google") → 61 B, ok' in shown(plain)
    assert '🛠 web_search(query: "microsoft") → 3 lines, 5 B, ok' in shown(plain)
    assert "🛠️:" not in plain.screen()


def test_a_failed_call_is_open_below_its_row_and_a_refused_one_says_so(
    plain: Child,
) -> None:
    at_end(
        plain, chat(ran(1, "it broke", "[error]", query="a"), ran(2, "no", "[refused]", query="b"))
    )
    assert '❓ ya web_search(query: "a")' in shown(plain)
    assert "`it broke`" in shown(plain)
    assert '🛠 web_search(query: "b") → 2 B, refused' in shown(plain)


def test_opening_shows_first_the_row_and_result_and_then_the_call_as_text(
    plain: Child,
) -> None:
    at_end(plain, chat(ran(1, "found", query="google")))
    plain.command("call search('^❓', 'b')")
    plain.keys("zozz")
    plain.until(lambda: '❓ ya web_search(query: "google")' in shown(plain), "the row")
    assert "`found`" in shown(plain)
    plain.keys("zo")
    plain.until(lambda: row(plain, "❓:[ya] `{"), "the text")
    draw(plain)
    assert "`found`" in shown(plain)


def test_right_to_left_letters_do_not_move_the_size(plain: Child) -> None:
    at_end(plain, chat(ran(1, "x", query="\u05d0\u05d1")))
    assert '🛠 web_search(query: "\u05d0\u05d1") → ok, 1 B' in shown(plain)


def test_a_call_and_its_new_result_become_one_row_and_an_undo_separates_them(
    plain: Child,
) -> None:
    opened(plain, waiting_chat(call(1, query="google")))
    assert '❓ web_search(query: "google") · mock' in shown(plain)
    at = next(number for number, line in enumerate(plain.lines()) if line.startswith("❓"))
    plain.lua("vim.bo.undolevels = vim.bo.undolevels")
    plain.nvim.api.buf_set_lines(
        0, at + 1, at + 1, True, ["", "🛠️: [web_search][call_1]", "", "`found`", ""]
    )
    draw(plain)
    assert '🛠 web_search(query: "google") → 5 B, ok' in plain.screen()
    plain.keys("u")
    plain.until(lambda: "found" not in plain.text(), "the undo")
    draw(plain)
    plain.until(lambda: '❓ web_search(query: "google") · mock' in plain.screen(), "the call alone")
    plain.keys("<C-r>")
    plain.until(lambda: "found" in plain.text(), "the redo")
    plain.command("call search('^❓', 'bcw')")
    draw(plain)
    plain.until(lambda: '🛠 web_search(query: "google") → 5 B, ok' in plain.screen(), "both again")


@pytest.mark.parametrize("status", ["", "[error]"])
@pytest.mark.parametrize("later", [False, True])
def test_a_result_under_the_cursor_folds_when_the_cursor_leaves_unless_it_failed(
    plain: Child, later: bool, status: str
) -> None:
    opened(plain, waiting_chat(call(1, query="google")))
    at = next(number for number, line in enumerate(plain.lines()) if line.startswith("❓"))
    result = ["", f"🛠️: [web_search][call_1]{status}", "", "`found`", "", "Said.", "", "💬: "]
    plain.nvim.api.buf_set_lines(0, at + 1, -1, True, result)
    plain.nvim.api.win_set_cursor(0, (at + 5, 0))
    if later:
        texts = FoldTexts()
        rows, said = texts.rows(folds(ChatView(parse(plain.text()), TOOLS, LedgerView())))
        update = {"folds": rows, "texts": said, "first": 0, "last": len(plain.lines())}
        plain.lua(
            (
                "require('parley.folds').update(0 + vim.api.nvim_get_current_buf(), "
                "vim.b.changedtick, ...)"
            ),
            update,
        )
    else:
        draw(plain)
    assert "`found`" in shown(plain)
    plain.keys("k")
    assert "`found`" in shown(plain)
    plain.keys("G")
    plain.until(lambda: plain.cursor[0] == len(plain.lines()), "the cursor at the end")
    plain.lua("vim.cmd.doautocmd('CursorMoved')")
    if status:
        assert "`found`" in shown(plain)
        assert '❓ web_search(query: "google")' in shown(plain)
    else:
        plain.until(
            lambda: '🛠 web_search(query: "google") → 5 B, ok' in shown(plain), "both in one row"
        )
        assert "`found`" not in plain.screen()
    plain.command("call search('^❓', 'b')")
    plain.keys("zo")
    plain.until(lambda: "`found`" in shown(plain), "it, opened")
    plain.keys("jjG")
    plain.until(lambda: plain.cursor[0] == len(plain.lines()), "the cursor at the end")
    assert "`found`" in shown(plain)


def test_folded_front_matter_thinking_and_files_describe_themselves(plain: Child) -> None:
    question = "💬: see @@a.py@@\n\n`a.py` (3 lines)\n\n```python\n1\n2\n3\n```\n\n"
    thinking = "🧠:[demo:demo sig]\n> one\n> two\n\n"
    opened(plain, f"{HEAD}{question}🤖:[Demo]\n\n{thinking}Said.\n\n💬: \n", before="normal! G")
    draw(plain)
    lines = shown(plain)
    assert lines[0] == "--- what `zo` does… · 2 lines"
    assert "@@ a.py · 3 lines" in lines
    assert "🧠 thinking, 2 words" in lines


def test_nothing_is_folded_around_the_cursor(plain: Child) -> None:
    opened(plain, f"{HEAD}💬: hi\n\n🤖:[Demo]\n\nHello.\n\n💬: \n")
    assert shown(plain)[:3] == HEAD.split("\n")[:3]


@pytest.mark.parametrize("count", [1, 3000])
def test_a_window_gets_all_its_folds_at_once_and_later_only_new_ones(
    plain: Child, count: int
) -> None:
    plain.lua("_G.fold = _G.fold or vim.cmd")
    opened(plain, chat(*(ran(n, "found", query=str(n)) for n in range(1, count + 1))))
    counting = (
        "_G.made = 0 local f = vim.cmd _G.cmd = f vim.cmd = setmetatable({}, { __index = "
        "f, __call ="
    )
    plain.lua(f"{counting} function(_, ...) _G.made = _G.made + 1 return f(...) end }})")
    plain.command("normal! G")
    draw(plain)
    plain.lua("vim.cmd = _G.cmd")
    assert plain.lua("return _G.made") <= 2


@pytest.mark.parametrize("width", [60, 80])
def test_folding_at_a_turns_end_leaves_no_empty_rows_below(nvim: Child, width: int) -> None:
    nvim.nvim.ui_try_resize(width, 24)
    before = "💬: " + "word " * 30 + "\n" * 40 + "\n🤖:[Demo]\n\n" + "said " * 40
    nvim.edit("thought.md", f"{before}\n\n💬: think about it: what is it?\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyAgent Demo-OpenAI")
    nvim.command("normal! G$")
    nvim.keys("<C-g><C-g>")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()
    nvim.until_screen("🧠 thinking, ")
    rows = nvim.screen().split("\n")
    last = next(
        row for row, line in enumerate(rows) if line.startswith("💬:") and not line[3:].strip()
    )
    assert all(line != "~" for line in rows[: last + 1])
    assert sum(line == "~" for line in rows) <= 3


@pytest.mark.parametrize("keys", ["VGd", "VGx", "Vjjjd", "dG"])
def test_a_chat_is_drawn_correctly_after_folded_lines_were_deleted(plain: Child, keys: str) -> None:
    at_end(plain, chat(ran(1, "found"), ran(2, "a\nb\nc"), ran(3, "x", "[error]")))
    plain.command("set hidden | call search('^🤖', 'b')")
    plain.keys(keys)
    plain.command("hide edit x | buffer #")
    assert "rows.md" in plain.name
    assert "Error" not in plain.messages()


def test_a_chat_is_drawn_correctly_after_it_was_shortened_while_hidden(
    plain: Child,
) -> None:
    at_end(plain, chat(ran(1, "found"), ran(2, "a\nb\nc")))
    buf = plain.nvim.current.buffer.number
    plain.command("set hidden | hide edit x")
    plain.nvim.api.buf_set_lines(buf, 5, -1, True, [])
    plain.command(f"buffer {buf}")
    assert "Error" not in plain.messages()
    assert len(plain.lines()) == 5


def test_adjacent_calls_are_adjacent_rows(plain: Child) -> None:
    at_end(plain, chat(*(ran(number, "found", query=f"q{number}") for number in range(1, 6))))
    rows = [f'🛠 web_search(query: "q{number}") → 5 B, ok' for number in range(1, 6)]
    at = shown(plain).index(rows[0])
    assert shown(plain)[at : at + 7] == [*rows, "", "Said."]


@pytest.mark.parametrize("width", [60, 80])
def test_a_finished_call_shows_its_files_name(plain: Child, width: int) -> None:
    path = "/home/user/projects/shop/src/inventory/readers/csv_reader.py"
    line = call(1, "write_file", path=path, content="import csv\nimport io\n").replace(
        "❓: ", "❓:[ya] ", 1
    )
    at_end(plain, chat(f"{line}\n🛠️: [write_file][call_1]\n\n`{'x' * 61}`\n\n"), width)
    assert any(
        row.startswith("🛠") and row.endswith('csv_reader.py", content) → ok')
        for row in shown(plain)
    )


QUOTE = "`src/a.py:2-4` (3 lines)\n\n```python\nx = 1\ny = 2\nz = 3\n```"


def test_a_question_that_begins_with_quoted_lines_keeps_its_marker_and_band(plain: Child) -> None:
    plain.lua("vim.api.nvim_set_hl(0, 'ParleyQuestionLine', { bg = '#123456' })")
    at_end(plain, f"💬: {QUOTE}\n\nWhat is x?\n\n🤖:[Demo]\n\nOne.\n\n💬: \n")
    plain.command("normal! zM")
    assert shown(plain)[0] == "💬: @@ src/a.py:2-4 · 3 lines"
    styles = [plain.grid.styles[style] for style in plain.grid.attributes[0]]
    assert all(style.get("background") == 0x123456 for style in styles)


def test_the_question_list_shows_the_users_words(plain: Child) -> None:
    at_end(plain, f"💬: {QUOTE}\n\nWhat is x?\n\n🤖:[Demo]\n\nOne.\n\n💬: And y?\n\n{QUOTE}\n")
    plain.command("ParleyOutline")
    plain.until(lambda: "And y?" in plain.text(), "the list")
    assert plain.lines()[:2] == ["What is x?", "And y?"]
    plain.command("lclose")
