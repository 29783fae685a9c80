"""Files that are open in Neovim while calls change them on disk or through the buffer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child

SERVER = Path(__file__).parent / "files_server.py"
CODE = "".join(f"line {number}\n" for number in range(1, 41))
_number = count(1)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    settings = {
        "agent": "Demo-OpenAI",
        "status": {"llm": False},
        "mcp": {
            "servers": {
                "files": {"command": sys.executable, "args": [str(SERVER)], "trusted": True}
            }
        },
        "approval": {"auto": ["files/*"]},
        "safety": {"rate_limit_per_minute": 100000},
    }
    init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(settings))}))"
    with child(
        tmp_path_factory.mktemp("files"), init=init, env={"PARLEY_DEMO_PACE": "0"}, width=80
    ) as nvim:
        yield nvim


@pytest.fixture
def nvim(desk: Child) -> Iterator[Child]:
    desk.clear()
    yield desk
    assert not desk.blocked(), desk.screen()


def calls(*named: tuple[str, object]) -> str:
    return "one after another: " + " ".join(
        f"call {name} {json.dumps(arguments)}" for name, arguments in named
    )


def edit(path: Path, old: str, new: str) -> tuple[str, object]:
    return "edit_file", {"path": str(path), "edits": [{"oldText": old, "newText": new}]}


def ask(nvim: Child, question: str) -> None:
    """Ask in a chat in the lower window, with the code in the upper one, until the turn ends."""
    nvim.edit(f"chat-{next(_number)}.md", f"💬: {question}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()


def test_changed_files_are_reloaded_and_those_with_unsaved_changes_are_named_once(
    nvim: Child, tmp_path: Path
) -> None:
    nvim.command(f"cd {tmp_path}")
    for name in ("kept.py", "gone.py", "code.py"):
        (tmp_path / name).write_text(CODE, encoding="utf-8")
    nvim.command("edit gone.py | edit kept.py | call setline(1, 'mine') | edit code.py")
    nvim.command("set noautoread foldmethod=manual | call setline(2, 'before') | silent write")
    nvim.command("30,33fold | 20mark m | call cursor(12, 3) | normal! zt")
    code, window = nvim.nvim.current.buffer.number, nvim.nvim.current.window
    nvim.lua("""
        local files = require('parley.open_files')
        local reload = files.reload
        _G.reloads = 0
        files.reload = function() _G.reloads = _G.reloads + 1; return reload() end
    """)
    nvim.command("belowright new")
    both = [edit(tmp_path / "code.py", f"line {n}\n", f"LINE {n}\n") for n in (8, 9)]
    ask(nvim, calls(*both).removeprefix("one after another: "))
    nvim.until(lambda: "LINE 8" in nvim.lines(code), "the file's text")
    assert nvim.lines(code) == (tmp_path / "code.py").read_text(encoding="utf-8").splitlines()
    assert nvim.lua("return _G.reloads") == 1
    assert window.cursor[0] == 12
    assert nvim.lua("return vim.fn.line('w0', ...)", window.handle) == 12
    where = "return vim.api.nvim_win_call(..., function() return { %s } end)"
    assert nvim.lua(where % 'vim.fn.foldclosed(31), vim.fn.line("\'m")', window.handle) == [30, 20]
    autoread = (
        "vim.o.autoread, vim.api.nvim_get_option_value('autoread', { scope = 'local' }) == nil"
    )
    assert nvim.lua(where % autoread, window.handle) == [False, True]
    nvim.lua(where % "vim.cmd('silent undo')", window.handle)
    assert nvim.lines(code)[1:9:6] == ["before", "line 8"]
    nvim.lua(
        where % "vim.cmd('silent undo | silent undo | silent redo | silent redo')", window.handle
    )

    kept, gone = tmp_path / "kept.py", tmp_path / "gone.py"
    others = [edit(kept, "line 8\n", "LINE 8\n"), ("remove_file", {"path": str(gone)})]
    reads = ("read_text_file", {"path": str(kept)})
    ask(nvim, calls(*others, reads, reads))
    nvim.until(lambda: "deleted on disk" in nvim.messages(), "the message")
    assert nvim.lua("return _G.reloads") == 3
    text = " ".join(nvim.messages().split())
    assert text.count("not reloaded, because of unsaved changes: kept.py (:e! loads") == 1
    assert text.count("deleted on disk, but still open: gone.py") == 1
    assert nvim.lines(nvim.nvim.funcs.bufnr("kept.py"))[:8:7] == ["mine", "line 8"]
    assert nvim.lines(nvim.nvim.funcs.bufnr("gone.py")) == CODE.splitlines()
