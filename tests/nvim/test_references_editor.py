"""References to editor text: the file next to the chat, a selection, diagnostics."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nvim.harness import Child
from tests.nvim.test_references import problems
from tests.nvim.test_turn import ask, complete

CODE = "one = 1\ntwo = 2\nthree = 3\nfour = 4\n"


@pytest.fixture
def work(nvim: Child) -> Path:
    """A folder as Neovim's working directory."""
    folder = nvim.home / "project"
    folder.mkdir(exist_ok=True)
    nvim.command(f"cd {folder}")
    return folder


def code(nvim: Child, work: Path, name: str = "numbers.py") -> Path:
    """An open file."""
    path = work / name
    path.write_text(CODE, encoding="utf-8")
    nvim.command(f"edit {path}")
    return path


def stopped(nvim: Child, why: str) -> None:
    """Check that the question was not asked, the user sees the reason, and nothing was written."""
    nvim.until(lambda: problems(nvim), "the problem")
    nvim.until_idle()
    assert [
        text.removesuffix("; ask again to continue without it") for _, text in problems(nvim)
    ] == [why]
    assert f"not asked: {why}" in " ".join(nvim.messages().split("\n"))
    assert "🤖" not in nvim.text()


def test_the_other_file_is_included_with_the_editors_text(nvim: Child, work: Path) -> None:
    path = code(nvim, work)
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 1, true, { 'one = 11' })")
    chat = ask(nvim, "say: hello @@buffer@@")
    complete(nvim)
    expected = f"`numbers.py` (4 lines)\n\n```python\n{CODE.replace('1', '11')}```\n\n🤖:"
    assert expected in nvim.text()
    assert "@@ numbers.py · 4 lines" in nvim.screen()
    nvim.command("silent write")
    assert expected in chat.read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8") == CODE


def test_a_text_that_is_not_the_files_text_says_so_and_otherwise_is_reloaded_first(
    nvim: Child, work: Path
) -> None:
    path, new = code(nvim, work), CODE.replace("1", "uno")
    path.write_text(new, encoding="utf-8")
    ask(nvim, "say: hello @@buffer@@")
    complete(nvim)
    assert f"`numbers.py` (4 lines)\n\n```python\n{new}```" in nvim.text()
    assert nvim.lines(nvim.nvim.funcs.bufnr("numbers.py")) == new.splitlines()

    nvim.command("silent write | buffer numbers.py | call setline(4, 'mine') | normal! ggVj\x1b")
    path.write_text(CODE, encoding="utf-8")
    ask(nvim, "say: hello @@buffer@@ @@selection@@")
    complete(nvim)
    differs = "with unsaved changes; the file on disk differs`"
    mine = new.replace("four = 4", "mine")
    assert f"`numbers.py {differs} (4 lines)\n\n```python\n{mine}```" in nvim.text()
    assert f"`numbers.py:1-2 {differs} (2 lines)" in nvim.text()
    path.unlink()
    nvim.command("silent write | buffer numbers.py")
    ask(nvim, "say: hello @@buffer@@")
    complete(nvim)
    assert f"`numbers.py; the file was deleted` (4 lines)\n\n```python\n{mine}```" in nvim.text()

    nvim.command("silent write! | buffer numbers.py | silent write")
    nvim.command("call setline(4, 'saved') | silent noautocmd write | call setline(4, 'newer')")
    ask(nvim, "say: hello @@buffer@@")
    complete(nvim)
    assert "`numbers.py` (4 lines)" in nvim.text()


def test_in_a_chat_opened_first_it_is_the_other_windows_file(nvim: Child, work: Path) -> None:
    nvim.command("enew | only")
    chat = nvim.edit(str(work / "first.md"), "💬: say: hello @@buffer@@\n")
    nvim.command("split")
    code(nvim, work)
    nvim.command("wincmd p")
    assert nvim.name == str(chat)
    assert nvim.nvim.funcs.bufnr("#") in (-1, nvim.nvim.current.buffer.number)
    nvim.keys("<C-g><C-g>")
    complete(nvim)
    assert f"`numbers.py` (4 lines)\n\n```python\n{CODE}```" in nvim.text()


@pytest.mark.parametrize(
    ("keys", "title", "text"),
    [
        ("ggjVj<Esc>", "numbers.py:2-3", "two = 2\nthree = 3"),
        ("ggjwvj$<Esc>", "numbers.py:2-3", "= 2\nthree = 3"),
        ("ggwvj<Esc>", "numbers.py:1-2", "= 1\ntwo ="),
        ("gg<C-v>jl<Esc>", "numbers.py:1-2", "on\ntw"),
        ("ggjjVy", "numbers.py:3", "three = 3"),
        ("GVgk<Esc>dd", "numbers.py:3", "four = 4"),
        ("ggwvj$<Esc>d0C=<Esc>", "numbers.py:1-2", "= 1\n="),
    ],
)
def test_the_last_selection_there_is_included_with_path_and_lines(
    nvim: Child, work: Path, keys: str, title: str, text: str
) -> None:
    code(nvim, work)
    nvim.command("%delete | silent! undo | set nomodified")
    nvim.keys(keys)
    ask(nvim, "say: hello @@selection@@")
    complete(nvim)
    count = "1 line" if "\n" not in text else f"{text.count(chr(10)) + 1} lines"
    assert f"`{title}` ({count})\n\n```python\n{text}\n```\n\n🤖:" in nvim.text()


def diagnose(nvim: Child, *found: tuple[int, int, int, str, str]) -> None:
    """Give the current buffer diagnostics: row and column from 0, severity, message, source."""
    nvim.lua(
        """
        local found = vim.tbl_map(function(d)
          return { lnum = d[1], col = d[2], severity = d[3], message = d[4], source = d[5] }
        end, ...)
        vim.diagnostic.set(vim.api.nvim_create_namespace('linter'), 0, found)
        """,
        found,
    )


def test_diagnostics_are_included_with_line_severity_message_and_source(
    nvim: Child, work: Path
) -> None:
    code(nvim, work)
    diagnose(nvim, (2, 4, 2, "unused\nsince line 1", "ruff"), (0, 0, 1, "no such name", ""))
    ask(nvim, "say: hello @@diagnostics@@")
    complete(nvim)
    lines = [
        "numbers.py:1:1: error: no such name",
        "numbers.py:3:5: warn: unused since line 1 (ruff)",
    ]
    text = "\n".join(lines)
    assert f"`diagnostics of numbers.py` (2 lines)\n\n```text\n{text}\n```\n\n🤖:" in nvim.text()


def test_only_the_worst_of_very_many_diagnostics_are_included(nvim: Child, work: Path) -> None:
    code(nvim, work)
    hints = [(0, 0, 4, f"hint {n}", "") for n in range(300)]
    diagnose(nvim, *hints, (3, 0, 1, "an error", ""))
    ask(nvim, "write 9 words @@diagnostics@@")
    complete(nvim)
    assert "numbers.py:4:1: error: an error\n(101 more)\n```" in nvim.text()
    assert nvim.text().partition("🤖")[0].count(": hint: ") == 199


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("selection", "nothing is selected in numbers.py"),
        ("diagnostics", "numbers.py has no diagnostics"),
    ],
)
def test_missing_content_stops_the_question(nvim: Child, work: Path, name: str, why: str) -> None:
    code(nvim, work)
    ask(nvim, f"say: hello @@{name}@@")
    stopped(nvim, f"@@{name}@@: {why}")


@pytest.mark.parametrize("name", ["buffer", "selection", "diagnostics"])
def test_without_another_file_the_question_stops(nvim: Child, work: Path, name: str) -> None:
    nvim.command("enew")
    ask(nvim, f"say: hello @@{name}@@")
    assert nvim.nvim.funcs.bufnr("#") in (-1, nvim.nvim.current.buffer.number)
    stopped(nvim, f"@@{name}@@: no other file is open next to this chat")


def test_a_file_that_is_no_longer_open_is_named(nvim: Child, work: Path) -> None:
    code(nvim, work)
    nvim.edit("gone.md", "💬: say: hello @@buffer@@\n")
    nvim.command("bunload #")
    nvim.keys("<C-g><C-g>")
    why = "numbers.py is no longer open: @@numbers.py@@ includes the file"
    stopped(nvim, f"@@buffer@@: {why}")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        ("edit .env | call setline(1, 'KEY=secret')", "named like a secret, so not read"),
        (
            "edit .git/config | call setline(1, 'KEY=secret')",
            "part of Git's own data, so not read",
        ),
        (
            "enew | setlocal buftype=nofile | call setline(1, 'KEY=secret')",
            "[No Name] is not a file",
        ),
        ("enew | file scp://host/KEY | call setline(1, 'x')", "scp://host/KEY is not a file"),
        ("edit empty.py", "empty.py is empty"),
        ('edit nul.py | call setline(1, "a\\nb")', "nul.py is not text"),
        (
            "edit huge.py | call setline(1, repeat(['x'], 200000))",
            "too large (400 kB), so not read",
        ),
    ],
)
def test_a_file_that_may_not_be_read_is_not_read_from_the_editor(
    nvim: Child, work: Path, make: str, why: str
) -> None:
    nvim.command(make)
    ask(nvim, "say: hello @@buffer@@")
    stopped(nvim, f"@@buffer@@: {why}")
    assert "secret" not in nvim.text()


@pytest.mark.parametrize("answer", ["1", "2"])
def test_a_file_outside_the_working_directory_needs_the_users_approval(
    nvim: Child, work: Path, answer: str
) -> None:
    nvim.command(f"edit {nvim.home}/outside.txt | call setline(1, 'from outside')")
    ask(nvim, "say: hello @@buffer@@")
    question = "outside.txtintothechat?"  # on two rows if its path is long
    nvim.until(lambda: question in "".join(nvim.screen().split()), "the question")
    nvim.keys(f"{answer}<CR>")
    if answer == "2":
        complete(nvim)
        assert "`~/outside.txt` (1 line)\n\n```text\nfrom outside\n```" in nvim.text()
    else:
        stopped(nvim, "@@buffer@@: outside the working directory, so not read")


def test_a_buffer_without_a_name_is_included_unchanged(nvim: Child, work: Path) -> None:
    nvim.command("enew | call setline(1, ['pasted ```', 'twice'])")
    ask(nvim, "say: hello @@buffer@@")
    complete(nvim)
    assert "`[No Name]` (2 lines)\n\n````\npasted ```\ntwice\n````" in nvim.text()


def test_cursor_selection_and_registers_stay_unchanged(nvim: Child, work: Path) -> None:
    code(nvim, work)
    nvim.keys("ggyyjv$<Esc>gg")
    place = nvim.cursor
    before = nvim.lua('return { vim.fn.getpos("\'<"), vim.fn.getpos("\'>"), vim.fn.getreg(\'"\') }')
    ask(nvim, "say: hello @@selection@@ @@buffer@@")
    complete(nvim)
    nvim.command("silent write | buffer numbers.py")
    after = nvim.lua('return { vim.fn.getpos("\'<"), vim.fn.getpos("\'>"), vim.fn.getreg(\'"\') }')
    assert (after, nvim.cursor) == (before, place)
