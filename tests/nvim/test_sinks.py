"""Foreign text in every place where Neovim shows text is never evaluated, typed or hidden."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.nvim.editor import shown_arguments
from tests.examples import examples
from tests.nvim.harness import Child, child

HERE = Path(__file__).parent
RAN = "vim_ran_this"
TEXTS = {
    "an item of the status line": "%{writefile([],'" + RAN + "')}",
    "an item evaluated twice": "%{%writefile([],'" + RAN + "')%}",
    "a status line": "%!writefile([],'" + RAN + "')",
    "a second command": "| call writefile([],'" + RAN + "')",
    "a command on a second line": "x\ncall writefile([],'" + RAN + "')\nx",
    "keys": "<C-r>=writefile([],'" + RAN + "')<CR>",
    "typed keys": "\x12=writefile([],'" + RAN + "')\r",
    "a shell command": "`touch " + RAN + "`",
    "NUL": "a\0b",
    "an escape sequence": "\x1b]0;title\x07\x1b[31mred",
    "bidi": "a\u202egpj.exe\u2066\u200b",
    "percent": "100% of %% %= %#Error#",
}
each_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def ran(nvim: Child) -> bool:
    return (nvim.home / RAN).exists()


@pytest.fixture
def chat(plain: Child) -> Child:
    """A chat in a Neovim without a host that evaluates Parley's status line text twice."""
    plain.command(f"cd {plain.home}")
    plain.edit("chat.md", "💬: hi\n")
    plain.until(lambda: plain.lua("return require('parley.chat').is_attached(0)"), "the chat")
    return plain


def remote(nvim: Child, name: str, *arguments: Any) -> Any:
    """A call from the host to Lua, in the form that the host sends."""
    return nvim.lua("return require('parley.remote')(...)", name, *shown_arguments(name, arguments))


def visible(text: str) -> str:
    return str(shown_arguments("message", [text])[0])


BARS = [
    "statusline=%{%",
    "statusline=%!",
    "winbar=%{%",
    "tabline=%{%",
    "titlestring=%{%",
    "statuscolumn=%{%",
]


@each_text
@pytest.mark.parametrize("bar", BARS)
def test_bars_that_evaluate_their_text_show_it_unchanged(chat: Child, bar: str, text: str) -> None:
    buf = chat.nvim.current.buffer.number
    end = "%}" if bar.endswith("{%") else ""
    chat.command(f"set showtabline=2 title {bar}v:lua.require'parley'.status({buf}){end}")
    for route in ("status", "agent"):
        remote(chat, route, buf, text, 0)
        chat.command("redrawtabline | redraw!")
        screen = chat.screen()
        assert not ran(chat)
        if bar.startswith(("statusline", "winbar", "tabline")):
            assert visible(text) in screen
    remote(chat, "status", buf, "", 0)


any_text = st.lists(
    st.sampled_from([*TEXTS.values(), "%", "{", "}", "<", "!", " "]) | st.text(max_size=5)
)


@examples(25)
@example(" | call writefile([],'vim_ran_this')")
@example(" ")
@given(any_text.map("".join))
def test_any_status_text_is_shown_and_never_evaluated(plain: Child, text: str) -> None:
    plain.command("enew!")  # without a named agent
    buf = plain.nvim.current.buffer.number
    remote(plain, "status", buf, text, 0)
    shown = plain.nvim.api.eval_statusline(
        "%{%v:lua.require'parley'.status()%}", {"maxwidth": 10_000}
    )
    whole = visible(text)
    # Neovim itself may omit a character at its start
    assert shown["str"] in (
        whole,
        whole.removeprefix(" "),
    )
    assert not ran(plain)
    remote(plain, "status", buf, "", 0)


@each_text
def test_drawn_text_and_messages_show_hidden_characters(chat: Child, text: str) -> None:
    buf, tick = chat.nvim.current.buffer.number, chat.nvim.api.buf_get_changedtick(0)
    problem = {"row": 0, "col": 0, "severity": "error", "message": text}
    line = [["", ""], ["drawn " + text, "ParleyTool"]]
    block = {"title": line, "head": [line], "tail": [], "count": 1}
    proposal = {"row": 0, "lines": [line], "notes": [line], "blocks": [block], "prompt": [line]}
    found = {"problems": [problem], "proposals": [proposal], "waiting": [], "sightings": [1]}
    found |= {"folds": [], "texts": {}}
    assert remote(chat, "draw", buf, tick, found)
    assert chat.screen().count("drawn " + visible(text)) == 5
    chat.lua("vim.diagnostic.setloclist({ open = true })")
    assert visible(text) in chat.text()
    chat.command("lclose")
    remote(chat, "message", text, "warn")
    chat.until(
        lambda: " ".join(visible(text).split()) in " ".join(chat.messages().split()), "the message"
    )
    remote(chat, "float", [text])
    assert visible(text) in chat.screen()
    remote(chat, "scratch", "page", [text], "markdown")
    assert chat.text() == visible(text)
    chat.command("close!")
    assert not ran(chat)


@each_text
def test_dialogs_show_hidden_characters_and_a_suggestion_types_nothing(
    chat: Child, text: str
) -> None:
    chat.lua("""
        _G.answers = {}
        require('parley.host').mention = function(_, answer) table.insert(_G.answers, answer) end
    """)
    remote(chat, "ask_input", 1, "prompt " + text, text)
    chat.lua("vim.defer_fn(function() vim.api.nvim_input('<CR>') end, 50)")
    chat.until(lambda: len(chat.lua("return _G.answers")) == 1, "an answer")
    remote(chat, "ask_select", 2, "prompt " + text, ["item " + text, "other"])
    chat.lua("vim.defer_fn(function() vim.api.nvim_input('1<CR>') end, 50)")
    chat.until(lambda: len(chat.lua("return _G.answers")) == 2, "a choice")
    assert chat.lua("return _G.answers") == [
        {"id": 1, "value": visible(text)},
        {"id": 2, "value": 1},
    ]
    assert not ran(chat)


@each_text
def test_the_outline_shows_a_question_with_any_content(chat: Child, text: str) -> None:
    chat.nvim.api.buf_set_lines(0, 0, -1, True, ["💬: " + text.replace("\n", " ")])
    chat.command("ParleyOutline")
    assert chat.nvim.funcs.line("$") == 1
    assert chat.nvim.current.buffer.options["buftype"] == "quickfix"
    chat.command("lclose")
    assert not ran(chat)


def test_the_name_of_a_file_to_write_is_expanded_once(chat: Child) -> None:
    chat.lua(
        "_G.told = {} require('parley.host').notify = function(_, a) table.insert(_G.told, "
        "a.path) end"
    )
    chat.lua("require('parley').export(...)", f"`touch {RAN}`.html")
    chat.command("ParleyExport ~/page.html")
    assert chat.lua("return _G.told") == [
        f"{chat.home}/`touch {RAN}`.html",
        f"{chat.home}/page.html",
    ]
    assert not ran(chat)


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim with a host that evaluates Parley's status line text twice."""
    bar = "vim.o.statusline = \"%{%v:lua.require'parley'.status()%}\""
    with child(tmp_path_factory.mktemp("hosted"), init=bar) as nvim:
        nvim.command(f"cd {nvim.home}")
        yield nvim


@pytest.mark.parametrize(
    "text", [TEXTS["an item evaluated twice"], "x\n" + TEXTS["typed keys"] + "\0\u202e"]
)
def test_a_hostile_server_has_nothing_run_and_nothing_hidden(
    hosted: Child, tmp_path: Path, text: str
) -> None:
    server = {
        "command": sys.executable,
        "args": [str(HERE / "hostile_server.py")],
        "env": {"GO": str(tmp_path / "go"), "HOSTILE": text.replace("\0", "")},
    }
    nvim = hosted
    nvim.clear()
    nvim.lua(
        "require('parley').setup(...)",
        {"mcp": {"servers": {"s": server}}, "agent": "Demo-OpenAI", "status": {"llm": False}},
    )
    nvim.edit(str(tmp_path / "chat.md"), '💬: call t {"query":"q"}\n')
    nvim.command("ParleyRespond")
    nvim.until_waiting()
    nvim.until_idle()
    nvim.until_screen("query: ")
    nvim.keys("ya")
    shown = visible(" ".join(text.replace("\0", "").split()))[:40]
    nvim.until_screen(shown)
    (tmp_path / "go").touch()
    for prompt, keys in (("2: Answer", "2<CR>"), ("2: other", "1<CR>"), (r": \x12=", "<CR>")):
        nvim.until_screen(prompt)
        nvim.keys(keys)
    nvim.until_idle()
    nvim.command("ParleyTools")
    nvim.until(lambda: "MCP servers" in nvim.text(), "the page")
    nvim.command("close")
    nvim.keys(":ParleyPrompt s/<Tab><C-c>")
    nvim.until_open()
    offered = nvim.lua("return require('parley.commands').complete('Prompt', '', 'ParleyPrompt ')")
    assert sorted(offered) == [*(["s/" + text] if text.isprintable() else []), "s/my\\ plain"]
    assert not ran(nvim)
    assert "Error" not in nvim.messages().replace("#Error#", "")


@pytest.mark.parametrize(
    "place", ["{}\n\n💬: hi\n", "💬: hi\n\n🤖:[Demo]\n\n{}\n\n💬: \n"], ids=["top", "bottom"]
)
def test_a_modeline_in_a_chat_is_text(chat: Child, place: str) -> None:
    chat.command("set modeline")
    chat.edit("notes.txt", "vim: set textwidth=33:\n")
    assert chat.nvim.api.get_option_value("textwidth", {}) == 33
    said = "vim: set textwidth=33 filetype=lua nomodifiable:"
    for edit in ("edit", "edit!", "bwipeout! | edit"):
        if edit == "edit":
            chat.edit("modelines.md", place.format(said))
        else:
            chat.command(f"{edit} {chat.home}/modelines.md")
        values = [
            chat.nvim.api.get_option_value(name, {})
            for name in ("textwidth", "filetype", "modifiable")
        ]
        assert values == [0, "markdown", True]
