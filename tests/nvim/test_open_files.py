"""Files that are open in Neovim while calls change them on disk or through the buffer."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Coroutine, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from parley.errors import ParleyError
from parley.nvim.editor import Editor
from parley.nvim.open_files import BufferFiles
from parley.tools.file_text import decoded
from parley.workspace.editor_files import OpenText
from tests.nvim.harness import Child, child

SERVER = Path(__file__).parent / "files_server.py"
CODE = "".join(f"line {number}\n" for number in range(1, 41))
_number = count(1)
T = TypeVar("T")


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
        "approval": {"auto": ["files/*", "workspace/*"]},
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


def test_the_workspaces_tools_read_and_change_the_buffer_of_an_open_file(
    nvim: Child, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    nvim.command(f"cd {tmp_path} | edit dos.txt | edit code.py | call setline(1, 'mine')")
    nvim.lua("require('parley').setup(require('parley').given)")
    ask(nvim, calls(("read_file", {"path": "code.py", "last_line": 2})))
    assert "from the editor's buffer, with unsaved changes" in nvim.text()
    assert "1\tmine\n2\tline 2\n" in nvim.text()
    ask(nvim, calls(("read_file", {"path": "dos.txt"})))
    assert "dos.txt, 2 lines, from the editor's buffer\n1\tone\n2\ttwo\n" in nvim.text()

    buffer, path = nvim.nvim.funcs.bufnr("code.py"), tmp_path / "code.py"
    changed = CODE.replace("line 1\n", "mine\n").replace("line 3\n", "LINE 3\n")
    change = (
        "workspace__edit_file",
        {"path": "code.py", "edits": [{"old": "line 3\n", "new": "LINE 3\n"}]},
    )
    ask(nvim, calls(change))
    assert "changed in the editor, but not saved" in nvim.text()
    assert nvim.lines(buffer) == changed.splitlines()
    assert path.read_text(encoding="utf-8") == CODE
    nvim.command(f"silent write | buffer {buffer} | silent write")
    move = ("move_file", {"path": "code.py", "to": "moved.py"})
    ask(
        nvim,
        calls(
            (
                "workspace__edit_file",
                {"path": "code.py", "edits": [{"old": "mine", "new": "ours"}]},
            ),
            move,
        ),
    )
    assert (tmp_path / "moved.py").read_text(encoding="utf-8") == changed.replace("mine", "ours")
    assert nvim.lines(buffer)[0] == "ours"
    assert nvim.nvim.api.buf_get_name(buffer) == str(tmp_path / "moved.py")


class Direct:
    """Asks Neovim without a host."""

    def __init__(self, nvim: Child) -> None:
        self._nvim = nvim

    async def ask(self, name: str, *arguments: Any) -> Any:
        return self._nvim.lua("return require('parley.remote')(...)", name, *arguments)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The value of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise AssertionError("it waits")


class Desk:
    """The editor port, for tests that do not wait."""

    def __init__(self, nvim: Child) -> None:
        self.saves = True
        self._files = BufferFiles(cast("Editor", Direct(nvim)), lambda: self.saves, lambda _: None)

    def text(self, path: Path) -> OpenText | None:
        return at_once(self._files.text(path))

    def apply(self, path: Path, before: str, text: str) -> str:
        digest = hashlib.sha256(before.encode()).hexdigest()
        return at_once(self._files.apply(path, digest, text))

    def move(self, path: Path, target: Path) -> None:
        at_once(self._files.move(path, target))


@pytest.fixture
def files(plain: Child) -> Desk:
    plain.lua("require('parley.open_files').watch()")
    return Desk(plain)


SEEN = """
local one, two, ns = ...
local function line(win, place)
  return vim.api.nvim_win_call(win, function() return vim.fn.line(place) end)
end
return {
  vim.api.nvim_win_get_cursor(one), vim.api.nvim_win_get_cursor(two),
  { line(one, 'w0'), line(two, 'w0') },
  { line(one, "'m"), line(one, "'n") },
  vim.api.nvim_win_call(one, function() return { vim.fn.foldclosed(34), vim.fn.foldclosedend(34) } end),
  vim.api.nvim_buf_get_extmark_by_id(vim.api.nvim_win_get_buf(one), ns, 1, {}),
}
"""


def test_an_edit_of_an_open_file_keeps_what_the_user_sees_and_is_one_undo_step(
    plain: Child, files: Desk, tmp_path: Path
) -> None:
    path = plain.edit(str(tmp_path / "code.py"), CODE)
    one = plain.lua("return vim.api.nvim_get_current_win()")
    namespace = plain.lua("return vim.api.nvim_create_namespace('test')")
    plain.command("setlocal foldmethod=manual | 30,36fold | 30mark m | 36mark n")
    plain.lua("vim.api.nvim_buf_set_extmark(0, ..., 29, 5, { id = 1, end_col = 7 })", namespace)
    plain.command("call cursor(12, 4) | normal! zt")
    plain.command("belowright split | call cursor(40, 6)")
    two = plain.lua("return vim.api.nvim_get_current_win()")
    plain.keys("A more<Esc>")
    plain.command("silent write | call cursor(38, 6) | normal! zb")
    shown = (one, two, namespace)
    before, top = plain.text() + "\n", plain.nvim.funcs.line("w0")
    after = before.replace("line 2\n", "line 2\nnew\nnew too\n").replace("line 39\n", "")
    after = after.replace("line 30", "my line 30").replace("line 36", "line 36!")

    assert files.text(path) == OpenText(before)
    assert files.apply(path, before, after) == "saved"
    assert path.read_text(encoding="utf-8") == after == plain.text() + "\n"
    assert not plain.lua("return vim.bo.modified")
    places = [[14, 3], [40, 5], [14, top + 2], [32, 38], [32, 38], [31, 8]]
    assert plain.lua(SEEN, *shown) == places
    plain.command("silent undo")
    assert plain.text() + "\n" == before
    plain.command("silent undo")
    assert plain.text() + "\n" == CODE
    plain.command("silent undo 0 | silent redo | silent write")
    assert files.text(path) == OpenText(before)

    plain.command("enew | only")
    assert files.apply(path, before, after) == "saved"
    assert path.read_text(encoding="utf-8") == after
    assert plain.nvim.current.buffer.name == ""


@pytest.mark.parametrize(
    ("content", "new"),
    [
        (b"one\ntwo", "one\n2"),
        (b"one\ntwo", "one\ntwo\n"),
        (b"one\ntwo\n", "one\ntwo"),
        (b"one\r\ntwo\r\n", "1\r\n\r\ntwo\r\n"),
        (b"one\r\ntwo", "one\r\ntwo\r\n"),
        (b"one\rtwo\r\n", "one\r2\r\n"),
        (b"one\r\ntwo\n", "one\r\n2\n"),
        (b"\xef\xbb\xbfone\n", "eins\n"),
        ("\ufeffone\n\u00fc\n".encode("utf-16-le"), "\u00fc\none\n"),
        (b"caf\xe9\n", "Caf\u00e9s\n"),
        ("\u4e00\u4e8c\U0001f600\n".encode(), "\u4e00\u4e09\U0001f601\n\n"),
        (b"", "first\n"),
        (b"only\n", ""),
        (b"\n", "\n\n"),
    ],
)
def test_the_bytes_of_an_edited_file_are_those_of_its_own_encoding_and_line_ends(
    plain: Child, files: Desk, tmp_path: Path, content: bytes, new: str
) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    plain.command(f"set fileformats=unix,dos,mac | edit {path}")
    plain.command("set fileformats=unix,dos")
    before = decoded(content)
    assert files.text(path) == OpenText(before.text)
    assert files.apply(path, before.text, new) == "saved"
    assert path.read_bytes() == before.encoded(new)
    assert files.text(path) == OpenText(new)
    plain.command("edit!")
    assert files.text(path) == OpenText(new)


def test_an_edit_is_not_written_over_unsaved_changes_or_against_the_setting(
    plain: Child, files: Desk, tmp_path: Path
) -> None:
    path = plain.edit(str(tmp_path / "code.py"), CODE)
    plain.command("call setline(40, 'mine')")
    mine = CODE.replace("line 40", "mine")
    assert files.text(path) == OpenText(mine, is_modified=True)
    assert files.apply(path, CODE, "line\n") == "changed"
    assert files.apply(path, mine, f"first\n{mine}") == "unsaved"
    assert plain.text() + "\n" == f"first\n{mine}"
    plain.command("silent write")
    files.saves = False
    assert files.apply(path, f"first\n{mine}", mine) == "unsaved"
    assert path.read_text(encoding="utf-8") == f"first\n{mine}"
    plain.command("silent write")

    path.write_text("of another program\n", encoding="utf-8")
    assert files.apply(path, mine, CODE) == "changed"
    assert files.text(path) == OpenText("of another program\n")
    path.unlink()
    assert files.text(path) is None
    assert files.apply(path, "of another program\n", CODE) == "changed"
    assert not path.exists()
    plain.command("bdelete")
    path.write_text(CODE, encoding="utf-8")
    assert (files.text(path), files.apply(path, CODE, CODE)) == (None, "changed")


def test_a_failed_write_leaves_file_and_buffer_unchanged_and_a_formatter_may_change_the_text(
    plain: Child, files: Desk, tmp_path: Path
) -> None:
    path = plain.edit(str(tmp_path / "code.py"), CODE)
    plain.command("autocmd BufWritePre <buffer> call append('$', 'formatted')")
    assert files.apply(path, CODE, "line 1\n") == "saved"
    assert path.read_text(encoding="utf-8") == "line 1\nformatted\n"
    plain.command("silent undo")
    assert plain.text() + "\n" == CODE
    plain.command("autocmd! BufWritePre <buffer>")
    plain.command("silent write")
    plain.command("autocmd BufWritePre <buffer> throw 'E999: the formatter failed'")
    with pytest.raises(
        ParleyError, match=r"code\.py is open in Neovim: Neovim cannot write it: E999"
    ):
        files.apply(path, CODE, "line 1")
    assert path.read_text(encoding="utf-8") == CODE == plain.text() + "\n"
    assert not plain.lua("return vim.bo.modified")
    for option in ("readonly", "nomodifiable"):
        plain.command(f"setlocal {option}")
        with pytest.raises(ParleyError, match=f"'{option}' is set"):
            files.apply(path, CODE, "line 1\n")
        plain.command("setlocal noreadonly modifiable")
    plain.command("setlocal fileformat=dos")
    with pytest.raises(ParleyError, match="line ends"):
        files.apply(path, CODE.replace("\n", "\r\n"), CODE)


def test_a_buffer_follows_its_moved_file_and_a_new_file_appears_in_its_empty_buffer(
    plain: Child, files: Desk, tmp_path: Path
) -> None:
    first, second, new = (tmp_path / name for name in ("first.py", "second.py", "new.py"))
    plain.edit(str(first), CODE)
    first.rename(second)
    files.move(first, second)
    assert plain.name == str(second)
    assert plain.nvim.funcs.bufnr(str(first)) == -1
    plain.command("call setline(1, 'more') | silent write | call setline(2, 'unsaved')")
    second.rename(first)
    files.move(second, first)
    assert "first.py was moved, and its unsaved changes" in " ".join(plain.messages().split())
    assert (plain.name, plain.lines()[1]) == (str(first), "unsaved")
    assert first.read_text(encoding="utf-8") == CODE.replace("line 1\n", "more\n")

    plain.command(f"silent write! | edit {new}")
    new.write_text(CODE, encoding="utf-8")
    plain.lua("require('parley.open_files').reload()")
    assert plain.lines() == CODE.splitlines()
    plain.command("call setline(1, 'more') | silent write")


def test_a_new_chat_is_not_reloaded_after_calls_change_files(plain: Child) -> None:
    plain.command("ParleyChatNew new")
    plain.until(lambda: plain.name.endswith(".md"), "the file of the chat")
    plain.keys("<Esc>")
    plain.lua("_G.reads = 0")
    plain.command("autocmd BufReadPost *.md lua _G.reads = _G.reads + 1")
    for _ in range(2):
        plain.lua("require('parley.open_files').reload()")
    assert plain.lua("return _G.reads") == 0
    Path(plain.name).write_text("💬: changed\n", encoding="utf-8")
    plain.lua("require('parley.open_files').reload()")
    assert (plain.lua("return _G.reads"), plain.lines()) == (1, ["💬: changed"])


def test_a_buffer_that_is_being_reloaded_is_sent_whole(plain: Child) -> None:
    plain.edit("loading.txt", "one\ntwo\n")
    reply = plain.lua("return require('parley.remote')('look', vim.fn.bufnr(), 0)")
    assert reply["change"] == {
        "tick": plain.variable("changedtick"),
        "count": 2,
        "lines": ["one", "two"],
    }


def test_a_buffer_that_the_user_did_not_reload_is_still_known_to_differ(
    plain: Child, files: Desk, tmp_path: Path
) -> None:
    path = plain.edit(str(tmp_path / "code.py"), CODE)
    plain.command("set noautoread")
    plain.command("autocmd FileChangedShell <buffer> let v:fcs_choice = ''")
    difference = "return require('parley.open_files').difference(vim.api.nvim_get_current_buf())"
    for change, why in (("silent", "stale"), ("call setline(1, 'mine')", "unsaved")):
        plain.command(change)
        path.write_text(f"{CODE}{why}\n", encoding="utf-8")
        plain.command("checktime")
        assert plain.lua(difference) == why
        opened = files.text(path)
        assert opened == OpenText(plain.text() + "\n", is_modified=True)
        assert files.apply(path, opened.text, f"new\n{opened.text}") == "unsaved"
        plain.command("silent noautocmd write!")
        assert plain.lua(difference) is None
