"""A chat that a tool edits: its front matter counts like that of a file from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child
from tests.nvim.test_agent import ASK, prompts, until_asked
from tests.workspace.trees import work_tree


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return work_tree(tmp_path / "tree", {"app.py": "x\n"})


@pytest.fixture
def nvim(tmp_path: Path, project: Path) -> Iterator[Child]:
    (tmp_path / "home").mkdir()
    settings = {
        "agent": "Demo", "chat_dir": str(project / "chats"), "status": {"llm": False},
        "safety": {"rate_limit_per_minute": 100000}, "approval": {"auto": ["workspace/*"]},
    }  # fmt: skip
    init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(settings))}))"
    with child(tmp_path / "home", init=init, env={"PARLEY_DEMO_PACE": "0"}) as nvim:
        nvim.command(f"cd {project}")
        nvim.lua(ASK)
        yield nvim


def ask(nvim: Child, question: str) -> None:
    nvim.keys("<Esc>")
    nvim.lua("vim.api.nvim_buf_set_lines(0, -2, -1, true, { ... })", f"💬: {question}")
    nvim.command("normal! G")
    nvim.command("ParleyRespond")


def adding(place: str, line: str) -> str:
    content = f"---\ntopic: mine\n{line}\n---\n\n💬: \n"
    return f"call write_file {json.dumps({'path': place, 'content': content})}"


def test_an_agent_that_a_tool_wrote_into_a_chat_is_not_typed_by_the_user(
    nvim: Child, project: Path
) -> None:
    nvim.command("ParleyChatNew mine")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    path, buf = Path(nvim.name), nvim.lua("return vim.api.nvim_get_current_buf()")
    place = path.relative_to(project).as_posix()
    nvim.command("silent write")

    nvim.edit(str(project / "other.md"), "💬: ")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    ask(nvim, adding(place, "agent: Demo-OpenAI"))
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()
    nvim.command(f"buffer {buf}")
    nvim.until(lambda: "agent: Demo-OpenAI" in nvim.lines()[:4], "the edit")
    assert prompts(nvim) == []
    ask(nvim, "say: hello")
    until_asked(nvim, ["Demo-OpenAI"])
