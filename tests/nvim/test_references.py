"""A question's references, in a real Neovim."""

from __future__ import annotations

from tests.nvim.harness import Child
from tests.nvim.test_turn import ask, complete


def problems(nvim: Child) -> list[tuple[int, str]]:
    """The chat's diagnostics."""
    found = nvim.lua(
        "return vim.tbl_map(function(d) return { d.lnum, d.message } end, vim.diagnostic.get(0))"
    )
    return [(row, text) for row, text in found]


def events(nvim: Child) -> None:
    """Record the ends of turns."""
    nvim.lua("""
        _G.ends = {}
        vim.api.nvim_create_autocmd('User', {
          pattern = 'Parley*',
          group = vim.api.nvim_create_augroup('ends', {}),
          callback = function(event) table.insert(_G.ends, event.match) end,
        })
    """)


def test_a_reference_that_cannot_be_included_stops_the_question(nvim: Child) -> None:
    nvim.command(f"cd {nvim.home}")
    events(nvim)
    path = ask(nvim, "say: hello\n\nsee @@none.txt@@")
    nvim.until_screen("not asked: @@none.txt@@: No such file or directory")
    nvim.until_idle()
    text = "💬: say: hello\n\nsee @@none.txt@@"
    assert (nvim.text(), path.read_text(encoding="utf-8")) == (text, f"{text}\n")
    why = "@@none.txt@@: No such file or directory; ask again to continue without it"
    assert problems(nvim) == [(2, why)]
    assert not {"ParleyAnswered", "ParleyStopped"} & set(nvim.lua("return _G.ends"))
    assert nvim.lua("return vim.b.parley_status") == ""


def test_asking_again_at_once_sends_the_question(nvim: Child) -> None:
    nvim.command(f"cd {nvim.home}")
    ask(nvim, "say: hello @@none.txt@@")
    nvim.until(lambda: problems(nvim), "the problem")
    nvim.until_idle()
    nvim.keys("<C-g><C-g>")
    complete(nvim)
    assert "\n\n`none.txt`: No such file or directory\n\n🤖:" in nvim.text()
    assert problems(nvim) == []


def test_the_problem_disappears_when_the_affected_text_changes(nvim: Child) -> None:
    nvim.command(f"cd {nvim.home}")
    ask(nvim, "say: hello @@none.txt@@")
    nvim.until(lambda: problems(nvim), "the problem")
    nvim.until_idle()
    nvim.keys("A again<Esc>")
    nvim.until(lambda: not problems(nvim), "no problem")
    nvim.keys("<C-g><C-g>")
    nvim.until(lambda: problems(nvim), "the problem")
    nvim.until_idle()
    assert nvim.text() == "💬: say: hello @@none.txt@@ again"


def test_a_file_that_is_written_in_the_meantime_is_included(nvim: Child) -> None:
    nvim.command(f"cd {nvim.home}")
    ask(nvim, "say: hello @@later.txt@@")
    nvim.until(lambda: problems(nvim), "the problem")
    nvim.until_idle()
    (nvim.home / "later.txt").write_text("by now\n", encoding="utf-8")
    nvim.keys("<C-g><C-g>")
    complete(nvim)
    assert "`later.txt` (1 line)\n\n```txt\nby now\n```" in nvim.text()


def test_a_hidden_file_is_asked_about_once_in_a_chat(nvim: Child) -> None:
    folder = nvim.home / "hidden" / ".github"
    folder.mkdir(parents=True)
    (folder / "ci.yml").write_text("on: push\n", encoding="utf-8")
    nvim.command(f"cd {folder.parent}")
    path = ask(nvim, "say: hello @@.github/ci.yml@@")
    nvim.until_screen("Read the hidden file")
    nvim.keys("<CR>")  # leaving the dialog declines
    nvim.until(lambda: problems(nvim), "the problem")
    assert problems(nvim)[0][1].startswith("@@.github/ci.yml@@: hidden, so not read")
    nvim.until_idle()
    nvim.keys("A<BS><BS>@@<Esc><C-g><C-g>")
    nvim.until_screen("Read the hidden file")
    nvim.keys("2<CR>")
    complete(nvim)
    assert "`.github/ci.yml` (1 line)\n\n```yml\non: push\n```" in nvim.text()
    nvim.command("silent write!")
    nvim.edit(path.name, "\U0001f4ac: say: again @@.github/ci.yml@@\n")
    nvim.keys("<C-g><C-g>")
    complete(nvim)
    assert "ci.yml` (1 line)\n\n```yml\non: push\n```\n\n🤖:" in nvim.text()
