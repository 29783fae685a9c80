"""`:ParleyApply` compares a code block of an answer with its file, and leaves the file to the user."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.nvim.harness import Child

CODE = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n"
_number = count(1)


@pytest.fixture
def project(nvim: Child, tmp_path: Path) -> Path:
    """A working directory below a Git work tree's top, with a file of the user in it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "top.py").write_text(CODE, encoding="utf-8")
    nvim.command(f"cd {tmp_path}/sub")
    return tmp_path


def chat(nvim: Child, *lines: str) -> None:
    """Open a chat with an answer, and put the cursor on the first line of its code block."""
    text = "\n".join(["💬: change it", "", "🤖: [Demo]", "", *lines, ""])
    nvim.edit(f"apply-{next(_number)}.md", text)
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.lua("vim.fn.search('^```')")


def apply(nvim: Child, *lines: str) -> None:
    chat(nvim, *lines)
    nvim.keys("<C-g>p")
    nvim.until(lambda: nvim.lua("return vim.wo.diff"), "the diff")


def test_the_users_hunks_go_into_the_file_that_the_block_names(nvim: Child, project: Path) -> None:
    block = ["def one():", "    print('x')", "    return 1"]
    apply(nvim, "Some text about `sub/b.py`:", "", "```python a.py", *block, "```")
    assert nvim.name == str(project / "sub" / "a.py")
    assert nvim.cursor[0] == 5
    assert " a.py" in nvim.until_screen(" block, lines 4 to 5")
    nvim.keys("do")
    nvim.until(lambda: "print" in nvim.text(), "the hunk")
    assert nvim.lines() == CODE.replace("one():", "one():\n    print('x')").splitlines()
    nvim.keys("<C-w>lq")
    nvim.until(
        lambda: "unsaved changes: use :w there to save them" in nvim.messages(), "the message"
    )
    assert "apply-" in nvim.name
    assert (project / "sub" / "a.py").read_text(encoding="utf-8") == CODE


def test_a_file_is_found_in_the_workspace_or_is_new_or_is_the_alternate_file(
    nvim: Child, project: Path
) -> None:
    apply(nvim, "**top.py**", "```python", "def two():", "    # two", "    return 2", "```")
    assert nvim.name == str(project / "top.py")
    nvim.command("tabclose")

    apply(nvim, "```python lib/new.py", "x = 1", "```")
    assert nvim.name == str(project / "sub" / "lib" / "new.py")
    assert nvim.lines() == [""]
    nvim.keys("do")
    nvim.until(lambda: nvim.lines() == ["x = 1"], "the new text")
    nvim.command("tabclose | bwipeout! lib/new.py")

    nvim.command("edit a.py")
    apply(nvim, "Change it like this:", "", "```", "def two():", "    # 2", "    return 2", "```")
    assert nvim.name == str(project / "sub" / "a.py")
    nvim.command("tabclose")


def test_a_block_without_a_place_is_refused_with_the_reason(nvim: Child, project: Path) -> None:
    (project / "sub" / "out.py").symlink_to("/etc/passwd")

    def refusal(*lines: str) -> str:
        nvim.command("messages clear")
        chat(nvim, *lines)
        nvim.keys("<C-g>p")
        nvim.until(nvim.messages, "the message")
        assert not nvim.lua("return vim.wo.diff")
        return " ".join(nvim.messages().split())

    text = refusal("```python a.py", "def three():", "    return 1", "```")
    assert text.endswith(
        "a.py: the code block does not fit anywhere in the file, because its first line is "
        "missing: 'def three():'. :ParleyApply! compares the whole file"
    )
    nvim.command("ParleyApply!")
    nvim.until(lambda: nvim.lua("return vim.wo.diff"), "the diff")
    nvim.keys(":%diffget<CR>")
    nvim.until(lambda: nvim.lines() == ["def three():", "    return 1"], "the whole text")
    nvim.command("tabclose | bwipeout! a.py")

    assert "outside the workspace" in refusal("```python ../../x.py", "x", "```")
    assert "outside the workspace" in refusal("```python out.py", "x", "```")
    assert "part of Git's own data" in refusal("```ini .git/config", "x", "```")
    nvim.command("enew | only | %bwipeout!")
    assert "names no file" in refusal("```python", "x", "```")
    assert "not on a code block" in refusal("no block")
