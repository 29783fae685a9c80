"""A rock's layout: LuaRocks puts the Lua modules, the other folders and single files in three places."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from release.contents import rock
from tests.nvim.harness import ROOT, child
from tests.test_package import tracked

INIT = """
vim.opt.rtp:prepend({rock})
vim.opt.rtp:prepend('stranger')  -- a folder of the working directory
package.path = {modules} .. '/?.lua;' .. {modules} .. '/?/init.lua;' .. package.path
vim.g.parley_python = {python}
"""


def lay_out(folder: Path) -> tuple[Path, Path]:
    """Install the rock; returns the folders of the rock and of the Lua modules."""
    installed, own, modules = rock(tracked()), folder / "rocks" / "parley-nvim", folder / "lua"
    for name, path in installed.modules.items():
        place = name.replace(".", "/") + ("/init.lua" if path.endswith("/init.lua") else ".lua")
        (modules / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, modules / place)
    (own / "conf").mkdir(parents=True)
    for name in installed.files:
        shutil.copy(ROOT / name, own / "conf" / name)
    for name in installed.folders:
        (own / name).symlink_to(ROOT / name)
    return own, modules


def test_parley_runs_from_a_rock_and_never_from_the_working_directory(tmp_path: Path) -> None:
    own, modules = lay_out(tmp_path)
    home = tmp_path / "home"
    stranger = home / "stranger" / "python" / "parley" / "nvim"
    stranger.mkdir(parents=True)
    (stranger / "main.py").write_text("raise SystemExit('a stranger')\n", encoding="utf-8")
    values = {"rock": str(own), "modules": str(modules), "python": sys.executable}
    init = INIT.format(**{name: json.dumps(value) for name, value in values.items()})
    with child(home, init=init, clean=True) as nvim:
        assert nvim.lua("return require('parley.place').root()") == str(own)
        locked = nvim.lua("return require('parley.install').lock()")
        assert locked == str(own / "conf" / "requirements.lock")
        nvim.edit("chat.md", "\U0001f4ac: say: hello there\n")
        nvim.command("ParleyAgent Demo")
        nvim.command("ParleyRespond")
        nvim.until(lambda: "\nhello there\n" in nvim.text(), "the answer")
