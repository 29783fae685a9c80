"""A reason that prevents a turn applies everywhere: in the editor, in the shell, and in the
library.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from parley import Session
from tests.cli.shell import Shell
from tests.forks import forks
from tests.nvim.harness import Child, child

BOUND_S = 60.0
QUESTION = "say: hello"
ANSWER = "\nhello\n"
CASES: dict[str, tuple[str | None, str | None, str, bool]] = {
    "broken front matter": (
        "agent: [broken",
        None,
        "line 2: front matter is not valid YAML",
        False,
    ),
    "narrowing that cannot be read": (
        "tools: web",
        None,
        "line 2: front matter tools: expected",
        False,
    ),
    "unknown agent": (
        "agent: Nobody",
        None,
        "asks for the agent Nobody, which is not set up here: choose one of Claude, ChatGPT, ",
        False,
    ),
    "unknown provider": (
        "provider: nobody",
        None,
        "asks for the provider nobody, which is not set up here",
        False,
    ),
    "unconfirmed agent": ("agent: Demo-OpenAI", None, "agent Demo-OpenAI", False),
    "no such agent": (
        None,
        "Nobody",
        "there is no agent 'Nobody': choose one of Claude, ChatGPT, ",
        False,
    ),
    "no key": (
        None,
        None,
        "no key is set, so this is the demo model. To use another model, sign in",
        True,
    ),
    "nothing to say": ("agent: Demo-OpenAI", "Demo-Text", "", True),
}
"""Front matter, the chosen agent, the message to the user, and whether an answer comes."""


class Editor:
    """A Neovim whose user declines every question."""

    def __init__(self, nvim: Child) -> None:
        self.nvim = nvim

    def __call__(self, folder: Path, text: str, agent: str | None) -> tuple[str, str]:
        nvim = self.nvim
        nvim.lua("_G.prompt = ''; vim.cmd('messages clear')")
        nvim.edit(str(folder / "chat.md"), text)
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        if agent:
            nvim.command(f"ParleyAgent {agent}")
            nvim.until(lambda: agent in nvim.messages(), "the agent")
        if agent != "Nobody":
            nvim.command("normal! G")
            nvim.command("ParleyRespond")
            nvim.until(
                lambda: ANSWER in nvim.text() or self._words(), "an answer or a refusal", BOUND_S
            )
            nvim.until_idle(BOUND_S)
            nvim.until(
                lambda: ANSWER in nvim.text() or self._words(), "an answer or a refusal", BOUND_S
            )
        return self._words(), nvim.text()

    def _words(self) -> str:
        lines = [line for line in self.nvim.messages().splitlines() if "parley" in line.lower()]
        return "\n".join([*lines, self.nvim.lua("return _G.prompt")]).strip()


def in_the_shell(folder: Path, text: str, agent: str | None) -> tuple[str, str]:
    shell = Shell(folder, forks())
    shell.configure("", agent="")
    shell.chat.write_text(text, encoding="utf-8")
    run = shell.run("respond", "chat.md", *(["--agent", agent] if agent else []))
    return run.stderr.decode(), shell.text


async def in_the_library(text: str, agent: str | None) -> tuple[str, str]:
    async with Session(agent=agent, transcript=text, environ={"PARLEY_DEMO_PACE": "0"}) as session:
        chunks = [chunk async for chunk in session.send_message_stream(QUESTION)]
        words = [c["error"] for c in chunks if c["type"] == "error"]
        words += [c["content"] for c in chunks if c["type"] == "hint"]
        return "\n".join(words), session.transcript


def chat(front_matter: str | None, question: str) -> str:
    return f"---\n{front_matter}\n---\n\n{question}" if front_matter else question


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    init = "vim.ui.select = function(_, opts, done) _G.prompt = opts.prompt; done() end"
    with child(tmp_path_factory.mktemp("editor"), init=init, width=250) as nvim:
        yield Editor(nvim)


@pytest.mark.parametrize("case", CASES)
def test_a_turn_begins_in_the_editor(case: str, editor: Editor, tmp_path: Path) -> None:
    front_matter, agent, words, is_answered = CASES[case]
    before = chat(front_matter, f"💬: {QUESTION}\n")
    told, after = editor(tmp_path, before, agent)
    check(words, is_answered, told, before, after)


@pytest.mark.parametrize("case", CASES)
def test_a_turn_begins_in_the_shell(case: str, tmp_path: Path) -> None:
    front_matter, agent, words, is_answered = CASES[case]
    before = chat(front_matter, f"💬: {QUESTION}\n")
    told, after = in_the_shell(tmp_path, before, agent)
    check(words, is_answered, told, before, after)


@pytest.mark.parametrize("case", CASES)
async def test_a_turn_begins_in_the_library(case: str) -> None:
    front_matter, agent, words, is_answered = CASES[case]
    before = chat(front_matter, "")
    told, after = await in_the_library(before, agent)
    check(words, is_answered, told, before, after)


def check(words: str, is_answered: bool, told: str, before: str, after: str) -> None:
    """Compare message and chat with the table: a turn that does not begin changes nothing."""
    assert words in told
    if is_answered:
        assert ANSWER in after
    else:
        assert after.strip() == before.strip()
