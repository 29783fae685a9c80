"""Ways into a chat: new chats open in the intended window, ready to type; a question can be asked
anywhere.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

import pytest

from tests.forks import forks
from tests.nvim.harness import Child, child

QUESTION = "\U0001f4ac: "
TOPICLESS = ["---", 'topic: ""', "---", "", QUESTION]


def layout(nvim: Child) -> str:
    """The layout of the tab page's windows: `row` means adjacent columns."""
    kind: str = nvim.lua("return vim.fn.winlayout()[1]")
    return kind


def is_first(nvim: Child) -> bool:
    """Whether the cursor is in the top left window."""
    first: bool = nvim.lua("return vim.fn.winnr() == 1")
    return first


def test_text_typed_right_after_the_command_is_the_question(nvim: Child) -> None:
    nvim.keys(":ParleyChatNew<CR>one and <C-g>q<BS>two<Esc>")
    nvim.until(lambda: nvim.lua("return vim.fn.mode()") == "n")
    assert nvim.lines() == [*TOPICLESS[:4], f"{QUESTION}one and ", "", QUESTION.strip() + "two"]


@pytest.mark.parametrize("options", ["", "vim.o.backup = true", "vim.o.backupcopy = 'yes'"])
def test_a_new_chats_file_is_private_and_its_writes_cause_no_change_warning(
    tmp_path: Path, options: str
) -> None:
    before = os.umask(0o022)
    try:
        with child(tmp_path, init=options) as nvim:
            nvim.command("ParleyChatNew")
            nvim.until(lambda: nvim.name, "the file")
            nvim.keys("say: one<Esc>:checktime<CR>")
            nvim.until(lambda: nvim.lua("return vim.fn.mode()") == "n")
            assert nvim.lines()[-1] == f"{QUESTION}say: one"
            nvim.keys("<C-g><C-g>")
            nvim.until_text("\n\none\n")
            nvim.until_idle()
            nvim.keys("Gosay: two<Esc>:checktime<CR>")
            nvim.until(lambda: "say: two" in nvim.text())
            assert "changed" not in f"{nvim.messages()}\n{nvim.screen()}"
            path = Path(nvim.name)
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert list(path.parent.iterdir()) == [path] or "backup " in options
    finally:
        os.umask(before)


def test_a_new_chat_can_begin_in_normal_mode(tmp_path: Path) -> None:
    init = "require('parley').setup({ start_insert = false })"
    with child(tmp_path, init=init) as nvim:
        nvim.command("ParleyChatNew")
        nvim.keys("yyp")
        nvim.until(lambda: nvim.lines() == [*TOPICLESS, QUESTION])


def test_a_new_chat_opens_before_the_settings_file_is_read(tmp_path: Path) -> None:
    config = tmp_path / "config" / "parley" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"chat_dir = '{tmp_path}/talks'\n", encoding="utf-8")
    with child(tmp_path) as nvim:
        nvim.edit("code.py", "x = 1\n")
        nvim.keys(":ParleyChatNew<CR>hello")
        nvim.until(lambda: nvim.name.startswith(f"{tmp_path}/talks/"), "the file")
        assert nvim.lines() == [*TOPICLESS[:4], f"{QUESTION}hello"]
        assert Path(nvim.name).exists()
        assert (tmp_path / "code.py").read_text(encoding="utf-8") == "x = 1\n"


@pytest.mark.parametrize(
    ("mods", "kind", "first"),
    [
        ("vertical", "row", True),
        ("horizontal", "col", True),
        ("belowright", "col", False),
        ("botright vertical", "row", False),
        ("topleft", "col", True),
        ("tab", "leaf", True),
        ("silent", "leaf", True),
    ],
)
def test_a_commands_modifiers_say_where_a_new_chat_opens(
    nvim: Child, mods: str, kind: str, first: bool
) -> None:
    nvim.edit("code.py", "x = 1\n")
    nvim.command(f"{mods} ParleyChatNew")
    nvim.keys("<Esc>")
    assert (layout(nvim), is_first(nvim)) == (kind, first)
    assert len(nvim.nvim.api.list_tabpages()) == (2 if mods == "tab" else 1)
    assert nvim.lines() == TOPICLESS
    nvim.command("silent! tabonly")


@pytest.mark.parametrize("command", ["ParleyRequest", "ParleyTools", "ParleyLog"])
@pytest.mark.parametrize(
    ("mods", "kind", "first"),
    [
        ("vertical", "row", True),
        ("botright vertical", "row", False),
        ("botright", "col", False),
        ("", "col", True),
    ],
)
def test_a_commands_modifiers_say_where_its_page_opens(
    nvim: Child, command: str, mods: str, kind: str, first: bool
) -> None:
    nvim.edit("chat.md", f"{QUESTION}hello\n")
    height = nvim.lua("return vim.o.cmdheight")
    nvim.command(f"{mods} {command}")
    nvim.until(lambda: nvim.name.startswith("parley://"), "the page")
    assert (layout(nvim), is_first(nvim)) == (kind, first)
    if kind == "row":
        assert nvim.lua("return vim.api.nvim_win_get_height(0)") > 20
    assert nvim.lua("return vim.o.cmdheight") == height


def test_next_to_a_window_that_keeps_its_buffer_a_new_one_opens(nvim: Child) -> None:
    if not nvim.lua("return vim.fn.exists('+winfixbuf') == 1"):
        pytest.skip("this Neovim has no 'winfixbuf'")
    nvim.edit("code.py", "x = 1\n")
    nvim.command("set winfixbuf")
    nvim.command("ParleyChatNew")
    nvim.keys("<Esc>")
    assert nvim.lines() == TOPICLESS
    assert layout(nvim) == "col"
    assert nvim.lua("return { vim.wo.winfixbuf, vim.wo[vim.fn.win_getid(2)].winfixbuf }") == [
        False,
        True,
    ]
    nvim.command("wincmd p | ParleyLog")
    nvim.until(lambda: nvim.name.startswith("parley://"), "the page")


def test_a_buffer_that_may_not_be_left_keeps_its_window(nvim: Child) -> None:
    nvim.edit("code.py", "x = 1\n")
    nvim.command("set nohidden")
    nvim.keys("ix<Esc>:ParleyChatNew<CR><Esc>")
    nvim.until(lambda: nvim.lines() == TOPICLESS, "the chat")
    assert layout(nvim) == "col"
    assert "E37" not in nvim.messages()


def test_outside_chats_a_command_says_so_or_is_about_the_chat_used_last(nvim: Child) -> None:
    nvim.edit("used.md", "💬: write 3000 words\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")
    nvim.until(lambda: len(nvim.text()) > 200, "some text")
    nvim.edit("code.py", "x = 1\n")
    for command in ("ParleyRevert", "ParleyRespond", "ParleyAgent Demo", "ParleyFork"):
        nvim.command(command)
        nvim.until(lambda: "this is not a chat: no line starts with" in nvim.messages(), command)
        nvim.command("messages clear")
        assert not nvim.lua("return require('parley.chat').is_attached(0)")
    nvim.command("ParleyStop")
    nvim.until(lambda: "stopped" in nvim.messages(), "the stop")
    for page in ("ParleyChanges", "ParleyLog"):
        nvim.command(page)
        nvim.until(lambda: "used.md" in nvim.lines()[0], page)
        nvim.command("bwipeout")


# --- Lines of a buffer, asked about ---

CODE = "import os\n\n\ndef f():\n    return '```' + os.sep\n\U0001f4ac: no question\n"


def of_code(nvim: Child) -> None:
    nvim.command(f"cd {nvim.home}")
    nvim.edit("src/code.py", CODE)


def test_lines_are_quoted_in_a_new_chat_with_path_and_numbers(nvim: Child) -> None:
    of_code(nvim)
    nvim.keys(":4,6ParleyChatNew on f<CR>")
    nvim.until_text("`src/code.py:4-6` (3 lines)")
    nvim.until(lambda: nvim.cursor[0] == len(nvim.lines()), "the cursor below it")
    nvim.keys("what is it?<Esc>")
    nvim.until_text("what is it?")
    assert nvim.lines() == [
        *["---", "topic: on f", "---", ""],
        f"{QUESTION}`src/code.py:4-6` (3 lines)",
        *[
            "",
            "````python",
            "def f():",
            "    return '```' + os.sep",
            "\\\U0001f4ac: no question",
            "````",
        ],
        *["", "what is it?"],
    ]


def test_a_question_on_lines_is_asked_in_the_last_used_chat(nvim: Child) -> None:
    nvim.edit("last.md", f"{QUESTION}say: one\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")
    nvim.until(lambda: nvim.lines()[-1] == QUESTION, "the answer")
    nvim.until_idle()
    nvim.command("silent write")
    of_code(nvim)
    nvim.keys("Vj:ParleyAsk say: two<CR>")
    nvim.until_text("\n\ntwo")
    nvim.until(lambda: nvim.lines()[-1] == QUESTION, "the answer")
    nvim.until_idle()
    assert nvim.name.endswith("last.md")
    quote = "`src/code.py:1-2` (2 lines)\n\n```python\nimport os\n\n```"
    assert f"{QUESTION}say: two\n\n{quote}\n\n\U0001f916:[Demo]" in nvim.text()
    nvim.command("silent write")
    of_code(nvim)
    nvim.keys(":vertical 1ParleyAsk<CR>")
    nvim.until_text("`src/code.py:1` (1 line)")
    nvim.until(lambda: nvim.cursor[0] == len(nvim.lines()), "the cursor below it")
    nvim.keys("<Esc>")
    assert nvim.name.endswith("last.md")
    assert layout(nvim) == "row"


def test_a_second_quote_goes_below_the_first(nvim: Child) -> None:
    nvim.edit("last.md", QUESTION)
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    for line in (1, 4):
        of_code(nvim)
        nvim.keys(f":{line}ParleyAsk<CR>")
        nvim.until_text(f"`src/code.py:{line}`")
        nvim.until(lambda: nvim.cursor[0] == len(nvim.lines()), "the cursor below it")
        nvim.keys("<Esc>")
        nvim.until_idle()
    assert nvim.text().count(QUESTION.strip()) == 1
    assert nvim.text().index("src/code.py:1`") < nvim.text().index("src/code.py:4`")


@pytest.mark.parametrize("state", ["none", "running", "closed"])
def test_without_a_free_chat_lines_go_into_a_new_one(nvim: Child, state: str) -> None:
    if state != "none":
        nvim.edit("busy.md", f"{QUESTION}write 300 words\n")
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    if state == "running":
        nvim.command("ParleyRespond")
    elif state == "closed":
        nvim.command("bwipeout!")
    of_code(nvim)
    nvim.keys(":1ParleyAsk<CR>")
    nvim.until_text("`src/code.py:1` (1 line)")
    nvim.until(lambda: nvim.cursor[0] == len(nvim.lines()), "the cursor below it")
    nvim.keys("<Esc>")
    assert Path(nvim.name).parent.name == "chats"


SLOW = """#!/bin/sh
while [ ! -e "$HOME/go" ]; do sleep 0.05; done
exec {python} "$@"
"""


@pytest.mark.parametrize("command", ["4,5ParleyAsk", "4,5ParleyChatNew"])
@pytest.mark.parametrize("setting", ["", "require('parley').setup({ start_insert = false })"])
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "what?", ["what?"]),
        ("what ", "is it?", ["what is it?"]),
        ("`f` and<Left><Left><Left>x", "y", ["`f` xyand"]),
        ("one<CR>\U0001f4ac", "two", ["one", "\U0001f4actwo"]),
        ("\U0001f916: no answer", "", ["\\\U0001f916: no answer"]),
        ("one<Esc>", "A and two", ["one and two"]),
    ],
)
def test_quoted_lines_come_before_text_typed_while_the_host_starts(
    tmp_path: Path, command: str, setting: str, before: str, after: str, expected: list[str]
) -> None:
    python = tmp_path / "python"
    python.write_text(SLOW.format(python=shlex.quote(forks().python)), encoding="utf-8")
    python.chmod(0o700)
    with child(tmp_path, init=f"vim.g.parley_python = {str(python)!r}\n{setting}") as nvim:
        of_code(nvim)
        nvim.keys(f":{command}<CR>{'A' if setting and before else ''}{before}")
        nvim.until(lambda: nvim.name.endswith(".md"), "the chat")
        assert "code.py" not in nvim.text()
        (tmp_path / "go").touch()
        nvim.until_text("`src/code.py:4-5` (2 lines)")
        if not before:
            nvim.until(lambda: nvim.cursor[0] == len(nvim.lines()), "the cursor below it")
        nvim.keys(f"{'A' if setting and not before else ''}{after}<Esc>")
        quote = ["", "````python", "def f():", "    return '```' + os.sep", "````", ""]
        lines = [*TOPICLESS[:4], f"{QUESTION}`src/code.py:4-5` (2 lines)", *quote, *expected]
        nvim.until(lambda: nvim.lines() == lines, "the question")
        assert "Parley: " not in nvim.messages()
        texts = [nvim.text()]
        while nvim.lines() != [""] and len(texts) < 9:
            nvim.keys("u")
            nvim.until(lambda: nvim.text() != texts[-1] or nvim.lines() == [""], "the step back")
            texts.append(nvim.text())
        assert nvim.lines() == [""]
        for text in texts[-2::-1]:
            nvim.keys("<C-r>")
            nvim.until(lambda text=text: nvim.text() == text, "the step again")  # type: ignore[misc]


def test_a_question_alone_is_asked_in_a_new_chat(nvim: Child) -> None:
    of_code(nvim)
    nvim.keys(":ParleyAsk say: hello you<CR>")
    nvim.until_text("\n\nhello you")
    nvim.until(lambda: nvim.lines()[-1] == QUESTION, "the answer")
    nvim.until_idle()
    assert f"{QUESTION}say: hello you\n" in nvim.text()
    assert Path(nvim.name).parent.name == "chats"


def test_lines_from_a_buffer_without_a_name_or_filetype_are_quoted_plainly(nvim: Child) -> None:
    nvim.command("enew")
    nvim.nvim.current.buffer[:] = ["one", "two"]
    nvim.keys(":%ParleyChatNew<CR>")
    nvim.until_text(f"{QUESTION}`[No Name]:1-2` (2 lines)\n\n```\none\ntwo\n```")
    nvim.until(lambda: nvim.cursor[0] == len(nvim.lines()), "the cursor below it")
    nvim.keys("<Esc>")


# --- A question anywhere ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Notes\n\nprose\n", ["# Notes", "", "prose", "", QUESTION]),
        ("prose\n\n\n", ["prose", "", "", QUESTION]),
        ("", [QUESTION]),
        (f"{QUESTION}one\n", [f"{QUESTION}one", "", QUESTION]),
        (f"{QUESTION}one\n\n{QUESTION}\n", [f"{QUESTION}one", "", QUESTION]),
        (f"{QUESTION}one\n\n\U0001f4ac:\n\n", [f"{QUESTION}one", "", "\U0001f4ac:", ""]),
    ],
)
def test_a_question_is_put_at_the_end_once_and_makes_the_buffer_a_chat(
    nvim: Child, text: str, expected: list[str]
) -> None:
    nvim.edit("notes.md", text)
    nvim.command("ParleyQuestion")
    nvim.keys("<Esc>")
    assert nvim.lines() == expected
    nvim.command("1")
    nvim.command("ParleyQuestion")
    nvim.keys("say: hi<Esc>")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    row = next(n for n, line in enumerate(expected) if line.strip() == QUESTION.strip())
    assert nvim.lines()[row].endswith("say: hi")
    assert len(nvim.lines()) == len(expected)


def test_the_questions_key_exists_in_a_chat_and_can_be_changed(nvim: Child) -> None:
    nvim.edit("chat.md", f"{QUESTION}one\n")
    nvim.until(lambda: nvim.lua("return vim.fn.maparg('<C-g>q', 'n')"), "the key")
    nvim.keys("<C-g>qtwo<Esc>")
    nvim.until(lambda: nvim.lines() == [f"{QUESTION}one", "", f"{QUESTION}two"])
    nvim.lua("require('parley').setup({ keys = { question = '<C-g>n' } })")
    maps = "return { vim.fn.maparg('<C-g>q', 'n'), vim.fn.maparg('<C-g>n', 'i') }"
    nvim.until(lambda: nvim.lua(maps) == ["", "<Esc><Cmd>ParleyQuestion<CR>"], "the other key")
    nvim.lua("require('parley').setup({ safety = { rate_limit_per_minute = 100000 } })")


def test_a_question_below_a_running_answer_does_not_move_the_answer(nvim: Child) -> None:
    nvim.edit("chat.md", f"{QUESTION}write 60 words\n")
    nvim.command("ParleyRespond")
    nvim.until_text("\U0001f916:[Demo]\n\n")
    nvim.keys("<C-g>qnext<Esc>")
    nvim.until_idle()
    text = nvim.text()
    assert text.endswith(f"\n{QUESTION}next")
    assert text.count(QUESTION.strip()) == 2


def test_no_path_in_quoted_lines_is_a_reference(nvim: Child) -> None:
    nvim.edit("secret.txt", "the secret\n")
    nvim.edit("@@secret.txt@@.py", "x = 1\n")
    nvim.command(f"cd {nvim.home}")
    nvim.command("1ParleyAsk What is this?")
    nvim.until_text("no rule for that question")
    nvim.until_idle()
    assert "`@ @secret.txt@ @.py:1` (1 line)" in nvim.text()
    assert "the secret" not in nvim.text()
