"""Each test file is named after a module: `tests/` mirrors Parley's rooms and modules."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
PARLEY = HERE.parent / "python" / "parley"
OF_NO_MODULE = {"laws", "fuzz", "e2e", "bench", "nvim", "strict"}
"""Folders whose tests cover many modules: properties, whole processes, a real Neovim."""
OF_THE_PROJECT = {
    "docs",
    "english",
    "examples",
    "gate",
    "layers",
    "lock",
    "mirror",
    "names",
    "package",
    "sources",
    "transcripts",
}
"""Tests outside the rooms: they check the texts, the gate and the package."""

FILES = sorted(
    path.relative_to(HERE)
    for path in HERE.rglob("test_*.py")
    if path.relative_to(HERE).parts[0] not in OF_NO_MODULE
)


def modules(room: Path) -> set[str]:
    """The names of a room's modules and folders."""
    return {
        path.stem for path in (PARLEY / room).iterdir() if path.suffix == ".py" or path.is_dir()
    }


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_test_file_is_named_after_a_module(path: Path) -> None:
    name = path.stem.removeprefix("test_")
    known = modules(path.parent) | (OF_THE_PROJECT if path.parent == Path() else set())
    assert any(name == module or name.startswith(f"{module}_") for module in known), (
        f"no module has this name: {path}"
    )
