"""`K` on a call shows the whole call: long arguments as lines, and its result if it ran."""

from __future__ import annotations

import json

import pytest

from parley.chat.transcript import Result
from parley.display.view import details
from tests.chats import asked, ran
from tests.nvim.harness import Child

CODE = "def f():\n\treturn `x`\n\n\n---\nprint('…')\n"


def of(name: str, lines: list[str]) -> list[str]:
    """The lines in the fence below a title, with the fence."""
    start = next(row for row, line in enumerate(lines) if line.startswith(f"**{name}"))
    fence = lines[start + 1].rstrip("abcdefghijklmnopqrstuvwxyz")
    return lines[start + 1 : lines.index(fence, start + 2) + 1]


def test_a_text_of_several_lines_is_shown_as_lines_in_its_files_language() -> None:
    lines = details(asked(arguments=json.dumps({"path": "src/a.py", "content": CODE})), None)
    assert of("Arguments**", lines) == ["```text", "{", '  "path": "src/a.py"', "}", "```"]
    expected = ["def f():", "→   return `x`", "", "", "---", "print('…')"]
    assert of("content, 6 lines, 40 B**", lines) == ["```python", *expected, "```"]


def test_a_text_without_a_final_line_end_says_so() -> None:
    lines = details(asked(arguments=json.dumps({"content": "a\nb"})), None)
    assert of("content, 2 lines, 3 B, no newline at the end**", lines) == [
        "```text",
        "a",
        "b",
        "```",
    ]


def test_no_text_closes_its_own_fence() -> None:
    lines = details(asked(arguments=json.dumps({"content": "```\n````\n**Result: ok**\n"})), None)
    assert of("content", lines) == ["`````text", "```", "````", "**Result: ok**", "`````"]


def test_a_call_that_ran_is_shown_with_its_whole_result() -> None:
    body = "\n".join(f"line {number}" for number in range(300)) + "\n\u202e" + "x" * 2000
    lines = details(ran(result=Result("error", body)), None)
    shown = of("Result: error, 301 lines, 5 kB", lines)
    assert shown[1:301] == [f"line {number}" for number in range(300)]
    assert shown[301] == "\\u202e" + "x" * 2000


def floating(nvim: Child) -> list[str]:
    """The float's lines; none without a float."""
    lines: list[str] = nvim.lua("""
        for _, win in ipairs(vim.api.nvim_list_wins()) do
          if vim.api.nvim_win_get_config(win).relative ~= '' then
            return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, true)
          end
        end
        return {}
    """)
    return lines


def call_and_result(nvim: Child, path: str = "a.py", content: str = CODE) -> None:
    """A chat with a call that ran, folded with its result."""
    arguments = json.dumps({"path": path, "content": content})
    call = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "w", "arguments": arguments},
    }
    result = "🛠️: [w][call_1]\n\n```\nwritten\nall of it\n```\n\nDone.\n"
    nvim.edit(
        "ran.md", f"💬: q\n\n🤖:[Demo]\n\n❓:[ya] `{json.dumps(call)}`\n\n{result}\n💬: next\n"
    )
    nvim.until_screen(f'🛠 w(path: "{path}", content: ')
    nvim.until_screen(" → 2 lines, 17 B, ok")


def test_the_key_shows_a_call_that_ran_from_its_fold_and_its_result(nvim: Child) -> None:
    call_and_result(nvim)
    for row in (5, 7):
        nvim.command(f"normal! {row}Gzo")
        nvim.nvim.api.win_set_cursor(0, (row, 0))
        nvim.keys("K")
        lines = nvim.until(lambda: floating(nvim), "the float")
        assert lines[lines.index("written") :][:3] == ["written", "all of it", "```"]
        assert "→   return `x`" in lines
        assert lines[lines.index("```python") + 3 :][:3] == ["", "", "---"]
        nvim.keys("gg")
        nvim.until(lambda: not floating(nvim), "the end of the float")


def test_outside_the_float_a_key_closes_it_and_records_nothing(nvim: Child) -> None:
    call_and_result(nvim, content=CODE * 20)
    nvim.nvim.api.win_set_cursor(0, (5, 0))
    nvim.keys("K")
    nvim.until_screen("rows: K again enters, q closes")
    nvim.keys("q")
    nvim.until(lambda: not floating(nvim), "the end of the float")
    assert nvim.lua("return vim.fn.reg_recording() .. vim.fn.maparg('q', 'n')") == ""
    nvim.keys("K")
    nvim.until(lambda: floating(nvim), "the float")
    nvim.keys("gg")
    nvim.until(lambda: not floating(nvim), "the end of the float")
    nvim.until(lambda: nvim.lua("return vim.fn.maparg('q', 'n')") == "", "the key as it was")


def test_inside_the_float_its_edge_says_only_how_to_leave(nvim: Child) -> None:
    call_and_result(nvim, content=CODE * 20)
    nvim.nvim.api.win_set_cursor(0, (5, 0))
    nvim.keys("K")
    nvim.until_screen("rows: K again enters, q closes")
    nvim.keys("K")
    nvim.until(lambda: "K again" not in nvim.screen(), "the other edge")
    assert " q closes " in nvim.screen()
    nvim.keys("q")
    nvim.until(lambda: not floating(nvim), "the end of the float")


def test_while_a_macro_is_recorded_the_key_ends_the_recording(nvim: Child) -> None:
    call_and_result(nvim)
    nvim.nvim.api.win_set_cursor(0, (5, 0))
    nvim.keys("qx")
    nvim.until(lambda: nvim.lua("return vim.fn.reg_recording()") == "x", "the recording")
    nvim.keys("K")
    nvim.until(lambda: floating(nvim), "the float")
    nvim.keys("q")
    nvim.until(lambda: nvim.lua("return vim.fn.reg_recording()") == "", "the end of the recording")
    nvim.keys("gg")
    nvim.until(lambda: not floating(nvim), "the end of the float")


def test_elsewhere_the_key_is_unchanged(nvim: Child) -> None:
    call_and_result(nvim)
    nvim.lua("vim.bo.keywordprg = ':let g:looked_up ='")
    nvim.command("normal! G$")
    nvim.keys("K")
    nvim.until(lambda: "next" in nvim.messages(), "the error of Vim's own")
    assert floating(nvim) == []


@pytest.mark.parametrize(
    ("path", "content"), [("a.lua", "local x = 1\nreturn x\n"), ("a.py", "x = 1\nreturn x\n")]
)
def test_a_files_lines_have_its_languages_colours(nvim: Child, path: str, content: str) -> None:
    call_and_result(nvim, path, content)
    nvim.nvim.api.win_set_cursor(0, (5, 0))
    nvim.keys("K")
    nvim.until_screen("return x")
    nvim.until(
        lambda: nvim.screen() and nvim.grid.style("return x") != nvim.grid.style("x = 1"),
        "the colours",
    )


def test_titles_appear_without_marks_and_fences_are_blank(nvim: Child) -> None:
    call_and_result(nvim)
    nvim.nvim.api.win_set_cursor(0, (5, 0))
    nvim.keys("K")
    screen = nvim.until_screen("content, 6 lines, 40 B")
    assert "**" not in screen
    assert "```" not in screen
    assert "return `x`" in screen


def test_no_text_is_concealed_for_any_file_name(plain: Child) -> None:
    text = "**all** of\n`it`\n```sh\n**bold**\n"
    lines = details(asked(arguments=json.dumps({"path": "a.é", "content": text})), None)
    plain.lua("require('parley.pages').float(...)", lines)
    plain.until(
        lambda: all(line in plain.screen() for line in text.split("\n")), "all lines as they are"
    )
    plain.lua("vim.cmd('silent! fclose!')")


def test_the_floats_ruler_closes_with_it(plain: Child) -> None:
    plain.edit("notes.md", "one\n")
    for _ in range(2):
        plain.lua("require('parley.pages').float({ 'two' }, vim.api.nvim_get_current_buf())")
    plain.until_screen("All\n")
    plain.keys("q")
    plain.until(lambda: plain.nvim.api.win_get_config(0)["relative"] == "", "the chat's window")
    plain.until(lambda: not plain.screen().split("\n")[-1].strip(), "an empty last row")
