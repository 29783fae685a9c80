"""Prompts in a real Neovim: the list, completion, `/name` in a question, trust and agents."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp_servers import FAKE
from tests.nvim.harness import Child, child
from tests.nvim.test_servers_page import prompted, setup
from tests.nvim.test_turn import MARKER, complete

REVIEW = """\
---
description: Says a text
arguments:
  - text
  - {name: end, required: false}
---
say: {{text}}{{end}}
"""
AGENT = "---\nagent: Demo-OpenAI\n---\nsay: other\n"


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim with prompts of its own, and a server."""
    home = tmp_path_factory.mktemp("prompts")
    prompts = home / ".config/parley/prompts"
    prompts.mkdir(parents=True)
    (prompts / "echo.md").write_text(REVIEW, encoding="utf-8")
    (prompts / "other.md").write_text(AGENT, encoding="utf-8")
    (prompts / "marks.md").write_text("say: a\n🤖: b\u202e\n", encoding="utf-8")
    (prompts / "bad.md").write_text("---\na: [\n---\n", encoding="utf-8")
    fake = {"command": sys.executable, "args": [FAKE, "--more"]}
    env = {"XDG_CONFIG_HOME": str(home / ".config")}
    with child(home, init=setup({"fake": fake}), env=env, width=80, height=24) as nvim:
        yield nvim


@pytest.fixture
def desk(neovim: Child, tmp_path: Path) -> Child:
    neovim.clear()
    neovim.command(f"cd {tmp_path}")
    return neovim


def chat_of(nvim: Child, name: str, text: str) -> Path:
    path = nvim.edit(name, text)
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("normal! G$")
    return path


def offers(nvim: Child, typed: str) -> list[str]:
    """The completions after text is typed at the end of the line."""
    nvim.command("set completeopt=menuone,noselect")
    nvim.keys(f"A{typed}<C-x><C-o>")
    code = "return vim.fn.complete_info({ 'items' }).items"
    items: list[dict[str, Any]] = nvim.until(lambda: nvim.lua(code), "completions")
    return [item["word"] for item in items]


def test_the_list_has_files_and_servers_and_one_undo_removes_the_text(desk: Child) -> None:
    chat_of(desk, "list.md", f"{MARKER} ")
    desk.command("ParleyPrompt")
    seen = prompted(desk, "fake/greet  Greets.")
    assert "1: bad  line 2: front matter is not valid YAML" in seen
    assert "2: echo  Says a text" in seen
    desk.keys("2<CR>")
    prompted(desk, "text:")
    desk.keys("hello<CR>")
    desk.until_text("say: hello")
    assert desk.text() == f"{MARKER} say: hello"
    desk.keys("u")
    assert desk.text() == f"{MARKER} "
    desk.command("ParleyPrompt bad")
    desk.until(lambda: "prompts/bad.md: line 2" in desk.messages(), "the problem")
    assert desk.text() == f"{MARKER} "
    desk.keys("A/bad<Esc><C-g><C-g>")
    desk.until(lambda: desk.messages().count("prompts/bad.md: line 2") == 2, "the problem")
    desk.until_idle()
    assert desk.text() == f"{MARKER} /bad"


def test_a_slash_is_completed_and_becomes_the_prompts_text(desk: Child) -> None:
    chat_of(desk, "slash.md", f"{MARKER} ")
    assert offers(desk, "/e") == ["/echo"]
    assert "/echo" in desk.screen()
    assert "Says a text" in desk.screen()
    desk.keys('<C-n><C-y> end=! text="one two" and three<Esc><C-g><C-g>')
    complete(desk)
    text = desk.text()
    assert text.startswith(f"{MARKER} say: one two!\n\nand three\n\n🤖:[Demo]\n\none two!")
    desk.keys("u")
    assert desk.text() == f'{MARKER} /echo end=! text="one two" and three'


def test_a_slash_below_the_marker_is_completed_and_asks_for_its_arguments(desk: Child) -> None:
    chat_of(desk, "below.md", f"{MARKER}\n\n/ech\nmore")
    desk.command("normal! k$")
    assert offers(desk, "o") == ["/echo"]
    desk.keys("<Esc><C-g><C-g>")
    prompted(desk, "text:")
    desk.keys("<Esc>")
    desk.until_idle()
    assert desk.text() == f"{MARKER}\n\n/echo\nmore"
    desk.keys("<C-g><C-g>")
    prompted(desk, "text:")
    desk.keys("now<CR>")
    complete(desk)
    assert desk.text().startswith(f"{MARKER} say: now\n\nmore\n\n🤖:[Demo]\n\nnow")


@pytest.mark.parametrize("text", ["say: x /echo", " /echo is text", "/no/such/file", "/none"])
def test_any_other_text_is_plain_text(desk: Child, text: str) -> None:
    chat_of(desk, "plain.md", f"{MARKER} {text}")
    desk.keys("<C-g><C-g>")
    complete(desk)
    assert desk.text().startswith(f"{MARKER} {text}\n\n🤖:[Demo]\n")


def test_a_servers_prompt_is_read_before_it_is_asked(desk: Child) -> None:
    chat_of(desk, "server.md", f"{MARKER} /fake/greet whom=Ada")
    desk.keys("<C-g><C-g>")
    desk.until(lambda: "Read it, then press again to ask" in desk.messages(), "the message")
    assert desk.text().startswith(f"{MARKER} Hello Ada\\x07\n")
    assert "🤖:" not in desk.text()


def test_text_like_markers_and_hidden_characters_are_escaped(desk: Child) -> None:
    chat_of(desk, "marks.md", f"{MARKER} /marks")
    desk.keys("<C-g><C-g>")
    complete(desk)
    assert desk.text().startswith(f"{MARKER} say: a\n\\🤖: b\\u202e\n\n🤖:[Demo]\n")


def test_the_agent_of_an_own_prompt_answers(desk: Child) -> None:
    chat_of(desk, "agent.md", f"{MARKER} /other")
    desk.keys("<C-g><C-g>")
    complete(desk)
    assert desk.text().startswith(f"{MARKER} say: other\n\n🤖:[Demo-OpenAI]\n\nother")
    assert "this chat now uses Demo-OpenAI" in desk.messages()


# --- Of a project ---------------------------------------------------------------------------------


def put(name: str, text: str, nvim: Child) -> Path:
    """A file in the project."""
    path = Path(nvim.nvim.funcs.getcwd()) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def shown_whole(nvim: Child, answer: str) -> str:
    """Both screens of a page, after which the user may agree with this answer."""
    seen = prompted(nvim, "1: No, not in this session")
    while f"2: {answer}" not in nvim.screen():
        nvim.keys("2<CR>")
        seen += prompted(nvim, "1: No, not in this session")
    return seen


def test_a_projects_prompt_is_shown_before_it_is_used_and_again_when_it_changes(
    desk: Child,
) -> None:
    text = "---\ndescription: D\u202e\nagent: Demo-OpenAI\n---\nsay: theirs"
    path = put(".parley/prompts/theirs.md", text, desk)
    chat_of(desk, "theirs.md", f"{MARKER} ")
    desk.command("ParleyPrompt")
    seen = prompted(desk, "fake/greet")
    assert "theirs  (not trusted yet)  D\\u202e" in seen
    desk.keys("<Esc>")
    desk.keys("A/theirs<Esc><C-g><C-g>")
    seen = shown_whole(desk, "Yes, use this text")
    assert "say: theirs" in seen
    assert "D\\u202e" in seen
    desk.keys("1<CR>")
    desk.until(lambda: desk.text() == f"{MARKER} /theirs", "the chat")
    desk.until_idle()
    desk.keys("<C-g><C-g>")
    shown_whole(desk, "Yes, use this text")
    desk.keys("2<CR>")
    prompted(desk, "This project's prompt theirs asks for the agent Demo-OpenAI. Use it here?")
    desk.keys("1<CR>")
    complete(desk)
    assert desk.text().startswith(f"{MARKER} say: theirs\n\n🤖:[Demo]\n\ntheirs")
    path.write_text(text.replace("theirs", "changed"), encoding="utf-8")
    desk.keys("GA/theirs<Esc><C-g><C-g>")
    seen = shown_whole(desk, "Yes, use this text")
    assert "- say: theirs" in seen
    assert "+ say: changed" in seen
    path.write_text("say: swapped", encoding="utf-8")  # after it was shown
    desk.keys("2<CR>")
    prompted(desk, "asks for the agent")
    desk.keys("1<CR>")
    complete(desk)
    assert "say: changed" in desk.text()
    assert "swapped" not in desk.text()


SKILL = "---\ndescription: Fills in forms\n---\nFill it in.\n"


def test_a_projects_skills_are_agreed_to_on_one_page_and_read(desk: Child) -> None:
    put(".claude/skills/forms/SKILL.md", SKILL, desk)
    guide = put(".claude/skills/forms/guide.md", "Use a pen.\u202e", desk)
    put(".agents/skills/other/SKILL.md", SKILL, desk)
    call = 'call read_skill {"name": "forms", "path": "guide.md"}'
    chat_of(desk, "skills.md", f"{MARKER} {call}")
    desk.keys("<C-g><C-g>")
    seen = shown_whole(desk, "Yes, use these texts")
    assert "this project's skills other and forms" in seen
    assert "Use a pen.\\u202e" in seen
    desk.keys("2<CR>")
    complete(desk)
    assert "`Use a pen.\\u202e`" in desk.text()
    guide.write_text("changed", encoding="utf-8")
    desk.keys(f"GA{call}<Esc><C-g><C-g>")
    seen = shown_whole(desk, "Yes, use these texts")
    assert "+ changed" in seen
    assert "Fills in" not in seen
    desk.keys("1<CR>")
    complete(desk)
    assert "There is no skill 'forms'. Skills: other" in desk.text()
    assert "\nchanged" not in desk.text()


def test_the_health_report_lists_flawed_and_untrusted_files(desk: Child) -> None:
    put(".agents/skills/fresh/SKILL.md", SKILL, desk)
    put(".agents/skills/flawed/SKILL.md", "no front matter", desk)
    desk.command("silent checkhealth parley")
    desk.until_text("prompt files for questions")
    text = desk.text()
    assert "the skill .agents/skills/fresh is not used: you have not trusted it" in text
    assert "flawed/SKILL.md: front matter description: expected a text" in text
    assert "prompts/bad.md: line 2: front matter is not valid YAML" in text
