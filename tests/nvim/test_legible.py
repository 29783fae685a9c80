"""Waiting calls are drawn on the screen, describe themselves, and mark each cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.chat.reader import parse
from parley.chat.transcript import Exchange, Question, Text, Transcript
from parley.chat.writer import render
from parley.display.summary import call_row, summary
from parley.display.view import ChatView, details, drawing
from parley.nvim.editor import shown_arguments
from parley.nvim.folds import FoldTexts, folds
from parley.policy.approval import LedgerView
from parley.text import is_hidden
from parley.tools.catalogue import Catalogue, Tool
from tests.chats import answer, asked, tool
from tests.examples import examples
from tests.nvim.harness import Child

ANY = {"type": "object"}
HEIGHT = 24


def waiting(*arguments: str, before: int = 60) -> str:
    """A chat longer than a window; at its end, calls with these arguments wait."""
    above = Exchange(Question((Text("\n".join(["long"] * before)),)), (answer(Text("said")),))
    calls = [asked(number, arguments=each) for number, each in enumerate(arguments, 1)]
    below = Exchange(Question((Text("q"),)), (answer(Text("Let me look."), *calls),))
    return render(Transcript((above, below)))


def draw(nvim: Child, text: str, catalogue: Catalogue, width: int) -> list[int]:
    """Draw a chat and move to its end, as after a turn; return the rows of its calls."""
    nvim.clear()
    nvim.nvim.ui_try_resize(width, HEIGHT)
    nvim.edit("legible.md", text)
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    view = ChatView(parse(text), catalogue, LedgerView())
    drawn = drawing(view)
    drawn["folds"], drawn["texts"] = FoldTexts().rows(folds(view))
    rows = [proposal["row"] for proposal in drawn["proposals"]]
    drawn["sightings"] = rows
    arguments = [nvim.nvim.current.buffer.number, nvim.nvim.api.buf_get_changedtick(0), drawn]
    assert nvim.lua(
        "return require('parley.remote')('draw', ...)", *shown_arguments("draw", arguments)
    )
    nvim.nvim.api.win_set_cursor(0, (rows[0] + 1, 0))
    nvim.lua(
        "require('parley.view').reveal(vim.api.nvim_get_current_win(), ...)", rows[0], rows[-1]
    )
    return rows


def drawn(raw: str, of: Tool | None = None) -> str:
    catalogue = Catalogue.of([of or tool("read_file", "files", input_schema=ANY)])
    return "".join(chunk[0] for chunk in summary(asked(name="read_file", arguments=raw), catalogue))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("length", [0, 1_000, 1_300, 2_000, 20_000])
def test_the_drawn_line_and_the_prompt_are_on_the_screen_however_long_a_call_is(
    plain: Child, width: int, length: int
) -> None:
    raw = json.dumps({"query": "x" * length, "delete": True})
    draw(plain, waiting(raw), Catalogue.of([tool()]), width)
    screen = plain.screen()
    assert ">> Please choose (yA/ya):\nya yes · yA and remember · yn no · K details" in screen
    assert ", delete: true)" in screen
    assert "❓ web_search(query: " in screen
    assert ") · demo" in screen
    assert ("…" in screen) == (length > 0)


def test_each_of_several_calls_is_visible_with_the_cursor_on_it(plain: Child) -> None:
    long = json.dumps({"query": "x" * 20_000, "number": 1})
    for row in draw(
        plain, waiting(long, '{"query":"y"}', long.replace("1}", "3}")), Catalogue.of([tool()]), 80
    ):
        plain.nvim.api.win_set_cursor(0, (row + 1, 0))
        call = json.loads(plain.lines()[row].split("`")[1])
        expected = json.loads(call["function"]["arguments"]).get("number", '"y"')
        assert f": {expected})" in plain.screen()


def test_the_drawing_follows_the_windows_width(plain: Child) -> None:
    draw(plain, waiting(json.dumps({"query": "x" * 1_000, "last": 1})), Catalogue.of([tool()]), 120)
    for width in (60, 200, 80):
        plain.nvim.ui_try_resize(width, HEIGHT)
        plain.until_screen(", last: 1)")
        plain.until_screen(">> Please choose")


def test_resizing_a_window_after_the_text_was_shortened_is_not_an_error(plain: Child) -> None:
    draw(plain, waiting("{}"), Catalogue.of([tool()]), 120)
    plain.lua("vim.api.nvim_buf_set_lines(0, 1, -1, true, {})")
    plain.lua("require('parley.view').redraw(vim.api.nvim_get_current_buf())")  # like WinResized
    assert plain.lines() == ["\U0001f4ac: long"]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ('{"a":"true","b":true}', 'a: "true", b: true'),
        ('{"a":"hello, path: y"}', 'a: "hello, path: y"'),
        ('{"a":"1","b":1,"c":1.0,"d":1.10,"e":1e3}', 'a: "1", b: 1, c: 1.0, d: 1.10, e: 1e3'),
        ('{"a":12345678901234567891234567890}', "a: 12345678901234567891234567890"),
        ('{"a":[9007199254740993,{"b":-0,"c":0.1000000000000000055}]}', None),
        ('{"a: \\"x\\", b":1}', '"a: \\"x\\", b": 1'),
        ('{"a":"e\\u0301\\u0301\\u0301\\u0301\\u0301"}', 'a: "e\u0301\u0301\u0301\\u0301\\u0301"'),
        ('{"a":"\\u0338x"}', 'a: "\\u0338x"'),
        ('{"a":"\u05d0\u05d1","b":1}', 'a: "\u05d0\u05d1", b: 1'),
        ('{"1":"\u05d0\u05d1","2":1}', '"1": "\\u05d0\\u05d1", "2": 1'),
        ('{"a":"\u05d0\u05d1","2":1}', 'a: "\\u05d0\\u05d1", "2": 1'),
        ('{"a":"x\u2026, b: true"}', 'a: "x\\u2026, b: true"'),
        ('{"a":"' + "x" * 700 + '","b":1}', 'a: "' + "x" * 599 + '…", b: 1'),
        ('{"a":["' + "x" * 700 + '"],"b":1}', 'a: ["' + "x" * 598 + "…], b: 1"),
        ('{"a":"1\\n2\\n","b":"1 lines, 2 B"}', 'a: 2 lines, 4 B, b: "1 lines, 2 B"'),
        ("{}", ""),
        ("", ""),
        ("no json) · bank", 'no JSON: "no json) · bank"'),
    ],
)
def test_a_value_is_drawn_according_to_its_type(raw: str, shown: str | None) -> None:
    expected = (
        shown
        if shown is not None
        else 'a: [9007199254740993, {"b": -0, "c": 0.1000000000000000055}]'
    )
    assert drawn(raw) == f"❓ read_file({expected}) · files"


def test_the_float_shows_all_arguments_with_numbers_as_they_were_written() -> None:
    raw = '{"big":9007199254740993.10,"list":[1.0,[]],"text":"\\u202ea","none":{}}'
    lines = details(asked(arguments=raw), None)
    start = lines.index("```text")
    assert lines[start + 1 : lines.index("```", start + 1)] == [
        "{",
        '  "big": 9007199254740993.10,',
        '  "list": [',
        "    1.0,",
        "    []",
        "  ],",
        '  "text": "\\u202ea",',
        '  "none": {}',
        "}",
    ]


@pytest.mark.parametrize(
    ("name", "server", "odd"),
    [
        ("r\u0435ad_file", "files", " [\u0435 is cyrillic]"),
        ("read_file", "f\u03b9les", " [\u03b9 is greek]"),
        ("read file", "files", ""),
        ("\u043f\u043e\u0438\u0441\u043a in files", "files", ""),
        ("\u691c\u7d22\u3059\u308b web", "files", ""),
        ("\uff52ead", "files", " [\uff52 is fullwidth]"),
    ],
)
def test_a_name_that_mixes_scripts_is_pointed_out(name: str, server: str, odd: str) -> None:
    row = call_row(asked(name=name, arguments="{}"), (name, server))
    assert "".join(chunk[0] for chunk in row) == f"❓ {name}() · {server}{odd}"


hostile = st.text(
    st.characters() | st.sampled_from('":{}[]\\ …·\u0301\u202e\u05d0\u0663e\u0435\n\t\0`'),
    max_size=60,
)


@examples(30)
@given(
    hostile,
    hostile,
    st.dictionaries(
        hostile, hostile | st.integers() | st.booleans() | st.none() | st.lists(hostile), max_size=6
    ),
    st.sampled_from([40, 60, 80, 120]),
)
@example("t", "s", {"a": "x" * 2000, "b": "y" * 2000}, 40)
@example("", "00\x1b\x1b\x1bAЀ\U00018cd6\U0002ebe1\U0003134b", {"0000\x1f\U0001123f": "⺀"}, 120)
def test_a_drawn_call_fits_its_window_hides_nothing_and_marks_each_cut(
    plain: Child, name: str, server: str, arguments: dict[str, Any], width: int
) -> None:
    chunks = call_row(asked(name=name or "t", arguments=json.dumps(arguments)), (name, server))
    whole = "".join(chunk[0] for chunk in chunks)
    assert not any(map(is_hidden, whole))
    assert "\n" not in whole
    sent = shown_arguments("draw", [chunks])[0]
    fitting = plain.lua("return require('parley.view').fit(...)", sent, width)
    text = "".join(chunk[0] for chunk in fitting)
    assert plain.nvim.api.strwidth(text) <= width
    assert text == whole or "…" in text
    assert "…" not in "".join(chunk[0] for chunk in chunks if len(chunk[0]) < 60)
