"""A waiting call is one row. The tests cover its text, all calls in an answer, and their places on
the screen.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Proposal
from parley.cli.terminal_rows import fit
from parley.display.summary import call_row
from parley.display.view import ChatView, details, drawing
from parley.nvim.editor import shown_arguments
from parley.nvim.folds import FoldTexts, folds
from parley.policy.approval import LedgerView, written_key
from parley.policy.previews import CallPreview, FilePreview
from parley.settings.values import ChoiceKeys, Key, Keys
from parley.tools.catalogue import Catalogue
from parley.tools.schema import check_arguments
from parley.tools.server_settings import ServerSettings
from tests.chats import tool
from tests.nvim.harness import Child

ANY = {"type": "object"}
TOOLS = Catalogue.of(
    [tool("web_search", "mock", input_schema=ANY), tool("write_file", "files", input_schema=ANY)]
)
LONG = "💬: " + "\n".join(f"line {number}" for number in range(60)) + "\n\n🤖:[Demo]\n\nsaid\n\n"
FILE = "".join(f"    value_{number} = compute({'x' * 30!r}, {number})\n" for number in range(80))
HEIGHT = 24
PROMPT = ">> Please choose (yA/ya/yo/yO):"
ONE = ">> Please choose (yA/ya):"
"""The prompt below a single call."""


def call(number: int, name: str = "web_search", **arguments: Any) -> str:
    """A call's line."""
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    made = {"index": number - 1, "id": f"call_{number}", "type": "function", "function": function}
    return f"❓: `{json.dumps(made, ensure_ascii=False)}`\n"


def chat(*calls: str, words: str = "Let me look.") -> str:
    """A chat longer than a window, with waiting calls at its end."""
    return f"{LONG}💬: q\n\n🤖:[Demo]\n\n{words}\n\n{''.join(calls)}"


def remote(nvim: Child, name: str, *arguments: Any) -> Any:
    return nvim.lua("return require('parley.remote')(...)", name, *shown_arguments(name, arguments))


def draw(nvim: Child, tools: Catalogue = TOOLS) -> list[int]:
    """Draw the chat like its host; return the rows of its calls."""
    view = ChatView(parse(nvim.text()), tools, LedgerView())
    drawn = drawing(view)
    rows = [proposal["row"] for proposal in drawn["proposals"]]
    drawn["sightings"] = list(range(1, len(rows) + 1))
    drawn["folds"], drawn["texts"] = FoldTexts().rows(folds(view))
    assert remote(
        nvim, "draw", nvim.nvim.current.buffer.number, nvim.nvim.api.buf_get_changedtick(0), drawn
    )
    return rows


def opened(nvim: Child, text: str, width: int = 80, before: str = "") -> list[int]:
    """Open a chat in a window of this width, with its cursor on the first call; return the rows of
    its calls.
    """
    nvim.clear()
    nvim.nvim.ui_try_resize(width, HEIGHT)
    nvim.edit("rows.md", text)
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("setlocal foldmethod=manual")
    if before:
        nvim.command(before)
    rows = draw(nvim)
    if rows:
        nvim.nvim.api.win_set_cursor(0, (rows[0] + 1, 0))
        nvim.lua(
            "require('parley.view').reveal(vim.api.nvim_get_current_win(), ...)", rows[0], rows[-1]
        )
    return rows


def shown(nvim: Child) -> list[str]:
    """The screen's lines without status lines."""
    return nvim.screen().split("\n")[:-2]


def numbers(nvim: Child) -> list[int]:
    """The calls that count as seen."""
    nvim.screen()
    times = nvim.lua("return require('parley.sightings').times(0 + vim.api.nvim_get_current_buf())")
    return [sighting for sighting, _ in times]


def row(nvim: Child, start: str) -> str:
    """The screen's first row with this start."""
    return next(line for line in shown(nvim) if line.startswith(start))


def test_two_calls_are_two_rows_above_the_prompt_with_the_keys_meanings(plain: Child) -> None:
    opened(plain, chat(call(1, query="google stock price"), call(2, query="microsoft stock price")))
    assert shown(plain)[-5:] == [
        '❓ web_search(query: "google stock price") · mock',
        '❓ web_search(query: "microsoft stock price") · mock',
        "",
        PROMPT,
        "ya all 2 · yo this · yA/yO and remember · yn no · K details",
    ]
    assert numbers(plain) == [1, 2]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_call_that_writes_a_file_shows_first_and_last_lines_and_asks_to_be_viewed(
    plain: Child, width: int
) -> None:
    opened(plain, chat(call(1, "write_file", path="src/a.py", content=FILE)), width)
    screen = plain.screen()
    assert row(plain, "❓").startswith('❓ write_file(path: "src')
    size = "" if width == 60 else ": 80 lines, 5 kB"
    assert row(plain, "❓").endswith(f"content{size}) · files")
    assert "value_0 = compute(" in screen
    assert "value_79 = compute(" in screen
    assert re.search(r"⋮ \+6\d lines, K", screen)
    assert ONE in screen
    assert "Let me look." in screen
    assert numbers(plain) == []


@pytest.mark.parametrize("width", [60, 80])
def test_a_problem_with_a_call_is_stated_in_full_next_to_its_signs(
    plain: Child, width: int
) -> None:
    tools = Catalogue.of(
        [tool("web_search", "mock", input_schema=ANY | {"required": ["query", "language"]})]
    )
    text = chat(call(1, query="a"), call(2, query="b"))
    opened(plain, text, width, before="setlocal signcolumn=no")
    draw(plain, tools)
    plain.command("setlocal signcolumn=auto")
    draw(plain, tools)
    note = check_arguments('{"query": "a"}', {"type": "object", "required": ["query", "language"]})

    def joined() -> str:
        return " ".join(" ".join(shown(plain)).split())

    plain.until(lambda: f"call 2: this call cannot run: {note}" in joined(), "all of the words")
    plain.until(lambda: f"call 1: this call cannot run: {note}" in joined(), "all of the words")
    assert any(line.startswith("E ❓ web_search") for line in shown(plain))


def test_a_note_numbers_its_call_like_the_rows_of_the_reply() -> None:
    strict = ANY | {"required": ["language"]}
    tools = Catalogue.of([tool("web_search", "mock", input_schema=strict)])
    refused = "\n🛠️: [web_search][call_1][refused]\n\n`no`\n\n"
    text = chat(call(1, query="a").replace("❓:", "❓:[yn]") + refused, call(2, query="b"))
    (drawn,) = drawing(ChatView(parse(text), tools, LedgerView()))["proposals"]
    assert drawn["notes"][0][0][0] == "  call 2: "
    (drawn,) = drawing(ChatView(parse(chat(call(2))), tools, LedgerView()))["proposals"]
    assert drawn["notes"][0][0][0] == "  "


def test_a_long_note_is_cut_with_a_mark_after_some_rows(plain: Child) -> None:
    tools = Catalogue.of(
        [tool("web_search", "mock", input_schema=ANY | {"required": ["long name " * 60]})]
    )
    opened(plain, chat(call(1, query="a")))
    draw(plain, tools)
    plain.command("normal! zt")
    plain.until(lambda: shown(plain)[5].endswith("…"), "the mark")
    assert shown(plain)[2].startswith("    this call cannot run: Missing")
    assert shown(plain)[6] == ""


def test_a_short_text_is_shown_whole_and_counts_as_seen(plain: Child) -> None:
    opened(plain, chat(call(1, "write_file", path="a.txt", content="one\n\ttwo\n")))
    lines = shown(plain)
    at = lines.index('❓ write_file(path: "a.txt", content: 2 lines, 9 B) · files')
    assert lines[at + 1 : at + 7] == ["", "  content:", "  │ one", "  │ →   two", "", ONE]
    assert numbers(plain) == [1]


def test_calls_share_the_available_room(plain: Child) -> None:
    calls = [call(n, "write_file", path=f"{n}.py", content=FILE) for n in (1, 2)]
    opened(plain, chat(*calls, call(3, "write_file", path="3.py", content="a\nb\n")))
    screen = plain.screen()
    for number in (1, 2, 3):
        assert f'❓ write_file(path: "{number}.py", content: ' in screen
        assert f"call {number}: content:" in screen
    assert screen.count("value_0 = compute(") == screen.count("value_79 = compute(") == 2
    assert "  call 3: content:\n  │ a\n  │ b\n" in screen
    assert PROMPT in screen
    assert numbers(plain) == [3]


def test_a_cut_row_counts_as_seen_only_when_the_window_has_room_for_it(plain: Child) -> None:
    opened(plain, chat(call(1, query="x" * 590)), 30)
    assert "…" in row(plain, "❓")
    assert numbers(plain) == []
    plain.nvim.ui_try_resize(640, HEIGHT)
    plain.until(lambda: "…" not in row(plain, "❓"), "the whole row")
    assert numbers(plain) == [1]


def test_among_many_calls_the_prompt_is_at_the_cursor(plain: Child) -> None:
    rows = opened(plain, chat(*(call(n, query=f"number {n}") for n in range(1, 41))))
    assert row(plain, PROMPT) == f'{PROMPT} ❓ web_search(query: "number 1") · mock'
    plain.keys("j")
    plain.until(lambda: 'number 2"' in row(plain, PROMPT), "the prompt at the next call")
    assert plain.screen().count(PROMPT) == 1
    plain.nvim.api.win_set_cursor(0, (rows[-1] + 1, 0))
    plain.until(lambda: row(plain, PROMPT) == PROMPT, "the prompt below the last")
    assert shown(plain)[-1].startswith("ya all 40 · yo this")


def test_the_call_under_the_cursor_is_marked(plain: Child) -> None:
    opened(plain, chat(call(1, query="one"), call(2, query="two")))
    plain.lua("vim.api.nvim_set_hl(0, 'ParleyCurrent', { bg = '#123456' })")

    def marked() -> list[bool]:
        plain.flush()
        marks = []
        for line, styles in zip(plain.grid.rows, plain.grid.attributes, strict=True):
            if line[0] == "❓":
                marks.append(
                    all(plain.grid.styles[s].get("background") == 0x123456 for s in styles)
                )
        return marks

    plain.until(lambda: marked() == [True, False], "the mark")
    plain.keys("j")
    plain.until(lambda: marked() == [False, True], "the mark at the next call")


def test_right_to_left_letters_and_marks_stay_in_their_value(plain: Child) -> None:
    opened(
        plain,
        chat(
            call(1, a="\u05d0\u05d1", b="e\u0301\u0301\u0301\u0301", c="\u202eok", d="x\u05d0\ny")
        ),
    )
    values = 'a: "\u05d0\u05d1", b: "e\u0301\u0301\u0301\\u0301", c: "\\u202eok", d: 2 lines, 5 B'
    assert row(plain, "❓") == f"❓ web_search({values}) · mock"
    assert row(plain, "  │") == "  │ x\u05d0"


def test_each_of_two_windows_cuts_a_row_at_its_own_width(plain: Child) -> None:
    opened(plain, chat(call(1, query="y" * 40), words=""), 120)
    plain.command("vertical split | vertical resize 40")
    screen = plain.until_screen('…") · mock')
    assert f'❓ web_search(query: "{"y" * 40}") · mock' in screen
    assert screen.count("❓ web_search(") == 2


def test_without_manual_folds_the_row_is_below_the_line(plain: Child) -> None:
    opened(plain, chat(call(1, query="google")), before="setlocal foldmethod=expr")
    lines = shown(plain)
    assert any(line.startswith("❓: `{") for line in lines)
    assert '  web_search(query: "google") · mock' in lines
    assert lines[-2:] == [ONE, "ya yes · yA and remember · yn no · K details"]
    assert numbers(plain) == [1]


def test_foldexpr_gives_the_same_rows(plain: Child) -> None:
    ours = "setlocal foldlevel=0 foldmethod=expr foldexpr=v:lua.require'parley'.foldexpr()"
    opened(plain, chat(call(1, query="google"), call(2, query="microsoft")), before=ours)
    assert shown(plain)[-5:-3] == [
        '❓ web_search(query: "google") · mock',
        '❓ web_search(query: "microsoft") · mock',
    ]
    assert numbers(plain) == [1, 2]


def test_an_opened_row_is_text_with_the_row_below_it_and_stays_open(plain: Child) -> None:
    opened(plain, chat(call(1, query="google"), call(2, query="microsoft")))
    plain.keys("zo")
    plain.until(lambda: '  web_search(query: "google") · mock' in shown(plain), "the row below")
    assert row(plain, "❓: `{").startswith("❓: `{")
    draw(plain)
    assert '  web_search(query: "google") · mock' in shown(plain)
    plain.keys("zc")
    plain.until(lambda: '❓ web_search(query: "google") · mock' in shown(plain), "the row again")
    assert '  web_search(query: "google") · mock' not in shown(plain)


def test_without_folds_calls_are_text(plain: Child) -> None:
    opened(plain, chat(call(1, query="google")), before="setlocal nofoldenable")
    assert '  web_search(query: "google") · mock' in shown(plain)
    assert shown(plain)[-2] == ONE


def test_a_call_restored_by_undo_is_a_row_again(plain: Child) -> None:
    opened(plain, chat(call(1, query="google"), call(2, query="microsoft")))
    plain.keys("dd")
    plain.until(lambda: len(draw(plain)) == 1, "one call")
    plain.keys("u")
    plain.until(lambda: len(draw(plain)) == 2, "two calls")
    plain.until(lambda: plain.screen().count("❓ web_search(") == 2, "two rows")


def test_an_immediate_undo_makes_it_a_row_again(plain: Child) -> None:
    opened(plain, chat(call(1, query="google"), call(2, query="microsoft")))
    plain.keys("ddu")
    plain.until(lambda: len(plain.lines()) and plain.text().count("❓: `") == 2, "two calls")
    draw(plain)
    plain.until(lambda: plain.screen().count("❓ web_search(") == 2, "two rows")


def test_a_reloaded_chat_has_its_rows_again(plain: Child) -> None:
    opened(plain, chat(call(1, query="google")))
    plain.command("edit!")
    plain.until(lambda: plain.lua("return require('parley.chat').is_attached(0)"), "the chat")
    draw(plain)
    plain.command("normal! G")
    assert '❓ web_search(query: "google") · mock' in shown(plain)


def test_in_a_reloaded_chat_the_choice_keys_are_vims_elsewhere(
    plain: Child,
) -> None:
    opened(plain, chat(call(1, query="google")))
    plain.command("edit!")
    plain.until(lambda: plain.lua("return require('parley.chat').is_attached(0)"), "the chat")
    draw(plain)
    plain.command("normal! gg")
    plain.keys("yo<Esc>")
    plain.until_open()
    assert "E223" not in plain.messages()


def test_a_window_that_shows_the_chat_later_also_has_the_rows(plain: Child) -> None:
    opened(plain, chat(call(1, query="google"), words=""))
    plain.command("new | buffer rows.md")
    plain.nvim.api.win_set_cursor(0, (len(plain.lines()), 0))
    plain.until(lambda: plain.screen().count("❓ web_search(") == 2, "the row in both")


def test_rows_are_at_the_calls_after_the_text_changed_while_hidden(
    plain: Child,
) -> None:
    opened(plain, chat(call(1, query="google")))
    buf = plain.nvim.current.buffer.number
    plain.command("set hidden | enew")
    plain.nvim.api.buf_set_lines(buf, 0, 0, True, ["one", "two", "three"])
    plain.command(f"buffer {buf}")
    plain.command("normal! G")
    plain.until(lambda: '❓ web_search(query: "google")' in plain.screen(), "the row")
    lines = range(1, len(plain.lines()) + 1)
    folded = [number for number in lines if plain.nvim.funcs.foldclosed(number) != -1]
    assert folded == [
        number for number, line in enumerate(plain.lines(), 1) if line.startswith("❓")
    ]


def test_the_users_folds_stay_with_their_text(plain: Child) -> None:
    own = "setlocal foldtext='mine\\ '.v:foldstart | 2,5fold"
    opened(plain, chat(call(1, query="google")), before=own)
    assert plain.nvim.funcs.foldclosed(3) == 2
    plain.command("normal! gg")
    plain.until_screen("mine 2")


def test_a_call_in_a_users_fold_is_uncovered_and_nothing_else(plain: Child) -> None:
    opened(plain, chat(call(1, query="google")), before="2,5fold | $-2,$fold")
    assert plain.nvim.funcs.foldclosed(3) == 2
    assert '❓ web_search(query: "google") · mock' in shown(plain)


def test_in_a_long_chat_only_the_text_on_the_screen_is_requested(plain: Child) -> None:
    calls = "".join(
        (
            f"{call(n, query=str(n)).replace(': `', ':[ya] `', 1)}\n🛠️: "
            f"[web_search][call_{n}]\n\n`done`\n\n"
        )
        for n in range(1, 1001)
    )
    text = "".join(f"💬: q\n\n🤖:[Demo]\n\n{'text' * 5}\n\n{part}" for part in [calls] * 2)
    opened(plain, text)
    plain.lua("""
        local folds = require('parley.folds')
        _G.asked, _G.text = 0, _G.text or folds.text
        folds.text = function() _G.asked = _G.asked + 1 return _G.text() end
    """)
    plain.command("normal! G")
    plain.screen()
    plain.lua("_G.asked = 0")
    for keys in ("<C-u>", "<C-d>", "k", "j", "<C-b>"):
        plain.keys(keys)
        plain.screen()
    assert 0 < plain.lua("return _G.asked") <= 6 * HEIGHT
    plain.lua("require('parley.folds').text = _G.text")


def test_the_prompt_names_the_configured_keys() -> None:
    view = ChatView(parse(chat(call(1, query="a"), call(2, query="b"))), TOOLS, LedgerView())

    def meanings(**keys: Any) -> str:
        prompt: list[Any] = drawing(view, Keys(**keys))["proposals"][1]["prompt"]
        return str(prompt[1][0][0])

    assert meanings(scope="case") == "ya this · yA all 2 and remember · yn no · K details"
    own = ChoiceKeys(ya=Key("<leader>y"), yn=Key("<leader>n"))
    assert meanings(choices=own) == (
        "<leader>y all 2 · yo this · yA/yO and remember · <leader>n no · K details"
    )
    assert meanings(choices=ChoiceKeys(enabled=False)).startswith(":ParleyApprove ")


OWN = ServerSettings("workspace", builtin=True, cwd="/project").identity
OWN_TOOLS = {
    name: replace(tool(name, "workspace", input_schema=ANY), identity=OWN)
    for name in ("edit_file", "write_file", "run_command", "move_file")
}
PREVIEWS = {
    "edit_file": CallPreview((FilePreview("a.py", "a\n", "b\n"),), is_binding=True),
    "write_file": CallPreview((FilePreview("a.py", "a\n", "b\n"),), is_binding=True),
    "run_command": CallPreview(sandbox="sandboxed"),
    "move_file": CallPreview((FilePreview("a.py", "a\n", "a\n", "b.py"),), is_binding=True),
}


@pytest.mark.parametrize(
    ("names", "meaning"),
    [
        (["edit_file"], "ya yes · yA and remember · yn no · K details, then d: diff tab"),
        (["write_file"], "ya yes · yn no · K details, then d: diff tab"),
        (["run_command"], "ya yes · yA and remember this command · yn no · K details"),
        (["move_file"], "ya yes · yn no · K details"),
        (["move_file", "write_file"], "ya all 2 · yo this · yn no · K details, then d: diff tab"),
        (
            ["move_file", "edit_file"],
            "ya all 2 · yo this · yA/yO and remember · yn no · K details, then d: diff tab",
        ),
    ],
)
def test_the_meanings_fit_the_calls(names: list[str], meaning: str) -> None:
    calls = [call(number, name) for number, name in enumerate(names, 1)]
    transcript = parse(chat(*calls))
    written = [written_key(p) for e in transcript.exchanges for a in e.answers for p in a.proposals]
    previews = dict(zip(written, map(PREVIEWS.__getitem__, names), strict=True))
    view = ChatView(
        transcript, Catalogue.of(list(OWN_TOOLS.values())), LedgerView(), previews=previews
    )
    drawn = drawing(view)["proposals"][-1]["prompt"]
    assert drawn[1][0][0] == meaning
    assert len(meaning) < 80


def test_a_row_that_the_prompt_cuts_is_not_seen_before_the_cursor_has_left_it(plain: Child) -> None:
    rows = opened(plain, chat(*(call(n, query=f"{'q' * 30}{n:02}") for n in range(1, 41))))
    assert "…" in row(plain, PROMPT)
    assert 1 not in numbers(plain)
    assert 2 in numbers(plain)
    plain.nvim.api.win_set_cursor(0, (rows[-1] + 1, 0))
    plain.until(lambda: row(plain, PROMPT) == PROMPT, "the prompt below the last")
    plain.nvim.api.win_set_cursor(0, (rows[0], 0))
    plain.until(
        lambda: f'❓ web_search(query: "{"q" * 30}01") · mock' in shown(plain), "the whole row"
    )
    assert 1 in numbers(plain)


def test_a_call_in_a_fold_that_shows_something_else_is_not_seen(plain: Child) -> None:
    folds = (
        "setlocal foldmethod=expr foldlevel=0 foldminlines=0 foldtext='mine' "
        "foldexpr=getline(v:lnum)=~'^❓'"
    )
    opened(plain, chat(call(1, query="google")), before=folds)
    plain.until_screen("mine")
    assert numbers(plain) == []


@pytest.mark.parametrize(
    "narrower", ["setlocal number foldcolumn=4", "1wincmd w | vertical resize +20 | wincmd p"]
)
def test_lines_cut_by_a_narrower_window_are_not_seen(plain: Child, narrower: str) -> None:
    end = f"{'a' * 66}the end"
    opened(
        plain,
        chat(call(1, "write_file", path="a", content=f"x\n{end}\n")),
        160,
        before="leftabove vnew | wincmd p",
    )
    plain.command("normal! gg")
    plain.screen()
    plain.lua("require('parley.sightings').forget(0 + vim.api.nvim_get_current_buf())")
    plain.command(f"{narrower} | normal! G")
    plain.until(lambda: ONE in plain.screen(), "the prompt")
    plain.until(lambda: "…" in plain.screen(), "the line, cut")
    assert numbers(plain) == []


@pytest.mark.parametrize(
    "cluster",
    [
        "\u1100" * 30 + "\u1161",
        "\u0d4e" * 30 + "x",
        "\u0915" + "\u0903" * 30,
        "\u0915" + "\u094d\u0915" * 20,
        "\U0001f44d" + "\U0001f3fb" * 30,
        "\u30ab" + "\uff9e" * 30,
    ],
)
def test_every_character_in_a_value_is_drawn_however_many_combine(
    plain: Child, cluster: str
) -> None:
    opened(plain, chat(call(1, query=cluster)), 300)
    shown_value = row(plain, "❓").partition('query: "')[2].partition('")')[0]
    spelled = re.sub(
        r"\\u[0-9a-f]{4}|\\U[0-9a-f]{8}", lambda m: chr(int(m[0][2:], 16)), shown_value
    )
    assert spelled == cluster


def test_a_window_without_room_for_text_shows_no_call(plain: Child) -> None:
    call_is_cut = (
        "local view = require('parley.view') return view.is_cut(view.fit({ { 'text', "
        "'Normal', '' } }, ...))"
    )
    assert [plain.lua(call_is_cut, width) for width in (0, 1, 4)] == [True, True, False]


@pytest.mark.parametrize("option", ["foldtext", "foldmethod=expr foldexpr"])
def test_text_that_a_modeline_would_evaluate_never_leaves_the_sandbox(
    plain: Child, option: str
) -> None:
    file = plain.home / "sandbox"
    plain.command("set modeline modelineexpr")
    expression = f"writefile([],'{file}').'parley'"
    modeline = f"<!-- vim: set {option}={expression} : -->"
    plain.edit("notes.md", f"# notes\n\ntext\n\n{modeline}\n")
    plain.command("set nomodeline nomodelineexpr")
    assert "writefile" in plain.lua("return vim.wo.foldtext .. vim.wo.foldexpr")
    plain.nvim.api.buf_set_lines(
        0, -1, -1, True, ["", *chat(call(1, query="x")).rstrip().split("\n")]
    )
    plain.lua("require('parley.chat').attach(0 + vim.api.nvim_get_current_buf())")
    if option == "foldtext":
        plain.command("1,2fold")
    for _ in range(2):
        draw(plain)
        plain.command("redraw!")
        plain.screen()
    assert not file.exists()


PATH = "/home/user/projects/shop/src/inventory/readers/csv_reader.py"


@pytest.mark.parametrize("width", [60, 80])
def test_a_long_path_keeps_its_end_and_uses_free_rows_to_stay_whole(
    plain: Child, width: int
) -> None:
    one = call(1, "write_file", path=PATH, content="import csv\nimport io\n")
    opened(plain, chat(one, call(2, "write_file", path="a.py", content="a\nb\n")), width)
    assert 'csv_reader.py", content) · files' in row(plain, "❓")
    assert row(plain, "❓").startswith('❓ write_file(path: "…')
    whole = "".join(
        line.strip() for line in shown(plain) if line.startswith(("  call 1: write", "    "))
    )
    assert f'write_file(path: "{PATH}", content: 2 lines, 21 B)' in whole
    assert numbers(plain) == [1, 2]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_edits_in_a_list_show_the_files_name_first_and_their_texts_as_lines(
    plain: Child, width: int
) -> None:
    """The arguments have the shape of the protocol's own file server."""
    path = "/home/someone/projects/a-rather-long-project-name/src/module/application.py"
    edits = [
        {"oldText": "def f():\n    return 1\n", "newText": "def f():\n    return 2\n"},
        {"oldText": "x = 1", "newText": 'x = "one"'},
    ]
    arguments = {"edits": edits, "dryRun": False, "path": path}
    text = call(1, "edit_file", **arguments)
    opened(plain, chat(text), width)
    drawn = row(plain, "❓")
    assert re.match(r'❓ edit_file\(path: "[^"]*/application\.py", edits[ :,]', drawn), drawn
    assert [line for line in shown(plain) if line.startswith("  edits") or "│" in line] == [
        "  edits[1].oldText:",
        "  │ def f():",
        "  │     return 1",
        "  edits[1].newText:",
        "  │ def f():",
        "  │     return 2",
        "  edits[2].oldText:",
        '  │ "x = 1"',
        "  edits[2].newText:",
        r'  │ "x = \"one\""',
    ]
    proposal = parse(plain.text()).exchanges[-1].answers[-1].segments[-1]
    assert isinstance(proposal, Proposal)
    terminal = fit(call_row(proposal, ("edit_file",)), width)
    assert "".join(chunk[0] for chunk in terminal) == drawn
    assert "**edits[1].newText, 2 lines, 22 B**" in details(proposal, None)


def test_a_command_is_cut_at_its_end(plain: Child) -> None:
    opened(plain, chat(call(1, "write_file", command=f"rm -rf {PATH} {PATH}/x {PATH}/y")))
    assert row(plain, "❓").startswith('❓ write_file(command: "rm -rf /home')


def test_a_size_is_dropped_before_anything_is_cut(plain: Child) -> None:
    opened(
        plain, chat(call(1, "write_file", path="src/inventory/csv_reader.py", content="a\nb\n")), 72
    )
    assert row(plain, "❓") == '❓ write_file(path: "src/inventory/csv_reader.py", content) · files'
    assert numbers(plain) == [1]


def test_short_texts_from_several_calls_are_shown(plain: Child) -> None:
    calls = [
        call(n, "write_file", path=f"notes/{n}.md", content=f"first {n}\nsecond {n}\n")
        for n in range(1, 6)
    ]
    opened(plain, chat(*calls, words=""))
    for number in range(1, 6):
        assert f'  call {number}: content: "first {number}\\nsecond {number}\\n"' in shown(plain)
    assert "lines, K" not in plain.screen()
    assert PROMPT in shown(plain)
    assert numbers(plain) == [1, 2, 3, 4, 5]
