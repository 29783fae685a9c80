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
