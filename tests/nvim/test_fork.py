"""A fork in a real Neovim: its text and window. It takes over no decisions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parley.chat.attachments import link
from tests.nvim.harness import Child
from tests.nvim.test_turn import ask_stocks, complete, proposals
from tests.pictures import beside, png

FIRST = "💬: a\n\n🤖:[Demo]\n\nb\n\n"
CHAT = f"{FIRST}💬: c\n\n🤖:[Demo]\n\nd\n\n💬: e\n"
HEAD = "---\nforked_from: {}\n---\n\n"


def chat(nvim: Child, name: str, text: str, row: int = 1) -> Path:
    path = nvim.edit(name, text)
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command(str(row))
    return path


def forked(nvim: Child, name: str, command: str = "ParleyFork") -> str:
    """A fork's text, as soon as it is open."""
    nvim.command(command)
    nvim.until(lambda: nvim.name.endswith(f"/{name}"), "the fork")
    return nvim.text()


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (1, f"{FIRST}💬: "),
        (6, f"{FIRST}💬: "),
        (7, f"{FIRST}💬: c\n\n🤖:[Demo]\n\nd\n\n💬: "),
        (13, CHAT.removesuffix("\n")),
    ],
)
def test_a_fork_ends_with_the_exchange_under_the_cursor(
    nvim: Child, home: Path, row: int, text: str
) -> None:
    source = chat(nvim, f"ends-{row}.md", CHAT, row)
    assert forked(nvim, f"ends-{row}-fork.md") == HEAD.format(source.name) + text
    assert source.read_text(encoding="utf-8") == CHAT
    assert Path(nvim.name).read_text(encoding="utf-8") == f"{nvim.text()}\n"
    is_empty = text.endswith("💬: ")
    assert nvim.lua("return vim.fn.mode()") == ("i" if is_empty else "n")
    assert nvim.cursor[0] == len(nvim.lines())
    assert ("-- INSERT --" in nvim.screen()) is is_empty


def test_a_fork_says_that_it_is_a_copy(nvim: Child, home: Path) -> None:
    chat(nvim, "copied.md", CHAT)
    forked(nvim, "copied-fork.md")
    nvim.until(lambda: "this is a copy of copied.md" in nvim.messages(), "the message")


def test_a_question_in_a_fork_is_answered(nvim: Child, home: Path) -> None:
    chat(nvim, "goes-on.md", CHAT)
    forked(nvim, "goes-on-fork.md")
    nvim.keys("hello again<Esc><C-g><C-g>")
    complete(nvim)
    assert nvim.lines()[:4] == ["---", "forked_from: goes-on.md", "---", ""]
    assert "💬: hello again" in nvim.lines()


def test_a_fork_copies_the_editors_text(nvim: Child, home: Path) -> None:
    path = chat(nvim, "unsaved.md", CHAT)
    nvim.keys("A, unsaved<Esc>")
    assert "💬: a, unsaved" in forked(nvim, "unsaved-fork.md").split("\n")
    assert path.read_text(encoding="utf-8") == CHAT
    assert nvim.lua("return vim.bo[vim.fn.bufnr('unsaved.md$')].modified")


def test_no_file_is_overwritten(nvim: Child, home: Path) -> None:
    (home / "twice-fork.md").write_text("mine", encoding="utf-8")
    chat(nvim, "twice.md", CHAT)
    forked(nvim, "twice-fork-2.md")
    nvim.keys("<Esc>")
    nvim.command("1")
    assert forked(nvim, "twice-fork-3.md").startswith(HEAD.format("twice-fork-2.md"))
    assert (home / "twice-fork.md").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("command", "wins", "tabs"),
    [("ParleyFork", 1, 1), ("vertical ParleyFork", 2, 1), ("tab ParleyFork", 1, 2)],
)
def test_a_fork_opens_where_the_modifiers_say(
    nvim: Child, home: Path, command: str, wins: int, tabs: int
) -> None:
    name = command.split()[0]
    chat(nvim, f"mods-{name}.md", CHAT)
    forked(nvim, f"mods-{name}-fork.md", command)
    assert (len(nvim.nvim.api.tabpage_list_wins(0)), len(nvim.nvim.api.list_tabpages())) == (
        wins,
        tabs,
    )
    nvim.keys("<Esc>")
    nvim.command("silent! tabonly")


def test_line_endings_stay_unchanged(nvim: Child, home: Path) -> None:
    (home / "dos.md").write_bytes(CHAT.replace("\n", "\r\n").encode())
    nvim.command(f"edit {home}/dos.md")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("normal! G")
    forked(nvim, "dos-fork.md")
    assert (home / "dos-fork.md").read_bytes() == (HEAD.format("dos.md") + CHAT).replace(
        "\n", "\r\n"
    ).encode()


def said(nvim: Child, text: str) -> None:
    nvim.command("ParleyFork")
    nvim.until(lambda: text in nvim.messages(), "the reason")
    assert nvim.screen().count(text) == 1


def test_the_reason_for_a_missing_fork_is_one_line(nvim: Child, home: Path) -> None:
    nvim.command("enew | setfiletype markdown")
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { '💬: a' })")
    said(nvim, "save this chat first (:w): its fork is created next to it")
    nvim.command("bwipeout!")
    chat(nvim, "broken.md", f"---\ntopic: [\n---\n\n{CHAT}", 8)
    said(nvim, "the front matter cannot be read. Fix it first")
    (home / "away").mkdir()
    chat(nvim, "away/gone.md", CHAT)
    (home / "away" / "gone.md").unlink()
    (home / "away").rmdir()
    said(nvim, "gone-fork.md: No such file or directory")
    nvim.edit("nothing.md", "no chat")
    said(nvim, "this is not a chat")


def test_a_running_answer_is_not_forked_but_the_exchanges_above_it_are(
    nvim: Child, home: Path
) -> None:
    chat(nvim, "busy.md", f"{FIRST}💬: write 3000 words\n", 7)
    nvim.command("ParleyRespond")
    nvim.until_text("🤖:[Demo]\n\nthe file")
    said(nvim, "this exchange is still being answered: fork it after the turn has ended")
    nvim.command("1")
    assert forked(nvim, "busy-fork.md") == f"{HEAD.format('busy.md')}{FIRST}💬: "
    nvim.keys("<Esc>")
    nvim.command("buffer busy.md")
    nvim.command("ParleyStop")
    complete(nvim)


def test_remembered_tools_are_unknown_in_the_fork(nvim: Child, home: Path) -> None:
    path = ask_stocks(nvim)
    nvim.keys("yA")
    complete(nvim)
    name = path.name.replace(".md", "-fork.md")
    nvim.command("1")
    copy = forked(nvim, name)
    assert [p.startswith("❓:[yA] `") for p in proposals(nvim)] == [True, True]
    nvim.keys('call web_search {"query": "apple"}<Esc><C-g><C-g>')
    nvim.until_waiting()
    nvim.until_idle()
    assert proposals(nvim)[-1].startswith("❓: `")
    assert nvim.text().startswith(copy)
    nvim.command("ParleyStop")
    nvim.command(f"edit! {path}")
    nvim.command("normal! G$")
    nvim.keys('Acall web_search {"query": "apple"}<Esc><C-g><C-g>')
    nvim.until(
        lambda: len(proposals(nvim)) == 3 and proposals(nvim)[2].startswith("❓:[ya] `"), "the rule"
    )
    complete(nvim)


def test_an_approval_in_the_other_chat_does_not_approve_a_waiting_call(
    nvim: Child, home: Path
) -> None:
    path = ask_stocks(nvim)
    name = path.name.replace(".md", "-fork.md")
    forked(nvim, name)
    nvim.until_waiting()
    nvim.command(f"buffer {path}")
    nvim.keys("ya")
    complete(nvim)
    nvim.command(f"buffer {home / name}")
    assert [p.startswith("❓: `") for p in proposals(nvim)] == [True, True]
    assert "🛠️:" not in nvim.text()
    assert nvim.lua("return vim.fn.maparg('ya', 'n') ~= ''")


def test_a_copied_mark_is_not_an_approval(nvim: Child, home: Path) -> None:
    path = ask_stocks(nvim)
    row = next(n for n, line in enumerate(nvim.lines(), 1) if line.startswith("❓"))
    nvim.command(str(row))
    nvim.keys("yo")
    nvim.until(lambda: proposals(nvim)[0].startswith("❓:[yo]"), "the mark")
    nvim.until_idle()
    forked(nvim, path.name.replace(".md", "-fork.md"))
    nvim.until_waiting()
    nvim.until(lambda: nvim.variable("parley_waiting") == 2, "both calls")
    nvim.until_screen("❓ yo web_search")
    nvim.keys("<C-g><C-g>")
    nvim.until_waiting()
    nvim.until_idle()
    assert "🛠️:" not in nvim.text()


def test_the_path_of_a_removed_fork_is_not_reused(nvim: Child, home: Path) -> None:
    chat(nvim, "again.md", CHAT)
    forked(nvim, "again-fork.md")
    nvim.keys("hello<Esc><C-g><C-g>")
    complete(nvim)
    nvim.command("bwipeout!")
    (home / "again-fork.md").unlink()
    chat(nvim, "again.md", CHAT)
    forked(nvim, "again-fork-2.md")


def requested(nvim: Child) -> str:
    """The current chat's request, without the comments above it."""
    nvim.command("ParleyRequest")
    nvim.until(lambda: "request" in nvim.name and "messages" in nvim.text(), "the page")
    return "\n".join(line for line in nvim.lines() if not line.startswith("//"))


def test_a_forks_request_has_the_same_picture(nvim: Child, home: Path) -> None:
    picture = beside(home / "seen.md", png(7))
    chat(nvim, "seen.md", f"💬: What is this?\n\n{link(picture)}\n\n💬: later")
    there = requested(nvim)
    nvim.command("bwipeout!")
    nvim.command("only")
    assert forked(nvim, "seen-fork.md").endswith(link(picture))
    assert requested(nvim) == there
    (message,) = json.loads(there)["messages"]
    assert [part["type"] for part in message["content"]] == ["text", "image"]
    nvim.command("bwipeout!")
    nvim.command(f"edit {home}/seen-fork.md")
    nvim.command("ParleyRespond")
    nvim.until_text("I am shown image/png.")
    nvim.until_idle()
    assert not (home / "seen-fork.assets").exists()
