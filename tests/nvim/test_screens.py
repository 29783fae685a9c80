"""Pictures of screens: `make screens` draws README's picture, and a picture shows every cell
attribute.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.nvim.harness import ROOT, child
from tests.nvim.picture import drawn
from tests.nvim.screens import COMMON, QUESTION, waiting


def test_the_recipe_draws_the_session(tmp_path: Path) -> None:
    recipes = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    recipe = next(line for line in recipes if "tests.nvim.screens" in line)
    command = (
        recipe.partition("$(BIN)/python ")[2].replace('$(if $(TO),"$(TO)",doc session)', "").split()
    )
    subprocess.run([sys.executable, *command, str(tmp_path), "session"], cwd=ROOT, check=True)
    picture = (tmp_path / "session.svg").read_text(encoding="utf-8")
    assert picture.startswith("<svg")
    assert f"{QUESTION}</text>" in picture


def test_the_cursor_is_visible_on_the_first_waiting_call_at_the_end_of_a_long_chat(
    tmp_path: Path,
) -> None:
    """Earlier, the window started at a line's second row after scrolling to the calls."""
    with child(tmp_path, width=80, height=24) as neovim:
        neovim.lua("require('parley').setup(...)", COMMON)
        waiting(neovim)
        neovim.until_screen(">> Please choose")
        row, _ = neovim.grid.cursor
        assert "".join(neovim.grid.rows[row]).startswith("❓")
        assert neovim.cursor[0] == neovim.text().split("\n❓")[0].count("\n") + 2


LOOKS = """
vim.api.nvim_set_hl(0, 'Normal', { fg = '#101010', bg = '#fefefe' })
vim.api.nvim_set_hl(0, 'Look', vim.json.decode(...))
vim.opt.signcolumn = 'yes'
vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'see\U0001f4ac.' })
vim.api.nvim_buf_set_extmark(0, vim.api.nvim_create_namespace('x'), 0, 0, {
  end_col = 3, hl_group = 'Look', sign_text = '>>', sign_hl_group = 'Look',
})
"""


def test_a_picture_shows_how_a_cell_is_drawn(tmp_path: Path) -> None:
    """A sign and the adjacent text are one run in Neovim 0.10, which draws both alike."""
    cases = {
        '{"bold":true}': 'font-weight="bold" xml:space="preserve">(&gt;&gt;)?see<',
        '{"italic":true}': 'font-style="italic" xml:space="preserve">(&gt;&gt;)?see<',
        '{"underline":true,"sp":"#ff0000"}': 'stroke="#ff0000"',
        '{"undercurl":true}': "q1.05 -2",
        '{"strikethrough":true}': "21.5H",
        '{"reverse":true,"fg":"#ff0000","bg":"#00ff00"}': 'height="18" fill="#ff0000"/>',
        '{"bg":"#0000ff"}': 'width="(25.29|42.15)" height="18" fill="#0000ff"/>',
        '{"fg":"#0000ff"}': 'fill="#0000ff" xml:space="preserve">&gt;&gt;see<',
    }
    with child(
        tmp_path, clean=True, init="vim.o.termguicolors = true", width=40, height=6
    ) as neovim:
        for look, part in cases.items():
            neovim.lua(LOOKS, look)
            neovim.until_screen(">>see\U0001f4ac")
            assert re.search(part, drawn(neovim)), look
        # Text after a wide character is two cells further: after the signs, and three letters.
        assert f'x="{12 + 7 * 8.43:.1f}" y="26" fill="#101010" xml:space="preserve">.<' in drawn(
            neovim
        )
