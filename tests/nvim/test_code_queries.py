"""The language servers in Neovim answer questions about code, over their real protocol."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Iterator
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from parley.errors import ParleyError
from parley.nvim.code_queries import BufferCode
from parley.nvim.editor import Editor
from parley.workspace.boundary import Boundary
from parley.workspace.editor_code import CodeTools
from parley.workspace.editor_files import NoEditor
from tests.nvim.harness import Child
from tests.workspace.trees import work_tree

SERVER = Path(__file__).parent / "language_server.py"
_number = count(1)
TOOLS = "definition", "diagnostics", "references", "symbols"
CODE = "\U0001f600 = 1\ntotal = 2\n'\U0001f600', total, bug\n"
OTHER = "rate = total\n"
CATCH = """
_G.queried = {}
require('parley.host').mention = function(method, message)
  if method == 'queried' then table.insert(_G.queried, message) end
end
"""
START = """
local python, script, root = ...
return vim.lsp.start({
  name = 'fake', cmd = { python, script }, root_dir = root, filetypes = { 'python' },
})
"""


class Asker:
    """The host's side, which sends its requests when the test says so."""

    def __init__(self, nvim: Child) -> None:
        self._nvim = nvim
        self._untold = list[tuple[Any, ...]]()
        self._loop = asyncio.new_event_loop()
        self.code = BufferCode(cast("Editor", self))

    def tell(self, *call: Any) -> None:
        self._untold.append(call)

    def text(self, work: Coroutine[Any, Any, str]) -> str:
        """The text of a tool, after Neovim has answered once."""
        task = self._loop.create_task(work)
        while not task.done() and not self._untold:
            self._loop.run_until_complete(asyncio.sleep(0.001))
        for call in self._untold:
            self._nvim.lua("require('parley.remote')(...)", *call)
        while not task.done():
            self._nvim.until(lambda: self._nvim.lua("return #_G.queried > 0"), "the answer")
            answer = self._nvim.lua("return table.remove(_G.queried)")
            self.code.answered(answer["id"], answer["value"])
            self._loop.run_until_complete(asyncio.wait({task}))
        self._untold.clear()
        return task.result()

    def close(self) -> None:
        self._loop.close()


@pytest.fixture
def asker(plain: Child, tmp_path: Path) -> Iterator[Asker]:
    """Neovim with `code.py` open and a language server, and `other.py` next to it."""
    (tmp_path / "other.py").write_text(OTHER, encoding="utf-8")
    plain.lua("_G.mention = require('parley.host').mention")
    plain.lua(CATCH)
    path = plain.edit(str(tmp_path / "code.py"), CODE)
    plain.command("setlocal filetype=python")
    client = plain.lua(START, sys.executable, str(SERVER), str(path.parent))
    ready = "return #vim.lsp.get_clients({ id = ..., method = 'workspace/symbol' }) > 0"
    plain.until(lambda: plain.lua(ready, client), "the language server")
    one = Asker(plain)
    yield one
    one.close()
    plain.lua("require('parley.host').mention = _G.mention")
    plain.lua("vim.lsp.stop_client(..., true)", client)


def test_language_servers_report_errors_symbols_definitions_and_references(
    plain: Child, asker: Asker, tmp_path: Path
) -> None:
    tools = CodeTools(Boundary(tmp_path), NoEditor(), asker.code)
    assert sorted(plain.lua("return require('parley.remote')('code_abilities')")) == [*TOOLS]
    assert asker.text(tools.diagnostics("code.py")) == "code.py:3:1: error: this is a bug (fake)"
    assert asker.text(tools.symbols("tot")) == "code.py:2: variable total: total = 2"
    assert asker.text(tools.symbols("none")) == "nothing found"
    assert asker.text(tools.definition("code.py", 3, "total")) == "code.py:2: total = 2"
    buffers = plain.nvim.api.list_bufs()
    expected = [
        "code.py:2: total = 2",
        "code.py:3: '\U0001f600', total, bug",
        "other.py:1: rate = total",
    ]
    assert sorted(asker.text(tools.references("other.py", 1, "total")).split("\n")) == expected
    assert sorted(asker.text(tools.references("code.py", 3, "total")).split("\n")) == expected[:2]
    assert plain.nvim.api.list_bufs() == buffers

    plain.command("call setline(1, 'bug') | call setline(3, 'fixed')")
    assert asker.text(tools.diagnostics()).endswith("(fake)")
    assert asker.text(tools.diagnostics("code.py")) == "code.py:1:1: error: this is a bug (fake)"
    plain.command("call setline(1, 'fixed')")
    assert asker.text(tools.diagnostics("code.py")) == "no errors or warnings"


def test_files_and_servers_that_are_odd_get_an_answer(
    plain: Child, asker: Asker, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(2**40)
    tools = CodeTools(Boundary(tmp_path), NoEditor(), asker.code)
    for name in ("pipe.py", "huge.py", "none.py", "."):
        with pytest.raises(ParleyError, match="not a file of a usual size"):
            asker.text(tools.references(name, 1, "total"))
    assert asker.text(tools.symbols("malformed")) == "nothing found"
    plain.lua("files = require('parley.open_files'); find = files.find")
    plain.lua("files.find = function() error('broken') end")
    with pytest.raises(ParleyError, match=r"Neovim cannot ask: .*broken"):
        asker.text(tools.definition("code.py", 2, "total"))
    plain.lua("files.find = find; files, find = nil, nil")


def test_a_question_without_an_answer_says_why(plain: Child, asker: Asker, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a total\n", encoding="utf-8")
    (tmp_path / ".env").write_text("total\n", encoding="utf-8")
    tools = CodeTools(Boundary(tmp_path), NoEditor(), asker.code)
    for work, why in (
        (tools.definition("code.py", 9, "total"), "line 9 does not contain total"),
        (tools.definition("code.py", 1, "total"), "line 1 does not contain total"),
        (tools.definition("notes.txt", 1, "total"), "no language server"),
        (tools.diagnostics("other.py"), "not open in Neovim"),
        (tools.definition(".env", 1, "total"), "language servers are not asked"),
    ):
        with pytest.raises(ParleyError, match=why):
            asker.text(work)
    inside = CodeTools(Boundary(tmp_path / "none"), NoEditor(), asker.code)
    assert asker.text(inside.symbols("tot")) == "(1 place outside the workspace)"


OFFER = """
_G.offers = 0
local queries = require('parley.code_queries')
_G.abilities = _G.abilities or queries.abilities
queries.abilities = function()
  _G.offers = _G.offers + 1
  return _G.abilities()
end
"""


def offered(nvim: Child, chat: str) -> tuple[set[str], int]:
    """The tools for code that a chat's next request offers, and how often Neovim was asked."""
    nvim.lua(OFFER)
    nvim.edit("chat.md", chat)
    nvim.command("ParleyRequest")
    nvim.until(lambda: nvim.name.endswith("parley://request"), "the page")
    assert '"say: hello"' in nvim.text()
    found = {name for name in TOOLS if f'"name": "{name}"' in nvim.text()}
    nvim.command("bwipeout!")
    return found, nvim.lua("return _G.offers")


def ask(nvim: Child, question: str) -> None:
    """Ask in a new chat, until the calls wait."""
    nvim.edit(f"asked-{next(_number)}.md", f"💬: {question}\n")
    nvim.command("ParleyRespond")
    nvim.until_screen(">> Please choose")
    nvim.until_idle()


def decide(nvim: Child) -> None:
    """Approve the calls, and wait for the end of the answer."""
    nvim.keys("ya")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()


def test_a_model_has_the_tools_for_code_while_a_language_server_runs(
    nvim: Child, tmp_path: Path
) -> None:
    root = work_tree(tmp_path / "tree", {"code.py": CODE, "other.py": OTHER})
    nvim.command(f"cd {root}")
    nvim.edit("first.md", "💬: say: hello\n")
    nvim.command("ParleyRespond")  # a turn finds the folder
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()
    assert offered(nvim, "💬: say: hello\n") == (set(), 1)
    nvim.command(f"edit {root}/code.py | setlocal filetype=python")
    client = nvim.lua(START, sys.executable, str(SERVER), str(root))
    nvim.until(lambda: nvim.lua("return #vim.diagnostic.get() > 0"), "the language server")
    assert offered(nvim, "💬: say: hello\n") == (set(TOOLS), 1)
    without = '---\ntools: ["!workspace/*"]\n---\n\n💬: say: hello\n'
    assert offered(nvim, without) == (set(), 0)

    ask(nvim, 'call symbols {"query": "tot"}')
    decide(nvim)
    assert "code.py:2: variable total: total = 2" in nvim.text()

    nvim.lua("_G.offers = 0")
    ask(nvim, 'call definition {"path": "code.py", "line": 3, "name": "total"}')
    assert nvim.lua("return _G.offers") == 1
    nvim.lua("vim.lsp.stop_client(..., true)", client)
    nvim.until(lambda: nvim.lua("return #vim.lsp.get_clients() == 0"), "its end")
    decide(nvim)
    assert "no language server that runs in Neovim can answer this" in nvim.text()
    nvim.command(f"cd {nvim.home}")
