"""An approval counts only for calls shown on the screen: an unseen or changed call is shown first.

Every case counts the calls at a real stdio server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.nvim.counting import Chat, furnish, is_complete, opened, until, waits
from tests.nvim.harness import Child, child

UNSEEN = "was not fully shown as it is"
REDEFINED = "is not the tool that was shown"
TALL = "\n".join(["long"] * 60)
_number = count(1)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    home = tmp_path_factory.mktemp("seen")
    furnish(home)
    with child(home, env={"PARLEY_DEMO_PACE": "0"}) as nvim:
        yield nvim


def ask(nvim: Child, home: Path) -> Chat:
    """A chat in which the shell's model made the call, below text longer than any window."""
    nvim.clear()
    chat = Chat(home, f"chat-{next(_number)}")
    call = f'{{"name":"note","arguments":"{{\\"text\\":\\"{chat.name}\\"}}"}}'
    line = f'❓: `{{"index":0,"id":"call_1","type":"function","function":{call}}}`'
    text = f"\U0001f4ac: {TALL}\n\n\U0001f916:[Demo-OpenAI]\n\n{line}\n"
    chat.path.write_text(text, encoding="utf-8")
    return chat


def ready(nvim: Child) -> None:
    until(nvim, lambda: waits(nvim), "the choice")


def say_yes(nvim: Child, how: str) -> None:
    nvim.keys("ya" if how == "key" else ":ParleyApprove ya<CR>")


def is_told(nvim: Child, how: str, chat: Chat, says: str) -> None:
    """Check that the first approval only says why it does not count, and the second runs the call."""
    say_yes(nvim, how)
    until(nvim, lambda: says in nvim.messages(), "the message")
    ready(nvim)
    assert chat.calls() == 0
    assert "[ya]" not in nvim.text()
    until(nvim, lambda: ">> Please choose" in nvim.screen(), "the call on the screen")
    say_yes(nvim, how)
    until(nvim, lambda: is_complete(nvim), "the answer")
    assert chat.calls() == 1


def scrolled_away(nvim: Child, chat: Chat) -> None:
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 1, 0 })")


def in_another_window(nvim: Child, chat: Chat) -> None:
    """The call is in view in another tab page; here the window is at the chat's top."""
    nvim.command("tabnew")
    nvim.command(f"buffer {nvim.nvim.funcs.bufnr(str(chat.path))}")
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 1, 0 })")


def folded(nvim: Child, chat: Chat) -> None:
    """The call is in a user's fold that was made before anything was drawn below it."""
    nvim.command("setlocal foldmethod=manual")
    nvim.command("$-2,$fold")


PLACES = [scrolled_away, in_another_window, folded]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["key", "command"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_call_that_was_never_on_the_screen_needs_a_second_approval(
    desk: Child, how: str, place: Callable[[Child, Chat], None]
) -> None:
    chat = ask(desk, desk.home)
    desk.lua("vim.cmd('autocmd BufReadPost *.md ++once call cursor(1, 1)')")
    opened_above(desk, chat, place)
    is_told(desk, how, chat, UNSEEN)


def opened_above(nvim: Child, chat: Chat, place: Callable[[Child, Chat], None]) -> None:
    """Open a chat with its window at the top, and put the call where it cannot be seen before it is
    drawn.
    """
    nvim.command("set eventignore=all")
    nvim.command(f"edit! {chat.path}")
    place(nvim, chat)
    nvim.command("set eventignore=")
    nvim.command("filetype detect")
    nvim.command("doautocmd BufReadPost")
    until(nvim, lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    ready(nvim)


REACHES = """
local line = vim.fn.search('^❓', 'nw')
local function change()
  local text = vim.fn.getline(line):gsub('chat%-', 'CHAT-')
  vim.api.nvim_buf_set_lines(0, line - 1, line, true, { text })
end
"""
CHANGES = {
    "typed": lambda nvim: nvim.keys("0/chat-<CR>4~ya"),
    "substituted": lambda nvim: nvim.keys(":/^❓/s/chat-/CHAT-/<CR>ya"),
    "in insert mode": lambda nvim: nvim.keys("0/chat-<CR>cwCHAT<Esc>ya"),
    "by a plugin": lambda nvim: nvim.lua(f"{REACHES} change() vim.api.nvim_input('ya')"),
    "by an autocommand as the key comes": lambda nvim: nvim.lua(
        f"{REACHES} vim.api.nvim_create_autocmd('CmdlineLeave', "
        f"{{ once = true, callback = change }})"
        " vim.api.nvim_input(':ParleyApprove ya<CR>')"
    ),
    "in another window": lambda nvim: nvim.lua(
        f"{REACHES} vim.cmd.split() change() vim.cmd.close() vim.api.nvim_input('ya')"
    ),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", CHANGES)
def test_arguments_changed_just_before_the_approval_are_shown_first(desk: Child, how: str) -> None:
    chat = ask(desk, desk.home)
    opened(desk, chat)
    desk.command("normal! Gzt")
    ready(desk)
    until(desk, lambda: ">> Please choose" in desk.screen(), "the call on the screen")
    changed = Chat(desk.home, chat.name.upper())
    CHANGES[how](desk)
    until(desk, lambda: UNSEEN in desk.messages(), "the message")
    ready(desk)
    assert (chat.calls(), changed.calls()) == (0, 0)
    until(desk, lambda: changed.name in desk.screen(), "the changed call on the screen")
    say_yes(desk, "key")
    until(desk, lambda: is_complete(desk), "the answer")
    assert (chat.calls(), changed.calls()) == (0, 1)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("definition", ["Writes a note.", "Sends a note away."])
def test_in_a_reopened_chat_a_call_is_decided_at_once_unless_its_tool_has_changed(
    desk: Child, definition: str
) -> None:
    desk.command("silent! %bwipeout!")
    chat = Chat(desk.home, f"chat-{next(_number)}")
    opened(desk, chat)
    desk.command("ParleyRespond")
    ready(desk)
    desk.command("silent! write")
    desk.command("bwipeout!")
    furnish(desk.home, DEFINITION=definition)
    with child(desk.home) as nvim:
        opened(nvim, chat)
        nvim.command("normal! Gzt")
        ready(nvim)
        until(nvim, lambda: ">> Please choose" in nvim.screen(), "the call on the screen")
        if definition == "Writes a note.":
            say_yes(nvim, "key")
            until(nvim, lambda: is_complete(nvim), "the answer")
            assert chat.calls() == 1
        else:
            is_told(nvim, "key", chat, REDEFINED)


EARLY = "has just appeared: read it, then press"


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim in which a call would have to be on the screen for an hour."""
    home = tmp_path_factory.mktemp("patient")
    furnish(home)
    with child(home, env={"PARLEY_LEAST_SEEN_S": "3600"}) as nvim:
        yield nvim


def pressed_early(nvim: Child, keys: str) -> None:
    nvim.command("messages clear")
    nvim.keys(keys)
    until(nvim, lambda: EARLY in nvim.messages(), f"the message after {keys}")
    ready(nvim)


@pytest.mark.timeout(180)
def test_no_key_counts_before_its_call_could_be_read_however_often_it_is_pressed(
    patient: Child,
) -> None:
    chat = Chat(patient.home, f"chat-{next(_number)}")
    opened(patient, chat)
    patient.command("ParleyRespond")
    ready(patient)
    for keys in ("ya", "ya", "yo", "yA", "yO", "yaya", ":ParleyApprove ya<CR>"):
        pressed_early(patient, keys)
    patient.keys("gg")
    pressed_early(patient, "ya")  # none of its calls' lines: the first of two is also too early
    patient.keys("gg")
    pressed_early(patient, "ya")
    assert "❓: `" in patient.text()
    assert chat.calls() == 0
    patient.command("normal! G")
    patient.keys("yap")
    assert patient.nvim.funcs.getreg('"').strip().startswith("❓: `")
    patient.keys(":ParleyApprove yN<CR>")
    until(patient, lambda: "[yN]" in patient.text(), "the no")
    assert chat.calls() == 0


@pytest.mark.timeout(180)
def test_an_approval_counts_after_its_call_was_on_the_screen_for_a_moment(tmp_path: Path) -> None:
    furnish(tmp_path)
    chat = Chat(tmp_path, f"chat-{next(_number)}")
    with child(tmp_path, env={"PARLEY_LEAST_SEEN_S": "0.4"}) as nvim:
        opened(nvim, chat)
        nvim.command("ParleyRespond")
        ready(nvim)
        until(nvim, lambda: max(times(nvim), default=0.0) >= 400, "the moment")
        for event in ("VimResume", "ShellCmdPost"):  # another program had the screen
            assert max(nvim.lua(AFTER, event)) < 400
            until(nvim, lambda: max(times(nvim), default=0.0) >= 400, "the moment")
        nvim.command("tabnew")
        until(nvim, lambda: not nvim.lua(COUNTS, str(chat.path)), "a clock that stands still")
        nvim.command("tabclose")
        say_yes(nvim, "key")
        until(nvim, lambda: is_complete(nvim), "the answer")
        assert chat.calls() == 1


AFTER = """
vim.cmd.doautocmd('<nomodeline> ' .. ...)
return vim.tbl_map(function(each) return each[2] end, require('parley.sightings').times(vim.fn.bufnr()))
"""
"""Each call's milliseconds right after an event."""


def times(nvim: Child) -> list[float]:
    """The milliseconds for which each of the current buffer's calls has been on the screen."""
    return [ms for _, ms in nvim.lua("return require('parley.sightings').times(vim.fn.bufnr())")]


COUNTS = """
local seen, buf = require('parley.sightings'), vim.fn.bufnr(...)
local before = seen.times(buf)[1][2]
vim.uv.sleep(2)
return seen.times(buf)[1][2] > before
"""


@pytest.mark.timeout(180)
def test_paging_through_a_call_counts_the_parts_that_were_on_the_screen(desk: Child) -> None:
    desk.clear()
    chat = Chat(desk.home, f"chat-{next(_number)}")
    arguments = json.dumps({"text": "\n".join(f"line {n}" for n in range(200))})
    chat.path.write_text(f"\U0001f4ac: call note {arguments}\n", encoding="utf-8")
    opened(desk, chat)
    desk.command("ParleyRespond")
    ready(desk)
    assert times(desk) == []
    desk.keys("K")
    until(desk, lambda: "K again enters" in desk.screen(), "the float")
    assert times(desk) == []
    desk.keys("K")
    until(
        desk, lambda: desk.nvim.api.win_get_config(0)["relative"] != "", "the cursor in the float"
    )
    desk.keys("G")
    until(desk, lambda: "line 199" in desk.screen(), "the end")
    assert desk.lua(SEEN_THERE, str(chat.path)) == 0  # the calls in between were skipped
    desk.keys("gg")
    for _ in range(20):
        desk.keys("<C-f>")
    until(desk, lambda: desk.lua(SEEN_THERE, str(chat.path)) == 1, "all of it")
    desk.keys("q")
    say_yes(desk, "key")
    until(desk, lambda: is_complete(desk), "the answer")


SEEN_THERE = "return #require('parley.sightings').times(vim.fn.bufnr(...))"
