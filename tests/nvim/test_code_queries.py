"""The language servers in Neovim answer questions about code, over their real protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterator
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

SERVER = Path(__file__).parent / "language_server.py"
CODE = "\U0001f600 = 1\ntotal = 2\n'\U0001f600', total, bug\n"
OTHER = "rate = total\n"
START = """
_G.queried = {}
require('parley.host').mention = function(method, message)
  if method == 'queried' then table.insert(_G.queried, message) end
end
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
    path = plain.edit(str(tmp_path / "code.py"), CODE)
    plain.command("setlocal filetype=python")
    client = plain.lua(START, sys.executable, str(SERVER), str(path.parent))
    plain.until(
        lambda: plain.lua("return #vim.lsp.get_clients({ method = 'workspace/symbol' }) > 0"),
        "the language server",
    )
    one = Asker(plain)
    yield one
    one.close()
    plain.lua("require('parley.host').mention = _G.mention")
    plain.lua("vim.lsp.stop_client(..., true)", client)


def test_language_servers_report_errors_symbols_definitions_and_references(
    plain: Child, asker: Asker, tmp_path: Path
) -> None:
    tools = CodeTools(Boundary(tmp_path), NoEditor(), asker.code)
    assert sorted(plain.lua("return require('parley.remote')('code_abilities')")) == [
        "definition",
        "references",
        "symbols",
    ]
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
    assert asker.text(inside.symbols("tot")) == "(1 place outside of the workspace)"
