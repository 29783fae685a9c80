"""A yes is one to what was on the screen: what was not, or is otherwise now, is shown first.

Every case counts the calls at a real server over stdio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.nvim.counting import Chat, furnish, is_complete, opened, until, waits
from tests.nvim.harness import Child, child

UNSEEN = "was on the screen as it is now"
REDEFINED = "is not the one that was shown"
TALL = "\n".join(["long"] * 60)
_number = count(1)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    home = tmp_path_factory.mktemp("seen")
    furnish(home)
    with child(home, env={"PARLEY_DEMO_PACE": "0"}) as nvim:
        yield nvim


def ask(nvim: Child, home: Path) -> Chat:
    """A chat whose call was made by the shell's model, with text above it that no window holds."""
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
    """The first yes only says why it does not count; the second, after that, runs the call."""
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
    """It is in a window of another tab page; in this one the window stands at the top."""
    nvim.command("tabnew")
    nvim.command(f"buffer {nvim.nvim.funcs.bufnr(str(chat.path))}")
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 1, 0 })")


def folded(nvim: Child, chat: Chat) -> None:
    """It is in a fold of the user's, made before anything was drawn below it."""
    nvim.command("setlocal foldmethod=manual")
    nvim.command("$-2,$fold")


PLACES = [scrolled_away, in_another_window, folded]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["key", "command"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_call_that_was_never_on_the_screen_is_decided_by_the_second_yes(
    desk: Child, how: str, place: Callable[[Child, Chat], None]
) -> None:
    chat = ask(desk, desk.home)
    desk.lua("vim.cmd('autocmd BufReadPost *.md ++once call cursor(1, 1)')")
    opened_above(desk, chat, place)
    is_told(desk, how, chat, UNSEEN)


def opened_above(nvim: Child, chat: Chat, place: Callable[[Child, Chat], None]) -> None:
    """Open a chat, its window at the top, and put the call where it cannot be seen before it is drawn."""
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
        f"{REACHES} vim.api.nvim_create_autocmd('CmdlineLeave', {{ once = true, callback = change }})"
        " vim.api.nvim_input(':ParleyApprove ya<CR>')"
    ),
    "in another window": lambda nvim: nvim.lua(
        f"{REACHES} vim.cmd.split() change() vim.cmd.close() vim.api.nvim_input('ya')"
    ),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", CHANGES)
def test_arguments_changed_in_the_instant_before_the_yes_are_shown_first(desk: Child, how: str) -> None:
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
def test_a_chat_that_is_opened_again_is_decided_at_once_unless_its_tool_is_another_now(
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
