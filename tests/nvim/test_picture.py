"""The picture of README is made by `make screens`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.nvim.harness import ROOT
from tests.nvim.picture import QUESTION


def test_the_recipe_draws_the_session(tmp_path: Path) -> None:
    recipes = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    recipe = next(line for line in recipes if "picture" in line and "$(BIN)/python" in line)
    *command, _ = recipe.partition("$(BIN)/python ")[2].split()
    picture = tmp_path / "session.svg"
    subprocess.run([sys.executable, *command, str(picture)], cwd=ROOT, check=True)
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert f"{QUESTION}</text>" in drawn
