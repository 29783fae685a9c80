"""`tests/` mirrors Parley's rooms and modules: each test file is named after a module, and each module
has a test file of its name or one that `covered_by.py` names.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.covered_by import COVERED_BY, REACHED_BY

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
    "release",
    "sources",
    "transcripts",
    "website",
}
"""Tests outside the rooms: they check the texts, the gate and the package."""

FILES = sorted(
    path.relative_to(HERE)
    for path in HERE.rglob("test_*.py")
    if path.relative_to(HERE).parts[0] not in OF_NO_MODULE
)
MODULES = sorted(
    path.relative_to(PARLEY).with_suffix("").as_posix()
    for path in PARLEY.rglob("*.py")
    if path.stem not in ("__init__", "__main__")
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


def has_own_file(module: str) -> bool:
    """Whether there is a test file of the module's name."""
    path = HERE / module
    files = (f"test_{path.name}.py", f"test_{path.name}_*.py")
    return any(test for pattern in files for test in path.parent.glob(pattern))


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules that a file imports, and the names in them."""
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                names.update(alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module)):
                names.update((module, *(f"{module}.{alias.name}" for alias in node.names)))
    return frozenset(names)


def reach(test: Path) -> frozenset[str]:
    """The modules that a test file imports, and those that these modules import."""
    direct = imports(test)
    paths = [PARLEY.parent / name.replace(".", "/") for name in direct]
    files = [file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py")]
    return direct.union(*(imports(file) for file in files if file.is_file()))


def test_each_module_has_a_test_file_of_its_name_or_is_in_one_table() -> None:
    own = filter(has_own_file, MODULES)
    assert sorted([*own, *COVERED_BY, *REACHED_BY]) == MODULES


def test_each_test_file_imports_its_module_or_a_module_that_imports_it() -> None:
    assert [
        module
        for module, test in COVERED_BY.items()
        if f"parley.{module.replace('/', '.')}" not in reach(HERE / test)
    ] == []


def test_a_test_file_that_does_not_import_its_module_has_the_words_that_reach_it() -> None:
    assert [
        module
        for module, (test, words) in REACHED_BY.items()
        if words not in (HERE / test).read_text(encoding="utf-8")
    ] == []
