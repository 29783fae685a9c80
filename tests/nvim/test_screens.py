"""Pictures of screens: `make screens` draws README's pictures, a picture shows every cell attribute,
and a moving picture is still for readers who want no motion.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.nvim.harness import ROOT, child
from tests.nvim.picture import Frame, Shot, drawn, moving
from tests.nvim.screens import COMMON, QUESTION, waiting


def test_the_recipe_draws_the_sessions(tmp_path: Path) -> None:
    recipes = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    recipe = next(line for line in recipes if "tests.nvim.screens" in line)
    command = recipe.partition("$(BIN)/python ")[2]
    command = command.replace('$(if $(TO),"$(TO)",doc asking editing)', "")
    wanted = (str(tmp_path), "session", "light-session")
    subprocess.run([sys.executable, *command.split(), *wanted], cwd=ROOT, check=True)
    dark, light = ((tmp_path / f"{name}.svg").read_text(encoding="utf-8") for name in wanted[1:])
    assert dark.startswith("<svg")
    assert f"{QUESTION}</text>" in dark
    assert f"{QUESTION}</text>" in light
    assert 'rx="8" fill="#14161b"' in dark
    assert 'rx="8" fill="#e0e2ea"' in light


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("asking", ["yA", "Please choose", "web_search(", "$911", "something else?"]),
        (
            "editing",
            ["ya", "return sum(price * count", "edit_file(", ":ParleyRevert", "reverted cart.py"],
        ),
    ],
)
def test_a_moving_picture_of_the_readme_shows_the_whole_session(
    name: str, texts: list[str]
) -> None:
    path = ROOT / "doc" / f"{name}.svg"
    picture = path.read_text(encoding="utf-8")
    shown = "".join(ElementTree.fromstring(picture).itertext())
    assert [text for text in texts if text not in shown] == []
    assert path.stat().st_size < 300_000
    assert "prefers-reduced-motion: reduce" in picture
    assert not re.search(r"<script|href|https?://(?!www\.w3\.org/2000/svg)", picture)


def shots(*rows: str) -> list[Shot]:
    """A second of each row, and three of the last one."""
    frames = [Frame(("same", row), (100, 50), ("#ffffff", "#000000")) for row in rows]
    times = [1.0] * (len(rows) - 1) + [3.0]
    return [Shot(frame, "", "", seconds) for frame, seconds in zip(frames, times, strict=True)]


def test_a_moving_picture_draws_a_part_once_and_shows_it_in_its_time() -> None:
    picture = moving(shots("one", "one", "two"))
    assert picture.count("\nsame\n") == picture.count("\none\n") == picture.count("\ntwo\n") == 1
    assert '<g class="part s0-2">\none\n' in picture
    assert '<g class="part still s2-3">\ntwo\n' in picture
    assert (
        "@keyframes s0-2 { 0.00% { visibility: visible } 40.00% { visibility: hidden } }" in picture
    )
    assert (
        "@keyframes s2-3 { 0.00% { visibility: hidden } 40.00% { visibility: visible } }" in picture
    )
    assert "5s step-end infinite" in picture


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
